"""Certificates as companies have them, for tests of stores and of `check`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from winboot_lab.cluster.authority import certificate_pem, new_key


@dataclass(frozen=True, slots=True)
class Made:
    """A certificate (PEM) and what can sign others with it."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    pem: str


def made(name: str, issuer: Made | None = None, *, ca: bool | None = True, days: int = 3650) -> Made:
    """A certificate of `issuer` (its own without one). `ca` None: without the extension; `days`: until when it is valid."""
    key, subject = new_key(), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    signer = issuer.key if issuer else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.name if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=4000))
        .not_valid_after(now + timedelta(days=days))
    )
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    return Made(subject, key, certificate_pem(builder.sign(signer, hashes.SHA256())))

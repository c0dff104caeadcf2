"""Certificates of CAs as a profile names them: their text, the hash of a key, and the store of Windows that each belongs in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from winboot.base.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography import x509


def certificate(text: str, where: str, owner: str = "cluster.ca") -> str:
    """PEM text with LF line ends and one at the end, so that its bytes on every node are the same."""
    pem = "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"
    if "-----BEGIN CERTIFICATE-----" not in pem:
        raise InvalidInput(f"{owner}: {where} does not contain a certificate", hint="It must be a PEM file.")
    if "PRIVATE KEY" in pem:
        # It would be in the text of the script, and on every node.
        raise InvalidInput(
            f"{owner}: {where} contains a private key", hint="Name a file with certificates alone."
        )
    return pem


@dataclass(frozen=True, slots=True)
class TrustedCertificate:
    """A certificate for a store of the machine: its SHA-1 (Windows' name for it, not a proof) and its bytes (base64)."""

    store: Literal["Root", "CA"]
    thumbprint: str
    body: str
    subject: str
    issuer: str
    not_after: datetime


def trusted_certificates(pem: str, where: str, owner: str) -> tuple[TrustedCertificate, ...]:
    """The certificates of a file, each with its store. Raises InvalidInput for one that cannot be read or that issues none.

    Windows wants self-signed certificates alone in Root: others there break logins by certificate (Microsoft KB 2795828 and
    KB 2802568; `Test-NonSelfSignedCertificateInTrustedRootStore` of microsoft/SdnDiagnostics compares issuer and subject, too).
    """
    from cryptography import x509  # heavy, and only needed for profiles that name such files

    try:
        return tuple(_trusted(one, where, owner) for one in x509.load_pem_x509_certificates(pem.encode()))
    except ValueError as error:
        problem = f"{owner}: a certificate of {where} cannot be read"
        raise InvalidInput(problem, hint="Each must be an X.509 certificate in PEM form.") from error


def _trusted(found: x509.Certificate, where: str, owner: str) -> TrustedCertificate:
    from cryptography.hazmat.primitives.serialization import Encoding

    subject, issuer = found.subject.rfc4514_string(), found.issuer.rfc4514_string()
    self_signed = found.subject == found.issuer
    if not (self_signed or _is_ca(found)):
        problem = f"{owner}: {subject} ({where}) is not a CA's certificate; name that of its issuer, {issuer}"
        raise InvalidInput(problem, hint="Windows trusts an issuer, and what it has signed.")
    raw = found.public_bytes(Encoding.DER)
    return TrustedCertificate(
        store="Root" if self_signed else "CA",
        thumbprint=hashlib.sha1(raw, usedforsecurity=False).hexdigest().upper(),
        body=base64.b64encode(raw).decode(),
        subject=subject,
        issuer=issuer,
        not_after=found.not_valid_after_utc,
    )


def _is_ca(found: x509.Certificate) -> bool:
    from cryptography import x509

    try:
        return found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False


def doubts(certificates: Sequence[TrustedCertificate], now: datetime) -> Iterator[str]:
    """What a machine would not trust all the same: expired certificates, and those of an issuer that is not among them."""
    subjects = {one.subject for one in certificates}
    for one in certificates:
        if one.not_after < now:
            yield f"{one.subject} expired on {one.not_after:%Y-%m-%d}"
        if one.issuer not in subjects:
            yield f"the issuer of {one.subject} is not here; unless the machines trust {one.issuer} already, they trust neither"


def end_of(pem: str) -> datetime | None:
    """When the last certificate of a text ends; None for a text without one."""
    from cryptography import x509

    try:
        return max(one.not_valid_after_utc for one in x509.load_pem_x509_certificates(pem.encode()))
    except ValueError:
        return None


def check_ca_hash(pem: str, wanted: str) -> None:
    """Raises InvalidInput unless the certificate's key has this hash."""
    found = key_hash(pem)
    if found != wanted:
        raise InvalidInput(
            f"cluster.ca: the key of the certificate has the hash {found}, not the one in cluster.ca_hash",
            hint="One of the two belongs to another cluster.",
        )


def key_hash(pem: str) -> str:
    """The sha256 (hex) of a certificate's public key, as kubeadm prints it. Raises InvalidInput for any other
    text."""
    from cryptography import x509  # heavy, and only needed for profiles that name a hash
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        body = pem.split("-----BEGIN CERTIFICATE-----")[1].split("-----END")[0]
        key = x509.load_der_x509_certificate(base64.b64decode(body)).public_key()
    except (IndexError, ValueError) as error:
        raise InvalidInput(
            "cluster.ca: the certificate cannot be read", hint="It must be a PEM file."
        ) from error
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()

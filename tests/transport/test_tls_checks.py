"""A certificate is good or bad for winboot, whatever the flags of Python's default context are."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from winboot.remote.transport.wire import _trusting_context

HOST = "win-1.corp.example"
Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def a_certificate(
    name: str, issuer: Pair | None = None, *, ca: bool = False, critical: bool = True, key_ids: bool = True
) -> Pair:
    """A certificate and its key; without `key_ids` it has no key identifiers, as `openssl x509 -req` writes it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    parent, parent_key = issuer if issuer is not None else (None, key)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if parent is None else parent.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=critical)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    if key_ids:
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(parent_key.public_key())
        builder = builder.add_extension(own, critical=False).add_extension(above, critical=False)
    return builder.sign(parent_key, hashes.SHA256()), key


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def rows() -> dict[str, tuple[Pair, str]]:
    """What a machine shows, and what `tls.ca` is."""
    good, lax = a_certificate("ca", ca=True), a_certificate("lax", ca=True, critical=False)
    issued, alone = a_certificate(HOST, good), a_certificate(HOST)
    return {
        "a leaf without an Authority Key Identifier": (
            a_certificate(HOST, good, key_ids=False),
            pem(good[0]),
        ),
        "a CA whose basicConstraints are not critical": (a_certificate(HOST, lax), pem(lax[0])),
        "the machine's own issued certificate": (issued, pem(issued[0])),
        "a self-signed certificate that is its own CA": (alone, pem(alone[0])),
    }


@pytest.fixture(params=["as Python 3.11", "as Python 3.13"])
def flags(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The default context with the flags of a Python: `Changed in version 3.13` of ssl.create_default_context."""
    make = ssl.create_default_context
    both = ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT

    def made(*, cadata: str | None = None) -> ssl.SSLContext:
        context = make(cadata=cadata)
        context.verify_flags = (
            context.verify_flags | both if request.param.endswith("3.13") else context.verify_flags & ~both
        )
        return context

    monkeypatch.setattr(ssl, "create_default_context", made)
    _trusting_context.cache_clear()
    yield
    _trusting_context.cache_clear()


def shake(shown: Pair, context: ssl.SSLContext, folder: Path) -> None:
    """A handshake in memory. Raises ssl.SSLCertVerificationError."""
    file = folder / "server.pem"
    key = shown[1].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
    file.write_text(pem(shown[0]) + key, encoding="ascii")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(back, there, server_hostname=HOST)
    server = serving.wrap_bio(there, back, server_side=True)
    waiting = [client, server]
    while waiting:
        one = waiting.pop(0)
        try:
            one.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(one)


@pytest.mark.usefixtures("flags")
@pytest.mark.parametrize("row", rows())
def test_a_certificate_is_good_on_each_python(row: str, tmp_path: Path) -> None:
    shown, ca = rows()[row]

    shake(shown, _trusting_context(ca), tmp_path)


@pytest.mark.usefixtures("flags")
def test_another_ca_and_another_name_are_bad_on_each_python(tmp_path: Path) -> None:
    ca = a_certificate("ca", ca=True)
    other = pem(a_certificate("other", ca=True)[0])

    with pytest.raises(ssl.SSLCertVerificationError):
        shake(a_certificate(HOST, ca), _trusting_context(other), tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(a_certificate("win-2.corp.example", ca), _trusting_context(pem(ca[0])), tmp_path)

"""The lab's certificate authority: real X.509, so that every consumer's own checks are exercised."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Certificates are valid from a little earlier, as kube-controller-manager does, so that small clock
# differences pass.
BACKDATE = timedelta(minutes=5)
# The CA, the server and the administrator must be valid by the lab's clock and by the real one.
EVER = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC))
CLIENT_AUTH = "client auth"
SERVER_AUTH = "server auth"
_EXTENDED = {CLIENT_AUTH: ExtendedKeyUsageOID.CLIENT_AUTH, SERVER_AUTH: ExtendedKeyUsageOID.SERVER_AUTH}


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its private key, both PEM."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What a certificate (or request) claims about its holder."""

    common_name: str
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


class NotTrusted(Exception):
    """A certificate that this authority did not sign, or that is not valid now, in Go's words."""


def new_key() -> ec.EllipticCurvePrivateKey:
    """A fresh private key (P-256: as quick to make as a lab needs)."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """The key as an EC PRIVATE KEY block, the form kubelet writes."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode("ascii")


def certificate_pem(certificate: x509.Certificate) -> str:
    """PEM text of a certificate."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def request_pem(key: ec.EllipticCurvePrivateKey, subject: Subject) -> str:
    """A certificate signing request, as a kubelet makes one."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(subject))
    names = _alternative_names(subject)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")


@lru_cache(maxsize=256)
def subject_of(thing: x509.Certificate | x509.CertificateSigningRequest) -> Subject:
    """Read the subject and the alternative names back."""

    def values(oid: x509.ObjectIdentifier) -> list[str]:
        return [str(a.value) for a in thing.subject.get_attributes_for_oid(oid)]

    try:
        names = thing.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        dns: tuple[str, ...] = ()
        addresses: tuple[str, ...] = ()
    else:
        dns = tuple(names.get_values_for_type(x509.DNSName))
        addresses = tuple(str(a) for a in names.get_values_for_type(x509.IPAddress))
    return Subject(
        common_name=next(iter(values(NameOID.COMMON_NAME)), ""),
        organizations=tuple(values(NameOID.ORGANIZATION_NAME)),
        dns_names=dns,
        addresses=addresses,
    )


class Authority:
    """A self-signed CA that issues and checks certificates."""

    def __init__(self, common_name: str) -> None:
        self._key = new_key()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(EVER[0])
            .not_valid_after(EVER[1])
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(is_ca=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = certificate_pem(self._certificate)

    def issue(
        self,
        subject: Subject,
        usages: Sequence[str],
        valid: tuple[datetime, datetime] = EVER,
    ) -> KeyPair:
        """A new key and its certificate."""
        key = new_key()
        return KeyPair(self._sign(subject, key.public_key(), usages, valid), key_pem(key))

    def sign_request(
        self,
        request: x509.CertificateSigningRequest,
        usages: Sequence[str],
        now: datetime,
        lifetime: timedelta,
    ) -> str:
        """The certificate that a signing request asks for."""
        public = request.public_key()
        if not isinstance(public, ec.EllipticCurvePublicKey):
            raise NotTrusted("the lab signs elliptic-curve keys only")
        return self._sign(subject_of(request), public, usages, (now - BACKDATE, now + lifetime))

    def _sign(
        self,
        subject: Subject,
        public: ec.EllipticCurvePublicKey,
        usages: Sequence[str],
        valid: tuple[datetime, datetime],
    ) -> str:
        extended = [_EXTENDED[u] for u in usages if u in _EXTENDED]
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(self._certificate.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(valid[0])
            .not_valid_after(valid[1])
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(extended), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        names = _alternative_names(subject)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return certificate_pem(builder.sign(self._key, hashes.SHA256()))

    def check(self, pem: str, now: datetime) -> Subject:
        """The subject of a certificate that we signed and that is valid at `now`; raises NotTrusted."""
        certificate = load_certificate(pem)
        check_validity(certificate, now)
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            raise NotTrusted("x509: certificate signed by unknown authority") from None
        return subject_of(certificate)


@lru_cache(maxsize=256)
def load_certificate(pem: str) -> x509.Certificate:
    """The first certificate of a PEM text."""
    try:
        return x509.load_pem_x509_certificate(pem.encode("utf-8"))
    except ValueError:
        raise NotTrusted("unable to parse certificate PEM") from None


def is_address(text: str) -> bool:
    """Whether a host is written as an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def check_validity(certificate: x509.Certificate, now: datetime) -> None:
    """Raise NotTrusted in Go's words when `now` is outside the certificate's lifetime."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        raise NotTrusted(
            "x509: certificate has expired or is not yet valid: "
            f"current time {now:%Y-%m-%dT%H:%M:%SZ} is before {start:%Y-%m-%dT%H:%M:%SZ}"
        )
    if now > end:
        raise NotTrusted(
            "x509: certificate has expired or is not yet valid: "
            f"current time {now:%Y-%m-%dT%H:%M:%SZ} is after {end:%Y-%m-%dT%H:%M:%SZ}"
        )


def _name(subject: Subject) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in subject.organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)])


def _alternative_names(subject: Subject) -> list[x509.GeneralName]:
    return [
        *(x509.DNSName(name) for name in subject.dns_names),
        *(x509.IPAddress(ipaddress.ip_address(a)) for a in subject.addresses),
    ]


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not is_ca,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )

"""The rules and the API refuse forged requests with the same reason."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, rsa
from cryptography.x509.oid import AttributeOID, ExtendedKeyUsageOID, NameOID
from winboot_lab.cluster import ApiFailure, LabCluster
from winboot_lab.cluster.identity import Identity, user

from tests.cluster.conftest import LabTransport, kubelet
from winboot.remote.cluster.base import SERVING_SIGNER, ExpectedNode, Request
from winboot.remote.cluster.lightkube import LightkubeCluster
from winboot.remote.cluster.requests import problems

NODE: Final = ExpectedNode("win-1", frozenset({"win-a1"}), frozenset({"10.0.1.11"}))
CSRS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
P256: Final = ec.generate_private_key(ec.SECP256R1())
NAMES: Final = ((NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:win-1"))
SANS: Final = (x509.DNSName("win-1"), x509.IPAddress(ip_address("10.0.1.11")))


def pem(
    *,
    names: tuple[tuple[x509.ObjectIdentifier, str], ...] = NAMES,
    sans: tuple[x509.GeneralName, ...] = SANS,
    extensions: tuple[x509.ExtensionType, ...] = (),
    attribute: bytes = b"",
    key: Any = P256,
    digest: Any = hashes.SHA256(),  # noqa: B008 - a value without state
) -> bytes:
    """A kubelet's request for a serving certificate, with what a test changes in it."""
    subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in names])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if sans:
        builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    if attribute:
        builder = builder.add_attribute(AttributeOID.CHALLENGE_PASSWORD, attribute)
    return builder.sign(key, digest).public_bytes(serialization.Encoding.PEM)


def forged(text: bytes) -> bytes:
    """The same with one bit of its signature turned."""
    der = x509.load_pem_x509_csr(text).public_bytes(serialization.Encoding.DER)
    wrong = x509.load_der_x509_csr(der[:-1] + bytes([der[-1] ^ 1]))
    return wrong.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True)
class Case:
    """A hostile request: its PEM, its requester, its usages, and a word of the reason."""

    pem: Callable[[], bytes]
    why: str
    who: Identity = kubelet("win-1")  # noqa: RUF009 - a value
    usages: tuple[str, ...] = ("digital signature", "server auth")


MASTERS = (NameOID.ORGANIZATION_NAME, "system:masters")
SECOND = (NameOID.COMMON_NAME, "system:node:win-2")
CASES: dict[str, Case] = {
    "another node's name": Case(
        lambda: pem(names=(NAMES[0], SECOND)), "the subject must be system:node:win-1"
    ),
    "a second common name": Case(
        lambda: pem(names=(*NAMES, SECOND)), "the subject must be system:node:win-1"
    ),
    "a second organization": Case(lambda: pem(names=(*NAMES, MASTERS)), "the organization must be exactly"),
    "another organization": Case(lambda: pem(names=(MASTERS, NAMES[1])), "the organization must be exactly"),
    "an organizational unit": Case(
        lambda: pem(names=(*NAMES, (NameOID.ORGANIZATIONAL_UNIT_NAME, "system:masters"))),
        "it has OU=system:masters",
    ),
    "a serial number": Case(
        lambda: pem(names=(*NAMES, (NameOID.SERIAL_NUMBER, "1"))), "common name and an organi"
    ),
    "a foreign name": Case(
        lambda: pem(sans=(*SANS, x509.DNSName("kubernetes.default"))), "the name kubernetes.def"
    ),
    "a wildcard": Case(lambda: pem(sans=(x509.DNSName("*.example.com"),)), "the name *.example.com"),
    "a foreign address": Case(
        lambda: pem(sans=(*SANS, x509.IPAddress(ip_address("10.96.0.1")))), "the address 10.96.0.1"
    ),
    "an address in another notation": Case(
        lambda: pem(sans=(*SANS, x509.IPAddress(ip_address("::ffff:10.0.1.12")))), "the address ::ffff:"
    ),
    "a mail address": Case(
        lambda: pem(sans=(*SANS, x509.RFC822Name("a@example.com"))), "RFC822Name are not for"
    ),
    "more names than a machine has, each its own": Case(
        lambda: pem(sans=(x509.DNSName("win-1"),) * 65), "65 names and addresses, more than 64"
    ),
    "as many names as fit": Case(
        lambda: pem(sans=(x509.DNSName("win-1"),) * 20_000), "characters, more than 65536"
    ),
    "an URI": Case(
        lambda: pem(sans=(*SANS, x509.UniformResourceIdentifier("spiffe://a/b"))),
        "UniformResourceIdentifier are not",
    ),
    "no names": Case(lambda: pem(sans=()), "at least one name or address"),
    "CA:TRUE": Case(lambda: pem(extensions=(x509.BasicConstraints(ca=True, path_length=None),)), "CA:TRUE"),
    "CA:FALSE": Case(
        lambda: pem(extensions=(x509.BasicConstraints(ca=False, path_length=None),)), "no extension"
    ),
    "a foreign extended usage": Case(
        lambda: pem(extensions=(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]),)),
        "ExtendedKeyUsage",
    ),
    "an unknown extension": Case(
        lambda: pem(extensions=(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00"),)),
        "1.2.3.4 (unknown)",
    ),
    "a password": Case(lambda: pem(attribute=b"secret"), "no attribute 1.2.840.113549.1.9.7"),
    "P-192": Case(lambda: pem(key=ec.generate_private_key(ec.SECP192R1())), "curve secp192r1"),
    "P-224": Case(lambda: pem(key=ec.generate_private_key(ec.SECP224R1())), "curve secp224r1"),
    "Bitcoin's curve": Case(lambda: pem(key=ec.generate_private_key(ec.SECP256K1())), "curve secp256k1"),
    "RSA with 1024 bits": Case(lambda: pem(key=rsa.generate_private_key(65537, 1024)), "1024 bits"),
    "DSA": Case(lambda: pem(key=dsa.generate_private_key(1024)), "DSAPublicKey"),
    "Ed448": Case(lambda: pem(key=ed448.Ed448PrivateKey.generate(), digest=None), "Ed448PublicKey"),
    "SHA-224": Case(lambda: pem(digest=hashes.SHA224()), "signed with sha224"),
    "another's key": Case(lambda: forged(pem()), "not a readable PKCS#10"),
    "two requests in one text": Case(lambda: pem() + pem(names=(*NAMES, MASTERS)), "not a readable PKCS#10"),
    "a text before it": Case(lambda: b"Key: value\n" + pem(), "not a readable PKCS#10"),
    "asked for by a token": Case(
        pem,
        "must request a serving certificate itself",
        user("system:bootstrap:abcdef", "system:bootstrappers"),
    ),
    "asked for by another node": Case(pem, "must request a serving certificate itself", kubelet("win-2")),
    "asked for by a person": Case(
        pem, "must request a serving certificate itself", user("eve", "system:nodes")
    ),
    "without the group of nodes": Case(pem, "not in the group system:nodes", user("system:node:win-1")),
    "a node that is an administrator": Case(
        pem, "but kubelets are not in this group", user("system:node:win-1", "system:nodes", "system:masters")
    ),
    "a client's usage": Case(pem, "the usages must be", usages=("digital signature", "client auth")),
    "a client's usage, too": Case(
        pem, "the usages must be", usages=("digital signature", "server auth", "client auth")
    ),
    "any usage": Case(pem, "the usages must be", usages=("any",)),
    "usage to sign": Case(
        pem, "the usages must be", usages=("digital signature", "server auth", "cert sign")
    ),
}


def a_request(case: Case) -> Request:
    text = base64.b64encode(case.pem()).decode()
    return Request("csr-1", SERVING_SIGNER, case.who.name, case.who.groups, frozenset(case.usages), text)


def test_the_request_that_the_others_are_made_from_is_in_order() -> None:
    assert problems(a_request(Case(pem, "")), NODE) == ()
    for key in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        assert problems(a_request(Case(lambda key=key: pem(key=key), "")), NODE) == ()


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_with_its_reason(name: str) -> None:
    case = CASES[name]

    reasons = problems(a_request(case), NODE)

    assert [why for why in reasons if case.why in why], reasons


@pytest.fixture(scope="module")
def lab() -> LabCluster:
    return LabCluster()


@pytest.mark.parametrize("name", CASES)
def test_through_the_api_it_is_never_approved(name: str, lab: LabCluster, kubeconfig: Path) -> None:
    """Whatever the API server takes stays pending; what it does not take is no danger."""
    case = CASES[name]
    spec = {
        "request": base64.b64encode(case.pem()).decode(),
        "signerName": SERVING_SIGNER,
        "usages": list(case.usages),
    }
    who = replace(case.who)
    path = f"{CSRS}/{list(CASES).index(name)}"
    try:
        # RBAC decides which accounts may ask at all; here all accounts may, so that only the rules refuse.
        body = {"metadata": {"name": path.rpartition("/")[2]}, "spec": spec}
        as_asked = (
            user(who.name, "system:masters", *who.groups) if not who.name.startswith("system:node:") else who
        )
        lab.request(as_asked, "POST", CSRS, body)
    except ApiFailure as failure:
        assert failure.code in (403, 422)
        return
    with LightkubeCluster(kubeconfig, transport=LabTransport(lab)) as cluster:
        verdicts = {v.request: v for v in cluster.settle_requests(NODE)}

    assert not any(verdict.approved for verdict in verdicts.values())
    status = lab.request(user("admin", "system:masters"), "GET", path).body["status"]
    assert "conditions" not in status

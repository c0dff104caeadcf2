"""Whether a certificate request may be approved: every rule is a sentence that says why not.

A kubelet's certificate is the key to its node, so nothing is approved on resemblance: subject, organization,
usages, alternative names and requestor must be exactly what this join expects.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtensionOID, NameOID

from winboot.base.limits import LARGEST_REQUEST, MOST_NAMES
from winboot.remote.cluster.base import ExpectedNode, Request, RequestState

_UNDATED: Final = datetime.min.replace(tzinfo=UTC)
_USAGE: Final = {"client": "client auth", "serving": "server auth"}
_RSA_BITS: Final = 2048
_CURVES: Final = frozenset({"secp256r1", "secp384r1", "secp521r1"})
_DIGESTS: Final = frozenset({"sha256", "sha384", "sha512"})
# Groups of a user that a kubelet's client certificate names.
_NODE_GROUPS: Final = frozenset({"system:nodes", "system:authenticated"})
_EXTENSION_REQUEST: Final = x509.ObjectIdentifier("1.2.840.113549.1.9.14")
_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE REQUEST-----\r?\n(?:[A-Za-z0-9+/]+={0,2}\r?\n)+-----END CERTIFICATE REQUEST-----\s*"
)


def state_of(conditions: Sequence[str], *, issued: bool) -> RequestState:
    """Where a request stands, by the types of its conditions."""
    if issued:
        return "issued"
    states: tuple[tuple[str, RequestState], ...] = (
        ("Denied", "denied"),
        ("Failed", "failed"),
        ("Approved", "approved"),
    )
    return next((state for kind, state in states if kind in conditions), "pending")


def subject_name(request: Request) -> str | None:
    """The common name asked for; None when the request cannot be read."""
    parsed = _parse(request)
    if parsed is None:
        return None
    names = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else None


def concerns(request: Request, node: ExpectedNode) -> bool:
    """Whether this request is about the node: it asks for its name, or comes from it."""
    return request.kind is not None and (request.user == node.user or subject_name(request) == node.user)


def newest(requests: Iterable[Request]) -> frozenset[str]:
    """The names of each user's newest serving requests; several where the cluster dates them alike, to the second.

    A kubelet holds the key of its newest request alone: it makes a new one at each start and after 15 minutes without an answer
    (client-go, util/certificate/certificate_manager.go, rotateCerts and certificateWaitTimeout).
    """
    made: dict[str, list[tuple[datetime, str]]] = {}
    for one in requests:
        if one.kind == "serving":
            made.setdefault(one.user, []).append((one.made or _UNDATED, one.name))
    return frozenset(name for found in made.values() for when, name in found if when == max(found)[0])


def problems(request: Request, node: ExpectedNode) -> tuple[str, ...]:
    """Why the request must not be approved; empty when all is in order."""
    if len(request.pem) > LARGEST_REQUEST:
        return (f"the request has {len(request.pem)} characters, more than {LARGEST_REQUEST}",)
    parsed = _parse(request)
    if parsed is None:
        return ("the request is not a readable PKCS#10 request with a valid signature",)
    return tuple(_problems(request, parsed, node))


def _parse(request: Request) -> x509.CertificateSigningRequest | None:
    """The request, when it is exactly one PEM block and signed by its own key.

    Two readers that find different blocks in one text must not judge and sign different requests, so nothing may be
    next to the block.
    """
    if len(request.pem) > LARGEST_REQUEST:
        return None
    try:
        pem = base64.b64decode(request.pem, validate=True)
        parsed = x509.load_pem_x509_csr(pem) if _PEM.fullmatch(pem) else None
        if parsed is None or not parsed.is_signature_valid:
            return None
        # Read here what a damaged or hostile request would only fail at later.
        parsed.public_key()
        list(parsed.extensions)
    except (
        ValueError,
        binascii.Error,
        UnsupportedAlgorithm,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    ):
        return None
    return parsed


def _problems(request: Request, parsed: x509.CertificateSigningRequest, node: ExpectedNode) -> Iterator[str]:
    if request.kind is None:
        yield f"the signer {request.signer} is not for kubelets"
        return
    yield from _subject_problems(parsed, node)
    yield from _usage_problems(request)
    yield from _requestor_problems(request, node)
    yield from _key_problems(parsed)
    yield from _extra_problems(parsed)
    if request.kind == "client":
        if _alternative_names(parsed) is not None:
            yield "a client certificate must have no alternative names"
    else:
        yield from _name_problems(parsed, node)


def _subject_problems(parsed: x509.CertificateSigningRequest, node: ExpectedNode) -> Iterator[str]:
    def values(oid: x509.ObjectIdentifier) -> list[str]:
        return [str(a.value) for a in parsed.subject.get_attributes_for_oid(oid)]

    common, organizations = values(NameOID.COMMON_NAME), values(NameOID.ORGANIZATION_NAME)
    if common != [node.user]:
        yield f"the subject must be {node.user}, but it is {', '.join(common) or 'empty'}"
    if organizations != ["system:nodes"]:
        yield f"the organization must be exactly system:nodes, but it is {', '.join(organizations) or 'empty'}"
    for attribute in parsed.subject:
        if attribute.oid not in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME):
            name = attribute.rfc4514_attribute_name
            yield f"the subject must have a common name and an organization only, it has {name}={attribute.value!s}"


def _extra_problems(parsed: x509.CertificateSigningRequest) -> Iterator[str]:
    """A kubelet's request has alternative names or nothing but its subject:
    https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/kubelet/certificate/kubelet.go (getTemplate)."""
    for extension in parsed.extensions:
        if extension.oid != ExtensionOID.SUBJECT_ALTERNATIVE_NAME:
            yield f"a kubelet's request has no extension {extension.oid.dotted_string} ({_extension_name(extension)})"
    for attribute in parsed.attributes:
        if attribute.oid != _EXTENSION_REQUEST:
            yield f"a kubelet's request has no attribute {attribute.oid.dotted_string}"


def _extension_name(extension: x509.Extension[x509.ExtensionType]) -> str:
    match extension.value:
        case x509.BasicConstraints(ca=True):
            return "CA:TRUE"
        case x509.UnrecognizedExtension():
            return "unknown"
        case value:
            return type(value).__name__


def _usage_problems(request: Request) -> Iterator[str]:
    required = {"digital signature", _USAGE[request.kind or "client"]}
    if not required <= request.usages <= required | {"key encipherment"}:
        wanted = ", ".join(sorted(required))
        found = ", ".join(sorted(request.usages))
        yield f"the usages must be {wanted} (key encipherment may be added), not {found}"


def _requestor_problems(request: Request, node: ExpectedNode) -> Iterator[str]:
    if request.user == node.user:
        if "system:nodes" not in request.groups:
            yield f"the requestor {request.user} is not in the group system:nodes"
        for group in request.groups:
            if group not in _NODE_GROUPS:
                yield f"the requestor {request.user} is in the group {group}, but kubelets are not in this group"
    elif request.kind == "serving":
        yield f"{node.user} must request a serving certificate itself, not {request.user}"
    elif request.user not in node.requestors:
        yield f"the requestor {request.user} is neither {node.user} nor the token of this join"


def _key_problems(parsed: x509.CertificateSigningRequest) -> Iterator[str]:
    match parsed.public_key():
        case rsa.RSAPublicKey() as key if key.key_size < _RSA_BITS:
            yield f"the key has {key.key_size} bits, fewer than {_RSA_BITS}"
        case ec.EllipticCurvePublicKey() as key if key.curve.name not in _CURVES:
            yield f"the key is on the curve {key.curve.name}, which is not one of {', '.join(sorted(_CURVES))}"
        case rsa.RSAPublicKey() | ec.EllipticCurvePublicKey() | ed25519.Ed25519PublicKey():
            pass
        case other:
            yield f"kubelets do not make keys of the type {type(other).__name__}"
    digest = parsed.signature_hash_algorithm
    if digest is not None and digest.name not in _DIGESTS:
        yield f"the request is signed with {digest.name}, which is not one of {', '.join(sorted(_DIGESTS))}"


def _alternative_names(parsed: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


def _addresses(texts: Iterable[str]) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Those of the texts that are IP addresses: an inventory may know a machine by its name alone."""
    for text in texts:
        try:
            yield ipaddress.ip_address(text)
        except ValueError:
            continue


def _name_problems(parsed: x509.CertificateSigningRequest, node: ExpectedNode) -> Iterator[str]:
    names = _alternative_names(parsed)
    if names is None or not list(names):
        yield "a serving certificate needs at least one name or address"
        return
    if len(list(names)) > MOST_NAMES:
        # Nor is each of them named here: a sentence for each would be as long.
        yield f"the request has {len(list(names))} names and addresses, more than {MOST_NAMES}"
        return
    known_names = {node.name.lower(), *(n.lower() for n in node.names)}
    known_addresses = set(_addresses(node.addresses))
    for name in names:
        match name:
            case x509.DNSName(value=value) if value.lower() in known_names:
                pass
            case x509.IPAddress(value=address) if address in known_addresses:
                pass
            case x509.DNSName(value=value):
                yield (
                    f"the name {value} is not one of this machine's ({', '.join(sorted(known_names))}); "
                    "computer_name or certificate_names in the inventory allow another"
                )
            case x509.IPAddress(value=address):
                known = ", ".join(sorted(map(str, known_addresses))) or "none known"
                yield (
                    f"the address {address} is not one of this machine's ({known}); "
                    "node_ip or certificate_names in the inventory allow another"
                )
            case other:
                yield f"alternative names of the kind {type(other).__name__} are not for kubelets"

"""A certificate request is approved only when every word of it is expected."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from winboot_lab.cluster.authority import Subject, new_key, request_pem

from winboot.remote.cluster.base import CLIENT_SIGNER, SERVING_SIGNER, ExpectedNode, Request
from winboot.remote.cluster.identity import same_machine
from winboot.remote.cluster.requests import problems

NODE = ExpectedNode(
    "win-1", frozenset({"win-a1"}), frozenset({"10.0.1.11"}), frozenset({"system:bootstrap:abcdef"})
)
SUBJECT = Subject("system:node:win-1", ("system:nodes",))
SERVING = Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.1.11",))


def a_request(
    subject: Subject = SUBJECT,
    signer: str = CLIENT_SIGNER,
    user: str = "system:bootstrap:abcdef",
    groups: tuple[str, ...] = ("system:bootstrappers",),
    usages: tuple[str, ...] = ("digital signature", "client auth"),
) -> Request:
    pem = base64.b64encode(request_pem(new_key(), subject).encode()).decode()
    return Request("csr-1", signer, user, groups, frozenset(usages), pem)


def a_serving_request(subject: Subject = SERVING, user: str = "system:node:win-1") -> Request:
    usages = ("digital signature", "key encipherment", "server auth")
    return a_request(subject, SERVING_SIGNER, user, ("system:nodes",), usages)


def test_the_requests_of_an_honest_join_pass() -> None:
    assert problems(a_request(), NODE) == ()
    assert problems(a_request(user="system:node:win-1", groups=("system:nodes",)), NODE) == ()
    assert problems(a_serving_request(), NODE) == ()


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (a_request(Subject("system:node:win-2", ("system:nodes",))), "the subject must be system:node:win-1"),
        (a_request(Subject("system:node:win-1", ("system:masters",))), "the organization must be exactly"),
        (
            a_request(Subject("system:node:win-1", ("system:nodes", "system:masters"))),
            "the organization must be exactly",
        ),
        (a_request(usages=("digital signature", "client auth", "server auth")), "the usages must be"),
        (a_request(usages=("client auth",)), "the usages must be"),
        (a_request(user="system:bootstrap:zzzzzz"), "neither system:node:win-1 nor the token"),
        (a_request(SERVING), "must have no alternative names"),
        (a_request(user="system:node:win-1", groups=()), "not in the group system:nodes"),
        (a_request(signer="example.com/mine"), "not for kubelets"),
        (
            a_serving_request(user="system:bootstrap:abcdef"),
            "system:node:win-1 must request a serving certificate itself",
        ),
        (a_serving_request(SUBJECT), "at least one name"),
        (
            a_serving_request(Subject("system:node:win-1", ("system:nodes",), ("kubernetes",))),
            "the name kubernetes is not",
        ),
        (
            a_serving_request(Subject("system:node:win-1", ("system:nodes",), (), ("10.0.0.10",))),
            "the address 10.0.0.10 is not",
        ),
    ],
)
def test_anything_else_is_refused_with_its_reason(request_: Request, why: str) -> None:
    assert any(why in reason for reason in problems(request_, NODE))


@pytest.mark.parametrize("group", ["system:masters", "system:bootstrappers", "developers", "system:nodes2"])
def test_a_requester_in_any_other_group_is_not_a_kubelet(group: str) -> None:
    known = ("system:nodes", "system:authenticated")

    assert problems(a_request(user=NODE.user, groups=known), NODE) == ()
    (why,) = problems(a_request(user=NODE.user, groups=(*known, group)), NODE)
    assert f"is in the group {group}, but kubelets are not in this group" in why


@pytest.mark.parametrize(
    "name", ["kubernetes.default.svc.cluster.local", "win-2.local", "win-1.evil.example"]
)
def test_a_name_is_the_machines_own_or_it_is_refused_whatever_it_ends_with(name: str) -> None:
    (why,) = problems(a_serving_request(replace(SERVING, dns_names=("win-1", name))), NODE)

    assert f"the name {name} is not one of this machine's" in why


def test_a_serving_request_whose_list_of_names_is_empty_is_refused() -> None:
    """An extension without a name in it is no name."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, NODE.user),
        ]
    )
    made = x509.CertificateSigningRequestBuilder(subject).add_extension(
        x509.SubjectAlternativeName([]), critical=False
    )
    pem = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )

    (why,) = problems(replace(a_serving_request(), pem=base64.b64encode(pem).decode()), NODE)

    assert "at least one name" in why


def test_what_is_no_request_is_refused() -> None:
    broken = Request("csr-1", CLIENT_SIGNER, "u", (), frozenset(), "bm90IGEgcmVxdWVzdA==")

    assert "not a readable PKCS#10" in problems(broken, NODE)[0]


def test_a_uuid_is_the_same_in_either_byte_order() -> None:
    assert same_machine("4C4C4544-0044-3510-8052-B4C04F4A4E32", "{4c4c4544-0044-3510-8052-b4c04f4a4e32}")
    assert same_machine("4C4C4544-0044-3510-8052-B4C04F4A4E32", "44454c4c-4400-1035-8052-b4c04f4a4e32")
    assert not same_machine("4C4C4544-0044-3510-8052-B4C04F4A4E32", "00000000-0000-0000-0000-000000000001")
    assert not same_machine("", "")


def test_a_machine_known_by_a_name_is_judged_by_its_addresses_alone() -> None:
    """What is no IP address matches nothing, and stops nothing."""
    by_name = ExpectedNode("win-1", frozenset(), frozenset({"win-1.example.com", "10.0.1.11"}))

    assert problems(a_serving_request(), by_name) == ()
    (why,) = problems(a_serving_request(), ExpectedNode("win-1", addresses=frozenset({"localhost"})))
    assert "the address 10.0.1.11 is not one of this machine's (none known)" in why
    assert "node_ip or certificate_names" in why


def test_names_that_a_cloud_adds_are_allowed_by_the_inventory() -> None:
    cloud = Subject(
        "system:node:win-1",
        ("system:nodes",),
        ("win-1", "ip-10-0-1-11.ec2.internal"),
        ("10.0.1.11", "3.4.5.6"),
    )
    added = frozenset({"ip-10-0-1-11.ec2.internal", "3.4.5.6"})
    told = ExpectedNode("win-1", added, added | {"10.0.1.11"})

    assert len(problems(a_serving_request(cloud), NODE)) == 2
    assert problems(a_serving_request(cloud), told) == ()


def test_a_request_that_is_not_signed_by_its_own_key_is_refused() -> None:
    """A requester without the key must not get the certificate."""
    request = a_request()
    der = x509.load_pem_x509_csr(base64.b64decode(request.pem)).public_bytes(serialization.Encoding.DER)
    # The last byte is of the signature.
    forged = x509.load_der_x509_csr(der[:-1] + bytes([der[-1] ^ 1]))
    pem = base64.b64encode(forged.public_bytes(serialization.Encoding.PEM)).decode()

    assert problems(replace(request, pem=pem), NODE) == (
        "the request is not a readable PKCS#10 request with a valid signature",
    )


def test_a_request_with_a_second_common_name_is_refused() -> None:
    """Which of two names a signer takes is its own affair."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [
        ("COMMON_NAME", "system:node:win-1"),
        ("COMMON_NAME", "system:node:win-2"),
        ("ORGANIZATION_NAME", "system:nodes"),
    ]
    subject = x509.Name([x509.NameAttribute(getattr(NameOID, kind), value) for kind, value in names])
    pem = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    request = replace(a_request(), pem=base64.b64encode(pem).decode())

    assert any("the subject must be system:node:win-1" in why for why in problems(request, NODE))


def test_a_machine_that_shares_the_half_of_a_uuid_is_another() -> None:
    """Machines of one maker differ in the first groups alone."""
    assert not same_machine("4C4C4544-0044-3510-8052-B4C04F4A4E32", "4C4C4544-0045-3510-8052-B4C04F4A4E32")


@pytest.mark.parametrize("critical", [True, False])
def test_an_extension_that_no_kubelet_asks_for_is_refused(critical: bool) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [("COMMON_NAME", "system:node:win-1"), ("ORGANIZATION_NAME", "system:nodes")]
    pem = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(getattr(NameOID, kind), value) for kind, value in names]))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=critical)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    (why,) = problems(replace(a_request(), pem=base64.b64encode(pem).decode()), NODE)

    assert "no extension 2.5.29.19 (CA:TRUE)" in why

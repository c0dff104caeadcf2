"""A certificate request is approved only when every word of it is expected."""

from __future__ import annotations

import base64

import pytest
from winboot_lab.cluster.authority import Subject, new_key, request_pem

from winboot.cluster.base import ExpectedNode
from winboot.cluster.identity import same_machine
from winboot.cluster.requests import CLIENT_SIGNER, SERVING_SIGNER, Request, problems

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
        (a_request(signer="example.com/mine"), "not a kubelet's"),
        (a_serving_request(user="system:bootstrap:abcdef"), "must be asked for by system:node:win-1"),
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


def test_what_is_no_request_is_refused() -> None:
    broken = Request("csr-1", CLIENT_SIGNER, "u", (), frozenset(), "bm90IGEgcmVxdWVzdA==")

    assert "not a readable PKCS#10" in problems(broken, NODE)[0]


def test_a_uuid_is_the_same_in_either_byte_order() -> None:
    assert same_machine("4C4C4544-0044-3510-8052-B4C04F4A4E32", "{4c4c4544-0044-3510-8052-b4c04f4a4e32}")
    assert same_machine("4C4C4544-0044-3510-8052-B4C04F4A4E32", "44454c4c-4400-1035-8052-b4c04f4a4e32")
    assert not same_machine("4C4C4544-0044-3510-8052-B4C04F4A4E32", "00000000-0000-0000-0000-000000000001")
    assert not same_machine("", "")

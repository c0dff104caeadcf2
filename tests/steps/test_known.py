"""Addresses that follow from a node's pod networks, and how they are kept: one by one on the lab's engine."""

import base64
import json

import pytest

from tests.steps.test_library import answer, session

__all__ = ["session"]


@pytest.mark.parametrize(
    ("cidr", "offset", "address"),
    [
        ("10.244.3.0/24", 1, "10.244.3.1"),
        ("10.244.0.0/16", 258, "10.244.1.2"),
        ("fd00:10:244:1::/64", 2, "fd00:10:244:1::2"),
        ("fd00:10:244:1::ff00/120", 255, "fd00:10:244:1::ffff"),
    ],
)
def test_the_address_so_many_places_after_the_start_of_a_network(
    session, cidr: str, offset: int, address: str
):
    assert answer(session, f"Get-CidrAddress -Cidr '{cidr}' -Offset {offset}") == [address]


@pytest.mark.parametrize(
    ("cidr", "address", "inside"),
    [
        ("10.244.3.0/24", "10.244.3.255", True),
        ("10.244.3.0/24", "10.244.4.0", False),
        ("10.244.3.128/25", "10.244.3.127", False),
        ("10.0.0.0/8", "10.255.0.1", True),
        ("0.0.0.0/0", "192.0.2.1", True),
        ("fd00:10:244::/56", "fd00:10:244:ff::1", True),
        ("fd00:10:244::/56", "fd00:10:244:100::1", False),
        ("fd00:10:244::/56", "10.244.3.1", False),
    ],
)
def test_an_address_is_in_a_network_of_its_own_family_or_not(session, cidr: str, address: str, inside: bool):
    assert answer(session, f"Test-CidrMember -Cidr '{cidr}' -Address '{address}'") == [inside]


def test_the_file_of_an_ipv6_address_has_no_colons(session):
    assert answer(session, "Get-StorePath -Store 'C:\\s' -Address 'fd00::2'") == ["C:\\s\\fd00__2"]


def _token(claims: object) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{part}.sig"


@pytest.mark.parametrize(
    ("user", "end"),
    [
        ({"token": _token({"exp": 1767225600, "sub": "é?>"})}, ["2026-01-01 00:00:00"]),
        ({"token": _token({"sub": "no end"})}, []),
        ({"token": "opaque"}, []),
        ({"token": "opaque.71aa.too"}, []),
        ({}, []),
    ],
    ids=["with an end", "without", "no web token", "two dots all the same", "no token"],
)
def test_until_when_a_token_holds_is_read_from_itself(session, user: object, end: list[str]):
    text = json.dumps(user)
    shown = f"Get-CredentialEnd -User (ConvertFrom-Json '{text}') | ForEach-Object {{ $_.ToString('yyyy-MM-dd HH:mm:ss') }}"

    assert answer(session, shown) == end

"""One wrong password of a domain account is one try, however many machines there are."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from winboot.base.errors import LoginRefused, Unreachable
from winboot.config.inventory import Connection
from winboot.config.profile.reference import LoginReference
from winboot.remote.transport.logins import MOST_AT_ONCE, Logins, domain_account


class Machine:
    """Takes or refuses a login, and counts the tries."""

    tries = 0

    def __init__(self, answer: Exception | str) -> None:
        self.answer = answer

    def run(self, *_: Any) -> Iterator[str]:
        type(self).tries += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        yield self.answer
        yield "more"

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(autouse=True)
def nobody_has_tried() -> None:
    Machine.tries = 0


def connection(user: str) -> Connection:
    return Connection(user=user, password=LoginReference(env="P"))


def outcome(logins: Logins, user: str, answer: Exception | str, name: str = "n") -> str:
    transport = logins.guarded(connection(user), Machine(answer), name=name)  # type: ignore[arg-type]
    try:
        return " ".join(transport.run("", {}, {}))
    except (LoginRefused, Unreachable) as error:
        return error.problem


@pytest.mark.parametrize(
    ("user", "account"),
    [
        (r"CORP\Admin", r"corp\admin"),
        ("admin@corp.example", "admin@corp.example"),
        (r".\Administrator", None),
        ("Administrator", None),
    ],
)
def test_a_local_account_is_another_one_on_each_machine(user: str, account: str | None) -> None:
    assert domain_account(connection(user)) == account


def test_200_machines_and_a_wrong_password_are_a_few_tries_and_each_left_out_is_named() -> None:
    logins = Logins()
    refused = LoginRefused("the login was refused", hint="")

    with ThreadPoolExecutor(32) as pool:
        said = list(pool.map(lambda n: outcome(logins, r"CORP\a", refused, f"n{n}"), range(200)))

    assert Machine.tries <= MOST_AT_ONCE
    left_out = [one for one in said if "did not log in" in one]
    assert len(left_out) == 200 - Machine.tries


def test_a_local_account_is_tried_everywhere() -> None:
    logins = Logins()

    said = [outcome(logins, r".\a", LoginRefused("no", hint=""), f"n{n}") for n in range(5)]

    assert (said, Machine.tries) == (["no"] * 5, 5)


def test_an_account_that_was_good_once_is_tried_everywhere() -> None:
    """A machine may refuse it for reasons of its own: clock, policy, trust."""
    logins = Logins()

    said = [outcome(logins, r"CORP\a", answer) for answer in ("ok", LoginRefused("no", hint=""), "ok")]

    assert said == ["ok more", "no", "ok more"]


def test_a_machine_that_is_away_says_nothing_of_the_account() -> None:
    logins = Logins()

    said = [outcome(logins, r"CORP\a", answer) for answer in (Unreachable("away", hint=""), "ok")]

    assert said == ["away", "ok more"]

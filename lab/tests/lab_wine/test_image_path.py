"""ImagePath: what sc.exe takes from the command line that winboot gives it is what winboot wanted."""

from __future__ import annotations

import pytest

from lab_wine.prefix import SERVICES, Wine
from lab_wine.wishes import CASES, a_table, define, joined


@pytest.mark.parametrize(("profile", "service"), CASES)
def test_sc_stores_the_command_line_byte_for_byte(wine: Wine, profile: str, service: str) -> None:
    """From the wish through Join-Argument, CreateProcess and sc.exe's own reading into the registry."""
    table = a_table(profile, service)
    words = define(table).words("create")
    # Each case is a service of its own, for Wine's sc.exe knows no `config`. Its `depend=` stores what lies behind
    # the list in memory, so the pair stays out.
    words[2] = f"sc-{profile}-{service}".replace(" ", "-")
    at = words.index("depend=")
    words = words[:at] + words[at + 2 :]
    words[words.index("DisplayName=") + 1] = words[2]

    wine.run_line(joined(words))

    stored = wine.values_with("ImagePath", rf"{SERVICES}\{words[2]}")
    assert stored["ImagePath"] == table["command_line"]
    # By hand at first: a service that is only half made must not start with the machine. `config` says when later.
    assert stored["Start"] == 3

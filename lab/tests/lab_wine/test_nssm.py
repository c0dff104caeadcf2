"""NSSM: what winboot writes into the registry for a wish is what nssm.exe itself writes for it, and nssm.exe obeys it."""

from __future__ import annotations

import pytest

from lab_wine.prefix import NSSM, SERVICES, Wine
from lab_wine.wishes import CASES, a_table, define
from winboot.script.steps.services import _PRIORITIES

NSSM_CASES = [case for case in CASES if a_table(*case).get("parameters")]
# Later than the release 2.24, which neither takes nor reads it.
UNKNOWN_TO_2_24 = "AppKillProcessTree"


def install(wine: Wine, name: str, parameters: dict[str, object]) -> None:
    """The same wish by nssm's own commands."""
    wine.run(NSSM, "install", name, str(parameters["Application"]))
    for parameter, value in parameters.items():
        match parameter, value:
            case ("Application" | "AppKillProcessTree", _) | (_, None):
                continue
            case "AppExit", _:
                wine.run(NSSM, "set", name, parameter, "Default", str(value))
            case "AppPriority", _:
                spelled = next(word for word, number in _PRIORITIES.items() if number == value)
                wine.run(NSSM, "set", name, parameter, spelled)
            case _, list():
                wine.run(NSSM, "set", name, parameter, *value)
            case _:
                wine.run(NSSM, "set", name, parameter, str(value))


@pytest.mark.parametrize(("profile", "service"), NSSM_CASES)
def test_nssm_writes_the_same_values_for_the_same_wish(with_nssm: Wine, profile: str, service: str) -> None:
    """Every value with its kind's data, and nothing besides."""
    table = a_table(profile, service)
    name = f"nssm-{profile}-{service}".replace(" ", "-")
    install(with_nssm, name, table["parameters"])

    ours = define(table).parameters
    ours.pop(UNKNOWN_TO_2_24, None)
    assert with_nssm.values(rf"{SERVICES}\{name}\Parameters") == ours


def test_awkward_wishes_too_are_written_alike(with_nssm: Wine) -> None:
    """A priority, and lines with blanks, quotation marks and backslashes."""
    table = a_table("flannel-host-gw", "flanneld")
    table["parameters"] |= {
        "AppPriority": _PRIORITIES["ABOVE_NORMAL_PRIORITY_CLASS"],
        "AppEnvironmentExtra": ['A=say "hi"', "B=C:\\dir\\", "C=two words\\"],
        "AppParameters": '--name "two words" --path "C:\\my dir\\\\"',
    }
    install(with_nssm, "awkward", table["parameters"])

    assert with_nssm.values(rf"{SERVICES}\awkward\Parameters") == define(table).parameters


def test_nssm_joins_the_words_of_a_command_without_quoting_them(with_nssm: Wine) -> None:
    """The reason why winboot writes AppParameters itself, as one text."""
    with_nssm.run(NSSM, "install", "unquoted", r"C:\a.exe", "--config", r"C:\Program Files\c.toml")

    stored = with_nssm.values(rf"{SERVICES}\unquoted\Parameters")
    assert stored["AppParameters"] == r"--config C:\Program Files\c.toml"

    with_nssm.run(NSSM, "set", "unquoted", "AppParameters", "--config", r"C:\Other Files\c.toml")

    stored = with_nssm.values(rf"{SERVICES}\unquoted\Parameters")
    assert stored["AppParameters"] == r"--config C:\Other Files\c.toml"


def test_nssm_2_24_knows_no_choice_about_its_children(with_nssm: Wine) -> None:
    """AppKillProcessTree came after the release; the value that winboot writes is for later versions."""
    with_nssm.run(NSSM, "install", "tree", r"C:\a.exe")

    with pytest.raises(AssertionError, match="Invalid parameter"):
        with_nssm.run(NSSM, "set", "tree", UNKNOWN_TO_2_24, "0")


def test_nssm_starts_what_winboot_has_written(with_nssm: Wine) -> None:
    """Program, arguments, directory, environment and log file, read by nssm.exe from values of winboot's kinds."""
    table = a_table("flannel-host-gw", "flanneld")
    table["parameters"] |= {
        "Application": r"C:\windows\system32\cmd.exe",
        "AppParameters": "/c set NODE_& cd",
        "AppStdout": r"C:\said.log",
        "AppStderr": r"C:\said.log",
        "AppExit": "Exit",
    }
    with_nssm.run("sc.exe", "create", "obeyed", "binPath=", NSSM)
    with_nssm.write(rf"{SERVICES}\obeyed\Parameters", define(table).parameters)

    with_nssm.start("obeyed")

    said = with_nssm.drive_c / "said.log"
    assert with_nssm.text_of(said, until="C:\\\r\n") == "NODE_NAME=win-a1\r\nC:\\\r\n"

"""Words of Ansible, kubectl and Terraform lead to winboot's word."""

from __future__ import annotations

import pytest

from winboot import __version__
from winboot.cli import run
from winboot.cli.commands import help_text

REFUSED = [
    (["join", "--dry-run"], "winboot plan"),
    (["repair", "--dry-run"], "winboot plan"),
    (["join", "--check"], "winboot plan"),
    (["upgrade", "--version", "1.37.0"], "kubernetes.version"),
    (["delete", "win-1"], "winboot remove"),
    (["destroy"], "winboot remove"),
    (["get", "nodes"], "winboot status"),
    (["logs"], "winboot log"),
    (["apply"], "winboot join"),
    (["completion", "bash"], "--install-completion"),
    (["report", "last", "-o", "html"], "--report FILE.html"),
]


@pytest.mark.parametrize(("typed", "answer"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_an_error_names_winboots_word(
    typed: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed) == 64
    told = capsys.readouterr().err
    assert answer in told.partition("next: ")[2]


@pytest.mark.parametrize("typed", ["--dry-run", "--drian", "--dr", "--diff"])
def test_a_typo_never_suggests_to_drain(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["join", typed]) == 64
    assert "--drain" not in capsys.readouterr().err


def test_version_and_help_are_commands_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == run(["help"]) == 0
    assert capsys.readouterr().out == f"winboot {__version__}\n{help_text()}\n"
    assert run(["help", "runs"]) == 0
    assert "winboot runs" in capsys.readouterr().out

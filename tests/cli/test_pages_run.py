"""The command lines of the pages do what they say on a small lab; tests/docs_run.py lists those that do not run there."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab

from tests.docs_run import NOT_RUN, on_the_lab, why_not
from tests.test_docs import COMMANDS
from winboot.cli import run

LINES = sorted({" ".join(words): words for _, words in COMMANDS}.items())
MACHINES = {"hosts.txt": "win-6 10.0.1.16 2022\n", "machines.json": json.dumps({"win-7": "10.0.1.17"})}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of a joined lab, as the tutorial makes them."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with Lab(nodes=1) as lab:
        stage(lab, tmp_path)
        monkeypatch.chdir(tmp_path)
        for name, text in MACHINES.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        assert run(["join", "--yes"]) == 0
        assert run(["doctor", "--out", "facts.jsonl"]) == 0
        yield tmp_path


@pytest.mark.parametrize(
    "every", [pytest.param(4, marks=pytest.mark.check), pytest.param(1, marks=pytest.mark.matrix)]
)
def test_the_command_lines_of_the_pages_run(
    every: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fourth of them every day."""
    wrong = {}
    before = (folder / "inventory.yaml").read_text(encoding="utf-8")
    capsys.readouterr()
    for line, words in [one for one in LINES if not why_not(one[1])][::every]:
        (folder / "inventory.yaml").write_text(before, encoding="utf-8")
        monkeypatch.setattr("sys.stdin", io.StringIO("win-8 10.0.1.18 2022\n"))
        code, told = run(on_the_lab(words)), capsys.readouterr()
        # A removal that is only shown is a difference (docs/exit-codes.md).
        if code not in ((0, 2) if "--dry-run" in words else (0,)):
            wrong[line] = (code, told.err)

    assert wrong == {}, "\n".join(f"{line}: {found}" for line, found in wrong.items())


def test_each_reason_not_to_run_a_line_is_of_a_line() -> None:
    assert [start for start in NOT_RUN if not any(line.startswith(start) for line, _ in LINES)] == []

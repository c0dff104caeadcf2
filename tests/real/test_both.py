"""The comparison of two engines' tests: the same output, or the first difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.real.both import differences, report
from tests.real.transcript import Recorder, recorded


def told(folder: Path, *events: object) -> dict[str, list[object]]:
    """The recorded output of a test with these events."""
    recorder = Recorder(folder)
    for event in events:
        recorder("output", event if isinstance(event, str) else json.dumps(event))
    return recorded(folder)


def test_what_differs_from_run_to_run_makes_no_difference(tmp_path: Path) -> None:
    first = told(
        tmp_path / "a",
        {"run": "1", "ms": 5, "is": "8b2c7f00-0000-4000-8000-00000000000A at 2025-01-02T03:04:05Z"},
    )
    second = told(
        tmp_path / "b",
        {"run": "2", "ms": 9, "is": "0C2C7F00-0000-4000-8000-00000000000B at 2026-01-02T03:04:05Z"},
    )

    assert differences(first, second) == []
    assert report(first, second, passed=True) == 0


def test_the_first_event_that_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = told(tmp_path / "a", {"step": "a"}, {"state": "ok"}, {"state": "ok"})
    second = told(tmp_path / "b", {"step": "a"}, {"state": "failed"}, {"state": "failed"})

    assert report(first, second, passed=True) == 1
    said = capsys.readouterr().out
    assert ": 2: the lab ['output', {'state': 'ok'}], PowerShell ['output', {'state': 'failed'}]" in said
    assert "1 tests ran a script: 0 have the same output on both engines, 1 do not" in said


def test_the_line_that_powershell_7_breaks_in_an_unknown_commands_message_is_no_difference(
    tmp_path: Path,
) -> None:
    known = "The term 'Get-It' is not a function, script file, or operable program.{}Check the spelling of the name."

    def one(name: str, text: str) -> dict[str, list[object]]:
        return told(tmp_path / name, {"message": text})

    assert differences(one("a", known.format(" ")), one("b", known.format("\n"))) == []
    assert differences(one("c", "two lines"), one("d", "two\nlines")) != []


def test_more_events_are_a_difference(tmp_path: Path) -> None:
    first, second = told(tmp_path / "a", {"step": "a"}), told(tmp_path / "b", {"step": "a"}, "more")

    assert [one.rpartition(": ")[2] for one in differences(first, second)] == [
        "the lab sent 1 events, PowerShell 2"
    ]


def test_a_failed_test_or_none_at_all_is_no_success(tmp_path: Path) -> None:
    one = told(tmp_path / "a", {"step": "a"})

    assert report(one, one, passed=False) == 1
    assert report({}, {}, passed=True) == 1

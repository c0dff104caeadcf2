"""A user at the terminal answers one question."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def at_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    answer: str | type[BaseException],
    meanwhile: Callable[[], None] = lambda: None,
) -> list[str]:
    """Make standard input and error a terminal; the user types `answer`, or it is raised like a signal; first `meanwhile` runs.

    The list gets an entry for each question."""
    asked: list[str] = []

    class Keyboard:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            asked.append("asked")
            meanwhile()
            if isinstance(answer, str):
                return answer
            raise answer

    monkeypatch.setattr("sys.stdin", Keyboard())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    return asked


def as_wide_as(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Standard output is a terminal of so many columns, without colours."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for name, value in {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": str(width)}.items():
        monkeypatch.setenv(name, value)

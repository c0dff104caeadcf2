"""A person at the terminal, who is asked once."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def at_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    answer: str | type[BaseException],
    meanwhile: Callable[[], None] = lambda: None,
) -> list[str]:
    """Standard input and error are a terminal's. `answer` is typed, or raised as a signal is; `meanwhile` happens before. The
    list gets an entry for each time that somebody is asked."""
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

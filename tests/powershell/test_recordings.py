"""The parser against what the real PowerShell answered to some three thousand scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import ParseErrors

from tests.every import assert_none_wrong

RECORDINGS = sorted((Path(__file__).parents[2] / "lab" / "conformance").glob("*.jsonl"))


def cases(path: Path) -> Iterator[dict[str, Any]]:
    """The recordings of one area."""
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line:
            yield json.loads(line)


def complaint(case: dict[str, Any]) -> str | None:
    """How the parser disagrees with a recording, or None."""
    meta = case.get("meta") or {}
    expected = case.get("parse_errors")
    try:
        parse(case["script"])
    except ParseErrors as errors:
        if expected is None:
            # What only newer PowerShells read may be refused here.
            return None if "ps7-only" in meta else f"{case['name']}: refused, {errors.first}"
        line = expected[0]["line"]
        return None if errors.first.line == line else f"{case['name']}: line {errors.first.line}, not {line}"
    return None if expected is None else f"{case['name']}: not refused, {expected[0]['id']}"


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) > 20


def test_the_parser_agrees_with_the_recordings() -> None:
    assert_none_wrong(
        {
            path.stem: [said for case in cases(path) if (said := complaint(case)) is not None]
            for path in RECORDINGS
        }
    )


def test_most_mistakes_have_the_recorded_name() -> None:
    """Ids are a bonus: where 5.1 says something else than the recorded 7 they must differ."""
    path = next(path for path in RECORDINGS if path.stem == "syntax-invalid")
    named = 0
    total = 0
    for case in cases(path):
        with pytest.raises(ParseErrors) as caught:
            parse(case["script"])
        total += 1
        named += caught.value.first.id == case["parse_errors"][0]["id"]
    assert named >= total - 3

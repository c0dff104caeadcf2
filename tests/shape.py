"""JSON lines of winboot, read as a program reads them and held to the published schema."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from winboot.report.schema import lines_schema


@cache
def _validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is missing")
    return jsonschema.Draft202012Validator(lines_schema())


def lines_of(text: str) -> list[dict[str, Any]]:
    """Each line; fails where one is not what the schema says of its kind."""
    lines = [json.loads(line) for line in text.splitlines()]
    wrong = [
        f"{line.get('kind')}: {error.message}: {[one.message for one in error.context or ()][:3]}"
        for line in lines
        for error in _validator().iter_errors(line)
    ]
    assert wrong == []
    return lines

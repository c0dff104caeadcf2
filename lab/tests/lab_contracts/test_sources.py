"""Each row of a contract has a source, and a recorded source says what the row quotes."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from lab_contracts.contract import FOLDER, Recorded, Row, read, recordings

PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
ROW = {"id": "a-row", "kind": "exit", "when": "always", "expect": 0}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_recording_says_what_a_row_quotes(program: str) -> None:
    lines = recordings(program)

    for row in read(program):
        if isinstance(row.source, Recorded):
            assert any(row.source.quote in line for line in lines.get(row.source.recording, [])), row.id


@pytest.mark.parametrize("program", PROGRAMS)
def test_rows_have_names_of_their_own(program: str) -> None:
    ids = [row.id for row in read(program)]

    assert len(ids) == len(set(ids)) > 0


@pytest.mark.parametrize(
    "source",
    [
        None,
        {},
        {"recording": "wrongtoken"},
        {"repo": "kubernetes/kubernetes", "path": "a.go", "quote": "exiting"},
        {"repo": "kubernetes/kubernetes", "tag": "v1.36.2", "path": "a.go", "quote": ""},
        "the documentation",
    ],
    ids=["none", "empty", "no quote", "no tag", "empty quote", "a word"],
)
def test_a_row_without_a_source_is_no_row(source: object) -> None:
    given = ROW if source is None else {**ROW, "source": source}

    with pytest.raises(ValidationError, match="source"):
        TypeAdapter(Row).validate_python(given)

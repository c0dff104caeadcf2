"""The tables of checks name existing rows, and answer each difference that was found."""

from __future__ import annotations

import pytest
import yaml

from lab_contracts.contract import FOLDER, read
from lab_contracts.test_sources import PROGRAMS
from tests.every import assert_none_wrong

IDS = {f"{program}/{row.id}" for program in PROGRAMS for row in read(program)}
DIFFERENCES = yaml.safe_load((FOLDER / "checks/differences.yaml").read_text(encoding="utf-8"))
SECOND_READING = yaml.safe_load((FOLDER / "checks/second-reading.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("series", "last"), [("K", 38), ("H", 15)])
def test_no_difference_is_left_out(series: str, last: int) -> None:
    found = {name for name in DIFFERENCES if name.startswith(series)}

    assert found == {f"{series}{number}" for number in range(1, last + 1)}


def test_a_difference_has_rows() -> None:
    assert_none_wrong(
        {name: (set(rows) - IDS) if rows else "it has no row" for name, rows in DIFFERENCES.items()}
    )


def test_the_second_reader_read_ten_rows_that_are_there() -> None:
    read_rows = {one["row"] for one in SECOND_READING["rows"]}

    assert len(read_rows) == 10
    assert read_rows <= IDS

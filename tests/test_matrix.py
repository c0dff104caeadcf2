"""The everyday choice of a matrix leaves out no value and no pair of values, and a run says which cases it had."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tests.matrix import Matrix, first, note_sample, summary

TABLE = list(itertools.product(("a", "b", "c", "d"), ("sc", "nssm"), ("2019", "2022", "2025")))


def properties(case: tuple[str, str, str]) -> dict[str, object]:
    return dict(zip(("solution", "manager", "release"), case, strict=True))


def a_matrix(strength: int) -> Matrix[tuple[str, str, str]]:
    return Matrix("tests", TABLE, properties, strength)


@pytest.mark.parametrize(("strength", "most"), [(1, 4), (2, 14), (3, 24)])
def test_every_combination_of_so_many_values_is_met(strength: int, most: int) -> None:
    """With few cases: four solutions at strength 1, twelve pairs of solution and release at strength 2."""
    matrix = a_matrix(strength)

    met = set().union(*(matrix.meetings(case) for case in matrix.everyday))

    assert met == set().union(*(matrix.meetings(case) for case in TABLE))
    assert len(matrix.everyday) <= most
    assert {*matrix.everyday, *matrix.others} == set(TABLE)


def test_a_choice_that_takes_turns_is_spread() -> None:
    matrix = Matrix(
        "tests", TABLE, lambda case: {"manager": case[1], "release": case[2]}, 2, lambda case: case[0]
    )

    assert {case[0] for case in matrix.everyday} == {"a", "b", "c", "d"}


def test_what_is_not_chosen_waits_for_make_matrix() -> None:
    marks = {param.id: param.marks[0].name for param in a_matrix(2).params("-".join)}

    assert set(marks) == {"-".join(case) for case in TABLE}
    assert {id for id, name in marks.items() if name == "sample"} == {
        "-".join(case) for case in a_matrix(2).everyday
    }
    assert set(marks.values()) == {"sample", "matrix"}


def test_make_test_runs_the_first_cases_of_the_choice_and_make_check_all() -> None:
    matrix = Matrix("tests", TABLE, properties, 2, core=3)
    later = {param.id for param in matrix.params("-".join) if any(one.name == "check" for one in param.marks)}

    assert later == {"-".join(case) for case in matrix.everyday[3:]}


def test_a_choice_that_is_too_large_for_every_day_begins_with_the_cases_that_add_most() -> None:
    whole, short = a_matrix(2), Matrix("tests", TABLE, properties, 2, daily=5)

    assert short.everyday == whole.everyday[:5]
    assert {*short.everyday, *short.others} == set(TABLE)


def test_of_like_cases_make_test_runs_the_first_few_and_make_check_some_more() -> None:
    params = first(1, ["a", "b", ("c", 1), "d"], daily=3)

    assert [(one.values, one.id, [mark.name for mark in one.marks]) for one in params] == [
        (("a",), "a", []),
        (("b",), "b", ["check"]),
        (("c", 1), "c-1", ["check"]),
        (("d",), "d", ["matrix"]),
    ]


def test_the_end_of_a_run_names_the_cases_that_ran() -> None:
    """Workers hand the notes over with their reports."""
    notes: list[Any] = []
    for case in ("b-sc", "a-sc"):
        mark = pytest.mark.sample("joins", 24).mark
        item: Any = SimpleNamespace(
            name=f"test_x[{case}]", iter_markers=lambda name, mark=mark: [mark], user_properties=notes
        )
        note_sample(item)

    assert summary([*notes, ("damage", "83 of 97")]) == [
        "matrix of joins: 2 of 24 run (all: `make matrix`): a-sc, b-sc"
    ]

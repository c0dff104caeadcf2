"""Which cases of a large table run every day: a choice made by code, printed at the end of the run.

A case is a combination of properties (a solution, a release, a manager). The everyday choice has every value of each
property (`strength` 1), or every two values of two properties that meet anywhere in the table (`strength` 2, pairwise).
All other cases are marked `matrix`: `make matrix` runs them.

`make test` is for the hand, `make check` for every day: of an everyday choice `make test` runs the first cases, as many as
the matrix says (`core`); the others are marked `check`. Like cases without properties are kept short by `first`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import pytest

T = TypeVar("T")
# A value of each of so many properties, which meet in a case.
Meeting = frozenset[tuple[str, object]]
SAMPLE = "sample"


@dataclass
class Matrix(Generic[T]):
    """A table of cases. `properties` gives a case's values by name; `turns`, where given, is what takes turns as far as
    several cases add the same, so that the choice is spread over it. `core` cases of the choice run in `make test`, and no more
    than `daily` in `make check`."""

    name: str
    cases: Iterable[T]
    properties: Callable[[T], Mapping[str, object]]
    strength: int = 2
    turns: Callable[[T], object] = field(default=lambda case: None)
    core: int = 1_000
    daily: int = 1_000

    def __post_init__(self) -> None:
        self.cases = tuple(self.cases)

    @cached_property
    def everyday(self) -> tuple[T, ...]:
        """The chosen cases, greedily: next comes the one that adds most."""
        return tuple(itertools.islice(self._chosen(), self.daily))

    @property
    def others(self) -> tuple[T, ...]:
        """What `make matrix` adds."""
        return tuple(case for case in self.cases if case not in self.everyday)

    def params(self, id: Callable[[T], str]) -> list[Any]:
        """The cases for `pytest.mark.parametrize`, each with its mark. A case that is a tuple gives several arguments."""
        return [self._param(case, id(case)) for case in self.cases]

    def meetings(self, case: T) -> set[Meeting]:
        """The combinations of values that a case has."""
        return {
            frozenset(one) for one in itertools.combinations(self.properties(case).items(), self.strength)
        }

    def _param(self, case: T, id: str) -> Any:
        arguments = case if isinstance(case, tuple) else (case,)
        if case not in self.everyday:
            return pytest.param(*arguments, id=id, marks=pytest.mark.matrix)
        chosen = pytest.mark.sample(self.name, len(tuple(self.cases)))
        later = () if case in self.everyday[: self.core] else (pytest.mark.check,)
        return pytest.param(*arguments, id=id, marks=(chosen, *later))

    def _chosen(self) -> Iterator[T]:
        every = list(self.cases)
        met = [self.meetings(case) for case in every]
        left = set().union(*met)
        candidates = list(range(len(every)))
        while left:
            best = max(candidates, key=lambda at: len(left & met[at]))
            if not left & met[best]:
                candidates = list(range(len(every)))
                continue
            yield every[best]
            left -= met[best]
            turn = self.turns(every[best])
            rest = [at for at in candidates if at != best and (turn is None or self.turns(every[at]) != turn)]
            candidates = rest or list(range(len(every)))


def first(
    keep: int, values: Iterable[object], id: Callable[[Any], str] = str, *, daily: int = 1_000
) -> list[Any]:
    """For `pytest.mark.parametrize`: like cases, of which `make test` runs the first `keep`, `make check` the first `daily`,
    and `make matrix` the others. A value that is a tuple gives several arguments."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            id=id(value) if not isinstance(value, tuple) else "-".join(map(str, value)),
            marks=() if at < keep else (pytest.mark.check if at < daily else pytest.mark.matrix,),
        )
        for at, value in enumerate(values)
    ]


def note_sample(item: pytest.Item) -> None:
    """For the end of the run: which matrix a test is of, which case it runs, and how many there are."""
    for mark in item.iter_markers(SAMPLE):
        case = item.name.partition("[")[2].removesuffix("]")
        item.user_properties.append((SAMPLE, [*mark.args, case]))


def summary(properties: Iterable[tuple[str, object]]) -> list[str]:
    """The lines at the end of a run, from what `note_sample` has noted of the tests that ran."""
    ran: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for name, value in properties:
        if name == SAMPLE and isinstance(value, list):
            matrix, size, case = value
            ran.setdefault(matrix, []).append(case)
            sizes[matrix] = size
    return [
        f"matrix of {name}: {len(cases)} of {sizes[name]} run (all: `make matrix`): {', '.join(sorted(cases))}"
        for name, cases in sorted(ran.items())
    ]

"""Why nodes failed, once for each cause with the nodes that share it, and which steps wait for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from winboot.report.results import Failure, NodeReport, Outcome, StepReport

# A step that builds on one that did not succeed: it says nothing new.
FOLLOWS: Final = "NeedsStep"
# As many names are read; the others are in the table of nodes.
NAMED: Final = 12


@dataclass(frozen=True, slots=True)
class Cause:
    """A step with a problem, or why nodes stopped or were left alone (`failure`, without the node's name)."""

    nodes: tuple[str, ...]
    step: StepReport | None = None
    failure: Failure | None = None
    outcome: Outcome = "failed"

    @property
    def who(self) -> str:
        """The nodes, by name as far as that can be read."""
        return named(self.nodes)


def named(nodes: Sequence[str]) -> str:
    """`win-1, win-2`; of many the first ones, and how many more there are."""
    if len(nodes) <= NAMED:
        return ", ".join(nodes)
    return f"{', '.join(nodes[:NAMED])} and {len(nodes) - NAMED} more"


def causes(nodes: Iterable[NodeReport]) -> tuple[Cause, ...]:
    """Each cause once, the worst first: what failed before what waits, was cut off or left alone, then what most
    nodes share. Else in the order in which they are met."""
    found: dict[Cause, list[str]] = {}
    for node in nodes:
        for cause in _of(node):
            found.setdefault(cause, []).append(node.node)
    together = [
        Cause(tuple(names), cause.step, cause.failure, cause.outcome) for cause, names in found.items()
    ]
    return tuple(sorted(together, key=_weight))


def _weight(cause: Cause) -> tuple[bool, int]:
    failed = cause.outcome == "failed" if cause.step is None else cause.step.state == "failed"
    return not failed, -len(cause.nodes)


def _of(node: NodeReport) -> Iterator[Cause]:
    for step in node.steps:
        if step.problem is not None and step.problem.id != FOLLOWS:
            # The time that it took is its node's own.
            alike = StepReport(step.name, step.state, 0, step.differences, step.problem)
            yield Cause((), alike)
    if (failure := node.failure) is not None:
        said = failure.message.removeprefix(f"{node.node}: ")
        alone = Failure(failure.name, said, failure.hint, failure.exit_code)
        yield Cause((), None, alone, node.outcome)


def followers(nodes: Iterable[NodeReport]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Nodes, by name, and the steps that wait on them for others; nodes on which the same ones wait come together."""
    found: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        waiting = tuple(
            step.name for step in node.steps if step.problem is not None and step.problem.id == FOLLOWS
        )
        if waiting:
            found.setdefault(waiting, []).append(node.node)
    for steps, names in found.items():
        yield named(names), steps

"""Choose the steps of one node and put them in order."""

from __future__ import annotations

import difflib
import graphlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import winboot
from winboot.base.errors import UsageError
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step, custom


@dataclass(frozen=True, slots=True)
class Plan:
    """The chosen steps in the order they run; `left_out` names those that --only or --skip took away.

    `whole` has the steps of the node without that choice. The script is rendered from it whatever is chosen: the node
    keeps the text for its boot task. `digest` is equal for two plans exactly when winboot's version, the steps of the
    node and all values they take are equal.
    """

    steps: tuple[Step, ...]
    left_out: tuple[str, ...]
    digest: str
    whole: tuple[Step, ...] = ()

    @property
    def complete(self) -> Plan:
        """The plan without a choice: what is rendered."""
        return replace(self, steps=self.whole, left_out=())

    @property
    def selection(self) -> str:
        """The chosen steps as the script takes them, separated by commas; empty for all, a comma alone for none."""
        if not self.left_out:
            return ""
        return ",".join(step.name for step in self.node_side) or ","

    @property
    def node_side(self) -> tuple[Step, ...]:
        """What the rendered script does."""
        return tuple(step for step in self.steps if step.side == "node")

    @property
    def cluster_side(self) -> tuple[Step, ...]:
        """What the controller does through the Kubernetes API, after the node is done."""
        return tuple(step for step in self.steps if step.side == "cluster")


def make_plan(
    spec: NodeSpec, steps: Sequence[Step], *, only: Iterable[str] = (), skip: Iterable[str] = ()
) -> Plan:
    """The steps that this node wants, in an order that honours their needs.

    `only` keeps the named steps, what they need, and the essential ones; `skip` drops the named ones, also from those.
    A step left out is taken to be in order already: what builds on it does not wait for it. Raises UsageError for an
    unknown name.
    """
    catalogue = (*steps, *(custom(source) for source in spec.steps))
    known = [step.name for step in catalogue]
    only, skip = tuple(only), tuple(skip)
    for name in (*only, *skip):
        _refuse_unknown(name, known)
    wanted = [step for step in _ordered(catalogue) if step.wanted(spec)]
    kept = _with_needs(only, catalogue) if only else set(known)
    chosen = tuple(step for step in wanted if step.name not in skip and (step.name in kept or step.essential))
    left_out = tuple(step.name for step in wanted if step not in chosen)
    return Plan(chosen, left_out, _digest(spec, wanted), tuple(wanted))


def _with_needs(names: Iterable[str], catalogue: Sequence[Step]) -> set[str]:
    """The names and all that they need, directly or through another step."""
    needs = {step.name: step.needs for step in catalogue}
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(needs[name])
    return found


def _ordered(catalogue: Sequence[Step]) -> tuple[Step, ...]:
    """All steps, each after what it needs; otherwise in the catalogue's order."""
    by_name = {step.name: step for step in catalogue}
    if len(by_name) != len(catalogue):
        names = sorted({step.name for step in catalogue if [s.name for s in catalogue].count(step.name) > 1})
        raise UsageError(
            f"two steps have the same name: {', '.join(names)}",
            hint="Give your own step a name that `winboot steps` does not list.",
        )
    for step in catalogue:
        for need in step.needs:
            if need not in by_name:
                raise UsageError(
                    f"step {step.name!r} needs {need!r}, which is not a step{_meant(need, list(by_name))}",
                    hint="`winboot steps` lists all names.",
                )
    done: dict[str, Step] = {}
    waiting = list(catalogue)
    while waiting:
        ready = next((step for step in waiting if all(need in done for need in step.needs)), None)
        if ready is None:
            raise UsageError(
                f"these steps need each other: {_circle(waiting)}", hint="Break the circle in `needs`."
            )
        done[ready.name] = ready
        waiting.remove(ready)
    return tuple(done.values())


def _circle(waiting: Sequence[Step]) -> str:
    graph = {step.name: step.needs for step in waiting}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return " → ".join(reversed(error.args[1]))
    return ", ".join(graph)


def _refuse_unknown(name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UsageError(
            f"there is no step {name!r}{_meant(name, known)}", hint="`winboot steps` lists all names."
        )


def _meant(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _digest(spec: NodeSpec, steps: Sequence[Step]) -> str:
    told = [
        [step.name, {**step.inputs(spec)}, {**step.files(spec)}, step.secrets(spec), repr(step.source)]
        for step in steps
    ]
    text = json.dumps([winboot.__version__, spec.machine.name, told], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()

"""The file of `winboot plan --out FILE`: what each node's look found and which script it ran, to be approved and then run.

JSON of one version; `sha256` in it is of everything else, so that a file that was cut or edited is known as such. It holds
no secret: differences show none, and of settings and scripts it has the digests alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, structs

import winboot
from winboot.base.clean import clean
from winboot.base.errors import InvalidInput
from winboot.base.foreign import converted, ready
from winboot.report.events import Difference
from winboot.report.line import Sha, schema_of
from winboot.report.results import Digests, NodeReport, Report, StepReport

VERSION: Final = 1


class Selection(Struct, frozen=True):
    """What of the command line decides what a look finds."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    adopt: bool = False


class PlannedStep(Struct, frozen=True):
    """A step that is not as wanted: the id of its problem, and its differences by key."""

    problem: str | None
    differences: tuple[Difference, ...]


class PlannedNode(Digests, frozen=True):
    """One node: the digests of what was shown, and each step that is not as wanted.

    `failure` says why there was no look; such a node is approved for nothing.
    """

    failure: str = ""
    steps: Mapping[str, PlannedStep] = {}


class PlanFile(Struct, frozen=True, kw_only=True):
    """A plan. `made` is an ISO 8601 time in UTC, `by` the user that made it, `run` the run of the look. `sha256` is
    of all else."""

    kind: Literal["winboot plan"] = "winboot plan"
    version: Literal[1] = VERSION
    winboot: str
    made: str
    by: str
    run: str
    selection: Selection
    nodes: Mapping[str, PlannedNode]
    sha256: Sha = ""

    def __post_init__(self) -> None:
        """Its digest is always right, whatever a file says."""
        data = msgspec.to_builtins(self)
        del data["sha256"]
        digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
        structs.force_setattr(self, "sha256", digest)

    def text(self) -> str:
        """The file."""
        return json.dumps(msgspec.to_builtins(self), indent=1) + "\n"


ready(PlanFile)


def plan_of(report: Report, selection: Selection, by: str) -> PlanFile:
    """The plan that a survey's report shows."""
    return PlanFile(
        winboot=winboot.__version__,
        made=report.started,
        by=by,
        run=report.run,
        selection=selection,
        nodes={node.node: _planned(node) for node in report.nodes},
    )


def _planned(node: NodeReport) -> PlannedNode:
    failure = node.failure.message if node.failure else ""
    return PlannedNode(**structs.asdict(node.digests), failure=failure, steps=found_in(node.steps))


def found_in(steps: Iterable[StepReport]) -> dict[str, PlannedStep]:
    """The steps that are not as wanted, in the form of a plan. What others hold is not winboot's to change, and left out."""
    found: dict[str, PlannedStep] = {}
    for step in steps:
        differences = [one for one in step.differences if not one.policy]
        if step.state != "ok" and (differences or step.problem):
            found[step.name] = PlannedStep(
                step.problem.id if step.problem else None,
                tuple(sorted(differences, key=lambda one: (one.key, one.what))),
            )
    return found


def changed_since(planned: Mapping[str, PlannedStep], now: Mapping[str, PlannedStep]) -> tuple[str, ...]:
    """In which steps and keys a look differs from the one of the plan; empty where it is the same."""
    names = []
    for step in sorted({*planned, *now}):
        if planned.get(step) == now.get(step):
            continue
        before, after = _by_key(planned.get(step)), _by_key(now.get(step))
        keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
        names.append(f"{step} ({', '.join(keys) or 'its problem'})")
    return tuple(names)


def _by_key(step: PlannedStep | None) -> dict[str, Difference]:
    return {one.key or one.what: one for one in step.differences} if step is not None else {}


def read_plan(text: str, name: str) -> PlanFile:
    """The plan in a file's text. Raises InvalidInput where it is damaged, or another winboot's."""
    data: object = None
    try:
        data = json.loads(text)
        plan = converted(data, PlanFile)
        # A plan has the texts of its report, and in that is nothing that a terminal takes for a command.
        whole = data == json.loads(plan.text()) and all(clean(one, len(one)) == one for one in _texts(data))
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        version = data.get("version") if isinstance(data, dict) else None
        known = version is None or version == VERSION
        other = "" if known else f" (its version is {version}; this winboot writes version {VERSION})"
        raise InvalidInput(
            f"{name}: this file is not a plan of `winboot plan --out FILE`{other}, or it was damaged or edited",
            hint="Make a new plan with `winboot plan --out FILE`.",
        )
    if plan.winboot != winboot.__version__:
        raise InvalidInput(
            f"{name}: winboot {plan.winboot} made this plan, but this is winboot {winboot.__version__}",
            hint="Make a new plan with `winboot plan --out FILE`, or use the winboot version that made this plan.",
        )
    return plan


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for one in data:
            yield from _texts(one)
    elif isinstance(data, dict):
        for key, one in data.items():
            yield key
            yield from _texts(one)


def differing_digests(planned: Digests, now: Digests) -> Sequence[str]:
    """Which of the three differ, the widest first."""
    words = {
        "library": "winboot's library",
        "settings": "the settings of this node",
        "script": "its script",
    }
    found = [text for name, text in words.items() if getattr(planned, name) != getattr(now, name)]
    # The script names the library and has the settings in it: only what is behind its own difference is worth saying.
    return found[:1] if found[:1] != ["winboot's library"] else [one for one in found if one != "its script"]


def plan_schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    return schema_of(PlanFile, "winboot plan", (Difference,))

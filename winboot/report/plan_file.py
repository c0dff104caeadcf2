"""The file of `winboot plan --out FILE`: what each node's look found and which script it ran, to be approved and then run.

JSON of one version; `sha256` in it is of everything else, so that a file that was cut or edited is known as such. It holds
no secret: differences show none, and of settings and scripts it has the digests alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import winboot
from winboot.base.clean import clean
from winboot.base.errors import InvalidInput
from winboot.report.data import difference_data
from winboot.report.results import Digests, NodeReport, Report, StepReport
from winboot.report.shape import FLAG, MAYBE, SHA, SHA_OR_NOTHING, TEXT, TEXTS, an_object, difference_schema

VERSION: Final = 1
KIND: Final = "winboot plan"


@dataclass(frozen=True, slots=True)
class Selection:
    """What of the command line decides what a look finds."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    adopt: bool = False


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """One node: the digests of what was shown, and each step that is not as wanted, with its differences by key.

    `failure` says why there was no look; such a node is approved for nothing.
    """

    digests: Digests
    steps: Mapping[str, Mapping[str, Any]]
    failure: str = ""


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan. `made` is an ISO 8601 time in UTC, `by` who made it, `run` the run of the look."""

    winboot: str
    made: str
    by: str
    run: str
    selection: Selection
    nodes: Mapping[str, PlannedNode]

    @property
    def sha256(self) -> str:
        """The digest of the plan's content in hex: what a report names it by."""
        return hashlib.sha256(json.dumps(self._data(), sort_keys=True).encode()).hexdigest()

    def text(self) -> str:
        """The file."""
        return json.dumps({**self._data(), "sha256": self.sha256}, indent=1) + "\n"

    def _data(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "version": VERSION,
            "winboot": self.winboot,
            "made": self.made,
            "by": self.by,
            "run": self.run,
            "selection": {
                "only": list(self.selection.only),
                "skip": list(self.selection.skip),
                "adopt": self.selection.adopt,
            },
            "nodes": {
                name: {**asdict(node.digests), "failure": node.failure, "steps": dict(node.steps)}
                for name, node in self.nodes.items()
            },
        }


def plan_of(report: Report, selection: Selection, by: str) -> PlanFile:
    """The plan that a survey's report shows."""
    return PlanFile(
        winboot.__version__,
        report.started,
        by,
        report.run,
        selection,
        {node.node: _planned(node) for node in report.nodes},
    )


def _planned(node: NodeReport) -> PlannedNode:
    return PlannedNode(node.digests, found_in(node.steps), node.failure.message if node.failure else "")


def found_in(steps: Iterable[StepReport]) -> dict[str, Mapping[str, Any]]:
    """The steps that are not as wanted, in the form of a plan. What others hold is not winboot's to change, and left out."""
    found: dict[str, Mapping[str, Any]] = {}
    for step in steps:
        differences = [difference_data(one) for one in step.differences if not one.policy]
        if step.state != "ok" and (differences or step.problem):
            found[step.name] = {
                "problem": step.problem.id if step.problem else None,
                "differences": sorted(differences, key=lambda one: (one["key"], one["what"])),
            }
    return found


def changed_since(
    planned: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    """In which steps and keys a look differs from the one of the plan; empty where it is the same."""
    names = []
    for step in sorted({*planned, *now}):
        if planned.get(step) == now.get(step):
            continue
        before, after = _by_key(planned.get(step)), _by_key(now.get(step))
        keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
        names.append(f"{step} ({', '.join(keys) or 'its problem'})")
    return tuple(names)


def _by_key(step: Mapping[str, Any] | None) -> dict[str, Any]:
    return {one["key"] or one["what"]: one for one in (step or {}).get("differences", ())}


def read_plan(text: str, name: str) -> PlanFile:
    """The plan in a file's text. Raises InvalidInput where it is damaged, or another winboot's."""
    try:
        data = json.loads(text)
        plan = _plan(data)
        whole = data["sha256"] == plan.sha256 and data["kind"] == KIND and data["version"] == VERSION
        # A plan has the texts of its report, and in that is nothing that a terminal takes for a command.
        whole = whole and all(clean(one, len(one)) == one for one in _texts(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        plan, whole = None, False
    version = data.get("version") if plan is not None else None
    if plan is None or not whole:
        other = f" (its version is {version}, this winboot writes {VERSION})" if version != VERSION else ""
        raise InvalidInput(
            f"{name}: not a plan as `winboot plan --out FILE` has written it{other}: damaged or edited",
            hint="Make a new one with `winboot plan --out FILE`.",
        )
    if plan.winboot != winboot.__version__:
        raise InvalidInput(
            f"{name}: the plan is of winboot {plan.winboot}, this is {winboot.__version__}",
            hint="Make a new one with `winboot plan --out FILE`, or run the winboot that made it.",
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


def _plan(data: Any) -> PlanFile:
    selection = data["selection"]
    return PlanFile(
        data["winboot"],
        data["made"],
        data["by"],
        data["run"],
        Selection(tuple(selection["only"]), tuple(selection["skip"]), selection["adopt"]),
        {
            name: PlannedNode(
                Digests(one["settings"], one["script"], one["library"]), one["steps"], one["failure"]
            )
            for name, one in data["nodes"].items()
        },
    )


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
    """The JSON Schema of the file. What others hold is no part of a plan, so that no difference has `policy`."""
    difference = difference_schema(("unknown", "reboot", "disrupts", "disturbs"))
    step = an_object({"problem": MAYBE, "differences": {"type": "array", "items": difference}})
    node = an_object(
        {**dict.fromkeys(("settings", "script", "library"), SHA_OR_NOTHING), "failure": TEXT}
        | {"steps": {"type": "object", "additionalProperties": step}}
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "winboot plan",
        **an_object(
            {"kind": {"const": KIND}, "version": {"const": VERSION}, "sha256": SHA}
            | dict.fromkeys(("winboot", "made", "by", "run"), TEXT)
            | {"selection": an_object({"only": TEXTS, "skip": TEXTS, "adopt": FLAG})}
            | {"nodes": {"type": "object", "additionalProperties": node}}
        ),
    }

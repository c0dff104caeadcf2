"""What a running script tells the controller: one JSON object a line, nothing else.

The shapes are the wire contract between `templates/powershell/lib/drive.ps1` and `winboot.run` (docs/architecture.md,
"Events"). A line that is not such an object is noise: it goes to the journal and decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from winboot.hints import hint_for

VERSION: Final = 1

StepState = Literal["ok", "would-change", "changed", "failed", "blocked", "skipped"]
STEP_STATES: Final[tuple[StepState, ...]] = ("ok", "would-change", "changed", "failed", "blocked", "skipped")


@dataclass(frozen=True, slots=True)
class Difference:
    """How one thing is and how the profile wants it. `is_`/`want` are None where the thing is, or shall be, absent."""

    what: str
    is_: str | None
    want: str | None
    reboot: bool = False
    disrupts: bool = False
    disturbs: bool = False
    policy: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a step failed or is blocked: a stable name, a sentence, and what to do next (`winboot.hints`)."""

    id: str
    message: str
    hint: str = ""
    position: str = ""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The first event of a pipeline: which machine this is."""

    run: str
    boot_id: str
    smbios_uuid: str
    build: str
    computer_name: str
    fence: int
    # The address that the kubelet goes by; empty where the machine has none yet.
    node_ip: str = ""


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step looked at (mode Look) or driven (mode Change). `ms` is the time on the node, in milliseconds."""

    run: str
    step: str
    state: StepState
    ms: int
    differences: tuple[Difference, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class RebootWanted:
    """The script needs one restart, for all the named steps, before it can go on."""

    run: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Detached:
    """A step goes on in a one-shot SYSTEM task that may bounce the network; ask for its status after at most `timeout_s`."""

    run: str
    id: str
    step: str
    timeout_s: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of a pipeline; `reason` is `complete`, `reboot`, `detached`, `superseded` or `held`."""

    run: str
    reason: str
    message: str = ""


Event = RunStarted | StepDone | RebootWanted | Detached | RunEnded


def parse(line: str) -> Event | None:
    """Read one line of script output. None means noise: not JSON, another version, or an unknown kind."""
    try:
        data = json.loads(line)
    except ValueError:
        return None
    if not isinstance(data, dict) or data.get("v") != VERSION:
        return None
    try:
        return _from(data)
    except (KeyError, TypeError, ValueError):
        return None


def _from(data: Mapping[str, Any]) -> Event | None:
    run = str(data["run"])
    match data.get("event"):
        case "run":
            return RunStarted(
                run=run,
                boot_id=str(data["boot_id"]),
                smbios_uuid=str(data["smbios_uuid"]),
                build=str(data["build"]),
                computer_name=str(data["computer_name"]),
                fence=int(data["fence"]),
                node_ip=str(data.get("node_ip") or ""),
            )
        case "step":
            state = data["state"]
            if state not in STEP_STATES:
                return None
            return StepDone(
                run=run,
                step=str(data["step"]),
                state=state,
                ms=int(data["ms"]),
                differences=tuple(_difference(d) for d in data.get("differences") or ()),
                problem=_problem(data.get("problem")),
            )
        case "reboot":
            return RebootWanted(run=run, steps=tuple(str(s) for s in data["steps"]))
        case "detached":
            return Detached(
                run=run, id=str(data["id"]), step=str(data["step"]), timeout_s=int(data["timeout_s"])
            )
        case "done":
            return RunEnded(run=run, reason=str(data["reason"]), message=str(data.get("message") or ""))
    return None


def _difference(data: Mapping[str, Any]) -> Difference:
    return Difference(
        what=str(data["what"]),
        is_=_text(data.get("is")),
        want=_text(data.get("want")),
        reboot=bool(data.get("reboot", False)),
        disrupts=bool(data.get("disrupts", False)),
        disturbs=bool(data.get("disturbs", False)),
        policy=bool(data.get("policy", False)),
    )


def _problem(data: Mapping[str, Any] | None) -> Problem | None:
    if data is None:
        return None
    return Problem(
        id=str(data["id"]),
        message=str(data["message"]),
        hint=hint_for(str(data["id"]), str(data.get("hint") or "")),
        position=str(data.get("position") or ""),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)

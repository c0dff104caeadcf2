"""What a running script reports to the controller: one JSON object a line, nothing else.

The shapes are the wire contract between `templates/powershell/lib/drive.ps1` and `winboot.node.run` (docs/architecture.md,
"Events"). A line that is not such an object is noise: it goes to the journal and decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct, field, structs

from winboot.base.clean import clean
from winboot.base.errors import BadEvent, ExcessiveOutput
from winboot.base.foreign import Malformed, converted, ready
from winboot.base.limits import LARGEST_NUMBER, LONGEST_EVENT, MOST_DIFFERENCES
from winboot.report.hints import hint_for

VERSION: Final = 1

StepState = Literal["ok", "would-change", "changed", "failed", "blocked"]
# How a value is shown that exists only on the node, after the join (Get-UnknownText in lib/difference.ps1).
KNOWN_LATER: Final = "(known after join)"

STEP_STATES: Final[tuple[StepState, ...]] = get_args(StepState)


class Difference(Struct, frozen=True, rename={"is_": "is"}, omit_defaults=True):
    """How one thing is and how the profile wants it. `is_`/`want` are None where the thing is, or is to be, absent.

    `what`, `is_` and `want` are for people. Code decides by `key`, which is stable and unique within a step (empty
    where nothing is decided by it), and by `unknown`. That is: what is wanted cannot be known before the join.
    """

    what: str
    is_: str | None
    want: str | None
    reboot: bool = False
    disrupts: bool = False
    disturbs: bool = False
    policy: bool = False
    unknown: bool = False
    # Its default is made, so that it is written where it is empty, too.
    key: str = field(default_factory=str)
    # The whole texts of a file that differs, for a diff; None where they are long, or may hold a secret.
    was: str | None = None
    will: str | None = None


class Problem(Struct, frozen=True):
    """Why a step failed or is blocked: a stable name, a sentence, and what to do next (`winboot.report.hints`)."""

    id: str
    message: str
    hint: str = ""
    position: str = ""


class Artifact(Struct, frozen=True):
    """A program of a machine, its version and the SHA-256 of its archive."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,63}\Z")]
    version: Annotated[str, Meta(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}\Z")]
    archive: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class VersionSet(Struct, frozen=True):
    """Versions of programs that a machine has or had. `at` and `by`: when they were pinned, and the user that did it;
    empty elsewhere."""

    artifacts: Annotated[tuple[Artifact, ...], Meta(min_length=1)]
    at: str = ""
    by: str = ""

    @property
    def versions(self) -> Mapping[str, str]:
        """The version of each artifact."""
        return {one.name: one.version for one in self.artifacts}

    @property
    def archives(self) -> Mapping[str, str]:
        """The SHA-256 of each artifact's archive."""
        return {one.name: one.archive for one in self.artifacts}


class VersionNote(Struct, frozen=True):
    """What a machine notes of its versions (lib/versions.ps1, Read-VersionNote): `now` is what the last whole run brought,
    `next` what a run began to bring. `before` is what `rollback` goes back to, `held` what a rollback brought."""

    now: VersionSet | None = None
    next: VersionSet | None = None
    before: VersionSet | None = None
    held: VersionSet | None = None

    @property
    def way_back(self) -> VersionSet | None:
        """Where a rollback goes: to what one brought, to what a half-done run came from, or to those before."""
        return self.held or (self.now if self.next is not None else self.before)


class ImageNote(Struct, frozen=True):
    """What a machine notes of its image (`winboot bake`): by which winboot and profile, when, and what the image holds."""

    winboot: str
    profile: str
    at: str
    artifacts: Mapping[str, str] = {}
    images: tuple[str, ...] = ()


class Event(Struct, frozen=True, tag_field="event"):
    """One event of the run with this id."""

    run: str


class RunStarted(Event, frozen=True, tag="run"):
    """The first event of a pipeline: which machine this is."""

    boot_id: str
    smbios_uuid: str
    build: str
    computer_name: str
    fence: int
    # The address that the kubelet goes by; empty where the machine has none yet.
    node_ip: str = ""
    # Empty where the machine notes none.
    versions: VersionNote = VersionNote()
    # None on a machine of another image.
    image: ImageNote | None = None


class StepDone(Event, frozen=True, tag="step"):
    """One step looked at (mode Look) or driven (mode Change). `ms` is the time on the node, in milliseconds."""

    step: str
    state: StepState
    ms: int
    differences: tuple[Difference, ...] = ()
    problem: Problem | None = None


class RebootWanted(Event, frozen=True, tag="reboot"):
    """The script needs one restart, for all the named steps, before it can continue."""

    steps: tuple[str, ...]


class Detached(Event, frozen=True, tag="detached"):
    """A step continues in a one-shot SYSTEM task that may bounce the network; ask for its status after at most `timeout_s`."""

    id: str
    step: str
    timeout_s: int


class RunEnded(Event, frozen=True, tag="done"):
    """The last event of a pipeline; `reason` is `complete`, `reboot`, `detached`, `superseded`, `held` or `failed`.

    `problem` comes with `failed`: what kept the run from starting or continuing, outside of any step.
    """

    reason: str
    message: str = ""
    problem: Problem | None = None


class LibraryMissing(Event, frozen=True, tag="library-missing"):
    """The machine does not keep the library that it was to run with, for the reason `why`: nothing has run."""

    why: str


_KINDS: Final[Mapping[object, type[Event]]] = {
    one.__struct_config__.tag: one
    for one in (RunStarted, StepDone, RebootWanted, Detached, RunEnded, LibraryMissing)
}
ready(*_KINDS.values())
# A difference has these as null where a thing is, or is to be, absent. Other fields that are null count as missing.
_NULL: Final = ("is", "want")
# Texts of several lines: each line is bounded by itself.
_FILES: Final = ("was", "will")
_BAD_EVENT: Final = (
    "This is a bug in winboot or in your profile's own step; the run's journal has the whole line."
)
_EXCESS: Final = (
    "winboot's scripts never send so much output: check the machine. docs/security.md lists all limits."
)


def parse(line: str, run: str | None = None) -> Event | None:
    """Read one line of script output. None means noise: not JSON, another version or run, or an unknown kind.

    Raises BadEvent where a field is missing or of another type. Such a line comes from our script and may not be read
    as something that it does not say (a boot id that is null is not a boot id). Raises ExcessiveOutput for one beyond
    the bounds of `winboot.base.limits`.
    """
    if len(line) > LONGEST_EVENT:
        if not line.startswith("{"):
            return None
        raise ExcessiveOutput(f"an event of {len(line)} characters, more than {LONGEST_EVENT}", hint=_EXCESS)
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        # Brackets nested a hundred thousand deep are valid JSON, too.
        return None
    if not isinstance(data, dict) or data.get("v") != VERSION:
        return None
    if run is not None and data.get("run") != run:
        return None
    name = data.get("event")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    return None if kind is None else _event(kind, data)


def _event(kind: type[Event], data: Mapping[str, object]) -> Event:
    where = f"event {data['event']!r}"
    try:
        fields = _bounded(data, where)
        if "versions" in fields:
            fields["versions"] = _noted(fields["versions"])
        event = converted(fields, kind)
    except (Malformed, RecursionError) as error:
        raise BadEvent(f"{where}: {error}", hint=_BAD_EVENT) from None
    problem = event.problem if isinstance(event, StepDone | RunEnded) else None
    if problem is None:
        return event
    return structs.replace(event, problem=structs.replace(problem, hint=hint_for(problem.id, problem.hint)))


def _bounded(value: Any, name: str) -> Any:
    """The value with clean texts. Raises ExcessiveOutput beyond a bound."""
    if isinstance(value, str):
        return "\n".join(map(clean, value.split("\n"))) if name in _FILES else clean(value)
    if isinstance(value, list):
        if len(value) > MOST_DIFFERENCES:
            raise ExcessiveOutput(f"{len(value)} {name}, more than {MOST_DIFFERENCES}", hint=_EXCESS)
        return [_bounded(one, name) for one in value]
    if isinstance(value, dict):
        return {key: _bounded(one, key) for key, one in value.items() if one is not None or key in _NULL}
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise ExcessiveOutput(f"{name} is larger than {LARGEST_NUMBER}", hint=_EXCESS)
    return value


def _noted(versions: object) -> object:
    """The sets that a winboot has written: a script that is made of one must run on that machine alone, and be right."""
    if not isinstance(versions, dict):
        return versions
    return {name: one for name, one in versions.items() if _is_ours(one)}


def _is_ours(versions: object) -> bool:
    try:
        converted(versions, VersionSet)
    except Malformed:
        return False
    return True

"""What a running script tells the controller: one JSON object a line, nothing else.

The shapes are the wire contract between `templates/powershell/lib/drive.ps1` and `winboot.node.run` (docs/architecture.md,
"Events"). A line that is not such an object is noise: it goes to the journal and decides nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from winboot.base.clean import clean
from winboot.base.errors import BadEvent, ExcessiveOutput
from winboot.base.limits import LARGEST_NUMBER, LONGEST_EVENT, MOST_DIFFERENCES
from winboot.report.hints import hint_for

VERSION: Final = 1

StepState = Literal["ok", "would-change", "changed", "failed", "blocked"]
# How a value is shown that exists only on the node, after the join (Get-UnknownText in lib/difference.ps1).
KNOWN_LATER: Final = "(known after join)"

STEP_STATES: Final[tuple[StepState, ...]] = ("ok", "would-change", "changed", "failed", "blocked")


@dataclass(frozen=True, slots=True)
class Difference:
    """How one thing is and how the profile wants it. `is_`/`want` are None where the thing is, or is to be, absent.

    `what`, `is_` and `want` are for people. Code decides by `key`, which is stable and unique within a step (empty where
    nothing is decided by it), and by `unknown`: what is wanted cannot be known before the join.
    """

    what: str
    is_: str | None
    want: str | None
    reboot: bool = False
    disrupts: bool = False
    disturbs: bool = False
    policy: bool = False
    unknown: bool = False
    key: str = ""
    # The whole texts of a file that differs, for a diff; None where they are long, or may hold a secret.
    was: str | None = None
    will: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a step failed or is blocked: a stable name, a sentence, and what to do next (`winboot.report.hints`)."""

    id: str
    message: str
    hint: str = ""
    position: str = ""


@dataclass(frozen=True, slots=True)
class VersionSet:
    """Versions of programs that a machine has or had: artifact → version, and artifact → the SHA-256 of its archive. `at` and
    `by`: when and by whom they were set to stay; empty elsewhere."""

    versions: Mapping[str, str]
    archives: Mapping[str, str]
    at: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class VersionNote:
    """What a machine notes of its versions (lib/versions.ps1, Read-VersionNote): `now` is what the last whole run brought,
    `next` what a run began to bring, `before` what `rollback` goes back to, `held` what a rollback brought."""

    now: VersionSet | None = None
    next: VersionSet | None = None
    before: VersionSet | None = None
    held: VersionSet | None = None

    @property
    def way_back(self) -> VersionSet | None:
        """Where a rollback goes: to what one brought, to what a half-done run came from, or to those before."""
        return self.held or (self.now if self.next is not None else self.before)


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
    # Empty where the machine notes none.
    versions: VersionNote = VersionNote()


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
    """The script needs one restart, for all the named steps, before it can continue."""

    run: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Detached:
    """A step continues in a one-shot SYSTEM task that may bounce the network; ask for its status after at most `timeout_s`."""

    run: str
    id: str
    step: str
    timeout_s: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of a pipeline; `reason` is `complete`, `reboot`, `detached`, `superseded`, `held` or `failed`.

    `problem` comes with `failed`: what kept the run from starting or continuing, outside of any step.
    """

    run: str
    reason: str
    message: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class LibraryMissing:
    """The machine does not keep the library that it was asked to run with, for the reason `why`: nothing has run."""

    run: str
    why: str


Event = RunStarted | StepDone | RebootWanted | Detached | RunEnded | LibraryMissing


def parse(line: str, run: str | None = None) -> Event | None:
    """Read one line of script output. None means noise: not JSON, another version or run, or an unknown kind.

    Raises BadEvent where a field is missing or of another type: such a line comes from our script and may not be read
    as something that it does not say (a boot id that is null is no boot id); ExcessiveOutput for one beyond the bounds of
    `winboot.base.limits`.
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
    return _from(_Fields(data, f"event {data.get('event')!r}"))


class _Fields:
    """The fields of one JSON object, each read as the type that is due."""

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, dict):
            raise BadEvent(f"{where}: expected an object, found {data!r}", hint=_BAD_EVENT)
        self._data = data
        self._where = where

    def text(self, name: str, default: str | None = None) -> str:
        """A string, which may be empty; `default` where the field is missing or null."""
        value = self._data.get(name)
        return default if value is None and default is not None else clean(self._typed(name, value, str))

    def text_or_none(self, name: str) -> str | None:
        """A string or None."""
        value = self._data.get(name)
        return None if value is None else clean(self._typed(name, value, str))

    def lines_or_none(self, name: str) -> str | None:
        """A text of several lines, each of them clean, or None."""
        value = self._data.get(name)
        return None if value is None else "\n".join(map(clean, self._typed(name, value, str).split("\n")))

    def number(self, name: str) -> int:
        """A whole number. Raises ExcessiveOutput for one that counts nothing on Earth."""
        value = self._typed(name, self._data.get(name), int)
        if abs(value) > LARGEST_NUMBER:
            raise ExcessiveOutput(f"{self._where}: {name} is beyond {LARGEST_NUMBER}", hint=_EXCESS)
        return value

    def flag(self, name: str) -> bool:
        """True or False; False where the field is missing."""
        return self._typed(name, self._data.get(name, False), bool)

    def items(self, name: str) -> list[object]:
        """A list; null is an empty one."""
        value = self._data.get(name)
        found = [] if value is None else self._typed(name, value, list)
        if len(found) > MOST_DIFFERENCES:
            what = f"{len(found)} {name}, more than {MOST_DIFFERENCES}"
            raise ExcessiveOutput(f"{self._where}: {what}", hint=_EXCESS)
        return found

    def inner(self, name: str) -> _Fields | None:
        """The object in a field, or None."""
        value = self._data.get(name)
        return None if value is None else _Fields(value, f"{self._where}, {name}")

    def each(self, name: str) -> Iterator[_Fields]:
        """The objects of a list."""
        return (_Fields(one, f"{self._where}, {name}[{at}]") for at, one in enumerate(self.items(name)))

    def _typed(self, name: str, value: object, wanted: type[_T]) -> _T:
        # True is a number to Python, and none to a reader.
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise BadEvent(
                f"{self._where}: expected a {_TYPES[wanted]} as {name}, found {json.dumps(value)}",
                hint=_BAD_EVENT,
            )
        return value


_T = TypeVar("_T")
_ARTIFACT: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_TYPES: Final[Mapping[type, str]] = {str: "text", int: "number", bool: "boolean", list: "list"}
_BAD_EVENT: Final = (
    "This is a bug in winboot or in a step of the profile's own; the run's journal has the whole line."
)
_EXCESS: Final = (
    "No script of winboot says so much: find out what the machine is; docs/security.md has all bounds."
)


def _from(data: _Fields) -> Event | None:
    match data.text_or_none("event"):
        case "run":
            return RunStarted(
                run=data.text("run"),
                boot_id=data.text("boot_id"),
                smbios_uuid=data.text("smbios_uuid"),
                build=data.text("build"),
                computer_name=data.text("computer_name"),
                fence=data.number("fence"),
                node_ip=data.text("node_ip", ""),
                versions=_version_note(data.inner("versions")),
            )
        case "step":
            return StepDone(
                run=data.text("run"),
                step=data.text("step"),
                state=_state(data.text("state")),
                ms=data.number("ms"),
                differences=tuple(_difference(one) for one in data.each("differences")),
                problem=_problem(data.inner("problem")),
            )
        case "reboot":
            return RebootWanted(
                run=data.text("run"), steps=tuple(clean(str(one)) for one in data.items("steps"))
            )
        case "detached":
            return Detached(
                run=data.text("run"),
                id=data.text("id"),
                step=data.text("step"),
                timeout_s=data.number("timeout_s"),
            )
        case "done":
            return RunEnded(
                run=data.text("run"),
                reason=data.text("reason"),
                message=data.text("message", ""),
                problem=_problem(data.inner("problem")),
            )
        case "library-missing":
            return LibraryMissing(run=data.text("run"), why=data.text("why"))
    return None


def _version_note(data: _Fields | None) -> VersionNote:
    if data is None:
        return VersionNote()
    return VersionNote(*(_version_set(data.inner(name)) for name in ("now", "next", "before", "held")))


def _version_set(data: _Fields | None) -> VersionSet | None:
    """None for one that no winboot has written: the script that is made of it must run on that machine alone, and be right."""
    if data is None:
        return None
    found = [(one.text("name"), one.text("version"), one.text("archive")) for one in data.each("artifacts")]
    if not found or not all(
        _ARTIFACT.fullmatch(name) and _VERSION.fullmatch(version) and _SHA256.fullmatch(archive)
        for name, version, archive in found
    ):
        return None
    return VersionSet(
        {name: version for name, version, _ in found},
        {name: archive for name, _, archive in found},
        data.text("at", ""),
        data.text("by", ""),
    )


def _state(text: str) -> StepState:
    for known in STEP_STATES:
        if text == known:
            return known
    raise BadEvent(f"event 'step': {text!r} is no state of a step", hint=_BAD_EVENT)


def _difference(data: _Fields) -> Difference:
    return Difference(
        what=data.text("what"),
        is_=data.text_or_none("is"),
        want=data.text_or_none("want"),
        reboot=data.flag("reboot"),
        disrupts=data.flag("disrupts"),
        disturbs=data.flag("disturbs"),
        policy=data.flag("policy"),
        unknown=data.flag("unknown"),
        key=data.text("key", ""),
        was=data.lines_or_none("was"),
        will=data.lines_or_none("will"),
    )


def _problem(data: _Fields | None) -> Problem | None:
    if data is None:
        return None
    return Problem(
        id=data.text("id"),
        message=data.text("message"),
        hint=hint_for(data.text("id"), data.text("hint", "")),
        position=data.text("position", ""),
    )

"""Collect facts of a machine by a task on it: over a slow script or a lost link, each item within its own time."""

from __future__ import annotations

import base64
import binascii
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from winboot.base.errors import (
    Busy,
    ConnectionLost,
    ExcessiveOutput,
    Interrupted,
    LoginRefused,
    NodeFailed,
    Unreachable,
    WinbootError,
)
from winboot.base.foreign import Malformed, decoded
from winboot.base.limits import LARGEST_COLLECTION, LONGEST_ITEM, MOST_ITEMS
from winboot.base.retry import retried
from winboot.config.node_spec import NodeSpec
from winboot.node.facts import FORMS, Facts, bounded, cleaned, facts_of
from winboot.node.probes import Look
from winboot.remote.transport.base import Transport
from winboot.script.rendering import collecting

PATIENCE_S: Final = 300.0  # how long a machine that was reached may be out of reach
SLACK_S: Final = 10.0  # what an item may take besides its own time: the start of the task, the way here
_FIRST_S: Final = 60.0  # for the start of the task
_LONGEST_S: Final = 3_600  # of the whole task
_ANY: Final = msgspec.json.Decoder()
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class Item:
    """What the machine answered about one subject: its facts as JSON, or the text of a log."""

    name: str
    command: str
    content: bytes
    truncated: bool
    error: str

    @property
    def file(self) -> str:
        """A name that is safe in every file system; the machine chose the other."""
        return _UNFIT.sub("-", self.name)[:80] + (".txt" if self.name.startswith("log-") else ".json")


class Collection:
    """One run of the task on one machine. `look` runs it; `items` has the answers."""

    def __init__(
        self,
        connect: Callable[[], Transport],
        script: str,
        seconds: int,
        wait: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.items: list[Item] = []
        # On Windows and macOS, names that differ in case are one file. A bundle has the document of the node, too.
        self._files = {"document.json"}
        self._link = _Link(connect, wait)
        self._script = script
        self._seconds = seconds
        self._clock = clock
        self._id = uuid.uuid4().hex[:8]
        self._control, self._reader = collecting()
        self._taken = 0
        self._rest = b""
        self._since = clock()
        self._begun = ("", _FIRST_S, self._since)
        self._ended = False
        # How far the machine's clock is ahead, and how well this is known.
        self._offset: timedelta | None = None
        self._margin = timedelta()

    def look(self, spec: NodeSpec, now: Callable[[], datetime]) -> Look:
        """The facts that rules read. Raises TransportError, ScriptFailed, ExcessiveOutput, NodeFailed."""
        try:
            self._do("Start", Text=self._script, Seconds=self._seconds, Limit=_LONGEST_S)
            self._since = self._clock()
            self._begun = ("", _FIRST_S, self._since)
            while not self._ended:
                self._link.pause(0)
                self._hurry(spec)
                self._read(now)
        finally:
            # The task ends by itself, and the next collection removes what a lost machine keeps.
            with suppress(WinbootError):
                self._end()
            self._link.close()
        return self._looked(spec)

    def _end(self) -> None:
        """Remove the task of a machine that answered: each refused login counts towards a lockout of the account."""
        self._link.ending = True
        if self._link.reached:
            self._do("End")

    def _do(self, mode: str, **more: object) -> None:
        self._link.each(self._control, lambda: {"Mode": mode, "Id": self._id, **more}, lambda row: None)

    def _read(self, now: Callable[[], datetime]) -> None:
        """Take what the machine has written since. A part that came before the link was lost is not asked for again."""
        before = now()

        def take(row: Mapping[str, Any]) -> None:
            if "now" in row and self._offset is None:
                self._margin = (now() - before) / 2
                self._offset = _time(row["now"]) - before - self._margin
            if row.get("at") == self._taken:
                self._take(row.get("part"))

        self._link.each(self._reader, lambda: {"Id": self._id, "From": self._taken}, take)

    def _take(self, part: object) -> None:
        try:
            data = base64.b64decode(part if isinstance(part, str) else "", validate=True)
        except (binascii.Error, ValueError):
            return
        self._taken += len(data)
        if self._taken > LARGEST_COLLECTION:
            raise ExcessiveOutput(f"the machine wrote more than {LARGEST_COLLECTION} bytes of facts")
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            # A text that the decoder just takes may be too deep for the encoder.
            with suppress(Malformed, RecursionError):
                self._line(decoded(_ANY, line))

    def _line(self, row: object) -> None:
        """A line of the answer: an item begins, has ended, or all have."""
        if not isinstance(row, dict):
            return
        begins, seconds = row.get("begins"), row.get("seconds")
        if isinstance(begins, str) and type(seconds) is int and 0 < seconds <= LONGEST_ITEM:
            self._begun = (cleaned(begins), float(seconds), self._clock())
        elif isinstance(row.get("subject"), str):
            self._add(_item(row))
        self._ended = self._ended or row.get("ended") is True

    def _add(self, item: Item) -> None:
        file = item.file.lower()
        if file not in self._files and len(self.items) < MOST_ITEMS:
            self._files.add(file)
            self.items.append(item)

    def _hurry(self, spec: NodeSpec) -> None:
        """End an item that takes too long. Raises NodeFailed if the whole task does."""
        name, seconds, since = self._begun
        now = self._clock()
        late = now - self._since > _LONGEST_S
        if self._ended or not (late or now - since >= seconds + SLACK_S):
            return
        if late or not name or any(one.name == name for one in self.items):
            raise NodeFailed(
                f"{spec.node.name}: the task \\winboot\\collect-{self._id} does not {'end' if late else 'run'}",
                hint="Look at this task in the node's Task Scheduler, then run the command again.",
                node=spec.node.name,
            )
        self._do("Skip", Item=name, Limit=int(seconds))
        self._begun = ("", _FIRST_S, self._clock())

    def _looked(self, spec: NodeSpec) -> Look:
        facts: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for one in self.items:
            if one.name in FORMS:
                facts[one.name], wrong = _facts(one)
                if one.error or wrong:
                    problems[one.name] = one.error or wrong
        read = next((_time(one["now"]) for one in facts.get("clock", ())), datetime.now(UTC))
        return Look(facts, problems, self._elsewhere(spec, read), self._margin)

    def _elsewhere(self, spec: NodeSpec, read: datetime) -> datetime:
        """The time elsewhere when the machine read its clock. Raises NodeFailed if there is no such time."""
        try:
            return read - (self._offset or timedelta())
        except OverflowError:
            raise NodeFailed(
                f"{spec.node.name}: during the collection, the machine's clock jumped to {read}",
                hint="Set the clock of the machine, then run the command again.",
                node=spec.node.name,
            ) from None


def _facts(item: Item) -> tuple[Sequence[Facts], str]:
    """The facts of the item in their form, and what is wrong with the others."""
    try:
        return facts_of(item.name, cleaned(decoded(_ANY, item.content)))
    except Malformed as error:
        return (), str(error)


def _item(row: Mapping[str, Any]) -> Item:
    facts = row.get("facts")
    rows = facts if isinstance(facts, list) else []
    texts = [row["subject"], str(row.get("problem") or ""), str(row.get("command") or "")]
    name, error, command = cleaned(texts)
    content, truncated = msgspec.json.encode(rows), row.get("truncated") is True
    if name.startswith("log-"):
        texts = [one for one in rows if isinstance(one, dict)]
        content = "".join(str(one.get("text", "")) for one in texts).encode("utf-8", "replace")
        truncated = truncated or any(one.get("truncated") is True for one in texts)
    return Item(name, command, content, truncated, error)


def _time(text: object) -> datetime:
    """A time of the machine. Raises NodeFailed for another text."""
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone(UTC)
    except (ValueError, OverflowError, RecursionError):
        shown = cleaned(text) if isinstance(text, str) else "not a text"
        raise NodeFailed(f"winboot cannot read the time that the machine reported: {shown!r}") from None


class _Link:
    """A way to a machine that is opened again after it was lost. `wait` is true when the command is to end."""

    def __init__(self, connect: Callable[[], Transport], wait: Callable[[float], object]) -> None:
        self._connect = connect
        self._wait = wait
        self._transport: Transport | None = None
        self.reached = False
        self.ending = False

    def each(
        self,
        script: str,
        arguments: Callable[[], Mapping[str, object]],
        take: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Run the script, again if a link that was there is lost; `take` receives each row that it answers."""
        retried(
            lambda: self._once(script, arguments(), take),
            PATIENCE_S,
            Unreachable,
            ConnectionLost,
            Busy,
            when=lambda error: self.reached,
            sleep=self.pause,
            between=lambda error: self.close(),
        )

    def _once(
        self, script: str, arguments: Mapping[str, object], take: Callable[[Mapping[str, Any]], None]
    ) -> None:
        if self._transport is None:
            self._transport = self._connect()
        try:
            for line in bounded(self._transport.run(script, arguments, {})):
                self._heard(line, take)
        except LoginRefused:
            self.reached = False
            raise

    def _heard(self, line: str, take: Callable[[Mapping[str, Any]], None]) -> None:
        self.reached = True
        if not self.ending:
            self.pause(0)
        with suppress(Malformed):
            row = decoded(_ANY, line)
            if isinstance(row, dict):
                take(row)

    def pause(self, seconds: float) -> None:
        """Wait. Raises Interrupted when the command is to end."""
        if self._wait(seconds):
            raise Interrupted(
                "the collection was interrupted",
                hint="Run the command again: the collection starts from the beginning.",
            )

    def close(self) -> None:
        """End the session, if there is one."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

"""Collect facts of a machine by a task on it: over a slow script or a lost link, each item within its own time."""

from __future__ import annotations

import base64
import binascii
import re
import time
import uuid
from collections.abc import Callable, Mapping
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
    NodeFailed,
    Unreachable,
    WinbootError,
)
from winboot.base.foreign import Malformed, decoded
from winboot.base.limits import LARGEST_COLLECTION
from winboot.base.retry import retried
from winboot.config.node_spec import NodeSpec
from winboot.node.facts import FORMS, cleaned, facts_of
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
    """One run of the task on one machine. `look` runs it; `items` has the answers, `limits` the seconds of each."""

    def __init__(
        self,
        connect: Callable[[], Transport],
        script: str,
        seconds: int,
        wait: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.items: list[Item] = []
        self.limits: dict[str, int] = {}
        self._link = _Link(connect, wait)
        self._script = script
        self._seconds = seconds
        self._clock = clock
        self._id = uuid.uuid4().hex[:8]
        self._control, self._reader = collecting()
        self._answer = b""
        self._rest = b""
        self._begun = ("", _FIRST_S, clock())
        self._ended = False
        # How far the machine's clock is ahead, and how well this is known.
        self._offset: timedelta | None = None
        self._margin = timedelta()

    def look(self, spec: NodeSpec, now: Callable[[], datetime]) -> Look:
        """The facts that rules read. Raises TransportError, ScriptFailed, ExcessiveOutput, NodeFailed."""
        try:
            self._do("Start", Text=self._script, Seconds=self._seconds, Limit=_LONGEST_S)
            self._begun = ("", _FIRST_S, self._clock())
            while not self._ended:
                self._link.pause(0)
                self._hurry(spec)
                self._read(now)
        finally:
            # The task ends by itself, and the next collection removes what a lost machine keeps.
            with suppress(WinbootError):
                self._do("End")
            self._link.close()
        return self._looked()

    def _do(self, mode: str, **more: object) -> None:
        self._link.each(self._control, lambda: {"Mode": mode, "Id": self._id, **more}, lambda row: None)

    def _read(self, now: Callable[[], datetime]) -> None:
        """Take what the machine has written since. A part that came before the link was lost is not asked for again."""
        before = now()

        def take(row: Mapping[str, Any]) -> None:
            if "now" in row and self._offset is None:
                self._margin = (now() - before) / 2
                self._offset = _time(row["now"]) - before - self._margin
            if row.get("at") == len(self._answer):
                self._take(row.get("part"))

        self._link.each(self._reader, lambda: {"Id": self._id, "From": len(self._answer)}, take)

    def _take(self, part: object) -> None:
        try:
            data = base64.b64decode(str(part), validate=True)
        except (binascii.Error, ValueError):
            return
        self._answer += data
        if len(self._answer) > LARGEST_COLLECTION:
            raise ExcessiveOutput(f"the machine wrote more than {LARGEST_COLLECTION} bytes of facts")
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            with suppress(Malformed):
                self._line(decoded(_ANY, line))

    def _line(self, row: object) -> None:
        """A line of the answer: an item begins, has ended, or all have."""
        if not isinstance(row, dict):
            return
        if isinstance(row.get("seconds"), int):
            self.limits[str(row.get("begins"))] = row["seconds"]
            self._begun = (str(row.get("begins")), float(row["seconds"]), self._clock())
        elif "subject" in row and all(one.name != row["subject"] for one in self.items):
            self.items.append(_item(row))
        self._ended = self._ended or row.get("ended") is True

    def _hurry(self, spec: NodeSpec) -> None:
        """End an item that takes too long."""
        name, seconds, since = self._begun
        if self._ended or self._clock() - since < seconds + SLACK_S:
            return
        if not name or any(one.name == name for one in self.items):
            raise NodeFailed(
                f"{spec.node.name}: the task \\winboot\\collect-{self._id} does not run",
                hint="Look at it in the Task Scheduler of the node, then run the command again.",
                node=spec.node.name,
            )
        self._do("Skip", Item=name, Limit=int(seconds))
        self._begun = ("", _FIRST_S, self._clock())

    def _looked(self) -> Look:
        facts: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for one in self.items:
            if one.name in FORMS:
                facts[one.name], wrong = facts_of(one.name, cleaned(decoded(_ANY, one.content)))
                if one.error or wrong:
                    problems[one.name] = one.error or wrong
        # The time elsewhere when the machine read its clock.
        read = next((_time(one["now"]) for one in facts.get("clock", ())), datetime.now(UTC))
        return Look(facts, problems, read - (self._offset or timedelta()), self._margin)


def _item(row: Mapping[str, Any]) -> Item:
    facts = row.get("facts")
    rows = facts if isinstance(facts, list) else []
    name = str(row["subject"])
    content, truncated = msgspec.json.encode(rows), row.get("truncated") is True
    if name.startswith("log-"):
        texts = [one for one in rows if isinstance(one, dict)]
        content = "".join(str(one.get("text", "")) for one in texts).encode("utf-8", "replace")
        truncated = truncated or any(one.get("truncated") is True for one in texts)
    error, command = cleaned([str(row.get("problem") or ""), str(row.get("command") or "")])
    return Item(name, command, content, truncated, error)


def _time(text: object) -> datetime:
    """A time of the machine. Raises NodeFailed for another text."""
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise NodeFailed(
            f"winboot cannot read the time that the machine reported: {cleaned(str(text))!r}"
        ) from None


class _Link:
    """A way to a machine that is opened again after it was lost. `wait` is true when the command is to end."""

    def __init__(self, connect: Callable[[], Transport], wait: Callable[[float], object]) -> None:
        self._connect = connect
        self._wait = wait
        self._transport: Transport | None = None
        self._reached = False

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
            when=lambda error: self._reached,
            sleep=self.pause,
            between=lambda error: self.close(),
        )

    def _once(
        self, script: str, arguments: Mapping[str, object], take: Callable[[Mapping[str, Any]], None]
    ) -> None:
        if self._transport is None:
            self._transport = self._connect()
        for line in self._transport.run(script, arguments, {}):
            self._reached = True
            with suppress(Malformed):
                row = decoded(_ANY, line)
                if isinstance(row, dict):
                    take(row)

    def pause(self, seconds: float) -> None:
        """Wait. Raises Interrupted when the command is to end."""
        if self._wait(seconds):
            raise Interrupted(
                "the collection was interrupted",
                hint="Run the command again: it starts again from the beginning.",
            )

    def close(self) -> None:
        """End the session, if there is one."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

"""Scripts on a machine that called us: it asks for work over HTTPS and reports what the work says (first boot).

A `Line` stands between the thread that works on the machine and the calls that the machine makes, which come from
other threads and may come twice. Each piece of output has its place, and a script that the machine has begun is not
given to it again. What runs there is the loader of `console`, as over SSH.
"""

from __future__ import annotations

import secrets as randomness
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from winboot.base.errors import ConnectionLost, Unreachable
from winboot.base.limits import LONGEST_LINE
from winboot.base.secret import Secret
from winboot.remote.transport.base import Outside, Probe, Transport, nobody_waits
from winboot.remote.transport.console import AGAIN, Conversation, standard_input
from winboot.remote.transport.probe import PROBE_SCRIPT, read_probe

# A machine that runs a script reports at least every 10 seconds that it still does; one that waits asks every 20.
SILENCE_S: Final = 90.0
# How long an offered script waits for a machine that is away, such as one that restarts.
OFFER_S: Final = 60.0
# More output than this waits on the machine until what is here was read.
MOST_UNREAD: Final = 2 * LONGEST_LINE
_QUIET_S: Final = 1.0
_LAST_WORDS: Final = 4096


@dataclass(slots=True)
class Job:
    """One script on its way. `runner` is the process on the machine that has begun it."""

    payload: bytes
    id: str = field(default_factory=lambda: randomness.token_hex(8))
    runner: str = ""
    # Bytes of output that have come so far, and those of them that no thread has read yet.
    received: int = 0
    unread: bytes = b""
    code: int | None = None
    last_words: str = ""
    # No reader wants its output any more, or the machine no longer works on it.
    dropped: bool = False
    lost: bool = False

    @property
    def over(self) -> bool:
        """Whether no more output can come."""
        return self.code is not None or self.lost or self.dropped


class Line:
    """The way to one machine, as long as it calls. Any thread may call any method."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._job: Job | None = None
        self._called = time.monotonic()
        self._hung_up = False

    # ---- our side ----------------------------------------------------------------------------------------

    def offer(self, payload: bytes) -> Job:
        """A script for the machine; it gets it with its next call."""
        with self._changed:
            self._drop()
            job = self._job = Job(payload)
            self._changed.notify_all()
            return job

    def drop(self, job: Job) -> None:
        """Drop a script whose output is no longer needed: the machine ends it when it next calls."""
        with self._changed:
            job.dropped = True
            self._changed.notify_all()

    def hang_up(self) -> None:
        """No more work: every thread that waits for the machine, or for work, ends its wait."""
        with self._changed:
            self._hung_up = True
            self._drop()
            self._changed.notify_all()

    def output(self, job: Job, seconds: float) -> bytes | None:
        """More output; empty at the end, None when nothing came for so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: job.unread or job.over, seconds)
            piece, job.unread = job.unread, b""
            if piece:
                # Room for the machine's next piece.
                self._changed.notify_all()
                return piece
            return b"" if job.over else None

    @property
    def silent_for(self) -> float:
        """Seconds since the machine called last."""
        return time.monotonic() - self._called

    # ---- the machine's side ------------------------------------------------------------------------------

    def work(self, runner: str, seconds: float) -> Job | None:
        """What the machine is to run; None when there is nothing for so many seconds. `runner` is a process there that runs
        nothing now: a script that another one had begun has died with it."""
        with self._changed:
            self._called = time.monotonic()
            job = self._job
            if job is not None and job.runner and not job.over:
                job.lost = True
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting() is not None or self._hung_up, seconds)
            self._called = time.monotonic()
            return self._waiting()

    def hear(
        self, id_: str, runner: str, start: int, piece: bytes, code: int | None = None, words: str = ""
    ) -> int | None:
        """Output of a script from the byte `start` on, and with `code` its end. Gives how many bytes came so far,
        from where on the machine says more; None: its process `runner` is to end the script.

        Repeated output counts once; an empty piece says that the script begins or still runs.
        """
        with self._changed:
            self._called = time.monotonic()
            job = self._job
            if job is None or job.id != id_ or job.dropped or job.lost or job.runner not in ("", runner):
                return None
            job.runner = runner
            if start <= job.received and len(job.unread) < MOST_UNREAD:
                fresh = piece[job.received - start :]
                job.received += len(fresh)
                job.unread += fresh
                if code is not None:
                    job.code, job.last_words = code, words[-_LAST_WORDS:]
            self._changed.notify_all()
            return job.received

    def _waiting(self) -> Job | None:
        job = self._job
        return job if job is not None and not job.runner and not job.over else None

    def _drop(self) -> None:
        if self._job is not None:
            self._job.dropped = True


class CalledTransport(Transport):
    """A machine that calls."""

    def __init__(self, line: Line, *, name: str) -> None:
        self._line, self._name = line, name
        self._job: Job | None = None
        self.on_quiet: Callable[[], None] = nobody_waits

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        """See `Transport.run`."""
        job = self._job = self._line.offer(standard_input(script, arguments, secrets))
        del script
        talk = Conversation(self._name, _Called(self._line, job, self._name, self.on_quiet))
        try:
            yield from talk.lines()
        finally:
            self._job = None
            if not talk.ended:
                self._line.drop(job)

    def probe(self) -> Probe:
        """See `Transport.probe`."""
        return read_probe(lambda: self.run(PROBE_SCRIPT, {}, {}), Outside((), None), self._name)

    def close(self) -> None:
        """See `Transport.close`: nothing stays open between two scripts."""

    def interrupt(self) -> None:
        """See `Transport.interrupt`."""
        job = self._job
        if job is not None:
            self._line.drop(job)


class _Called:
    """The loader on the machine; see `console.Process`."""

    def __init__(self, line: Line, job: Job, name: str, on_quiet: Callable[[], None]) -> None:
        self._line, self._job, self._name, self._on_quiet = line, job, name, on_quiet
        self._offered = time.monotonic()

    def receive(self) -> bytes:
        """See `console.Process.receive`."""
        while (piece := self._line.output(self._job, _QUIET_S)) is None:
            self._on_quiet()
            if not self._job.runner and time.monotonic() - self._offered > OFFER_S:
                raise Unreachable(
                    f"{self._name}: the machine did not call for {OFFER_S:.0f} s",
                    hint="Look at its console: the machine may still restart, or cannot reach this endpoint.",
                    node=self._name,
                )
            if self._job.runner and self._line.silent_for > SILENCE_S:
                raise ConnectionLost(
                    f"{self._name}: the machine has not called for {SILENCE_S:.0f} s, in the middle of a script",
                    hint=AGAIN,
                    node=self._name,
                )
        return piece

    def finish(self) -> tuple[int | None, str]:
        """See `console.Process.finish`."""
        return self._job.code, self._job.last_words

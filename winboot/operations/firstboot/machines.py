"""The work on machines that were let in: the story of `join`, over the calls that each of them makes."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field, replace

from winboot.base.errors import WinbootError
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Options, RunContext
from winboot.operations.firstboot.store import State, Store
from winboot.operations.hook.metrics import Log
from winboot.operations.hook.work import reason_of
from winboot.operations.join import join
from winboot.remote.cluster.identity import same_machine
from winboot.remote.transport.called import CalledTransport, Line


@dataclass(frozen=True, slots=True)
class Result:
    """How it ended for a machine: "Ready", or "failed" with the reason."""

    state: State
    why: str = ""


@dataclass(slots=True)
class Machine:
    """One machine that was let in. `session` is what its calls carry; `result` is there once the work has ended."""

    spec: NodeSpec
    uuid: str
    address: str
    line: Line = field(default_factory=Line)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    result: Result | None = None


@dataclass(slots=True)
class Machines:
    """Those that are being worked on. `workers` is how many joins go on side by side; times are in seconds.

    The same machine that comes again, after its restart or because an answer was lost, gets its own session back.
    """

    store: Store
    context: RunContext
    options: Options
    log: Log
    workers: int = 8
    join_timeout: float = 2400.0
    again: float = 15.0
    _known: dict[str, Machine] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _room: threading.Semaphore = field(init=False)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._room = threading.Semaphore(self.workers)

    def admit(self, spec: NodeSpec, uuid: str, address: str) -> Machine:
        """The machine, with work on it begun; one that failed before is tried again."""
        with self._lock:
            known = self._known.get(spec.node.name)
            if known is not None and same_machine(known.uuid, uuid) and known.result is None:
                return known
            machine = self._known[spec.node.name] = Machine(spec, uuid, address)
            # At once: a second machine of this name is refused from here on.
            self._note(machine, "joining", "it was let in")
            thread = threading.Thread(target=self._work, args=(machine,), name=f"first boot {spec.node.name}")
            self._threads = [*(one for one in self._threads if one.is_alive()), thread]
        thread.start()
        return machine

    def of_session(self, session: str) -> Machine | None:
        """Whose session it is; None for nobody's."""
        with self._lock:
            return next(
                (one for one in self._known.values() if secrets.compare_digest(one.session, session)), None
            )

    def finish(self) -> None:
        """Wait for all work; the context's stop ends it."""
        for thread in self._threads:
            thread.join()

    def _work(self, machine: Machine) -> None:
        try:
            with self._room:
                machine.result = self._joined(machine)
        finally:
            machine.result = machine.result or Result(
                "failed", "a bug in winboot itself; see the endpoint's log"
            )
            self._note(machine, machine.result.state, machine.result.why)
            machine.line.hang_up()

    def _joined(self, machine: Machine) -> Result:
        """Join until it is Ready, or for so long."""
        name, deadline = machine.spec.node.name, time.monotonic() + self.join_timeout
        context = replace(self.context, connect=lambda spec: CalledTransport(machine.line, name=name))
        poll = machine.spec.machine.connection.poll_s
        options = replace(self.options, patience=replace(self.options.patience, poll=poll))
        while True:
            why = _once(machine.spec, context, options)
            if not why:
                return Result("Ready")
            self._note(machine, "joining", why)
            if time.monotonic() >= deadline or self.context.stop.wait(self.again):
                return Result("failed", why)

    def _note(self, machine: Machine, state: State, why: str) -> None:
        node = machine.spec.node.name
        self.log(f"first boot: {state}", node=node, why=why, machine=machine.uuid, address=machine.address)
        try:
            self.store.note(node, state, why, uuid=machine.uuid, address=machine.address)
        except WinbootError as error:
            self.log("not remembered", node=node, problem=error.problem)


def _once(spec: NodeSpec, context: RunContext, options: Options) -> str:
    """One join; why the node is not done, or nothing."""
    try:
        (report,) = join([spec], context, options, command="hook").nodes
    except WinbootError as error:
        return error.problem
    return "" if report.exit_code == 0 else reason_of(report)

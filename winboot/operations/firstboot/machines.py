"""The work on machines that were let in: the story of `join`, over the calls that each of them makes."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field, replace

from winboot.base.errors import WinbootError
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Options, RunContext
from winboot.operations.firstboot.hello import ready_word
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

    def word(self, node: str) -> str:
        """The sentence of console, log, event and `winboot why`."""
        return ready_word(node) if self.state == "Ready" else f"is not the node {node}: {self.why}"


def _session() -> str:
    return secrets.token_urlsafe(24)


@dataclass(slots=True)
class Machine:
    """One machine that was let in. `session` is what its calls carry; `result` is there once the work has ended."""

    spec: NodeSpec
    uuid: str
    address: str
    line: Line = field(default_factory=Line)
    session: str = field(default_factory=_session)
    result: Result | None = None
    # How far it is, in one sentence, and the one that its Node received last.
    word: str = ""
    told: str = ""


@dataclass(slots=True)
class Machines:
    """Those that are being worked on. `workers` is how many joins go on side by side; times are in seconds.

    The same machine that comes again, after its restart or because an answer was lost, gets its own session back.
    From another address it gets a new one for the same work.
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
                if known.address != address:
                    known.address, known.session = address, _session()
                return known
            machine = self._known[spec.node.name] = Machine(spec, uuid, address)
            # At once: a second machine of this name is refused from here on.
            self._remember(machine, "joining", f"becomes the node {spec.node.name}")
            thread = threading.Thread(target=self._work, args=(machine,), name=f"first boot {spec.node.name}")
            self._threads = [*(one for one in self._threads if one.is_alive()), thread]
        thread.start()
        return machine

    @property
    def ending(self) -> bool:
        """Whether winboot begins nothing new any more: the endpoint stops."""
        return self.context.stop.requested

    def of_session(self, session: str, address: str) -> Machine | None:
        """The machine that has this session at this address; None where no machine has it."""
        given = session.encode()
        with self._lock:
            return next(
                (
                    one
                    for one in self._known.values()
                    if one.address == address and secrets.compare_digest(one.session.encode(), given)
                ),
                None,
            )

    def finish(self) -> None:
        """Wait for all work; the context's stop ends it."""
        for thread in self._threads:
            thread.join()

    def _work(self, machine: Machine) -> None:
        try:
            self._tell(machine, "joining", f"becomes the node {machine.spec.node.name}")
            with self._room:
                machine.result = self._joined(machine)
        finally:
            machine.result = machine.result or Result("failed", "winboot has a bug; see the endpoint's log")
            word = machine.result.word(machine.spec.node.name)
            self._remember(machine, machine.result.state, word)
            machine.line.hang_up()
            self._tell(machine, machine.result.state, word)

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
            self._note(machine, "joining", f"is not the node {name} yet: {why}")
            if time.monotonic() >= deadline or self.context.stop.wait(self.again):
                return Result("failed", why)

    def _note(self, machine: Machine, state: State, word: str) -> None:
        """The same sentence to the log, to what is remembered, and to the Node."""
        self._remember(machine, state, word)
        self._tell(machine, state, word)

    def _remember(self, machine: Machine, state: State, word: str) -> None:
        node, machine.word = machine.spec.node.name, word
        self.log(f"first boot: {state}", node=node, why=word, machine=machine.uuid, address=machine.address)
        try:
            self.store.note(node, state, word, uuid=machine.uuid, address=machine.address)
        except WinbootError as error:
            self.log("not remembered", node=node, problem=error.problem)

    def _tell(self, machine: Machine, state: State, word: str) -> None:
        """An Event at the Node, once for each sentence; the work does not depend on it."""
        if word == machine.told:
            return
        node, machine.told = machine.spec.node.name, word
        try:
            cluster = self.context.cluster(machine.spec)
            if cluster is not None:
                cluster.tell(node, f"FirstBoot{state.capitalize()}", word, good=state != "failed")
        except WinbootError as error:
            self.log("winboot could not create an event of the Node", node=node, problem=error.problem)


def _once(spec: NodeSpec, context: RunContext, options: Options) -> str:
    """One join; why the node is not done, or nothing."""
    try:
        (report,) = join([spec], context, options, command="hook").nodes
    except WinbootError as error:
        return error.problem
    return "" if report.exit_code == 0 else reason_of(report)

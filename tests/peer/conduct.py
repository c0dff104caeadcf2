"""What a machine answers to winboot's script, by the name of its conduct."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from winboot_lab.wsman.executor import Emit, Ended, SecureText, Stop

from tests.peer.kubelet import Kubelet

# A line of what a chatty machine says, and how long it takes a breath, in seconds: two megabytes a second.
CHATTER: Final = "x" * 10_000
BREATH_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class Facts:
    """What a machine says of itself. `address` is the one its kubelet goes by."""

    name: str
    address: str
    uuid: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One script that runs: its arguments, and the way back."""

    arguments: Mapping[str, object]
    emit: Emit
    cancelled: Stop

    def say(self, **event: Any) -> None:
        """An event of this run."""
        self.emit("output", json.dumps({"v": 1, "run": self.arguments["RunId"], **event}))

    def secret(self, name: str) -> str | None:
        """What winboot sent under this name."""
        secrets = self.arguments.get("Secrets")
        value = secrets.get(name) if isinstance(secrets, dict) else None
        return value.value if isinstance(value, SecureText) else None

    def wait(self) -> None:
        """Until the script is stopped."""
        stopped = threading.Event()
        self.cancelled.then(stopped.set)
        stopped.wait()


class Machine:
    """One machine, an executor of the WSMan endpoint: takes scripts, and answers as its conduct says."""

    def __init__(self, facts: Facts, conduct: str, kubelet: Kubelet) -> None:
        self.facts = facts
        self.kubelet = kubelet
        self.modes: list[str] = []
        self.changed = False
        self.running = False
        self._boot = 1
        # What becomes of its network when it restarts; by default it is back at once.
        self.leave: Callable[[], None] = lambda: None
        self._conduct = CONDUCTS[conduct]

    def run(self, script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Stop) -> Ended:
        """winboot's script has a mode, the one that restarts has a boot id, the one that names the boot has nothing."""
        if "Mode" in parameters:
            self.modes.append(str(parameters["Mode"]))
            self.running = True
            try:
                return self._conduct(self, Call(parameters, emit, cancelled))
            finally:
                self.running = False
        if "BootId" in parameters and self._conduct is never_back:
            self.leave()
        elif "BootId" in parameters:
            self._boot += parameters["BootId"] == self.boot_id
        else:
            emit("output", self.boot_id)
        return Ended()

    @property
    def boot_id(self) -> str:
        """Changes with every restart."""
        return f"boot-{self._boot}"

    def begin(self, call: Call) -> None:
        """The first event of every run."""
        facts = self.facts
        known = {"boot_id": self.boot_id, "smbios_uuid": facts.uuid, "build": "20348.2227", "fence": 1}
        call.say(event="run", **known, computer_name=facts.name.upper(), node_ip=facts.address)


Conduct = Callable[[Machine, Call], Ended]


def good(machine: Machine, call: Call) -> Ended:
    """Everything differs at first; a restart, then a change in which the kubelet joins; from then on all is right."""
    machine.begin(call)
    mode = call.arguments["Mode"]
    if mode == "Change" and machine.boot_id == "boot-1" and not machine.changed:
        _tell(machine, call, machine.facts.steps[:1], "blocked")
        call.say(event="reboot", steps=[machine.facts.steps[0]])
        _tell(machine, call, machine.facts.steps[1:], "blocked")
        call.say(event="done", reason="reboot")
        return Ended()
    state = "ok" if machine.changed else "would-change"
    if mode == "Change" and not machine.changed:
        token = call.secret("bootstrap-token")
        if token is not None:
            machine.kubelet.join(token, machine.facts, call.cancelled)
        machine.changed, state = True, "changed"
    _tell(machine, call, machine.facts.steps, state)
    call.say(event="done", reason="complete")
    return Ended("stopped" if call.cancelled() else "completed")


def _tell(machine: Machine, call: Call, steps: Sequence[str], state: str) -> None:
    difference = {"key": "thing", "what": "thing", "is": None, "want": "there"}
    problem = {"id": "NeedsRestart", "message": "the machine restarts first"} if state == "blocked" else None
    for step in steps:
        found = [] if state == "ok" else [difference]
        call.say(event="step", step=step, state=state, ms=1, differences=found, problem=problem)


def silent(machine: Machine, call: Call) -> Ended:
    """Begins, and says nothing more: a DISM or WMI that hangs."""
    machine.begin(call)
    call.wait()
    return Ended("stopped")


def chatty(machine: Machine, call: Call) -> Ended:
    """Talks without end and says nothing."""
    machine.begin(call)
    stopped = threading.Event()
    call.cancelled.then(stopped.set)
    while not stopped.wait(BREATH_S):
        call.emit("output", CHATTER)
    return Ended("stopped")


def lying(machine: Machine, call: Call) -> Ended:
    """Is done without a word on any step."""
    machine.begin(call)
    call.say(event="done", reason="complete")
    return Ended()


def damaged(machine: Machine, call: Call) -> Ended:
    """Tells a step without its time."""
    machine.begin(call)
    call.say(event="step", step=machine.facts.steps[0], state="ok", ms=None)
    return Ended()


def breaking_off(machine: Machine, call: Call) -> Ended:
    """Ends in the middle, each time."""
    machine.begin(call)
    return Ended()


def never_back(machine: Machine, call: Call) -> Ended:
    """Wants a restart, and does not come back from it."""
    return good(machine, call)


# A conduct, and the name that such a node has in the report; None where it ends well.
CONDUCTS: Final[Mapping[str, Conduct]] = {
    "good": good,
    "silent": silent,
    "chatty": chatty,
    "lying": lying,
    "damaged": damaged,
    "breaking off": breaking_off,
    "never back": never_back,
}

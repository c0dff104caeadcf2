"""Lab machines with the steps' scripts run on them, without a network protocol in between."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from winboot_lab.console import silent_powershell
from winboot_lab.engine.values import SecureString
from winboot_lab.engines import run_script
from winboot_lab.programs import install_programs
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.accounts import ADMINISTRATORS, SYSTEM, Token
from winboot_lab.windows.acl import FULL, Rule
from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.files import Files
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs import Programs
from winboot_lab.windows.sockets import World

from tests.steps.builders import a_spec
from winboot.config.node_spec import NodeSpec
from winboot.report.events import Problem, StepDone, parse
from winboot.script.plan import Plan, make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

Event = dict[str, Any]
Release = Literal["2019", "2022", "2025"]


@dataclass(frozen=True)
class Told:
    """The output of one run: its events, and the steps by name."""

    events: list[Event]

    @property
    def states(self) -> dict[str, str]:
        """Each step's state, the preflight's (which is always there) left out when it is fine."""
        found = {event["step"]: event["state"] for event in self.events if event["event"] == "step"}
        if found.get("node-preflight") == "ok":
            del found["node-preflight"]
        return found

    def step(self, name: str) -> Event:
        """The event of one step."""
        return next(event for event in self.events if event.get("step") == name and event["event"] == "step")

    def differences(self, name: str) -> dict[str, tuple[str | None, str | None]]:
        """What a step found: what → (is, want)."""
        return {one["what"]: (one["is"], one["want"]) for one in self.step(name)["differences"]}

    def problem(self, name: str) -> Problem:
        """Why a step failed or was blocked, as reports show it."""
        event = parse(json.dumps(self.step(name)))
        assert isinstance(event, StepDone)
        assert event.problem is not None, event
        return event.problem

    @property
    def ended(self) -> str:
        """Why the run ended."""
        return self.events[-1]["reason"]


def close_folder(files: Files, path: str) -> None:
    """Make a folder, and leave it to SYSTEM and Administrators, as the step `directories` does."""
    files.make_directory(path)
    acl = files.need(path)[1].acl
    acl.protect(preserve=False)
    acl.explicit = [Rule(sid, FULL, inheritance=3) for sid in (SYSTEM, ADMINISTRATORS)]


def part_of(spec: NodeSpec, names: tuple[str, ...]) -> Plan:
    """The plan of these steps and the preflight, without what they need: a script that is short and fast."""
    plan = make_plan(spec, STEPS)
    steps = tuple(step for step in plan.steps if step.essential or not names or step.name in names)
    return replace(plan, steps=steps)


class Rig:
    """A machine, a spec, and ways to run the script of some steps and to see what it did."""

    machine: Machine
    spec: NodeSpec

    def run(
        self,
        *names: str,
        mode: str = "Change",
        facts: Mapping[str, object] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Told:
        """Run the script of these steps (and the preflight) and read its events."""
        return self.run_text(self.text(*names, mode=mode), mode=mode, facts=facts, secrets=secrets)

    def text(self, *names: str, mode: str = "Change") -> str:
        """The script of these steps and the preflight."""
        return render(part_of(self.spec, names), self.spec, undo=mode == "Undo").text

    def run_text(
        self,
        text: str,
        *,
        mode: str = "Change",
        facts: Mapping[str, object] | None = None,
        secrets: Mapping[str, str] | None = None,
        token: Token | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Told:
        """Run a script in a network logon of its own: the Administrator's, or whose token it is."""
        texts = {name: SecureString(value) for name, value in (secrets or {}).items()}
        # Tests of steps put things of others onto the machine; those of the preflight ask what then.
        arguments = {"Mode": mode, "RunId": "r1", "Facts": {"Adopt": True, **(facts or {})}, "Secrets": texts}
        output: list[object] = []
        session = self.machine.session("Administrator", token=token)
        session.environment.update(environment or {})
        try:
            with self.machine.acting():
                ended = run_script(
                    session,
                    text,
                    arguments,
                    emit=lambda stream, value: output.append(value),
                    local_scope=True,  # as the transport asks
                )
        finally:
            session.close()
        assert ended.state == "completed", (getattr(ended.error, "message", ""), output)
        return Told([json.loads(str(line)) for line in output])

    def look(self, *names: str) -> Told:
        """The same in mode Look."""
        return self.run(*names, mode="Look")

    def undo(self, *names: str) -> Told:
        """The script of `remove`."""
        return self.run(*names, mode="Undo")

    def registry(self, path: str, name: str) -> object:
        """A value below HKEY_LOCAL_MACHINE, or None."""
        return next(
            (
                one["value"]
                for one in self._invoke("registry.get", key=rf"HKEY_LOCAL_MACHINE\{path}", name=name)
            ),
            None,
        )

    def file(self, path: str) -> bytes | None:
        """The bytes of a file, or None."""
        if not self._invoke("file.stat", path=path):
            return None
        return self._invoke("file.read", path=path)[0]

    def write(self, path: str, content: bytes) -> None:
        """Write a file as another program does; makes its folder if needed."""
        self.machine.files.make_directory(path.rpartition("\\")[0])
        self.machine.files.write(path, content)

    def reboot(self) -> None:
        """Restart the machine and wait until it is up."""
        self.machine.reboot(seconds=1)
        self.machine.settle(5)

    def state(self, name: str) -> Any:
        """A JSON file of the state folder, or None."""
        content = self.file(rf"C:\ProgramData\winboot\{name}")
        return None if content is None else json.loads(content)

    def _invoke(self, command: str, **parameters: Any) -> list[Any]:
        return self.machine.console.invoke(command, parameters).objects


@dataclass
class Bench(Rig):
    """One machine, its surroundings, and a spec. The API server's port answers from the start."""

    release: Release = "2022"
    spec: NodeSpec = field(default_factory=a_spec)
    world: World = field(default_factory=World)
    dhcp: bool = False

    def __post_init__(self) -> None:
        programs = Programs()
        self.outside = Outside(self.world)
        install_programs(programs, self.outside)
        self.world.listen(self.spec.cluster.server_host, self.spec.cluster.server_port)
        self.machine = Machine(
            "WIN-OLD",
            release=self.release,
            dhcp=self.dhcp,
            time=LabTime(scale=0),
            world=self.world,
            programs=programs,
        )
        self.machine.run_powershell = silent_powershell

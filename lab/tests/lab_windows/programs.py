"""Two programs for the tests: one that stays, and one that says something and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from winboot_lab.windows.machine import Machine
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit, Served, image_bytes


@dataclass
class Running:
    """One instance of the daemon."""

    owner: Daemon
    process: Process
    env: Mapping[str, str]

    def on_start(self) -> Died | None:
        """Die at the start if the command line asks for it."""
        self.owner.started.append(self)
        return Died(1, 1) if "--fail" in self.process.command_line else None

    def on_tick(self) -> Died | None:
        """Count seconds; die when the test asks for it."""
        self.owner.ticks += 1
        died, self.owner.death = self.owner.death, None
        return died

    def on_stop(self) -> None:
        """Count the requests to stop."""
        self.owner.stopped += 1


@dataclass
class Daemon:
    """A program that is a service when started with --service."""

    started: list[Running] = field(default_factory=list)
    ticks: int = 0
    stopped: int = 0
    death: Died | None = None

    def is_service(self, argv: list[str]) -> bool:
        """Like kubelet's --windows-service."""
        return "--service" in argv

    def run(
        self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """Started on a console it only says so."""
        return Exit(0, b"not a service\r\n")

    def serve(self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str]) -> Served:
        """A new instance."""
        return Running(self, process, env)


class Echo:
    """Prints its arguments, and its input to standard error; exits with the number behind --exit."""

    def run(
        self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """Run to the end."""
        code = int(argv[argv.index("--exit") + 1]) if "--exit" in argv else 0
        return Exit(code, "\n".join(argv[1:]).encode(), stdin)


def put(machine: Machine, path: str, name: str = "daemon") -> str:
    """A program file on the machine."""
    machine.files.make_directory(path.rpartition("\\")[0])
    machine.files.write(path, image_bytes(name, "1.0"))
    return path


def with_daemon(machine: Machine) -> Daemon:
    """The daemon, known to the machine and lying at C:\\k\\daemon.exe."""
    daemon = Daemon()
    machine.programs.add("daemon", daemon)
    machine.programs.add("echo", Echo())
    put(machine, r"C:\k\daemon.exe")
    put(machine, r"C:\k\echo.exe", "echo")
    return daemon

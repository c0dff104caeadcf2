"""One Windows Server machine: the subjects of its state, its sessions, its time, and how it goes down and up.

Everything happens under one lock (`machine.lock`), which waiting lets go of. Registry and files are the truth where
Windows keeps its truth there; what only lives until the next boot is in the subjects' volatile parts.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Literal

from winboot_lab.windows import cmdlets, primitives
from winboot_lab.windows.boot import Boot
from winboot_lab.windows.call import CMDLETS, dispatch
from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.door import CommandSignature
from winboot_lab.windows.forking import take_part
from winboot_lab.windows.hardware import RELEASES, Hardware, Release
from winboot_lab.windows.install import install
from winboot_lab.windows.programs import Launcher, Programs
from winboot_lab.windows.session import Computer, Session
from winboot_lab.windows.snapshot import Tree, plain, without_chance
from winboot_lab.windows.sockets import World

# Importing these two packages fills the tables of cmdlets and primitives.
_REGISTERED = (cmdlets, primitives)


def _no_powershell(session: Session, arguments: list[str]) -> int:
    raise NotImplementedError("the lab has set no machine.run_powershell")


class Machine(Computer):
    """A Windows Server 2019, 2022 or 2025 as it comes from the installation, and everything done to it since."""

    def __init__(
        self,
        name: str = "WIN-1",
        *,
        release: Literal["2019", "2022", "2025"] | Release = "2022",
        address: str = "10.0.0.21",
        prefix_length: int = 24,
        gateway: str = "10.0.0.1",
        dns: Sequence[str] = ("10.0.0.2",),
        dhcp: bool = False,
        time: LabTime | None = None,
        world: World | None = None,
        programs: Programs | None = None,
        hardware: Hardware | None = None,
    ) -> None:
        self.programs = programs or Programs()
        super().__init__(
            name,
            RELEASES[release] if isinstance(release, str) else release,
            hardware or Hardware.named(name),
            time or LabTime(),
            world or World(),
            Launcher(self, self.programs),
        )
        self.power = Boot(self)
        self.run_powershell = _no_powershell
        self._living = threading.Event()
        self._commands: tuple[int, dict[str, CommandSignature]] = (-1, {})

        with self.lock:
            install(self, name)
            self.network.plug_in(address, prefix_length, gateway, list(dns), dhcp=dhcp)
            self.power.come_up()
        self.world.machines.append(self)
        take_part(self)

    dispatch = staticmethod(dispatch)

    @property
    def commands(self) -> Mapping[str, CommandSignature]:
        """The cmdlets there are now, by lower-case name."""
        # Only features bring cmdlets, so the table is made once for each set of services.
        stamp = self.services.changes
        if self._commands[0] != stamp:
            self._commands = (stamp, {key: c.signature for key, c in CMDLETS.items() if c.exists(self)})
        return self._commands[1]

    def settle(self, seconds: float) -> None:
        """Let lab time pass without an actor: timers fire, services tick, reboots end."""
        self.wait(seconds, across_boots=True)

    def live(self, *, pace: float = 0.05) -> None:
        """Go on by itself, on a thread, until `power_off` or `rest`: services tick and reboots end without an actor.

        A running machine lives at `pace` (real seconds for a lab second), so that many of them leave the processor
        to working actors. One that is down comes up as fast as the lab's time allows.
        """
        self._living.set()
        threading.Thread(target=self._live, args=(pace,), name=f"machine {self.label}", daemon=True).start()

    def rest(self) -> None:
        """End `live`."""
        self._living.clear()
        self.wake()

    def _live(self, pace: float) -> None:
        while self._living.is_set():
            self.wait(
                1.0,
                until=lambda: not self._living.is_set(),
                pace=pace if self.running else 0.0,
                across_boots=True,
            )

    def reachable(self, port: int | None = None) -> bool:
        """Whether a client on the network reaches the machine (and `port`, through its firewall)."""
        with self.lock:
            return (
                self.running
                and self.network.reachable()
                and (port is None or self.firewall.lets_in("TCP", port))
            )

    # ---- down and up -----------------------------------------------------------------------------------

    def reboot(self, *, seconds: float | None = None) -> None:
        """Go down now; come up after `seconds` of lab time (the hardware's usual time when None)."""
        with self.lock:
            self.power.restart(self.hardware.boot_seconds if seconds is None else seconds)

    def manage_at(self, *ports: int) -> None:
        """Let remote management listen on other ports, now and after each boot."""
        with self.lock:
            self.power.management_ports = list(ports)
            self.power.open_management()

    def power_off(self) -> None:
        """Go down at once, as if the plug was pulled."""
        with self.lock:
            self.power.go_down(clean=False)

    def power_on(self) -> None:
        """Come up after `power_off`."""
        with self.lock:
            if not self.running:
                self.power.come_up()

    # ---- the tree --------------------------------------------------------------------------------------

    def snapshot(self) -> Tree:
        """The whole state as one tree of dicts, lists and scalars."""
        with self.lock:
            parts: dict[str, object] = {
                "machine": {
                    "name": self.name,
                    "build": self.build,
                    "running": self.running,
                    "skew": self.skew,
                },
                "files": self.files.tree(),
                "registry": self.registry.tree(),
                "services": self.services.tree(),
                "processes": self.processes.tree(),
                "features": self.features.tree(),
                "network": self.network.tree(),
                "firewall": self.firewall.tree(),
                "hns": self.hns.tree(),
                "tasks": self.tasks.tree(),
                "defender": self.defender.tree(),
                "events": self.events.tree(),
                "certificates": self.sockets.certificates,
            }
            return {key: plain(value) for key, value in parts.items()}

    def digest(self) -> str:
        """A hash of the snapshot without ids, times and logs: equal when two states mean the same."""
        text = json.dumps(without_chance(self.snapshot()), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

"""The parts of a machine, put together: each knows the host and the parts above it in this list."""

from __future__ import annotations

from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.defender import Defender
from winboot_lab.windows.eventlog import EventLog
from winboot_lab.windows.faults import Faults
from winboot_lab.windows.features import Features
from winboot_lab.windows.files import Files
from winboot_lab.windows.firewall import Firewall
from winboot_lab.windows.hardware import Hardware, Release
from winboot_lab.windows.hns import Hns
from winboot_lab.windows.host import Host
from winboot_lab.windows.mutexes import Mutexes
from winboot_lab.windows.network import Network
from winboot_lab.windows.processes import Launcher, Processes
from winboot_lab.windows.scm import ServiceControl
from winboot_lab.windows.sockets import Sockets, World
from winboot_lab.windows.tasks import Tasks


class Parts(Host):
    """A host and all that is on it."""

    def __init__(
        self,
        label: str,
        release: Release,
        hardware: Hardware,
        time: LabTime,
        world: World,
        launcher: Launcher,
    ) -> None:
        super().__init__(label, release, hardware, time)
        self.world = world
        # What was written to the serial port COM1, line by line; None where the machine has no such port.
        self.serial: list[str] | None = []
        self.files = Files(self)
        self.events = EventLog(self)
        self.processes = Processes(self, self.files, launcher)
        self.mutexes = Mutexes(self, self.processes)
        self.network = Network(self)
        self.sockets = Sockets(self, self.files, self.network, self.processes, world)
        self.faults = Faults(self, self.files, self.network, self.processes)
        self.services = ServiceControl(self, self.events, self.processes, self.faults)
        self.features = Features(self, self.files, self.services)
        self.defender = Defender(self.registry, self.features, self.services)
        self.firewall = Firewall(self, self.network)
        self.hns = Hns(self, self.network, self.services)
        self.tasks = Tasks(self, self.processes)

"""The event logs: what the system writes there, and what programs add."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from winboot_lab.windows.failure import failure
from winboot_lab.windows.host import Host
from winboot_lab.windows.registry import SERVICES
from winboot_lab.windows.snapshot import Tree

LEVELS = {"LogAlways": 0, "Critical": 1, "Error": 2, "Warning": 3, "Information": 4, "Verbose": 5}


@dataclass(frozen=True, slots=True)
class Event:
    """One entry."""

    log: str
    record_id: int
    provider: str
    id: int
    level: str
    time: datetime
    message: str
    properties: tuple[str, ...] = field(default=())


class EventLog:
    """All logs. They outlive reboots."""

    def __init__(self, machine: Host) -> None:
        self._machine = machine
        self._entries: list[Event] = []
        self._numbers: dict[str, int] = {}
        self.logs = {
            "application": "Application",
            "system": "System",
            "security": "Security",
            "windows powershell": "Windows PowerShell",
            "setup": "Setup",
        }

    def write(
        self,
        log: str,
        provider: str,
        number: int,
        message: str,
        level: str = "Information",
        properties: tuple[str, ...] = (),
    ) -> Event:
        """Add an entry to a log."""
        self._numbers[log] = self._numbers.get(log, 0) + 1
        event = Event(
            log, self._numbers[log], provider, number, level, self._machine.now(), message, properties
        )
        self._entries.append(event)
        return event

    def clear(self, log: str) -> None:
        """Remove all entries of a log, as `wevtutil clear-log` does."""
        self._entries = [entry for entry in self._entries if entry.log.lower() != log.lower()]

    def query(self, log: str) -> list[Event]:
        """The entries of a log, newest first."""
        wanted = log.lower()
        return [e for e in reversed(self._entries) if e.log.lower() == wanted]

    def log_of(self, source: str) -> str | None:
        """The log a classic source writes to."""
        registry = self._machine.registry
        for log in registry.subkeys(SERVICES + r"\EventLog"):
            if registry.exists(rf"{SERVICES}\EventLog\{log}\{source}"):
                return log
        return None

    def create_source(self, source: str, log: str) -> None:
        """Register a source; a log that is new is made."""
        there = self.log_of(source)
        if there is not None:
            message = f"Source {source} already exists on the local computer."
            raise failure("System.ArgumentException", message, hresult=0x80070057)
        self._machine.registry.create(rf"{SERVICES}\EventLog\{log}\{source}")
        self._machine.registry.set(
            rf"{SERVICES}\EventLog\{log}\{source}",
            "EventMessageFile",
            "ExpandString",
            r"C:\Windows\Microsoft.NET\Framework64\v4.0.30319\EventLogMessages.dll",
        )
        self.logs.setdefault(log.lower(), log)

    def tree(self) -> Tree:
        """The last entries of each log, shortly."""
        return [f"{e.log} {e.provider} {e.id}: {e.message.splitlines()[0]}" for e in self._entries[-50:]]

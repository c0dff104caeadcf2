"""Which machines, how to reach them, and which profile each one gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from winboot.base.errors import InvalidInput
from winboot.config.ansible import is_ansibles, open_inventory, read_ansible
from winboot.config.inventory.connection import Connection, Jump, Tls
from winboot.config.inventory.machine import SECTIONS, HostKeys, Machine, MachineSpec, Os
from winboot.config.inventory.reader import Reader
from winboot.config.source import Complaint, Table, in_order, written

__all__ = [
    "SECTIONS",
    "Connection",
    "HostKeys",
    "Inventory",
    "Jump",
    "Machine",
    "MachineSpec",
    "Os",
    "Tls",
    "check_inventory",
    "inventory_of",
    "load_inventory",
    "own_text",
    "read_inventory",
]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All machines in the order of the file, what is worth knowing about them, and the files as they were read."""

    path: Path
    machines: tuple[Machine, ...]
    warnings: tuple[Complaint, ...] = ()
    tables: Mapping[Path, Table] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Machine]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    def __getitem__(self, name: str) -> Machine:
        """The machine of that name; KeyError where it is missing."""
        for machine in self.machines:
            if machine.name == name:
                return machine
        raise KeyError(name)


def load_inventory(path: Path) -> Inventory:
    """The machines of a file, each with its profile; InvalidInput with every complaint where something is wrong."""
    return inventory_of(path, *read_inventory(path))


def read_inventory(path: Path) -> tuple[Table, tuple[Complaint, ...]]:
    """The nodes of an inventory, of Ansible's as winboot has them, and what is worth knowing. Raises InvalidInput."""
    content = open_inventory(path)
    if isinstance(content, str) or is_ansibles(content):
        return read_ansible(path, content)
    return content, ()


def own_text(path: Path) -> str | None:
    """An Ansible inventory as winboot has read it, as a static winboot inventory; None for winboot's own form. What
    is there for other programs stays where it is. Raises InvalidInput."""
    if not is_ansibles(open_inventory(path)):
        return None
    top, _ = read_inventory(path)
    head = f"# Made from {path.name}: the machines and settings in that file.\n"
    return head + written(top)


def inventory_of(path: Path, top: Table, known: tuple[Complaint, ...] = ()) -> Inventory:
    """The same for a file that was read already, or for nodes that a cloud's answer was made into."""
    reader = Reader(path, top)
    reader.complaints.all.extend(known)
    machines = reader.machines()
    complaints = in_order(reader.complaints.all)
    errors = [one for one in complaints if one.level == "error"]
    if errors:
        count = f"{len(errors)} error{'s' if len(errors) != 1 else ''}"
        raise InvalidInput(f"{path}: {count}", problems=tuple(complaints), hint="Correct each place above.")
    return Inventory(path, machines, tuple(complaints), reader.tables())


def check_inventory(path: Path) -> list[Complaint]:
    """Everything that is wrong with an inventory and its profiles, or worth knowing; empty for good ones."""
    try:
        return list(load_inventory(path).warnings)
    except InvalidInput as error:
        found = [one for one in error.problems if isinstance(one, Complaint)]
        return found or [Complaint(None, "", error.problem)]

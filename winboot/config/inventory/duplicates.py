"""No two nodes on one machine, and no name of one in the certificate of another."""

from __future__ import annotations

from winboot.config.inventory.complaints import Complaints
from winboot.config.inventory.machine import Machine
from winboot.config.source import Place


def refuse_twins(into: Complaints, machines: tuple[Machine, ...], places: dict[str, Place]) -> None:
    """No two nodes on one machine."""
    for key in ("address", "computer_name", "node_ip", "provider_id"):
        seen: dict[str, str] = {}
        for machine in machines:
            # Machines on loopback share an address and differ by their port.
            text = str(getattr(machine, key) or "").lower()
            value = f"{text}:{machine.connection.port_number}" if key == "address" and text else text
            if value and value in seen:
                wrong = f"{machine.name} and {seen[value]} have the same {key} {getattr(machine, key)}"
                expected = f"a different {key} for each machine"
                into.complain(places[machine.name], f"hosts.{machine.name}.{key}", wrong, expected)
            seen.setdefault(value, machine.name)
    _refuse_two_here(into, machines, places)
    _refuse_shared_names(into, machines, places)


def _refuse_two_here(into: Complaints, machines: tuple[Machine, ...], places: dict[str, Place]) -> None:
    """`local` is this computer, and it is one node."""
    here = [one.name for one in machines if one.connection.transport == "local"]
    for name in here[1:]:
        wrong = f"{name} and {here[0]} are both this computer (transport: local)"
        into.complain(places[name], f"hosts.{name}.connection.transport", wrong, "one local host")


def _refuse_shared_names(into: Complaints, machines: tuple[Machine, ...], places: dict[str, Place]) -> None:
    """No name of one machine in the certificate of another."""
    owners: dict[str, str] = {}
    for machine in machines:
        own = {machine.name, machine.computer_name.lower(), machine.node_ip or ""}
        if not machine.connection.loopback:
            own.add(machine.address.lower())
        for name in own - {""}:
            owners.setdefault(name, machine.name)
    for machine in machines:
        for name in machine.certificate_names:
            owner = owners.setdefault(name, machine.name)
            if owner != machine.name:
                path = f"hosts.{machine.name}.certificate_names"
                wrong = f"{name} is already a name of {owner}"
                into.complain(places[machine.name], path, wrong, "names of only this machine")

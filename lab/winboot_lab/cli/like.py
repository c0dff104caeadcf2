"""Machines that are modelled on a bundle of `winboot collect`: release, updates, hardware, name and kind of address."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from winboot.base.errors import UsageError
from winboot.base.foreign import Malformed, converted
from winboot.operations.doctor.bundle import facts
from winboot_lab.cli.staging import MACHINES
from winboot_lab.up import NodePlan, default_nodes
from winboot_lab.windows.hardware import RELEASES, Hardware, Hypervisor, Release

# What SMBIOS says made the box. Azure's machines say what Hyper-V's do.
_MAKERS: Final[Mapping[str, Hypervisor]] = {
    "Microsoft Corporation": "hyper-v",
    "VMware, Inc.": "vmware",
    "QEMU": "kvm",
    "Amazon EC2": "aws",
}


class _Machine(msgspec.Struct, frozen=True):
    name: str
    manufacturer: str
    memory: int
    processors: int
    build: int
    revision: int
    installation: str
    updates: tuple[str, ...]


class _Address(msgspec.Struct, frozen=True):
    address: str
    origin: str


class _Disk(msgspec.Struct, frozen=True):
    free: int
    size: int


class _Facts(msgspec.Struct, frozen=True):
    machine: tuple[_Machine, ...]
    addresses: tuple[_Address, ...] = ()
    disk: tuple[_Disk, ...] = ()


def plans_of(bundle: Path) -> list[NodePlan]:
    """A plan for each machine that the bundle has facts of. Raises UsageError for another file, and where it has none."""
    found = {node: items for node, items in facts(bundle).items() if items.get("machine")}
    if not found:
        raise UsageError(
            f"{bundle} has no facts of a machine", hint="Collect again, from a machine that answers."
        )
    plans = default_nodes(len(found))
    return [
        _plan(bundle, node, items, plan) for (node, items), plan in zip(found.items(), plans, strict=True)
    ]


def _plan(bundle: Path, node: str, items: Mapping[str, Any], plan: NodePlan) -> NodePlan:
    try:
        known = converted(dict(items), _Facts)
        machine = known.machine[0]
        release = _release(machine.build)
        own = [one for one in known.addresses if IPv4Address(one.address) in MACHINES]
    except (Malformed, ValueError) as error:
        raise UsageError(
            f"{bundle}: the lab has no machine like {node}: {error}", hint="Collect from another machine."
        ) from None
    core: Literal["Server", "Server Core"] = (
        "Server Core" if machine.installation == "Server Core" else "Server"
    )
    hardware = Hardware.named(node)
    for disk in known.disk:
        hardware.disk, hardware.disk_used = disk.size, disk.size - disk.free
    hardware = dataclasses.replace(
        hardware,
        processors=machine.processors,
        memory=machine.memory,
        hypervisor=_MAKERS.get(machine.manufacturer, "none"),
        installation=core,
        kbs=machine.updates,
    )
    return dataclasses.replace(
        plan,
        name=node,
        release=release.name,
        address=own[0].address if own else plan.address,
        computer=machine.name,
        revision=machine.revision,
        dhcp=any(one.origin == "Dhcp" for one in known.addresses),
        hardware=hardware,
    )


def _release(build: int) -> Release:
    found = next((one for one in RELEASES.values() if one.build == build), None)
    if found is None:
        raise ValueError(f"its build of Windows is {build}")
    return found

"""A lab like the user's own site: an inventory's machines, groups and profiles, and the services that the profiles name.
The lab lists everything that it had to invent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from winboot_lab.cli.staging import (
    FILE_KEYS,
    MACHINES,
    PASSWORD_VARIABLE,
    POLL_S,
    at_home,
    dump,
    fit,
    hashes,
    stage,
    way,
)
from winboot_lab.up import Lab, NodePlan, default_nodes

if TYPE_CHECKING:
    from winboot.config.inventory import Inventory, Machine
    from winboot.config.node_spec import NodeSpec
    from winboot.config.source import Node

_BUILDS: Final = (17763, 20348, 26100)
# What is the lab's in every rehearsal.
OWN: Final = "cluster, CA, kubeconfig, artifacts, and the users and passwords of the machines"
# Where the lab's own servers are.
_TAKEN: Final = frozenset({"10.0.0.1", "10.0.0.10"})


@dataclass(frozen=True, slots=True)
class Twin:
    """What a lab for an inventory needs, and what was invented for it."""

    inventory: Inventory
    plans: tuple[NodePlan, ...]
    invented: tuple[str, ...]


def twin_of(path: Path) -> Twin:
    """The machines of an inventory, as a lab can have them. Raises InvalidInput with every complaint about the files."""
    from winboot.config.inventory import load_inventory

    inventory = load_inventory(path)
    invented: list[str] = []
    taken = set(_TAKEN) | {text for machine in inventory if (text := _own_address(machine)) is not None}
    free = (plan.address for plan in default_nodes(len(inventory) * 2 + len(taken)))
    plans = []
    for machine in inventory:
        address = _own_address(machine)
        if address is None:
            address = next(one for one in free if one not in taken)
            taken.add(address)
            invented.append(
                f"{machine.name}: its address is {address} ({machine.address} is not of {MACHINES})"
            )
        ssh = machine.connection.transport == "ssh"
        if machine.connection.transport == "local":
            invented.append(f"{machine.name}: it is reached over WinRM, not as this computer")
        https = machine.connection.transport == "winrm" and machine.connection.https
        plans.append(NodePlan(machine.name, machine.os, address, ssh=ssh, https=https))
    secure = [plan.name for plan in plans if plan.https]
    if secure:
        invented.append(f"{', '.join(secure)}: HTTPS, with a certificate of the lab's that is pinned")
    servers = dict.fromkeys(str(machine.profile.cluster.server) for machine in inventory)
    if len(servers) > 1:
        invented.append(f"one cluster in place of {len(servers)}: {', '.join(servers)}")
    return Twin(inventory, tuple(plans), tuple(invented))


def _own_address(machine: Machine) -> str | None:
    """Its address, where the lab's network has it."""
    for text in (machine.node_ip, machine.address):
        try:
            if text and IPv4Address(text) in MACHINES and text not in _TAKEN:
                return text
        except ValueError:
            continue
    return None


def stage_twin(lab: Lab, twin: Twin, folder: Path) -> tuple[Path, list[str]]:
    """Write inventory, profiles, CA and kubeconfig for the lab and start the services that the profiles name.

    Returns the inventory and a list of what the lab invented."""
    from winboot.cli.targets import load_targets

    folder.mkdir(parents=True, exist_ok=True)
    lab.server.write_admin_kubeconfig(folder / "kubeconfig")
    (folder / "ca.crt").write_text(lab.cluster.authority.pem, encoding="ascii")
    os.environ[PASSWORD_VARIABLE] = lab.password
    profiles: dict[Path, tuple[str, dict[str, Any]]] = {}
    for machine in twin.inventory:
        file = machine.profile_file
        if file not in profiles:
            name = "profile.yaml" if not profiles else f"profile-{len(profiles) + 1}.yaml"
            wanted = at_home(file)
            fit(wanted, lab)
            profiles[file] = (name, wanted)
    target = folder / "inventory.yaml"
    target.write_text(dump(_inventory(lab, twin, profiles)), encoding="utf-8")
    for name, wanted in profiles.values():
        (folder / name).write_text(dump(wanted), encoding="utf-8")
    pins = hashes(target)
    for name, wanted in profiles.values():
        wanted["artifacts"]["sha256"] = pins
        (folder / name).write_text(dump(wanted), encoding="utf-8")
    return target, [*twin.invented, OWN, *_world(lab, load_targets(target, (), trust=True))]


def stage_profile(lab: Lab, profile: Path | None, folder: Path, *, node_ip: bool = False) -> list[str]:
    """Write the files for a lab with a profile of the user's, or the lab's own, put up what the profile mentions, and say what
    was invented. With `node_ip` the inventory names the addresses of the nodes."""
    from winboot.cli.targets import load_targets

    staged = stage(lab, folder, profile, node_ip=node_ip)
    count = len(lab.plans)
    machines = f"{count} machines, win-1 to win-{count}" if count > 1 else "one machine, win-1"
    return [machines, OWN, *_world(lab, load_targets(staged.inventory, (), trust=True))]


def _world(lab: Lab, specs: list[NodeSpec]) -> Iterator[str]:
    """Put up the proxies and registries that the profiles mention; each in words."""
    said: dict[str, None] = {}
    for spec in specs:
        for url in (spec.proxy.http, spec.proxy.https):
            if url:
                parts = urlsplit(url)
                lab.world.proxy(parts.hostname or "", parts.port or 80)
                said[f"the proxy {parts.hostname}:{parts.port or 80} reaches everything"] = None
        image = spec.runtime.pause_image
        registries = {image.partition("/")[0], *spec.runtime.registry_urls}
        registries |= {
            urlsplit(url).hostname or "" for urls in spec.runtime.registry_urls.values() for url in urls
        }
        for host in sorted(registries - {""}):
            if host not in lab.outside.images.hosts:
                lab.outside.serve_registry(host)
                said[f"the registry {host} has every image that a node requests"] = None
        lab.outside.images.builds.setdefault(image, _BUILDS)
        for registry in spec.runtime.registries:
            name = registry.credential.env if registry.credential is not None else None
            if name and not os.environ.get(name):
                os.environ[name] = "lab"
                said[f"{name} is not set here: the password of {registry.host} is `lab`"] = None
    yield from said


def _inventory(lab: Lab, twin: Twin, profiles: Mapping[Path, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The groups as they are, each host with its way into the lab and what the inventory says beyond its profile."""
    groups: dict[str, Any] = {}
    plans = {plan.name: plan for plan in twin.plans}
    for machine in twin.inventory:
        for name in machine.groups:
            groups.setdefault(name, {"hosts": {}})
        groups[machine.group]["profile"] = f"./{profiles[machine.profile_file][0]}"
        host: dict[str, Any] = {
            "address": "127.0.0.1",
            "os": machine.os,
            "connection": way(lab.nodes[machine.name]),
            "certificate_names": [plans[machine.name].address],
        }
        if machine.computer_name != machine.name.upper():
            host["computer_name"] = machine.computer_name
        host |= _own_sections(twin.inventory, machine)
        groups[machine.group]["hosts"][machine.name] = host
        for other in machine.groups:
            if other != machine.group:
                groups[other].setdefault("members", []).append(machine.name)
    connection = {"user": r".\Administrator", "password": {"env": PASSWORD_VARIABLE}, "poll_s": POLL_S}
    return {"defaults": {"connection": connection}, "groups": groups}


def _own_sections(inventory: Inventory, machine: Machine) -> dict[str, Any]:
    """The sections of the inventory that override a machine's profile, merged in the order of an inventory.

    The settings that the lab replaces are left out."""
    from winboot.config.inventory import SECTIONS
    from winboot.config.source import Table, merge

    top = inventory.tables[inventory.path]
    groups = top.get("groups")
    tables = [groups.get(name) for name in machine.groups] if isinstance(groups, Table) else []
    home = groups.get(machine.group) if isinstance(groups, Table) else None
    hosts = home.get("hosts") if isinstance(home, Table) else None
    layers = [top.get("defaults"), *tables, hosts.get(machine.name) if isinstance(hosts, Table) else None]
    merged: Any = Table(top.place)
    for layer in layers:
        if isinstance(layer, Table):
            merged = merge(merged, layer)
    wanted = {key: entry.value for key, entry in merged.entries.items() if key in SECTIONS}
    folder = inventory.path.parent
    return {key: _plain(one, folder) for key, one in wanted.items() if key not in ("cluster", "artifacts")}


def _plain(node: Node, folder: Path, key: str = "") -> Any:
    """A node as YAML would write it again; a number that is no integer stays a text, as a version is."""
    from winboot.config.source import Listing, Table, raw, typed

    if isinstance(node, Table):
        return {name: _plain(entry.value, folder, name) for name, entry in node.entries.items()}
    if isinstance(node, Listing):
        return [_plain(item, folder) for item in node.items]
    if key in FILE_KEYS:
        return str((folder / node.text).resolve())
    value = typed(raw(node))
    return node.text if isinstance(value, float) else value

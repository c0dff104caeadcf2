"""Whether a machine and its profile go together: its build, its names, its addresses.

What one of them says alone is checked where it is read; here is what only both say.
"""

from __future__ import annotations

import re
from typing import Final

from winboot.config import compat
from winboot.config.compat.docker import check_docker_build
from winboot.config.inventory.complaints import Complaints
from winboot.config.inventory.connection import address_of
from winboot.config.inventory.machine import Machine
from winboot.config.profile import Profile, facts_of
from winboot.config.profile.values import Address as IpAddress
from winboot.config.reserved_names import foreign_name, server_host, wrong_names
from winboot.config.source import (
    Place,
    Table,
    locate,
)

_COMPUTER_NAME: Final = re.compile(r"(?!\d+$)[A-Za-z0-9]([A-Za-z0-9-]{0,13}[A-Za-z0-9])?")


def check_fit(into: Complaints, machine: Machine, merged: Table, host_place: Place) -> None:
    """All that a machine and its own merged profile say of each other; `merged` is what the inventory says of the machine."""
    _check_build(into, machine, merged)
    _check_pause_image(into, machine, merged)
    _check_source(into, machine, host_place)
    _check_fixes(into, machine, merged)
    _check_names(into, machine, merged)
    _check_addresses(into, machine, merged)
    _check_certificate(into, machine, merged, host_place)


def _check_build(into: Complaints, machine: Machine, merged: Table) -> None:
    """Does this Windows run this Kubernetes, and can it do what the network takes?"""
    profile, facts = machine.profile, facts_of(machine.profile)
    version = profile.kubernetes.version
    into.found(merged, ("os",), compat.check_build(facts, version, machine.build))
    if profile.runtime.name == "docker":
        into.found(merged, ("os",), list(check_docker_build(facts, version, machine.build)))
    try:
        features = list(profile.solution.features)
    except ValueError:
        features = []  # there is no such network, which the profile's own check has said
    if profile.kube_proxy.dsr == "on":
        features.append("dsr")
    if len(profile.cluster.pod_cidr) > 1:
        features.append("dual-stack")
    for feature in features:
        into.found(merged, ("os",), compat.check_feature(facts, feature, version, machine.build))


def _check_pause_image(into: Complaints, machine: Machine, merged: Table) -> None:
    """Does the profile's pause image run on this Windows? The form of its name is the profile's own check."""
    runtime, facts = machine.profile.runtime, facts_of(machine.profile)
    if runtime.pause_image is None:
        return
    containerd = None
    if runtime.name == "containerd":
        default = compat.default_containerd(facts, machine.profile.kubernetes.version)
        containerd = runtime.containerd or compat.Version.parse(default)
    found = compat.check_pause_image(facts, runtime.pause_image, machine.build, containerd)
    into.found(merged, ("os",), found)


def _check_source(into: Complaints, machine: Machine, host_place: Place) -> None:
    """Does the way to the machine let it read the shares that the profile names?

    The second hop: a WinRM session has no credentials to show to another machine, not even the machine's own; the
    share sees ANONYMOUS LOGON (learn.microsoft.com/powershell/scripting/security/remoting/ps-remoting-second-hop). A login
    over SSH with a key has none either (PowerShell/Win32-OpenSSH#543).
    """
    connection, profile = machine.connection, machine.profile
    with_a_key = connection.key is not None or connection.agent or connection.password is None
    if connection.transport == "local" or (connection.transport == "ssh" and not with_a_key):
        return
    session = "an SSH login with a key" if connection.transport == "ssh" else "a WinRM session"
    other = {"artifacts.source": "a web mirror", "windows.features_source": "a folder on the machine"}
    sources = (profile.artifacts.source, profile.windows.features_source or "")
    for key, source in zip(other, sources, strict=True):
        if source.startswith("\\\\"):
            wrong = f"{source} is a share, but {session} cannot log in to a third machine"
            expected = f"{other[key]}, or a connection over SSH with only a password"
            into.complain(host_place, key, wrong, expected)


def _check_certificate(into: Complaints, machine: Machine, merged: Table, host_place: Place) -> None:
    """Its serving certificate has these names; kubelets and pods trust its CA for the API server, too."""
    try:
        wrongs = list(wrong_names(machine.certificate_names, machine.profile))
    except ValueError:
        return  # there is no such network, which the profile's own check has said
    for wrong in wrongs:
        place = locate(merged, ("certificate_names",))
        into.complain(place, f"hosts.{machine.name}.certificate_names", wrong, "names of only this machine")
    whose = foreign_name(machine.name, machine.profile)
    if whose:
        into.complain(host_place, f"hosts.{machine.name}", f"{machine.name} {whose}", "an unused name")
    whose = foreign_name(machine.computer_name, machine.profile)
    if whose:
        place = locate(merged, ("computer_name",))
        wrong = f"{machine.computer_name} {whose}"
        into.complain(place, f"hosts.{machine.name}.computer_name", wrong, "an unused name")
    if machine.node_ip is not None and machine.node_ip == server_host(machine.profile):
        place = locate(merged, ("node_ip",))
        wrong = f"{machine.node_ip} is the API server's address"
        into.complain(place, f"hosts.{machine.name}.node_ip", wrong, "an address of this machine")


def _check_fixes(into: Complaints, machine: Machine, merged: Table) -> None:
    fixes = facts_of(machine.profile).section("fixes")
    for name in machine.profile.windows.known_fixes:
        builds = fixes[name]["builds"] if name in fixes else [machine.build]
        if machine.build not in builds:
            wrong = f"the known_fixes entry {name} is not for Windows Server {machine.os}"
            into.complain(
                locate(merged, ("os",)),
                "windows.known_fixes",
                wrong,
                "other known_fixes for this group",
            )


def _check_names(into: Complaints, machine: Machine, merged: Table) -> None:
    if machine.profile.windows.rename and not _COMPUTER_NAME.fullmatch(machine.computer_name):
        place = locate(merged, ("computer_name",))
        wrong = f"the computer name {machine.computer_name!r}"
        expected = "computer_name (for Ansible: winboot_computer_name), at most 15 letters, digits and -, not digits alone"
        into.complain(place, f"hosts.{machine.name}.computer_name", wrong, expected)


def _check_addresses(into: Complaints, machine: Machine, merged: Table) -> None:
    cluster = machine.profile.cluster
    ranges = {"cluster.service_cidr": cluster.service_cidr}
    if not _shares_its_network(machine.profile):
        ranges["cluster.pod_cidr"] = cluster.pod_cidr
    for key, text in (("node_ip", machine.node_ip), ("address", machine.address)):
        address = address_of(text)
        if address is None:
            continue
        place = locate(merged, (key,))
        for name, cidrs in ranges.items():
            if any(address in cidr for cidr in cidrs if cidr.version == address.version):
                into.complain(
                    place,
                    f"hosts.{machine.name}.{key}",
                    f"{address} is an address of {name}",
                    "an address of the node network",
                )
        _check_usable(into, machine, key, address, place)
        same_family = [cidr for cidr in cluster.node_cidr if cidr.version == address.version]
        if key == "node_ip" and same_family and not any(address in cidr for cidr in same_family):
            into.complain(
                place,
                f"hosts.{machine.name}.{key}",
                f"{address} is not in cluster.node_cidr",
                "an address in cluster.node_cidr",
            )


def _check_usable(into: Complaints, machine: Machine, key: str, address: IpAddress, place: Place) -> None:
    """No machine has the address 0.0.0.0 or one of a group; the lab's machines are reached on loopback."""
    never = address.is_unspecified or address.is_multicast or address.is_reserved
    elsewhere = address.version == 6 or address.is_loopback or address.is_link_local
    if never or (key == "node_ip" and elsewhere):
        wrong = f"{address} cannot be a node's address"
        into.complain(place, f"hosts.{machine.name}.{key}", wrong, "an IPv4 address of the machine")


def _shares_its_network(profile: Profile) -> bool:
    """Whether pods have addresses of the network that the nodes are in."""
    try:
        return profile.solution.pods_in_node_network
    except ValueError:
        return False  # there is no such network, which the profile's own check has said

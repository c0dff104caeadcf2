"""Reads an inventory: groups, hosts, and the merged profile of each.

Merge order: profile < defaults < groups in file order < host. Maps merge, lists replace, null removes. A
group names its profile and its hosts; a host that another group lists under `members` takes that group's
settings too.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from winboot.base.errors import InvalidInput
from winboot.config.inventory.complaints import Complaints
from winboot.config.inventory.connection import address_of
from winboot.config.inventory.connection_checks import check_connection
from winboot.config.inventory.duplicates import refuse_twins
from winboot.config.inventory.machine import HOST_KEYS, MACHINE_KEYS, SECTIONS, HostKeys, Machine
from winboot.config.inventory.machine_checks import check_fit
from winboot.config.model import build, expanded, is_file
from winboot.config.profile import Profile, profile_from
from winboot.config.profile.values import (
    node_name,
)
from winboot.config.source import (
    Complaint,
    Entry,
    Listing,
    Node,
    Place,
    Scalar,
    Table,
    Wrong,
    merge,
    nearest,
    read,
)

# A group is named on the command line (--limit a,b), in reports and in comments of the script.
_GROUP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(slots=True)
class _Group:
    """A group as the file has it."""

    name: str
    key_place: Place
    table: Table
    profile: Path | None = None
    hosts: dict[str, Entry] = field(default_factory=dict)
    members: dict[str, Place] = field(default_factory=dict)


@dataclass(slots=True)
class _Host:
    """A host with the groups it is in, in file order; the first is the one that defines it."""

    name: str
    place: Place
    table: Table
    home: _Group
    groups: tuple[_Group, ...] = ()


class Reader:
    """Reads one inventory and gathers what is wrong with it."""

    def __init__(self, path: Path, top: Table) -> None:
        self.path = path
        self.top = top
        self.complaints = Complaints()
        self._profile_nodes: dict[Path, Table | None] = {}
        # Hosts without settings of their own share one profile, so that it is checked once.
        self._shared: dict[tuple[Path, tuple[str, ...]], Profile | None] = {}

    def machines(self) -> tuple[Machine, ...]:
        """All machines that could be made; what could not is in `complaints`."""
        self._refuse_unknown(self.top, (), ("defaults", "groups"))
        defaults = self._table(self.top, "defaults", ())
        self._refuse_unknown(defaults, ("defaults",), (*MACHINE_KEYS, *SECTIONS))
        groups = [
            self._group(name, entry) for name, entry in self._table(self.top, "groups", ()).entries.items()
        ]
        hosts = self._hosts(groups)
        self._check_group_names(groups, hosts)
        if not hosts and all(one.level != "error" for one in self.complaints.all):
            self.complaints.complain(
                self.top.place, "groups", "this file has no hosts", "groups: {pool: {hosts: {…}}}"
            )
        machines = [self._machine(host, defaults) for host in hosts]
        made = tuple(machine for machine in machines if machine is not None)
        refuse_twins(self.complaints, made, {host.name: host.place for host in hosts})
        return made

    def tables(self) -> dict[Path, Table]:
        """The inventory and the profiles that it names."""
        profiles = {path: node for path, node in self._profile_nodes.items() if node is not None}
        return {self.path: self.top, **profiles}

    def _group(self, name: str, entry: Entry) -> _Group:
        path = ("groups", name)
        table = self._as_table(entry.value, path)
        group = _Group(name, entry.key_place, table)
        self._refuse_unknown(table, path, ("profile", "members", "hosts", *MACHINE_KEYS, *SECTIONS))
        group.profile = self._profile_path(table, path)
        group.hosts = dict(self._table(table, "hosts", path).entries)
        members = table.get("members")
        if isinstance(members, Listing):
            group.members = {item.text: item.place for item in members.items if isinstance(item, Scalar)}
            for item in members.items:
                if not isinstance(item, Scalar):
                    self.complaints.complain(
                        item.place, f"groups.{name}.members", f"found {_kind(item)}", "the name of a host"
                    )
        elif members is not None:
            self.complaints.complain(
                members.place, f"groups.{name}.members", f"found {_kind(members)}", "a list of host names"
            )
        return group

    def _profile_path(self, table: Table, path: tuple[str, ...]) -> Path | None:
        named = table.get("profile")
        if named is None or (isinstance(named, Scalar) and named.is_null):
            return None
        if not isinstance(named, Scalar):
            self.complaints.complain(
                named.place, ".".join((*path, "profile")), f"found {_kind(named)}", "the path of a profile"
            )
            return None
        # Without `..`, but not absolute: complaints should show the path as people know it.
        file = Path(os.path.normpath(self.path.parent / expanded(named.text)))
        if not is_file(file):
            wrong = f"there is no file {file}"
            self.complaints.complain(
                named.place, ".".join((*path, "profile")), wrong, "the path of a profile"
            )
            self._profile_nodes[file] = None
        return file

    def _hosts(self, groups: list[_Group]) -> list[_Host]:
        found: dict[str, _Host] = {}
        for group in groups:
            for name, entry in group.hosts.items():
                path = ("groups", group.name, "hosts", name)
                if name in found:
                    wrong = f"the host {name!r} is also in the group {found[name].home.name!r}"
                    expected = "the host under hosts of one group, and under members of other groups"
                    self.complaints.complain(entry.key_place, ".".join(path), wrong, expected)
                    continue
                table = self._as_table(entry.value, path)
                self._refuse_unknown(table, path, (*HOST_KEYS, *MACHINE_KEYS, *SECTIONS))
                self._check_name(name, entry.key_place, path)
                found[name] = _Host(name, entry.key_place, table, group)
        for group in groups:
            for name, place in group.members.items():
                if name not in found:
                    self.complaints.complain(
                        place,
                        f"groups.{group.name}.members",
                        f"the host {name!r} does not exist",
                        "",
                        nearest(name, found),
                    )
        for host in found.values():
            host.groups = tuple(one for one in groups if one is host.home or host.name in one.members)
        return list(found.values())

    def _check_group_names(self, groups: list[_Group], hosts: list[_Host]) -> None:
        names = {host.name for host in hosts}
        for group in groups:
            path = f"groups.{group.name}"
            if not _GROUP_NAME.fullmatch(group.name):
                wrong = f"the group name {group.name!r}"
                self.complaints.complain(group.key_place, path, wrong, "letters, digits, ., _ and -")
            elif group.name in names:
                wrong = f"a group and a host have the name {group.name!r}, so --limit would be ambiguous"
                self.complaints.complain(group.key_place, path, wrong, "another name")
            within = {host.name for host in hosts if group in host.groups}
            if group.name == "all" and within != names:
                wrong = "--limit all means all hosts, but this group does not contain every host"
                self.complaints.complain(group.key_place, path, wrong, "another name")
            elif hosts and not within:
                # No error: it may be filled later. But its findings reach no reader, and --limit does not know it.
                self.complaints.warn(
                    group.key_place,
                    path,
                    "this group has no hosts",
                    "`hosts`, or `members` (hosts of other groups)",
                )

    def _check_name(self, name: str, place: Place, path: tuple[str, ...]) -> None:
        try:
            node_name(name)
        except Wrong as error:
            self.complaints.complain(place, ".".join(path), error.wrong, error.expected, error.did_you_mean)

    def _machine(self, host: _Host, defaults: Table) -> Machine | None:
        layers = (defaults, *(group.table for group in host.groups), host.table)
        merged = Table(host.place)
        for layer in layers:
            part = _only(layer, (*HOST_KEYS, *MACHINE_KEYS))
            merged = _merged_tables(merged, part)
        keys, complaints = build(HostKeys, merged)
        self.complaints.all.extend(complaints)
        profile = self._profile(host, layers)
        if keys is None:
            return None
        check_connection(self.complaints, keys.connection, merged, host.name)
        if keys.os is None:
            self.complaints.complain(
                host.place,
                f"hosts.{host.name}",
                "os is missing",
                "os: 2019 | 2022 | 2025, here or in the group",
            )
            return None
        if profile is None:
            return None
        machine = self._made(host, keys, profile)
        check_fit(self.complaints, machine, merged, host.place)
        return machine

    def _made(self, host: _Host, keys: HostKeys, profile: Profile) -> Machine:
        assert keys.os is not None
        address = keys.address or host.name
        connection = keys.connection
        return Machine(
            name=host.name,
            address=address,
            os=keys.os,
            computer_name=keys.computer_name or _computer_name(host.name),
            node_ip=None if keys.node_ip is None else str(keys.node_ip),
            connection=connection.model_copy(update={"host": connection.host or address}),
            group=host.home.name,
            profile=profile,
            groups=tuple(group.name for group in host.groups),
            # _profile has found exactly one.
            profile_file=next(group.profile for group in host.groups if group.profile),
            certificate_names=keys.certificate_names,
            provider_id=keys.provider_id,
        )

    def _profile(self, host: _Host, layers: tuple[Table, ...]) -> Profile | None:
        named = list(dict.fromkeys(group.profile for group in host.groups if group.profile))
        if not named:
            self.complaints.complain(
                host.home.key_place, f"groups.{host.home.name}", "the group has no profile", "profile: a path"
            )
            return None
        if len(named) > 1:
            groups = ", ".join(group.name for group in host.groups if group.profile)
            self.complaints.complain(
                host.place,
                f"hosts.{host.name}",
                f"its groups ({groups}) have different profiles",
                "one profile",
            )
            return None
        own = any(key in SECTIONS for key in host.table.entries)
        shared = (named[0], tuple(group.name for group in host.groups))
        if not own and shared in self._shared:
            return self._shared[shared]
        profile = self._merged_profile(named[0], layers)
        if not own:
            self._shared[shared] = profile
        return profile

    def _merged_profile(self, path: Path, layers: tuple[Table, ...]) -> Profile | None:
        if path not in self._profile_nodes:
            self._profile_nodes[path] = self._read_profile(path)
        node = self._profile_nodes[path]
        if node is None:
            return None
        for layer in layers:
            node = _merged_tables(node, _only(layer, SECTIONS))
        profile, complaints = profile_from(node, path.stem)
        self.complaints.all.extend(complaints)
        return profile

    def _read_profile(self, path: Path) -> Table | None:
        try:
            return read(path)
        except InvalidInput as error:
            found = [one for one in error.problems if isinstance(one, Complaint)]
            self.complaints.all.extend(found or [Complaint(Place(str(path), 1, 1), "", error.problem)])
            return None

    def _table(self, node: Table, key: str, path: tuple[str, ...]) -> Table:
        value = node.get(key)
        return Table(node.place) if value is None else self._as_table(value, (*path, key))

    def _as_table(self, node: Node, path: tuple[str, ...]) -> Table:
        if isinstance(node, Table):
            return node
        if not (isinstance(node, Scalar) and node.is_null):
            self.complaints.complain(node.place, ".".join(path), f"found {_kind(node)}", _form(path))
        return Table(node.place)

    def _refuse_unknown(self, table: Table, path: tuple[str, ...], known: tuple[str, ...]) -> None:
        for key, entry in table.entries.items():
            if key not in known:
                meant = nearest(key, known)
                expected = "" if meant else "one of " + ", ".join(known)
                wrong = f"unknown key {key!r}"
                self.complaints.complain(entry.key_place, ".".join((*path, key)), wrong, expected, meant)


def _computer_name(node: str) -> str:
    """Windows takes the first label of a full name; an address has none."""
    return node.upper() if address_of(node) else node.partition(".")[0].upper()


def _only(table: Table, keys: tuple[str, ...]) -> Table:
    return Table(table.place, {key: entry for key, entry in table.entries.items() if key in keys})


def _merged_tables(low: Table, high: Table) -> Table:
    merged = merge(low, high)
    assert isinstance(merged, Table)
    # A host without settings keeps the place of its own key, not that of an empty map.
    return Table(low.place, merged.entries)


def _form(path: tuple[str, ...]) -> str:
    """How the mapping at a path looks, where people write a list or a word in its place."""
    match path:
        case ("groups",):
            return "NAME: {profile: …, hosts: {…}} for each group"
        case ("groups", _):
            return "{profile: …, hosts: {…}}"
        case ("groups", _, "hosts"):
            return "NAME: {address: …} for each host"
        case ("groups", _, "hosts", _):
            return "{address: …}"
    return "a mapping"


def _kind(node: Node) -> str:
    """What was found where something else was expected."""
    return (
        "a mapping" if isinstance(node, Table) else "a list" if isinstance(node, Listing) else repr(node.text)
    )

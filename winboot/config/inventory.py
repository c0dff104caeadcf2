"""Which machines, how to reach them, and which profile each one gets.

Merge order: profile < defaults < groups in file order < host. Maps merge, lists replace, null removes. A
group names its profile and its hosts; a host that another group lists under `members` takes that group's
settings too.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from winboot.base.errors import InvalidInput
from winboot.base.extras import ExtraName, how_to_install, lacking
from winboot.config import compat
from winboot.config.ansible import has_ansibles_keys, is_ini, read_ansible
from winboot.config.belonging import foreign_name, server_host, wrong_names
from winboot.config.compat.platform import BUILDS
from winboot.config.model import LocalPath, Model, OneOrMany, build, expanded, is_file
from winboot.config.profile import Profile, Reference, facts_of, profile_from
from winboot.config.profile.reference import LoginReference
from winboot.config.profile.values import Address as IpAddress
from winboot.config.profile.values import (
    Fingerprint,
    Host,
    HostKey,
    Ip,
    NameOrAddress,
    ProviderId,
    ServicePrincipal,
    TunnelCommand,
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
    in_order,
    locate,
    merge,
    nearest,
    read,
)

Os = Literal["2019", "2022", "2025"]

SECTIONS: Final = tuple(name for name in Profile.model_fields if name != "name")
_MACHINE_KEYS: Final = ("os", "connection")
_HOST_KEYS: Final = ("address", "computer_name", "node_ip", "certificate_names", "provider_id")
# What an SSH login may read from a file.
_LOGIN_FILES: Final = {
    "key": "a private key",
    "passphrase": "a file with the passphrase",
    "certificate": "the certificate of the key, as ssh-keygen -s writes it",
    "password": "a file with the password",
}
_LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})
# A group is named on the command line (--limit a,b), in reports and in comments of the script.
_GROUP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_COMPUTER_NAME: Final = re.compile(r"(?!\d+$)[A-Za-z0-9]([A-Za-z0-9-]{0,13}[A-Za-z0-9])?")


class Tls(Model):
    """How the machine's certificate is judged: by a CA, or by the certificate's own fingerprint."""

    ca: Reference | None = Field(
        default=None, description="the PEM file of the CA that signed the WinRM certificate"
    )
    fingerprint: Fingerprint | None = Field(
        default=None, description="sha256:<hex> of the certificate itself (DER)"
    )


class Jump(Model):
    """One SSH host to go through."""

    host: NameOrAddress = Field(description="name or address of the jump host")
    port: int = Field(default=22, ge=1, le=65535, description="its SSH port")
    user: str = Field(description="the account there")
    password: Reference | None = Field(default=None, description="{env | file | command}")
    key: Reference | None = Field(default=None, description="the private key, {file: …}")
    passphrase: Reference | None = Field(default=None, description="the passphrase of the private key")
    certificate: Reference | None = Field(default=None, description="the certificate of the key, {file: …}")
    agent: bool = Field(default=False, description="try the keys of the SSH agent, too")
    host_key: HostKey | None = Field(default=None, description="SHA256:<base64> of its host key")
    known_hosts: LocalPath | None = Field(
        default=None, description="a known_hosts file; default: ~/.ssh/known_hosts"
    )


class Connection(Model):
    """How to reach one machine. `host` is the address to connect to; the inventory's `address` fills it in.

    WinRM speaks HTTPS unless the port is 5985 (or `scheme` says http): then NTLM or Kerberos seal the messages.
    """

    transport: Literal["winrm", "ssh", "local"] = Field(default="winrm", description="winrm | ssh | local")
    host: Host = Field(default="", description="what to connect to; default: the address of the host")
    port: int | None = Field(default=None, ge=1, le=65535, description="default: 5986 (winrm), 22 (ssh)")
    scheme: Literal["http", "https"] | None = Field(
        default=None, description="default: http on port 5985, else https"
    )
    auth: Literal["negotiate", "ntlm", "kerberos", "basic"] = Field(
        default="negotiate", description="negotiate | ntlm | kerberos | basic (loopback only)"
    )
    spn: ServicePrincipal | None = Field(
        default=None,
        description="Kerberos: the service principal to ask a ticket for; default: host/<what is connected to>",
    )
    tls: Tls | None = Field(
        default=None, description="{ca: {file: …}} or {fingerprint: sha256:…}; default: the system's CAs"
    )
    user: str = Field(default="", description=r"DOMAIN\name, .\name or name@domain")
    password: LoginReference | None = Field(
        default=None, description="{env | file | command}, or {ec2_key: FILE}"
    )
    key: Reference | None = Field(default=None, description="ssh: the private key, {file: …}")
    passphrase: Reference | None = Field(default=None, description="ssh: the passphrase of the private key")
    certificate: Reference | None = Field(
        default=None, description="ssh: the certificate of the private key, {file: …}"
    )
    agent: bool = Field(default=False, description="ssh: try the keys of the SSH agent, too")
    host_key: HostKey | None = Field(
        default=None, description="ssh: SHA256:<base64> of the machine's host key"
    )
    known_hosts: LocalPath | None = Field(
        default=None, description="ssh: a known_hosts file; default: ~/.ssh/known_hosts"
    )
    proxy_jump: OneOrMany[Jump] = Field(default=(), description="ssh: the hosts to go through, in order")
    tunnel: TunnelCommand | None = Field(
        default=None,
        description="a command that forwards {local_port} on 127.0.0.1 to {host}:{port}; started for each session",
    )
    connect_timeout_s: int = Field(
        default=30, ge=1, le=3600, description="how long to wait for an answer to the first packet"
    )
    poll_s: float = Field(
        default=5.0,
        gt=0,
        le=600,
        allow_inf_nan=False,
        description="how often to ask again while the machine restarts or works on its own",
    )

    @property
    def https(self) -> bool:
        """Is WinRM spoken over TLS?"""
        return self.scheme == "https" if self.scheme else self.port != 5985

    @property
    def loopback(self) -> bool:
        """Is the machine this one?"""
        return self.transport == "local" or _is_loopback(self.host)

    @property
    def port_number(self) -> int:
        """The port, with the transport's default filled in."""
        if self.port is not None:
            return self.port
        return 22 if self.transport == "ssh" else 5986 if self.https else 5985


class HostKeys(Model):
    """What an inventory may say of a machine, beside the sections of its profile."""

    address: Host | None = Field(
        default=None, description="name or address to connect to; default: the host key"
    )
    os: Os | None = Field(
        default=None, description="2019 | 2022 | 2025; preflight stops where the machine differs"
    )
    computer_name: str | None = Field(
        default=None, description="at most 15 characters; default: the node name in upper case"
    )
    node_ip: Ip | None = Field(default=None, description="default: the address that reaches the API server")
    certificate_names: tuple[NameOrAddress, ...] = Field(
        default=(), description="names and addresses beside its own that its serving certificate may have"
    )
    provider_id: ProviderId | None = Field(
        default=None, description="the machine's id in its cloud: aws:///ZONE/INSTANCE, azure:///…"
    )
    connection: Connection = Field(default=Connection(), description="how to reach it")


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of the inventory with its own merged profile, and the file that one starts from. `name` is the name
    of its Node.
    """

    name: str
    address: str
    os: Os
    computer_name: str
    node_ip: str | None
    connection: Connection
    group: str
    profile: Profile
    groups: tuple[str, ...] = ()
    profile_file: Path = Path()
    certificate_names: tuple[str, ...] = ()
    provider_id: str | None = None

    @property
    def build(self) -> int:
        """The Windows build of its `os`."""
        return BUILDS[self.os]


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
        """The machine of that name; KeyError where there is none."""
        for machine in self.machines:
            if machine.name == name:
                return machine
        raise KeyError(name)


def load_inventory(path: Path) -> Inventory:
    """The machines of a file, each with its profile; InvalidInput with every complaint where something is wrong."""
    return inventory_of(path, *read_inventory(path))


def read_inventory(path: Path) -> tuple[Table, tuple[Complaint, ...]]:
    """The nodes of an inventory, of Ansible's as winboot has them, and what is worth knowing. Raises InvalidInput."""
    if is_ini(path):
        return read_ansible(path)
    top = read(path)
    return read_ansible(path, top) if has_ansibles_keys(top) else (top, ())


def inventory_of(path: Path, top: Table, known: tuple[Complaint, ...] = ()) -> Inventory:
    """The same for a file that was read already, or for nodes that a cloud's answer was made into."""
    reader = _Reader(path, top)
    reader.complaints.extend(known)
    machines = reader.machines()
    complaints = in_order(reader.complaints)
    errors = [one for one in complaints if one.level == "error"]
    if errors:
        count = f"{len(errors)} error{'s' if len(errors) != 1 else ''}"
        raise InvalidInput(f"{path}: {count}", problems=tuple(complaints), hint="Correct the places named.")
    return Inventory(path, machines, tuple(complaints), reader.tables())


def check_inventory(path: Path) -> list[Complaint]:
    """Everything that is wrong with an inventory and its profiles, or worth knowing; empty for good ones."""
    try:
        return list(load_inventory(path).warnings)
    except InvalidInput as error:
        found = [one for one in error.problems if isinstance(one, Complaint)]
        return found or [Complaint(None, "", error.problem)]


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


class _Reader:
    """Reads one inventory and gathers what is wrong with it."""

    def __init__(self, path: Path, top: Table) -> None:
        self.path = path
        self.top = top
        self.complaints: list[Complaint] = []
        self._profile_nodes: dict[Path, Table | None] = {}
        # Hosts without settings of their own share one profile, so that it is checked once.
        self._shared: dict[tuple[Path, tuple[str, ...]], Profile | None] = {}

    def machines(self) -> tuple[Machine, ...]:
        self._refuse_unknown(self.top, (), ("defaults", "groups"))
        defaults = self._table(self.top, "defaults", ())
        self._refuse_unknown(defaults, ("defaults",), (*_MACHINE_KEYS, *SECTIONS))
        groups = [
            self._group(name, entry) for name, entry in self._table(self.top, "groups", ()).entries.items()
        ]
        hosts = self._hosts(groups)
        self._check_group_names(groups, hosts)
        if not hosts and all(one.level != "error" for one in self.complaints):
            self._complain(self.top.place, "groups", "this file has no hosts", "groups: {pool: {hosts: {…}}}")
        machines = [self._machine(host, defaults) for host in hosts]
        made = tuple(machine for machine in machines if machine is not None)
        self._refuse_twins(made, hosts)
        return made

    def tables(self) -> dict[Path, Table]:
        """The inventory and the profiles that it names."""
        profiles = {path: node for path, node in self._profile_nodes.items() if node is not None}
        return {self.path: self.top, **profiles}

    def _group(self, name: str, entry: Entry) -> _Group:
        path = ("groups", name)
        table = self._as_table(entry.value, path)
        group = _Group(name, entry.key_place, table)
        self._refuse_unknown(table, path, ("profile", "members", "hosts", *_MACHINE_KEYS, *SECTIONS))
        group.profile = self._profile_path(table, path)
        group.hosts = dict(self._table(table, "hosts", path).entries)
        members = table.get("members")
        if isinstance(members, Listing):
            group.members = {item.text: item.place for item in members.items if isinstance(item, Scalar)}
            for item in members.items:
                if not isinstance(item, Scalar):
                    self._complain(
                        item.place, f"groups.{name}.members", f"found {_kind(item)}", "the name of a host"
                    )
        elif members is not None:
            self._complain(
                members.place, f"groups.{name}.members", f"found {_kind(members)}", "a list of host names"
            )
        return group

    def _profile_path(self, table: Table, path: tuple[str, ...]) -> Path | None:
        named = table.get("profile")
        if named is None or (isinstance(named, Scalar) and named.is_null):
            return None
        if not isinstance(named, Scalar):
            self._complain(
                named.place, ".".join((*path, "profile")), f"found {_kind(named)}", "the path of a profile"
            )
            return None
        # Without `..`, but not absolute: complaints should show the path as people know it.
        file = Path(os.path.normpath(self.path.parent / expanded(named.text)))
        if not is_file(file):
            wrong = f"there is no file {file}"
            self._complain(named.place, ".".join((*path, "profile")), wrong, "the path of a profile")
            self._profile_nodes[file] = None
        return file

    def _hosts(self, groups: list[_Group]) -> list[_Host]:
        found: dict[str, _Host] = {}
        for group in groups:
            for name, entry in group.hosts.items():
                path = ("groups", group.name, "hosts", name)
                if name in found:
                    wrong = f"the host {name!r} is also in the group {found[name].home.name!r}"
                    expected = "the host in one group; other groups list it under members"
                    self._complain(entry.key_place, ".".join(path), wrong, expected)
                    continue
                table = self._as_table(entry.value, path)
                self._refuse_unknown(table, path, (*_HOST_KEYS, *_MACHINE_KEYS, *SECTIONS))
                self._check_name(name, entry.key_place, path)
                found[name] = _Host(name, entry.key_place, table, group)
        for group in groups:
            for name, place in group.members.items():
                if name not in found:
                    self._complain(
                        place,
                        f"groups.{group.name}.members",
                        f"there is no host {name!r}",
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
                self._complain(group.key_place, path, wrong, "letters, digits, ., _ and -")
            elif group.name in names:
                wrong = f"the group {group.name!r} has the name of a host, and --limit could mean either"
                self._complain(group.key_place, path, wrong, "another name")

    def _check_name(self, name: str, place: Place, path: tuple[str, ...]) -> None:
        try:
            node_name(name)
        except Wrong as error:
            self._complain(place, ".".join(path), error.wrong, error.expected, error.did_you_mean)

    def _machine(self, host: _Host, defaults: Table) -> Machine | None:
        layers = (defaults, *(group.table for group in host.groups), host.table)
        merged = Table(host.place)
        for layer in layers:
            part = _only(layer, (*_HOST_KEYS, *_MACHINE_KEYS))
            merged = _merged_tables(merged, part)
        keys, complaints = build(HostKeys, merged)
        self.complaints.extend(complaints)
        profile = self._profile(host, layers)
        if keys is None:
            return None
        self._check_connection(keys.connection, merged, host)
        if keys.os is None:
            self._complain(
                host.place,
                f"hosts.{host.name}",
                "os is missing",
                "os: 2019 | 2022 | 2025, here or in the group",
            )
            return None
        if profile is None:
            return None
        machine = self._made(host, keys, profile)
        self._check_machine(machine, merged, host.place)
        return machine

    def _made(self, host: _Host, keys: HostKeys, profile: Profile) -> Machine:
        assert keys.os is not None
        address = keys.address or host.name
        connection = keys.connection
        return Machine(
            name=host.name,
            address=address,
            os=keys.os,
            computer_name=keys.computer_name or host.name.upper(),
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
            self._complain(
                host.home.key_place, f"groups.{host.home.name}", "the group has no profile", "profile: a path"
            )
            return None
        if len(named) > 1:
            groups = ", ".join(group.name for group in host.groups if group.profile)
            self._complain(
                host.place,
                f"hosts.{host.name}",
                f"its groups ({groups}) name different profiles",
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
        self.complaints.extend(complaints)
        return profile

    def _read_profile(self, path: Path) -> Table | None:
        try:
            return read(path)
        except InvalidInput as error:
            found = [one for one in error.problems if isinstance(one, Complaint)]
            self.complaints.extend(found or [Complaint(Place(str(path), 1, 1), "", error.problem)])
            return None

    # What a machine must fulfil beside its profile.

    def _check_machine(self, machine: Machine, merged: Table, host_place: Place) -> None:
        profile, facts = machine.profile, facts_of(machine.profile)
        version = profile.kubernetes.version
        self._found(merged, ("os",), compat.check_build(facts, version, machine.build))
        try:
            features = list(profile.solution.features)
        except ValueError:
            features = []  # there is no such network, which the profile's own check has said
        if profile.kube_proxy.dsr == "on":
            features.append("dsr")
        if len(profile.cluster.pod_cidr) > 1:
            features.append("dual-stack")
        for feature in features:
            self._found(merged, ("os",), compat.check_feature(facts, feature, version, machine.build))
        image = profile.runtime.pause_image
        if image is not None:
            containerd = str(profile.runtime.containerd or compat.default_containerd(facts, version))
            found = compat.check_pause_image(facts, image, machine.build, compat.Version.parse(containerd))
            self._found(merged, ("os",), found)
        if profile.artifacts.source.startswith("\\\\") and machine.connection.transport == "winrm":
            # The second hop: a WinRM session has no credentials to show to another machine, not even the machine's own; the
            # share sees ANONYMOUS LOGON (learn.microsoft.com/powershell/scripting/security/remoting/ps-remoting-second-hop).
            wrong = f"{profile.artifacts.source} is a share, and a WinRM session may not log in to a third machine"
            self._complain(host_place, "artifacts.source", wrong, "a web mirror, or a connection over SSH")
        self._check_fixes(machine, merged)
        self._check_names(machine, merged)
        self._check_addresses(machine, merged)
        self._check_certificate(machine, merged, host_place)

    def _check_certificate(self, machine: Machine, merged: Table, host_place: Place) -> None:
        """Its serving certificate has these names; kubelets and pods trust its CA for the API server, too."""
        try:
            wrongs = list(wrong_names(machine.certificate_names, machine.profile))
        except ValueError:
            return  # there is no such network, which the profile's own check has said
        for wrong in wrongs:
            place = locate(merged, ("certificate_names",))
            self._complain(
                place, f"hosts.{machine.name}.certificate_names", wrong, "names of this machine alone"
            )
        whose = foreign_name(machine.name, machine.profile)
        if whose:
            self._complain(
                host_place, f"hosts.{machine.name}", f"{machine.name} {whose}", "a name of its own"
            )
        whose = foreign_name(machine.computer_name, machine.profile)
        if whose:
            place = locate(merged, ("computer_name",))
            wrong = f"{machine.computer_name} {whose}"
            self._complain(place, f"hosts.{machine.name}.computer_name", wrong, "a name of its own")
        if machine.node_ip is not None and machine.node_ip == server_host(machine.profile):
            place = locate(merged, ("node_ip",))
            wrong = f"{machine.node_ip} is the API server's"
            self._complain(place, f"hosts.{machine.name}.node_ip", wrong, "an address of this machine")

    def _check_fixes(self, machine: Machine, merged: Table) -> None:
        fixes = facts_of(machine.profile).section("fixes")
        for name in machine.profile.windows.known_fixes:
            builds = fixes[name]["builds"] if name in fixes else [machine.build]
            if machine.build not in builds:
                wrong = f"the known fix {name} is not for Windows Server {machine.os}"
                self._complain(
                    locate(merged, ("os",)),
                    "windows.known_fixes",
                    wrong,
                    "other known_fixes for this group",
                )

    def _check_names(self, machine: Machine, merged: Table) -> None:
        if machine.profile.windows.rename and not _COMPUTER_NAME.fullmatch(machine.computer_name):
            place = locate(merged, ("computer_name",))
            wrong = f"the computer name {machine.computer_name!r}"
            expected = "computer_name: at most 15 letters, digits and -, not digits alone"
            self._complain(place, f"hosts.{machine.name}.computer_name", wrong, expected)

    def _check_addresses(self, machine: Machine, merged: Table) -> None:
        cluster = machine.profile.cluster
        ranges = {"cluster.service_cidr": cluster.service_cidr}
        if not _shares_its_network(machine.profile):
            ranges["cluster.pod_cidr"] = cluster.pod_cidr
        for key, text in (("node_ip", machine.node_ip), ("address", machine.address)):
            address = _address(text)
            if address is None:
                continue
            place = locate(merged, (key,))
            for name, cidrs in ranges.items():
                if any(address in cidr for cidr in cidrs if cidr.version == address.version):
                    self._complain(
                        place,
                        f"hosts.{machine.name}.{key}",
                        f"{address} is an address of {name}",
                        "an address of the node network",
                    )
            self._check_usable(machine, key, address, place)
            same_family = [cidr for cidr in cluster.node_cidr if cidr.version == address.version]
            if key == "node_ip" and same_family and not any(address in cidr for cidr in same_family):
                self._complain(
                    place,
                    f"hosts.{machine.name}.{key}",
                    f"{address} is outside cluster.node_cidr",
                    "an address in it",
                )

    def _check_usable(self, machine: Machine, key: str, address: IpAddress, place: Place) -> None:
        """No machine has the address 0.0.0.0 or one of a group; the lab's machines are reached on loopback."""
        never = address.is_unspecified or address.is_multicast or address.is_reserved
        elsewhere = address.version == 6 or address.is_loopback or address.is_link_local
        if never or (key == "node_ip" and elsewhere):
            wrong = f"{address} cannot be a node's address"
            self._complain(place, f"hosts.{machine.name}.{key}", wrong, "its IPv4 address")

    def _check_connection(self, connection: Connection, merged: Table, host: _Host) -> None:
        address = merged.get("address")
        target = connection.host or (address.text if isinstance(address, Scalar) else host.name)
        place = locate(merged, ("connection", "auth"))
        if connection.transport == "winrm":
            if connection.auth == "basic" and not _is_loopback(target):
                wrong = f"basic sends the password itself, and {target} is another machine"
                self._complain(place, "connection.auth", wrong, "negotiate, ntlm or kerberos")
            if connection.auth in ("basic", "ntlm") and not (connection.user and connection.password):
                wrong = f"{connection.auth} needs a user and a password"
                self._complain(place, "connection.auth", wrong, "user and password: {env: NAME}")
            if not connection.https and connection.tls is not None:
                self._complain(
                    locate(merged, ("connection", "tls"), key=True),
                    "connection.tls",
                    "http has no certificate",
                    "port 5986, or no tls",
                )
            ca = connection.tls.ca if connection.tls else None
            self._check_file(ca, ("connection", "tls", "ca"), "a PEM file", merged)
            self._check_file(
                connection.password, ("connection", "password"), "a file with the password", merged
            )
        if connection.transport == "ssh":
            self._check_ssh(connection, merged)
            self._check_extra("ssh", ("connection", "transport"), "transport: ssh", merged)
        if connection.transport == "winrm" and connection.auth == "kerberos":
            self._check_extra("kerberos", ("connection", "auth"), "auth: kerberos", merged)
        self._check_tunnel(connection, merged)
        self._check_spn(connection, merged)

    def _check_extra(self, extra: ExtraName, path: tuple[str, ...], what: str, merged: Table) -> None:
        """A part of winboot that is not installed here. A warning: `render` does without it."""
        if missing := lacking(extra):
            wrong = f"{what} needs the Python package {', '.join(missing)}, which is not installed"
            expected = f"the extra {extra}, {how_to_install(extra)}"
            self._warn(locate(merged, path), _dotted(path), wrong, expected)

    def _check_file(
        self, reference: Reference | None, path: tuple[str | int, ...], expected: str, merged: Table
    ) -> None:
        """A file that a reference names. A missing one is a warning: `render` does without it."""
        file = reference.file if reference is not None else None
        if file is not None and not is_file(file):
            path = (*path, "file")
            place = locate(merged, path)
            self._warn(place, _dotted(path), f"there is no file {file}", expected)

    def _check_tunnel(self, connection: Connection, merged: Table) -> None:
        if connection.tunnel is None:
            return
        place = locate(merged, ("connection", "tunnel"), key=True)
        if connection.transport == "local":
            wrong, expected = (
                "the transport local connects to nothing",
                "transport winrm or ssh, or no tunnel",
            )
            self._complain(place, "connection.tunnel", wrong, expected)
        elif connection.proxy_jump:
            wrong = "proxy_jump leads to the machine already"
            self._complain(place, "connection.tunnel", wrong, "proxy_jump or tunnel, not both")

    def _check_spn(self, connection: Connection, merged: Table) -> None:
        if connection.spn is None:
            return
        place = locate(merged, ("connection", "spn"), key=True)
        if connection.transport != "winrm":
            wrong = f"the transport {connection.transport} asks for no Kerberos ticket"
            self._complain(place, "connection.spn", wrong, "transport winrm, or no spn")
        elif connection.auth not in ("negotiate", "kerberos"):
            wrong = f"{connection.auth} asks for no Kerberos ticket"
            self._complain(place, "connection.spn", wrong, "auth negotiate or kerberos, or no spn")

    def _check_ssh(self, connection: Connection, merged: Table) -> None:
        if connection.port in (5985, 5986):
            place = locate(merged, ("connection", "port"))
            self._complain(place, "connection.port", f"{connection.port} is a port of WinRM", "22")
        if not connection.user:
            place = locate(merged, ("connection", "transport"))
            self._complain(place, "connection.user", "ssh needs a user", "user: Administrator")
        if connection.key is None and connection.password is None and not connection.agent:
            place = locate(merged, ("connection", "transport"))
            self._complain(
                place, "connection.key", "ssh needs a key, a password or the agent", "key: {file: PATH}"
            )
        self._check_logins(connection, ("connection",), merged)
        for number, jump in enumerate(connection.proxy_jump):
            self._check_logins(jump, ("connection", "proxy_jump", number), merged)

    def _check_logins(self, settings: Connection | Jump, path: tuple[str | int, ...], merged: Table) -> None:
        """The files that an SSH login reads. Their permissions are no concern: winboot never looks at them."""
        for key, expected in _LOGIN_FILES.items():
            self._check_file(getattr(settings, key), (*path, key), expected, merged)
        if settings.known_hosts is not None and not is_file(settings.known_hosts):
            path = (*path, "known_hosts")
            wrong = f"there is no file {settings.known_hosts}"
            self._warn(locate(merged, path), _dotted(path), wrong, "a known_hosts file")

    def _refuse_twins(self, machines: tuple[Machine, ...], hosts: list[_Host]) -> None:
        """No two nodes on one machine."""
        places = {host.name: host.place for host in hosts}
        for key in ("address", "computer_name", "node_ip", "provider_id"):
            seen: dict[str, str] = {}
            for machine in machines:
                # Machines on loopback share an address and differ by their port.
                text = str(getattr(machine, key) or "").lower()
                value = f"{text}:{machine.connection.port_number}" if key == "address" and text else text
                if value and value in seen:
                    wrong = f"{machine.name} and {seen[value]} have the same {key} {getattr(machine, key)}"
                    expected = f"a different {key} for each machine"
                    self._complain(places[machine.name], f"hosts.{machine.name}.{key}", wrong, expected)
                seen.setdefault(value, machine.name)
        self._refuse_two_here(machines, places)
        self._refuse_shared_names(machines, places)

    def _refuse_two_here(self, machines: tuple[Machine, ...], places: dict[str, Place]) -> None:
        """`local` is this computer, and it is one node."""
        here = [one.name for one in machines if one.connection.transport == "local"]
        for name in here[1:]:
            wrong = f"{name} and {here[0]} are both this computer (transport: local)"
            self._complain(places[name], f"hosts.{name}.connection.transport", wrong, "one such host")

    def _refuse_shared_names(self, machines: tuple[Machine, ...], places: dict[str, Place]) -> None:
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
                    wrong = f"{name} is a name of {owner}"
                    self._complain(places[machine.name], path, wrong, "names of this machine alone")

    # Small tools.

    def _table(self, node: Table, key: str, path: tuple[str, ...]) -> Table:
        value = node.get(key)
        return Table(node.place) if value is None else self._as_table(value, (*path, key))

    def _as_table(self, node: Node, path: tuple[str, ...]) -> Table:
        if isinstance(node, Table):
            return node
        if not (isinstance(node, Scalar) and node.is_null):
            self._complain(node.place, ".".join(path), f"found {_kind(node)}", "a mapping")
        return Table(node.place)

    def _refuse_unknown(self, table: Table, path: tuple[str, ...], known: tuple[str, ...]) -> None:
        for key, entry in table.entries.items():
            if key not in known:
                meant = nearest(key, known)
                expected = "" if meant else "one of " + ", ".join(known)
                wrong = f"unknown key {key!r}"
                self._complain(entry.key_place, ".".join((*path, key)), wrong, expected, meant)

    def _found(self, node: Table, path: tuple[str, ...], findings: list[compat.Finding]) -> None:
        for one in findings:
            self.complaints.append(
                Complaint(
                    locate(node, path),
                    ".".join(path),
                    f"{one.about}: {one.reason}",
                    level=one.level,
                    source=one.source,
                    instead=one.instead,
                )
            )

    def _complain(
        self, place: Place, path: str, wrong: str, expected: str = "", did_you_mean: str = ""
    ) -> None:
        self.complaints.append(Complaint(place, path, wrong, expected, did_you_mean))

    def _warn(self, place: Place, path: str, wrong: str, expected: str) -> None:
        self.complaints.append(Complaint(place, path, wrong, expected, level="warning"))


def _only(table: Table, keys: tuple[str, ...]) -> Table:
    return Table(table.place, {key: entry for key, entry in table.entries.items() if key in keys})


def _merged_tables(low: Table, high: Table) -> Table:
    merged = merge(low, high)
    assert isinstance(merged, Table)
    # A host without settings keeps the place of its own key, not that of an empty map.
    return Table(low.place, merged.entries)


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)


def _kind(node: Node) -> str:
    """What was found where something else was expected."""
    return (
        "a mapping" if isinstance(node, Table) else "a list" if isinstance(node, Listing) else repr(node.text)
    )


def _address(text: str | None) -> IpAddress | None:
    try:
        return ipaddress.ip_address(text or "")
    except ValueError:
        return None


def _shares_its_network(profile: Profile) -> bool:
    """Whether pods have addresses of the network that the nodes are in."""
    try:
        return profile.solution.pods_in_node_network
    except ValueError:
        return False  # there is no such network, which the profile's own check has said


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host.lower() in _LOOPBACK_NAMES if address is None else address.is_loopback

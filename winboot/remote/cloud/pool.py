"""A cloud inventory, asked: its members, the static inventory they make, and Ansible's form of it."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from winboot.base.errors import CloudError, CloudRefused, InvalidInput
from winboot.config.inventory import Inventory, inventory_of
from winboot.config.inventory.cloud_name import ProviderName, provider_of
from winboot.config.profile import Profile, load_profile
from winboot.config.source import Complaint, Entry, Listing, Node, Place, Scalar, Table, in_order, raw
from winboot.remote.cloud import connect
from winboot.remote.cloud.base import CloudHost, Provider, Query
from winboot.remote.cloud.cache import Found, HostCache
from winboot.remote.cloud.composing import Composer, Member
from winboot.remote.cloud.settings import BASE_GROUP, CloudFile, read_cloud_file

# Which variable of `compose` (or of the cloud) becomes which key of a host; the first that has a value.
_HOST_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "address": ("address", "ansible_host"),
    "os": ("os",),
    "computer_name": ("computer_name",),
    "node_ip": ("node_ip",),
}
_CONNECTION_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "port": ("port", "ansible_port"),
    "user": ("user", "ansible_user"),
}
_COMPUTER_NAME_LENGTH: Final = 15
# The filters of both clouds that are about states.
_STATE_WORDS: Final = ("instance-state-name", "powerstate")
RUNNING: Final = ("running",)
# A machine that a hook holds has not begun to run yet, or is about to end.
ANY_LIVE: Final = ("pending", "running", "stopping", "stopped")
EVERY: Final = (*ANY_LIVE, "terminated", "unknown")

Warn = Callable[[str], None]
# Is called with the nodes of files as they were read, before anything of them is used.
Accept = Callable[[Mapping[Path, Table]], None]


def _anything(tables: Mapping[Path, Table]) -> None:
    pass


@dataclass(slots=True)
class Pool:
    """One cloud inventory file. `provider` is opened when it is first asked, so that a cached answer needs no SDK.
    `accept` sees what was read: of the file itself and, each time they are read, of its profiles."""

    path: Path
    file: CloudFile
    top: Table
    accept: Accept = _anything
    _opened: Provider | None = field(default=None, repr=False)

    @classmethod
    def read(cls, path: Path, accept: Accept = _anything) -> Pool:
        """Read the file and check its expressions; this calls no cloud. Raises InvalidInput, and what `accept`
        does."""
        file, top = read_cloud_file(path)
        accept({path: top})
        composer = Composer(file, top)
        composer.check()
        _refuse(path, composer.complaints)
        return cls(path, file, top, accept)

    @property
    def name(self) -> ProviderName:
        """Which cloud."""
        found = provider_of(self.path)
        assert found is not None
        return found

    @property
    def provider(self) -> Provider:
        """The cloud itself, opened."""
        if self._opened is None:
            self._opened = connect(self.name, **self.file.connection())
        return self._opened

    def hosts(self, *, refresh: bool = False, warn: Warn = lambda text: None) -> list[Found]:
        """The machines that run, from the cloud or from its cache.

        Raises CloudError where the cloud does not answer and nothing is cached.
        """
        cache = HostCache.of(json.dumps(raw(self.top), sort_keys=True), self.provider.account())
        kept = cache.read()
        if self.file.cache and not refresh and kept is not None and kept.age < self.file.cache_timeout:
            return list(kept.hosts)
        try:
            found = self.asked(warn=warn)
        except CloudError as error:
            if kept is None or refresh:
                raise
            warn(f"{error.problem}; winboot uses the machines of {_ago(kept.age)} ago, from {cache.path}")
            return list(kept.hosts)
        cache.write(found)
        return found

    def asked(
        self,
        *,
        ids: tuple[str, ...] = (),
        states: tuple[str, ...] = RUNNING,
        any_state: bool = False,
        warn: Warn = lambda text: None,
    ) -> list[Found]:
        """The machines of the file (only those of `ids`, where given), asked now; with `any_state`, whatever its filters
        say of states."""
        found: dict[str, CloudHost] = {}
        without = {host.id for query in self.file.excluded(ids) for host in self._answers(query, warn)}
        for query in self.file.queries(ids):
            for host in self._answers(_stateless(query) if any_state else query, warn):
                if host.id not in without and self._wanted(host, states):
                    found[host.id] = host
        return [(host, self.provider.identity(host)) for host in found.values()]

    def _answers(self, query: Query, warn: Warn) -> Iterator[CloudHost]:
        try:
            yield from self.provider.hosts(query)
        except CloudRefused as error:
            if not self.file.forgives_refusals:
                raise
            warn(f"left out: {error.problem}")

    def _wanted(self, host: CloudHost, states: tuple[str, ...]) -> bool:
        """Whether it is ours and to be worked on. Whose it is says the answer: a filter may have replaced another one."""
        return (
            self.file.owns(host.tags)
            and (self.file.chooses_states or host.state in states)
            and (self.file.platform == "any" or host.windows)
        )

    def members(self, hosts: Sequence[Found], warn: Warn = lambda text: None) -> list[Member]:
        """Names, variables and groups. Raises InvalidInput where names or strict expressions fail."""
        composer = Composer(self.file, self.top)
        members = composer.members(hosts)
        _refuse(self.path, composer.complaints)
        for one in composer.complaints:
            warn(str(one))
        return members

    def inventory(self, members: Sequence[Member]) -> Inventory:
        """The members as machines with their profiles. Raises InvalidInput with every complaint, and what `accept` does."""
        found = inventory_of(self.path, static_table(self, members))
        self.accept(found.tables)
        return found

    def profile(self, name: str) -> Profile:
        """A profile that the file names. Raises InvalidInput with every complaint, and what `accept` does."""
        path = self.path.parent / name
        return load_profile(path, lambda node: self.accept({path: node}))


def load_pool(path: Path, *, refresh: bool = False, warn: Warn = lambda text: None) -> Inventory:
    """The machines of a cloud inventory, each with its profile. Raises InvalidInput, UsageError, CloudError."""
    pool = Pool.read(path)
    members = pool.members(pool.hosts(refresh=refresh, warn=warn), warn)
    if not members:
        raise InvalidInput(
            f"{path}: no machine matches",
            hint="Compare its filters with the tags and states of the machines.",
        )
    return pool.inventory(members)


# The static form


def static_table(pool: Pool, members: Sequence[Member]) -> Table:
    """The nodes of the static inventory that the members make; what the file says keeps its place in the file."""
    place = pool.top.place
    base = BASE_GROUP[pool.name]
    settings = pool.top.get("settings")
    own = settings.entries if isinstance(settings, Table) else {}
    names = list(dict.fromkeys([base, *own, *(group for member in members for group in member.groups)]))
    groups: dict[str, Entry] = {}
    for name in names:
        given = own.get(name)
        entries = dict(given.value.entries) if given is not None and isinstance(given.value, Table) else {}
        if given is not None and not isinstance(given.value, Table):
            groups[name] = given
            continue
        if name == base:
            profile = pool.top.entries.get("profile")
            entries |= {"profile": profile} if profile is not None else {}
            entries["hosts"] = Entry(place, _hosts(members, place))
        else:
            inside = [Scalar(place, one.name, False) for one in members if name in one.groups]
            entries["members"] = Entry(place, Listing(place, tuple(inside)))
        key_place = given.key_place if given is not None else place
        groups[name] = Entry(key_place, Table(key_place, entries))
    top = {"groups": Entry(place, Table(place, groups))}
    defaults = pool.top.entries.get("defaults")
    return Table(place, {**({"defaults": defaults} if defaults is not None else {}), **top})


def _hosts(members: Sequence[Member], place: Place) -> Table:
    return Table(place, {one.name: Entry(place, _node(host_keys(one), place)) for one in members})


def host_keys(member: Member) -> dict[str, Any]:
    """The keys of a member in a static inventory, as plain data."""
    host, identity = member.host, member.identity
    keys: dict[str, Any] = {key: _first(member.variables, words) for key, words in _HOST_KEYS.items()}
    keys["address"] = keys["address"] or host.private_ip
    keys["node_ip"] = keys["node_ip"] or identity.node_ip
    keys["computer_name"] = keys["computer_name"] or computer_name(member)
    keys["provider_id"] = identity.provider_id
    # The cloud's controller manager adds these addresses to the Node, and the kubelet asks for a certificate with them.
    names = (host.private_dns, host.public_dns, host.public_ip)
    own = (member.name, keys["node_ip"], "")
    keys["certificate_names"] = [name for name in dict.fromkeys(names) if name not in own]
    # Azure reports scheduled events to the machine alone, and `winboot hook` reads them in the machine's Node.
    if host.provider == "azure":
        keys["node"] = {"scheduled_events": "true"}
    keys["connection"] = {key: _first(member.variables, words) for key, words in _CONNECTION_KEYS.items()}
    return _without_empty(keys)


def computer_name(member: Member) -> str:
    """A name that Windows takes: 15 characters at most. The Node's own name is in --hostname-override."""
    label = member.name.partition(".")[0]
    if len(label) <= _COMPUTER_NAME_LENGTH or not member.host.private_ip:
        return label.upper()
    # ip-10-100-100-100 and i-0123456789abcdef0 are too long; the address in hexadecimal distinguishes machines.
    try:
        return f"IP-{int(ipaddress.IPv4Address(member.host.private_ip)):08X}"
    except ValueError:
        return label.upper()[:_COMPUTER_NAME_LENGTH].rstrip("-")


def _first(variables: Mapping[str, Any], words: Iterable[str]) -> str:
    return next((str(variables[word]) for word in words if variables.get(word) not in (None, "")), "")


def _without_empty(keys: Mapping[str, Any]) -> dict[str, Any]:
    small = {
        key: _without_empty(value) if isinstance(value, Mapping) else value for key, value in keys.items()
    }
    return {key: value for key, value in small.items() if value not in ("", [], {})}


def _node(value: Any, place: Place) -> Node:
    match value:
        case Mapping():
            return Table(place, {key: Entry(place, _node(one, place)) for key, one in value.items()})
        case list() | tuple():
            return Listing(place, tuple(_node(one, place) for one in value))
    return Scalar(place, str(value), False)


def frozen_text(pool: Pool, members: Sequence[Member]) -> str:
    """The static inventory as a file: a run and its repetition see the same machines."""
    head = f"# Frozen from {pool.path.name} by `winboot inventory --freeze FILE`; nothing asks the cloud for it again.\n"
    return head + yaml.safe_dump(_plain(static_table(pool, members)), sort_keys=False, allow_unicode=True)


def _plain(node: Node) -> Any:
    match node:
        case Table():
            return {key: _plain(entry.value) for key, entry in node.entries.items()}
        case Listing():
            return [_plain(item) for item in node.items]
        case Scalar():
            return None if node.is_null else node.text


def _stateless(query: Query) -> Query:
    """The same without what it says of states."""
    return replace(query, filters={key: one for key, one in query.filters.items() if key not in _STATE_WORDS})


# Ansible's form


def ansible_list(pool: Pool, members: Sequence[Member]) -> dict[str, Any]:
    """What an inventory program of Ansible's prints for `--list`: groups, and `_meta.hostvars`. No secret is in it."""
    groups = group_members(pool, members)
    answer: dict[str, Any] = {name: {"hosts": hosts} for name, hosts in groups.items()}
    answer["all"] = {"children": ["ungrouped", *groups]}
    answer["_meta"] = {"hostvars": {one.name: ansible_variables(one) for one in members}}
    return answer


def ansible_variables(member: Member) -> dict[str, Any]:
    """A member's variables in Ansible's words; values that JSON lacks are text."""
    keys = host_keys(member)
    connection = keys.get("connection", {})
    own = {
        "ansible_host": keys.get("address", ""),
        "provider_id": member.identity.provider_id,
        "node_name": member.identity.node_name,
        **({"ansible_port": int(connection["port"])} if str(connection.get("port", "")).isdigit() else {}),
        **({"ansible_user": connection["user"]} if "user" in connection else {}),
    }
    plain: dict[str, Any] = json.loads(json.dumps({**member.variables, **own}, default=str))
    return plain


def group_members(pool: Pool, members: Sequence[Member]) -> dict[str, list[str]]:
    """Every group with its hosts; the group of all comes first."""
    groups: dict[str, list[str]] = {BASE_GROUP[pool.name]: [one.name for one in members]}
    for member in members:
        for name in member.groups:
            hosts = groups.setdefault(name, [])
            if member.name not in hosts:
                hosts.append(member.name)
    return groups


def _refuse(path: Path, complaints: Sequence[Complaint]) -> None:
    errors = [one for one in complaints if one.level == "error"]
    if errors:
        count = f"{len(errors)} error{'s' if len(errors) != 1 else ''}"
        raise InvalidInput(
            f"{path}: {count}", problems=tuple(in_order(complaints)), hint="Correct each place above."
        )


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"

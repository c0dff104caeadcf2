"""An inventory of Ansible's, INI or YAML, as it is: made into the nodes of an inventory of winboot's, with its places.

Hosts, ranges, groups, `:children` and `:vars` mean what they mean there
(docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html), and so do group_vars and host_vars beside the file. Of
the variables those about the way to a machine are taken (`VARIABLES`), and what Ansible has no word for, as `winboot_os`. A
host without `winboot_os` is no machine of winboot's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from winboot.base.errors import InvalidInput
from winboot.config.source import (
    Complaint,
    Entry,
    Listing,
    Node,
    Place,
    Scalar,
    Table,
    compose,
    nearest,
    read,
    read_text,
)

# Where a variable belongs in an inventory of winboot's. Of several names for one thing the first that is set counts.
VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "ansible_host": ("address",),
    "ansible_port": ("connection", "port"),
    "ansible_user": ("connection", "user"),
    "ansible_connection": ("connection", "transport"),
    "ansible_winrm_transport": ("connection", "auth"),
    "ansible_psrp_auth": ("connection", "auth"),
    "ansible_winrm_scheme": ("connection", "scheme"),
    "ansible_psrp_protocol": ("connection", "scheme"),
    "ansible_winrm_ca_trust_path": ("connection", "tls", "ca", "file"),
    "ansible_psrp_ca_cert": ("connection", "tls", "ca", "file"),
    "ansible_ssh_private_key_file": ("connection", "key", "file"),
    "winboot_os": ("os",),
    "winboot_node_ip": ("node_ip",),
    "winboot_computer_name": ("computer_name",),
    "winboot_provider_id": ("provider_id",),
    "winboot_password_env": ("connection", "password", "env"),
    "winboot_password_file": ("connection", "password", "file"),
    "winboot_fingerprint": ("connection", "tls", "fingerprint"),
    "winboot_host_key": ("connection", "host_key"),
}
PROFILE: Final = "winboot_profile"
_PASSWORDS: Final = (
    "ansible_password",
    "ansible_winrm_password",
    "ansible_psrp_password",
    "ansible_ssh_pass",
)
_IGNORING: Final = ("ansible_winrm_server_cert_validation", "ansible_psrp_cert_validation")
_TRANSPORTS: Final = {"winrm": "winrm", "psrp": "winrm", "ssh": "ssh", "paramiko": "ssh", "local": "local"}
_AUTH: Final = {"ntlm": "ntlm", "kerberos": "kerberos", "basic": "basic", "negotiate": "negotiate"}
_LOOKUP: Final = re.compile(
    r"""\{\{\s*lookup\(\s*['"](?:ansible\.builtin\.)?(env|file)['"]\s*,\s*['"]([^'"]+)['"]\s*\)\s*\}\}"""
)
_SECTION: Final = re.compile(r"\[([^\[\]:]+)(?::([a-z]+))?\]\s*(?:[#;].*)?")
_RANGE: Final = re.compile(r"\[([0-9]*|[A-Za-z]):([0-9]+|[A-Za-z])(?::([0-9]+))?\]")
_PORT: Final = re.compile(r"(.+):([0-9]+)")
# docs.ansible.com/ansible/latest/vault_guide/vault_encrypting_content.html, "Format of files encrypted with Ansible Vault".
_VAULT: Final = "$ANSIBLE_VAULT;"
_OPEN: Final = "the value as it is, or winboot_password_env=NAME for a password; `ansible-vault view FILE` shows what is in it"
_TAG: Final = re.compile(r"(?<=\s)!(?:vault|unsafe)(?=\s)")
_SUFFIXES: Final = ("", ".yml", ".yaml", ".json")
_GROUP_KEYS: Final = ("hosts", "vars", "children")
# A range of a typing error must not fill memory.
_MOST_HOSTS: Final = 10_000

Variables = dict[str, Entry]


@dataclass(slots=True)
class _Group:
    """A group as the file has it: names of hosts and of groups, each where it stands."""

    name: str
    place: Place
    hosts: dict[str, Place] = field(default_factory=dict)
    variables: Variables = field(default_factory=dict)
    children: dict[str, Place] = field(default_factory=dict)


def is_ini(path: Path) -> bool:
    """Whether the file is of Ansible's older form."""
    if path.suffix in (".ini", ".cfg"):
        return True
    try:
        return path.suffix == "" and path.is_file() and _looks_like_ini(read_text(path))
    except InvalidInput:
        return False


def has_ansibles_keys(top: Table) -> bool:
    """Whether each key at the top is a group of Ansible's."""
    tables = [entry.value for entry in top.entries.values()]
    if not tables or {"groups", "defaults"} & set(top.entries):
        return False
    return all(
        isinstance(table, Table) and table.entries and set(table.entries) <= set(_GROUP_KEYS)
        for table in tables
    )


def variables_beside(path: Path) -> list[Path]:
    """The folders with variables of groups and hosts beside an inventory of Ansible's; none for one of winboot's."""
    if not is_ini(path) and not has_ansibles_keys(read(path)):
        return []
    return [folder for name in ("group_vars", "host_vars") if (folder := path.parent / name).is_dir()]


def _looks_like_ini(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    return bool(_SECTION.fullmatch(first)) or ("=" in first and ": " not in first)


def read_ansible(path: Path, top: Table | None = None) -> tuple[Table, tuple[Complaint, ...]]:
    """The same inventory as winboot has it, and what is worth knowing; `top` is what a YAML file holds. Raises InvalidInput
    with every complaint."""
    file = _File(path)
    if top is None:
        file.read_ini(read_text(path))
    else:
        file.read_yaml(top)
    made = file.made()
    errors = [one for one in file.complaints if one.level == "error"]
    if errors:
        count = f"{len(errors)} error{'s' if len(errors) != 1 else ''}"
        raise InvalidInput(
            f"{path}: {count}", problems=tuple(file.complaints), hint="Correct the places named."
        )
    return made, tuple(file.complaints)


class _File:
    """One inventory file: groups, hosts and variables, and what is wrong with them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = Place(str(path), 1, 1)
        self.groups: dict[str, _Group] = {"all": _Group("all", self.start)}
        self.hosts: dict[str, Variables] = {}
        self.places: dict[str, Place] = {}
        self.complaints: list[Complaint] = []
        self.files: dict[tuple[str, str], Variables] = {}

    # INI

    def read_ini(self, text: str) -> None:
        """https://docs.ansible.com/ansible/latest/collections/ansible/builtin/ini_inventory.html"""
        group, kind = self._group("ungrouped", self.start), ""
        for number, line in enumerate(text.splitlines(), 1):
            stripped = line.strip()
            if not stripped or stripped[0] in "#;":
                continue
            place = Place(str(self.path), number, len(line) - len(line.lstrip()) + 1)
            section = _SECTION.fullmatch(stripped)
            if section:
                group, kind = self._group(section[1].strip(), place), section[2] or ""
                if kind not in ("", "children", "vars"):
                    self._complain(place, f"[{section[1]}:{kind}]", "a group, group:children or group:vars")
            elif stripped[0] == "[" and "]" not in stripped:
                self._complain(place, f"{stripped!r}: the bracket is not closed", "[group]")
            elif kind == "children":
                self._child(group, stripped.partition("#")[0].strip(), place)
            elif kind == "vars":
                self._ini_variable(group, stripped, place)
            else:
                self._ini_hosts(group, line, place)

    def _ini_variable(self, group: _Group, line: str, place: Place) -> None:
        name, equals, value = line.partition("=")
        if not equals:
            self._complain(place, f"{line!r}", "name=value")
            return
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        at = Place(place.file, place.line, place.column + line.index("=") + 1)
        group.variables[name.strip()] = Entry(place, Scalar(at, value, plain=False))

    def _ini_hosts(self, group: _Group, line: str, place: Place) -> None:
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            self._complain(place, f"the quotes of this line are not closed ({error})", "name='value'")
            return
        variables: Variables = {}
        for word in words[1:]:
            name, equals, value = word.partition("=")
            at = Place(place.file, place.line, max(1, line.find(name) + 1))
            if not equals:
                self._complain(at, f"{word!r} behind the host", "name=value")
                continue
            behind = Place(place.file, place.line, at.column + len(name) + 1)
            variables[name] = Entry(at, Scalar(behind, value, plain=False))
        self._hosts(group, words[0], variables, place)

    # YAML

    def read_yaml(self, top: Table) -> None:
        """https://docs.ansible.com/ansible/latest/collections/ansible/builtin/yaml_inventory.html"""
        for name, entry in top.entries.items():
            self._yaml_group(name, entry)

    def _yaml_group(self, name: str, entry: Entry) -> _Group:
        group = self._group(name, entry.key_place)
        table = self._table(entry.value, name)
        for key, one in table.entries.items():
            if key not in _GROUP_KEYS:
                self._complain(
                    one.key_place,
                    f"unknown key {key!r} in the group {name}",
                    "hosts, vars, children",
                    nearest(key, _GROUP_KEYS),
                )
        for host, one in self._inside(table, "hosts").entries.items():
            self._hosts(group, host, dict(self._table(one.value, host).entries), one.key_place)
        group.variables |= self._inside(table, "vars").entries
        for child, one in self._inside(table, "children").entries.items():
            self._child(group, child, one.key_place)
            self._yaml_group(child, one)
        return group

    def _inside(self, table: Table, key: str) -> Table:
        entry = table.entries.get(key)
        return Table(table.place) if entry is None else self._table(entry.value, key)

    def _table(self, node: Node, what: str) -> Table:
        if isinstance(node, Table):
            return node
        if not (isinstance(node, Scalar) and node.is_null):
            found = "a list" if isinstance(node, Listing) else repr(node.text)
            self._complain(node.place, f"{what}: found {found}", "a mapping")
        return Table(node.place)

    # Both

    def _group(self, name: str, place: Place) -> _Group:
        return self.groups.setdefault(name, _Group(name, place))

    def _child(self, group: _Group, name: str, place: Place) -> None:
        group.children[name] = place
        self._group(name, place)

    def _hosts(self, group: _Group, pattern: str, variables: Variables, place: Place) -> None:
        port = _PORT.fullmatch(pattern)
        if port:
            pattern = port[1]
            variables = {"ansible_port": Entry(place, Scalar(place, port[2], plain=False))} | variables
        for name in self._expanded(pattern, place):
            self.hosts.setdefault(name, {}).update(variables)
            self.places.setdefault(name, place)
            group.hosts.setdefault(name, place)

    def _expanded(self, pattern: str, place: Place) -> list[str]:
        """win-[01:20] as names: both ends count, and 01 keeps its zero."""
        found = _RANGE.search(pattern)
        if found is None:
            return [pattern]
        before, after = pattern[: found.start()], pattern[found.end() :]
        first, last, step = found[1] or "0", found[2], int(found[3] or 1)
        rest = self._expanded(after, place)
        if first.isdigit() and last.isdigit():
            numbers, one = range(int(first), int(last) + 1, step or 1), len(first)
            middle = [str(number).zfill(one) for number in numbers] if len(numbers) <= _MOST_HOSTS else []
        elif len(first) == len(last) == 1 and first.isalpha() and last.isalpha():
            middle = [chr(code) for code in range(ord(first), ord(last) + 1, step or 1)]
        else:
            middle = []
        if not middle or len(middle) * len(rest) > _MOST_HOSTS or not step:
            self._complain(place, f"the range {found[0]}", f"[first:last], at most {_MOST_HOSTS} hosts")
            return []
        return [f"{before}{one}{end}" for one in middle for end in rest]

    def _complain(self, place: Place, wrong: str, expected: str, meant: str = "") -> None:
        self.complaints.append(Complaint(place, "", wrong, expected, meant))

    def _warn(self, place: Place, wrong: str, expected: str) -> None:
        self.complaints.append(Complaint(place, "", wrong, expected, level="warning"))

    # What it is to winboot

    def made(self) -> Table:
        """The file as an inventory of winboot's."""
        depths = self._depths()
        if depths is None:
            return Table(self.start)
        settings = {name: self._settings(name, depths) for name in self.hosts}
        ours = {name: one for name, one in settings.items() if "winboot_os" in one}
        others = [name for name in settings if name not in ours]
        if not ours:
            self._complain(
                self.start,
                "no host has the variable winboot_os",
                "winboot_os=2022 (or 2019, 2025) behind the Windows machines, or under [GROUP:vars]",
            )
        elif others:
            named = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
            self._warn(
                self.start, f"{named}: left out, without winboot_os", "winboot_os=2022 for a Windows machine"
            )
        homes = {name: self._home(name, depths) for name in ours}
        groups = {
            group.name: Entry(group.place, self._made_group(group, ours, homes))
            for group in self.groups.values()
            if group.name != "all" and self._members(group.name) & set(ours)
        }
        return Table(self.start, {"groups": Entry(self.start, Table(self.start, groups))})

    def _depths(self) -> dict[str, int] | None:
        """How deep each group stands below `all`; None where groups go round in a circle."""
        depths = dict.fromkeys(self.groups, 0 if len(self.groups) == 1 else 1)
        depths["all"] = 0
        for _ in self.groups:
            changed = False
            for group in self.groups.values():
                for child in group.children:
                    if depths[child] <= depths[group.name]:
                        depths[child], changed = depths[group.name] + 1, True
            if not changed:
                return depths
        within = [group for group in self.groups.values() if group.name in self._below(group.name)]
        named = ", ".join(group.name for group in within)
        first = within[0]
        place = next(
            place
            for child, place in first.children.items()
            if child == first.name or first.name in self._below(child)
        )
        self._complain(place, f"{named}: these groups are children of each other", "groups without a circle")
        return None

    def _below(self, name: str) -> set[str]:
        """The groups that are a group's children, their children, and so on."""
        found: set[str] = set()
        left = list(self.groups[name].children)
        while left:
            child = left.pop()
            if child not in found:
                found.add(child)
                left += self.groups[child].children
        return found

    def _members(self, name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        """The hosts of a group and of its children."""
        group = self.groups[name]
        found = set(group.hosts)
        for child in set(group.children) - seen:
            found |= self._members(child, seen | {name})
        return found

    def _settings(self, host: str, depths: Mapping[str, int]) -> Variables:
        """Its variables: of groups the deeper ones win, then the later name; its own win over all."""
        found: Variables = {}
        around = [name for name in self.groups if name == "all" or host in self._members(name)]
        around.sort(key=lambda one: (depths[one], one))
        for name in around:
            found |= self.groups[name].variables
        for name in around:
            found |= self._beside("group_vars", name)
        return found | self.hosts[host] | self._beside("host_vars", host)

    def _beside(self, folder: str, name: str) -> Variables:
        """What group_vars/NAME or host_vars/NAME beside the inventory says: a file, or a folder of them
        (docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html, "Organizing host and group variables")."""
        if (folder, name) not in self.files:
            found: Variables = {}
            for file in _files_of(self.path.parent / folder / name):
                found |= self._variables_of(file)
            self.files[folder, name] = found
        return self.files[folder, name]

    def _variables_of(self, file: Path) -> Variables:
        try:
            text = read_text(file)
            if text.startswith(_VAULT):
                self._warn(Place(str(file), 1, 1), "encrypted by Ansible Vault: nothing of it is read", _OPEN)
                return {}
            # At the same places: what a tag of Ansible's stands before is a text like others.
            return dict(compose(_TAG.sub(lambda tag: " " * len(tag[0]), text), str(file), lines=True).entries)
        except InvalidInput as error:
            self.complaints.extend(one for one in error.problems if isinstance(one, Complaint))
            return {}

    def _home(self, host: str, depths: Mapping[str, int]) -> str:
        """The group that defines it: the deepest one that lists it."""
        listing = [group.name for group in self.groups.values() if host in group.hosts]
        named = [name for name in listing if name != "all"]
        if not named:
            self._group("ungrouped", self.places[host]).hosts.setdefault(host, self.places[host])
            return "ungrouped"
        return max(named, key=lambda name: (depths.get(name, 1), name))

    def _made_group(self, group: _Group, ours: Mapping[str, Variables], homes: Mapping[str, str]) -> Table:
        own = [name for name in group.hosts if homes.get(name) == group.name]
        members = [name for name in ours if name in self._members(group.name) and name not in own]
        entries: dict[str, Entry] = {}
        profile = self._profile(group, [(name, ours[name]) for name in own])
        if profile is not None:
            entries["profile"] = Entry(profile.place, profile)
        hosts = {name: Entry(self.places[name], self._made_host(name, ours[name])) for name in own}
        entries["hosts"] = Entry(group.place, Table(group.place, hosts))
        listed = tuple(Scalar(group.place, name, plain=False) for name in members)
        entries["members"] = Entry(group.place, Listing(group.place, listed))
        return Table(group.place, entries)

    def _profile(self, group: _Group, hosts: Sequence[tuple[str, Variables]]) -> Scalar | None:
        """The profile of the hosts that a group defines; profile.yaml beside the file where none is named."""
        if not hosts:
            return None
        default = Scalar(group.place, "profile.yaml", plain=False)
        named: dict[str, Scalar] = {}
        for name, variables in hosts:
            entry = variables.get(PROFILE)
            value = default if entry is None else entry.value
            if not isinstance(value, Scalar):
                self._complain(value.place, f"{PROFILE} of {name}", "the path of a profile")
                continue
            named.setdefault(value.text, value)
        if len(named) > 1:
            self._complain(
                group.place,
                f"the hosts of the group {group.name} name several profiles ({', '.join(named)})",
                "one profile for the hosts of a group",
            )
        return next(iter(named.values()), None)

    def _made_host(self, host: str, variables: Variables) -> Table:
        place = self.places[host]
        tree = _Tree(place)
        for name, path in VARIABLES.items():
            entry = variables.get(name)
            if entry is None:
                continue
            value = self._value(name, entry)
            if value is not None:
                tree.put(path, Entry(entry.key_place, value))
        self._password(variables, tree)
        for name in _IGNORING:
            entry = variables.get(name)
            if entry is not None and isinstance(entry.value, Scalar) and entry.value.text == "ignore":
                self._warn(
                    entry.key_place,
                    f"{name}=ignore: winboot always judges the certificate",
                    "winboot_fingerprint=sha256:…, a CA in ansible_winrm_ca_trust_path, or port 5985",
                )
        for name, entry in variables.items():
            known = (*VARIABLES, PROFILE)
            if name.startswith("winboot_") and name not in known:
                self._complain(
                    entry.key_place, f"unknown variable {name!r}", ", ".join(known[11:]), nearest(name, known)
                )
        return tree.table()

    def _value(self, name: str, entry: Entry) -> Scalar | None:
        """What a variable says, in winboot's word for it; None where that is the default there."""
        value = entry.value
        if not isinstance(value, Scalar):
            self._complain(value.place, f"{name}: found a list or a mapping", "one value")
            return None
        if value.text.startswith(_VAULT):
            self._complain(value.place, f"{name}: encrypted by Ansible Vault", _OPEN)
            return None
        if "\n" in value.text:
            self._complain(value.place, f"{name}: the value has a line break", "a single line")
            return None
        if "{{" in value.text:
            self._complain(value.place, f"{name}: a template, which only Ansible can fill in", "the value")
            return None
        words = {
            "ansible_connection": _TRANSPORTS,
            "ansible_winrm_transport": _AUTH | {"plaintext": "", "ssl": ""},
            "ansible_psrp_auth": _AUTH,
        }.get(name)
        if words is None:
            return value
        if value.text not in words:
            expected = " | ".join(word for word, meant in words.items() if meant)
            self._complain(
                value.place,
                f"{name}={value.text}: winboot has no such way",
                expected,
                nearest(value.text, words),
            )
            return None
        meant = words[value.text]
        return Scalar(value.place, meant, plain=False) if meant else None

    def _password(self, variables: Variables, tree: _Tree) -> None:
        """A password that a lookup of Ansible's names; one that stands there itself is refused."""
        if any(name in variables for name in ("winboot_password_env", "winboot_password_file")):
            return
        for name in _PASSWORDS:
            entry = variables.get(name)
            if entry is None or not isinstance(entry.value, Scalar):
                continue
            lookup = _LOOKUP.fullmatch(entry.value.text.strip())
            if lookup is None:
                vaulted = entry.value.text.startswith(_VAULT)
                self._complain(
                    entry.key_place,
                    f"{name}: encrypted by Ansible Vault, which winboot does not open"
                    if vaulted
                    else f"{name}: the password itself, or what only Ansible can fill in",
                    "winboot_password_env=NAME or winboot_password_file=PATH, or {{ lookup('env', 'NAME') }}",
                )
                return
            where = Scalar(entry.value.place, lookup[2], plain=False)
            tree.put(("connection", "password", lookup[1]), Entry(entry.key_place, where))
            return


def _files_of(path: Path) -> Iterator[Path]:
    """The files with the variables of a group or host: NAME, NAME.yml …, or all of a folder NAME, by their names."""
    for suffix in _SUFFIXES:
        one = path.with_name(path.name + suffix)
        if one.is_dir():
            inside = (file for file in sorted(one.rglob("*")) if file.suffix in _SUFFIXES and file.is_file())
            yield from (
                file for file in inside if not file.name.startswith(".") and not file.name.endswith("~")
            )
        elif one.is_file():
            yield one


class _Tree:
    """Nested maps that are put together value by value; the first value of a place stays."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._values: dict[tuple[str, ...], Entry] = {}

    def put(self, path: tuple[str, ...], entry: Entry) -> None:
        """One value."""
        self._values.setdefault(path, entry)

    def table(self) -> Table:
        """All of it."""
        return self._below(())

    def _below(self, path: tuple[str, ...]) -> Table:
        entries: dict[str, Entry] = {}
        for key in self._keys(path):
            whole = (*path, key)
            leaf = self._values.get(whole)
            entries[key] = leaf if leaf is not None else Entry(self._place, self._below(whole))
        return Table(self._place, entries)

    def _keys(self, path: tuple[str, ...]) -> Iterator[str]:
        depth = len(path)
        yield from dict.fromkeys(
            one[depth] for one in self._values if len(one) > depth and one[:depth] == path
        )

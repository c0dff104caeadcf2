"""An Ansible inventory, INI or YAML, as it is: made into the nodes of a winboot inventory, with its places.

Hosts, ranges, groups, `:children` and `:vars` mean what they mean there
(docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html), and so do group_vars and host_vars next to the
file. Of the variables those about the way to a machine are taken (`VARIABLES`), and what Ansible has no word for, as
`winboot_os`. A host without `winboot_os` is not a winboot machine.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from winboot.base.errors import InvalidInput
from winboot.config.ansible_host import OPEN, PROFILE, VAULT, HostReader
from winboot.config.ansible_options import NAMES
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
    read_text,
)

# lib/ansible/plugins/inventory/ini.py, `_compile_patterns`: a section, and a group's name.
_SECTION: Final = re.compile(r"\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?")
_RANGE: Final = re.compile(r"\[([0-9]*|[A-Za-z]):([0-9]+|[A-Za-z])(?::([0-9]+))?\]")
# lib/ansible/parsing/utils/addresses.py, `parse_address`: an IPv6 address has brackets where a port follows.
_PORT: Final = re.compile(r"((?:[^:\[\]]|\[[^\]]*\])+):([0-9]+)")
_SUFFIXES: Final = ("", ".yml", ".yaml", ".json")
_GROUP_KEYS: Final = ("hosts", "vars", "children")
# Keys of a winboot group, of which one that is of use has at least one.
_OWN_GROUP_KEYS: Final = frozenset(("profile", "hosts", "members"))
_OWN_PASSWORDS: Final = frozenset(("winboot_password_env", "winboot_password_file"))
PRIORITY: Final = "ansible_group_priority"
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


def open_inventory(path: Path) -> Table | str:
    """What a file holds: the text of an Ansible INI file, or the map of a YAML file.

    Ansible tries YAML for a file without an ending or with .yml, .yaml, .json, and INI for the rest
    (lib/ansible/plugins/inventory/yaml.py, `verify_file`). Raises InvalidInput where it is neither.
    """
    if path.is_dir():
        hint = f"Give one of its files, or make one file of all: winboot inventory import {path}"
        raise InvalidInput(f"{path} is a folder", hint=hint)
    text = read_text(path).removeprefix("\ufeff")
    may_be_ini = path.suffix not in _SUFFIXES[1:]
    if path.suffix in (".ini", ".cfg") or (may_be_ini and _begins_as_ini(text)):
        return text
    try:
        return compose(text, str(path))
    except InvalidInput:
        if may_be_ini and _is_no_yaml(text):
            return text
        top = _foreign(text, path)
        if top is None:
            raise
        return top


def _foreign(text: str, path: Path) -> Table | None:
    """The map of a YAML file that has what winboot's own files must not have, where it is Ansible's."""
    try:
        top = compose(text, str(path), foreign=True)
    except InvalidInput:
        return None
    return top if has_ansibles_keys(top) else None


def is_ansibles(content: Table | str) -> bool:
    """Whether what a file holds is an Ansible inventory."""
    return isinstance(content, str) or has_ansibles_keys(content)


def has_ansibles_keys(top: Table) -> bool:
    """Whether each key at the top is an Ansible group; empty groups alone do not make such a file."""
    tables = [entry.value for entry in top.entries.values()]
    groups = [one for one in tables if isinstance(one, Table) and one.entries]
    empty = [one for one in tables if one not in groups]
    return (
        bool(groups)
        and all(set(one.entries) <= set(_GROUP_KEYS) for one in groups)
        and all(isinstance(one, Table) or (isinstance(one, Scalar) and one.is_null) for one in empty)
        and not _has_own_groups(top.get("groups"))
    )


def _has_own_groups(groups: Node | None) -> bool:
    """Whether winboot's group `hosts` is in `groups`, and not the hosts of an Ansible group."""
    tables = [one.value for one in groups.entries.values()] if isinstance(groups, Table) else []
    return any(isinstance(one, Table) and _OWN_GROUP_KEYS & set(one.entries) for one in tables)


def _lines(text: str) -> list[str]:
    return [line for one in text.splitlines() if (line := one.strip()) and line[0] not in "#;"]


def _begins_as_ini(text: str) -> bool:
    first = next(iter(_lines(text)), "")
    return bool(_SECTION.fullmatch(first)) or ("=" in first and ": " not in first)


def _is_no_yaml(text: str) -> bool:
    """Whether a text that is not a mapping has a section of INI, or no key of YAML."""
    lines = _lines(text)
    has_key = any(": " in line or line.endswith(":") for line in lines)
    return any(_SECTION.fullmatch(line) for line in lines) or (bool(lines) and not has_key)


def read_ansible(path: Path, content: Table | str) -> tuple[Table, tuple[Complaint, ...]]:
    """The same inventory as winboot has it, and what is worth knowing; `content` is of `open_inventory`. Raises InvalidInput
    with every complaint."""
    file = _File(path)
    if isinstance(content, str):
        file.read_ini(content)
    else:
        file.read_yaml(content)
    return _made(file)


def read_listing(
    source: Path, listing: Mapping[str, Any], readable: Mapping[str, set[str]], password_env: str
) -> tuple[Table, tuple[Complaint, ...]]:
    """The inventory of winboot's that an answer of `ansible-inventory --list` is, and what is worth knowing.

    A value that `readable` does not have for its variable was in a vault: it counts as encrypted. `password_env` is the
    variable with the password of hosts that name none for winboot. Raises InvalidInput with every complaint.
    """
    file = _File(source)
    file.read_listing(listing, readable, password_env)
    return _made(file)


def readable_values(source: Path) -> dict[str, set[str]]:
    """The values of each variable in the files next to an inventory that are not encrypted."""
    file, found = _File(source), dict[str, set[str]]()
    base = source if source.is_dir() else source.parent
    for folder in (base / "group_vars", base / "host_vars"):
        for one in _files_in(folder) if folder.is_dir() else ():
            for name, entry in file.variables_of(one).items():
                if isinstance(entry.value, Scalar):
                    found.setdefault(name, set()).add(entry.value.text)
    return found


def text_of(value: object) -> str:
    """A value of `ansible-inventory --list` as a text: true and false as YAML has them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _made(file: _File) -> tuple[Table, tuple[Complaint, ...]]:
    made = file.made()
    # A variable of a group is each host's, and wrong once.
    complaints = tuple(dict.fromkeys(file.complaints))
    errors = [one for one in complaints if one.level == "error"]
    if errors:
        count = f"{len(errors)} error{'s' if len(errors) != 1 else ''}"
        raise InvalidInput(f"{file.path}: {count}", problems=complaints, hint="Correct each place above.")
    return made, complaints


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
        self.reads_beside = True
        self._gathered: dict[str, frozenset[str]] = {}

    # INI

    def read_ini(self, text: str) -> None:
        """https://docs.ansible.com/ansible/latest/collections/ansible/builtin/ini_inventory.html"""
        group, kind = self._group("ungrouped", self.start), ""
        defined = {"all", "ungrouped"}
        for number, line in enumerate(text.splitlines(), 1):
            stripped = line.strip()
            if not stripped or stripped[0] in "#;":
                continue
            place = Place(str(self.path), number, len(line) - len(line.lstrip()) + 1)
            section = _SECTION.fullmatch(stripped)
            if section:
                group, kind = self._group(section[1], place), section[2] or ""
                if kind not in ("", "hosts", "children", "vars"):
                    self._complain(place, f"[{section[1]}:{kind}]", "a group, group:children or group:vars")
                defined |= {group.name} if kind != "vars" else set()
            elif stripped[0] == "[" and ("]" not in stripped or stripped[-1] == "]"):
                self._complain(place, f"{stripped!r} is not a section", "[group], without spaces")
            elif kind == "children":
                self._child(group, stripped.partition("#")[0].strip(), place)
            elif kind == "vars":
                self._ini_variable(group, stripped, place)
            else:
                self._ini_hosts(group, line, place)
        self._refuse_undefined(defined)

    def _refuse_undefined(self, defined: set[str]) -> None:
        """Ansible reads nothing of a file with such a group (ini.py, `_parse`: pending_declarations)."""
        for group in self.groups.values():
            if group.name not in defined:
                wrong = f"the file uses the group {group.name}, but does not define it"
                self._complain(group.place, wrong, f"[{group.name}]", nearest(group.name, defined))

    def _ini_variable(self, group: _Group, line: str, place: Place) -> None:
        name, equals, value = line.partition("=")
        if not equals:
            self._complain(place, f"{line!r}", "name=value")
            return
        at = Place(place.file, place.line, place.column + len(name) + 1)
        group.variables[name.strip()] = Entry(place, _literal(value.strip(), at))

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
                self._complain(at, f"{word!r} after the host name", "name=value")
                continue
            behind = Place(place.file, place.line, at.column + len(name) + 1)
            variables[name] = Entry(at, _literal(value, behind))
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

    # What ansible-inventory answers

    def read_listing(
        self, listing: Mapping[str, Any], readable: Mapping[str, set[str]], password_env: str
    ) -> None:
        """https://docs.ansible.com/ansible/latest/dev_guide/developing_inventory.html#developing-inventory-scripts, with the
        variables of groups and files in those of each host."""
        variables: Mapping[str, Any] = listing["_meta"]["hostvars"]
        for name, one in listing.items():
            if name == "_meta":
                continue
            group = self._group(name, self.start)
            for child in one.get("children", ()):
                self._child(group, child, self.start)
            for host in one.get("hosts", ()):
                self.places[host] = group.hosts[host] = Place(f"{self.path}, host {host}", 1, 1)
                self.hosts[host] = _listed(variables.get(host, {}), self.places[host], readable)
                if not _OWN_PASSWORDS & set(self.hosts[host]) and password_env:
                    value = Scalar(self.start, password_env, plain=False)
                    self.hosts[host]["winboot_password_env"] = Entry(self.start, value)
        self.reads_beside = False

    # Both

    def _group(self, name: str, place: Place) -> _Group:
        return self.groups.setdefault(name, _Group(name, place))

    def _child(self, group: _Group, name: str, place: Place) -> None:
        group.children[name] = place
        self._group(name, place)

    def _hosts(self, group: _Group, pattern: str, variables: Variables, place: Place) -> None:
        found = _PORT.fullmatch(pattern)
        pattern = found[1] if found else pattern
        port = {"ansible_port": Entry(place, Scalar(place, found[2], plain=False))} if found else {}
        for name in self._expanded(pattern, place):
            # The port counts where the host is named first (lib/ansible/inventory/data.py, `add_host`).
            self.hosts.setdefault(name, dict(port)).update(variables)
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
        padded = first[0] == "0" and len(first) > 1
        if first.isdigit() and last.isdigit() and not (padded and len(first) != len(last)):
            numbers, one = range(int(first), int(last) + 1, step or 1), len(first) if padded else 0
            middle = [str(number).zfill(one) for number in numbers] if len(numbers) <= _MOST_HOSTS else []
        elif first.isalpha() and last.isalpha() and first.islower() == last.islower():
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
        """The file as a winboot inventory."""
        for name in self.hosts:
            self._give_home(name)
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
                "winboot_os=2022 (or 2019, 2025) after each Windows machine, or under [GROUP:vars]",
            )
        elif others:
            wrong = f"{_named(others)}: left out, because winboot_os is missing"
            self._warn(self.start, wrong, "winboot_os=2022 for a Windows machine")
        self._warn_of_way([name for name, one in ours.items() if "ansible_connection" not in one])
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
        self._complain(place, f"{named}: these groups are children of each other", "groups without a cycle")
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

    def _members(self, name: str) -> frozenset[str]:
        """The hosts of a group and of its children. Asked when all is read, and no group is in a circle."""
        if name not in self._gathered:
            group = self.groups[name]
            inside = (self._members(child) for child in group.children)
            self._gathered[name] = frozenset(group.hosts).union(*inside)
        return self._gathered[name]

    def _settings(self, host: str, depths: Mapping[str, int]) -> Variables:
        """Its variables: of groups the deeper ones win, then the later name; its own win over all."""
        found: Variables = {}
        around = [name for name in self.groups if name == "all" or host in self._members(name)]
        # lib/ansible/inventory/helpers.py, `sort_groups`.
        around.sort(key=lambda one: (depths[one], self._priority(one), one))
        for name in around:
            found |= self.groups[name].variables
        for name in around:
            found |= self._beside("group_vars", name)
        return found | self.hosts[host] | self._beside("host_vars", host)

    def _priority(self, group: str) -> int:
        """`ansible_group_priority`, which counts in the inventory alone and not in group_vars."""
        entry = self.groups[group].variables.get(PRIORITY)
        text = entry.value.text if entry is not None and isinstance(entry.value, Scalar) else "1"
        try:
            return int(text)
        except ValueError:
            self._complain(self.groups[group].place, f"{PRIORITY} {text!r}", "a whole number")
            return 1

    def _beside(self, folder: str, name: str) -> Variables:
        """What group_vars/NAME or host_vars/NAME next to the inventory says: a file, or a folder of them
        (docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html, "Organizing host and group
        variables"). A name that begins with / has none (lib/ansible/plugins/vars/host_group_vars.py: "avoid 'chroot' type
        inventory hostnames")."""
        if not self.reads_beside or name.startswith("/"):
            return {}
        if (folder, name) not in self.files:
            found: Variables = {}
            for file in _files_of(self.path.parent / folder / name):
                found |= self.variables_of(file)
            self.files[folder, name] = found
        return self.files[folder, name]

    def variables_of(self, file: Path) -> Variables:
        """The variables of one file; a complaint where it cannot be read."""
        try:
            text = read_text(file)
            if text.startswith(VAULT):
                self._warn(Place(str(file), 1, 1), "Ansible Vault encrypts this file: winboot skips it", OPEN)
                return {}
            return dict(compose(text, str(file), foreign=True).entries)
        except InvalidInput as error:
            self.complaints.extend(one for one in error.problems if isinstance(one, Complaint))
            return {}

    def _give_home(self, host: str) -> None:
        """A host of no group is `ungrouped` (lib/ansible/inventory/data.py, `reconcile_inventory`)."""
        if not any(host in group.hosts for group in self.groups.values() if group.name != "all"):
            self._group("ungrouped", self.places[host]).hosts.setdefault(host, self.places[host])

    def _home(self, host: str, depths: Mapping[str, int]) -> str:
        """The group that defines it: the deepest one that lists it."""
        listing = (
            group.name for group in self.groups.values() if host in group.hosts and group.name != "all"
        )
        return max(listing, key=lambda name: (depths.get(name, 1), name))

    def _warn_of_way(self, hosts: Sequence[str]) -> None:
        if hosts:
            wrong = f"{_named(hosts)}: no ansible_connection; Ansible would use ssh, winboot uses WinRM"
            self._warn(self.start, wrong, "ansible_connection=psrp, winrm, ssh or local")

    def _host(self, name: str, variables: Variables) -> Table:
        return HostReader(name, self.places[name], variables, self.complaints).table()

    def _made_group(self, group: _Group, ours: Mapping[str, Variables], homes: Mapping[str, str]) -> Table:
        own = [name for name in group.hosts if homes.get(name) == group.name]
        members = [name for name in ours if name in self._members(group.name) and name not in own]
        entries: dict[str, Entry] = {}
        profile = self._profile(group, [(name, ours[name]) for name in own])
        if profile is not None:
            entries["profile"] = Entry(profile.place, profile)
        hosts = {name: Entry(self.places[name], self._host(name, ours[name])) for name in own}
        entries["hosts"] = Entry(group.place, Table(group.place, hosts))
        listed = tuple(Scalar(group.place, name, plain=False) for name in members)
        entries["members"] = Entry(group.place, Listing(group.place, listed))
        return Table(group.place, entries)

    def _profile(self, group: _Group, hosts: Sequence[tuple[str, Variables]]) -> Scalar | None:
        """The profile of the hosts that a group defines; profile.yaml next to the file where none is named."""
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
                f"the hosts of the group {group.name} have several profiles ({', '.join(named)})",
                "one profile for all hosts of a group",
            )
        return next(iter(named.values()), None)


def _named(hosts: Sequence[str]) -> str:
    return ", ".join(hosts[:5]) + (f" and {len(hosts) - 5} more" if len(hosts) > 5 else "")


def _listed(variables: Mapping[str, Any], place: Place, readable: Mapping[str, set[str]]) -> Variables:
    """The variables of a host, of which what winboot does not know may come from a vault and is let be."""
    return {
        name: Entry(place, _from_listing(value, place, readable.get(name, set())))
        for name, value in variables.items()
        if name in NAMES or name.startswith(("ansible_", "winboot_"))
    }


def _from_listing(value: Any, place: Place, readable: set[str]) -> Node:
    """Encrypted and unsafe texts are objects with one key (lib/ansible/_internal/_json/_profiles/_legacy.py)."""
    if isinstance(value, dict) and set(value) == {"__ansible_unsafe"}:
        value = value["__ansible_unsafe"]
    hidden = isinstance(value, dict) and set(value) == {"__ansible_vault"}
    if hidden or (isinstance(value, str | int | float) and text_of(value) not in readable):
        return Scalar(place, VAULT, plain=False)
    return _node(text_of(value) if isinstance(value, bool) else value, place)


def _literal(text: str, place: Place) -> Node:
    """A value of an INI file: a literal of Python's where it is one, else the text (ini.py, `_parse_value`)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        value = text
    return _node(value, place)


def _node(value: Any, place: Place) -> Node:
    match value:
        case None:
            return Scalar(place, "", plain=True)
        case dict():
            entries = {str(key): Entry(place, _node(one, place)) for key, one in value.items()}
            return Table(place, entries)
        case list() | tuple() | set():
            return Listing(place, tuple(_node(one, place) for one in value))
        case bytes():
            return Scalar(place, value.decode("utf-8", "replace"), plain=False)
    return Scalar(place, "..." if value is ... else str(value), plain=False)


def _files_of(path: Path) -> Iterator[Path]:
    """The files with the variables of a group or host: the first of NAME (a file, or all of a folder), NAME.yml, NAME.yaml and
    NAME.json (lib/ansible/parsing/dataloader.py, `find_vars_files`)."""
    there = (path.with_name(path.name + suffix) for suffix in _SUFFIXES)
    first = next((one for one in there if _exists(one)), None)
    if first is not None and first.is_dir():
        yield from _files_in(first)
    elif first is not None:
        yield first


def _exists(path: Path) -> bool:
    """False for a name that is too long for a file, too, as `os.path.exists` in Ansible's `path_exists`."""
    with suppress(OSError):
        return path.exists()
    return False


def _files_in(folder: Path) -> Iterator[Path]:
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        if one.name.startswith(".") or one.name.endswith("~"):
            continue
        if one.is_dir() and not one.suffix:
            yield from _files_in(one)
        elif one.is_file() and one.suffix in _SUFFIXES:
            yield one

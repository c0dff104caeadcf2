"""What a profile or an inventory has this computer run or read: another person's file may name any program and any
file.

Found in the nodes of the files, by the types of their models: a key that takes a reference, a path or a command is found
because it does (tests/config/test_demands.py).
"""

from __future__ import annotations

import os
import shlex
import shutil
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from winboot.base.clean import clean
from winboot.base.errors import InvalidInput
from winboot.config.inventory import Connection, HostKeys, read_inventory
from winboot.config.model import Model, expanded, is_file
from winboot.config.profile import Profile, Reference
from winboot.config.profile.sections import Cluster
from winboot.config.profile.values import TunnelCommand
from winboot.config.source import (
    Complaint,
    Entry,
    Listing,
    Node,
    PathParts,
    Place,
    Scalar,
    Table,
    compose,
    decoded,
    dotted,
    masked,
    read,
    read_text,
)

Kind = Literal["run", "file", "variable"]
_SAYS: Final[Mapping[Kind, str]] = {
    "run": "runs {}",
    "file": "reads the file {}",
    "variable": "reads the environment variable {}",
}
# What in an entry of a kubeconfig names a file.
_KUBECONFIG_FILES: Final = ("tokenFile", "client-certificate", "client-key", "certificate-authority")
# The tables of an inventory, and of a cloud's, that have one table for each of their keys.
_TABLES_OF_TABLES: Final = ("groups", "hosts", "settings")


@dataclass(frozen=True, slots=True)
class Demand:
    """One thing that this computer would run or read, and the place that says so. `path` is the dotted key."""

    place: Place
    path: str
    kind: Kind
    what: str

    @property
    def file(self) -> Path:
        """The file that says so."""
        return Path(self.place.file)

    def complaint(self) -> Complaint:
        """The same for `winboot check`: nothing is wrong with it. What is not here is a note, and no warning: users
        also check files where the passwords are missing."""
        return Complaint(self.place, self.path, self.says + self.lacks, level="info")

    @property
    def lacks(self) -> str:
        """That this computer does not have it, as the end of the sentence; files have a warning of their own."""
        if self.kind == "variable" and not os.environ.get(self.what):
            return ", which is not set here: plan and join need it"
        if self.kind == "run" and self.path.endswith((".command", ".tunnel")) and not _is_here(self.what):
            return ", which is not a program on this computer: plan and join need it"
        return ""

    @property
    def says(self) -> str:
        """What it is about, as the end of a sentence."""
        return masked(clean(_SAYS[self.kind].format(self.what)))

    def __str__(self) -> str:
        return f"{self.place}: {self.path}: {self.says}"


def _is_here(command: str) -> bool:
    """Whether the program of a command is found."""
    try:
        words = [word for word in shlex.split(command) if "=" not in word]
    except ValueError:
        # A tunnel's command with a quote that is not closed: its own check says so.
        return True
    return not words or shutil.which(words[0]) is not None


def demands(tables: Mapping[Path, Table]) -> tuple[Demand, ...]:
    """What the files of an inventory, as they were read, have this computer run or read. That is every program and
    variable, and files outside of the folder of the file that names them. In the order of files and lines."""
    found = {one for table in tables.values() for one in _layer(table, ())}
    return tuple(sorted(found, key=lambda one: (one.place, one.path, one.what)))


def files_of(path: Path) -> dict[Path, Table]:
    """An inventory or a profile and the profiles that it names, as nodes; without those that cannot be read, which
    their loader reports."""
    tables: dict[Path, Table] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in tables or not is_file(file):
            continue
        try:
            tables[file] = read_inventory(file)[0] if file == path else read(file)
        except InvalidInput:
            continue
        if file == path:
            waiting += [expanded_from(one) for _, one in _profiles(tables[file], ())]
    return tables


def expanded_from(named: Scalar) -> Path:
    """The path that a value is; a relative one begins at the folder of its file."""
    return Path(named.place.file).parent / expanded(named.text)


def _layer(table: Table, path: PathParts) -> Iterator[Demand]:
    """A profile, an inventory, or one of its groups or hosts: the keys of both models, and tables of such tables."""
    yield from _model(Profile, table, path)
    yield from _model(HostKeys, table, path)
    for inside, key in _inside(table, path):
        yield from _layer(key, inside)
    for key_path, named in _profiles(table, path, deep=False):
        yield from _file(named, key_path)


def _inside(table: Table, path: PathParts) -> Iterator[tuple[PathParts, Table]]:
    defaults = table.get("defaults")
    if isinstance(defaults, Table):
        yield (*path, "defaults"), defaults
    for name in _TABLES_OF_TABLES:
        group = table.get(name)
        for key, entry in group.entries.items() if isinstance(group, Table) else ():
            if isinstance(entry.value, Table):
                yield (*path, name, key), entry.value


def _profiles(table: Table, path: PathParts, *, deep: bool = True) -> Iterator[tuple[PathParts, Scalar]]:
    named = table.get("profile")
    if isinstance(named, Scalar) and not named.is_null:
        yield (*path, "profile"), named
    for inside, below in _inside(table, path) if deep else ():
        yield from _profiles(below, inside)


def _model(model: type[Model], node: Node, path: PathParts) -> Iterator[Demand]:
    if not isinstance(node, Table):
        return
    if issubclass(model, Reference):
        yield from _reference(node, path)
        return
    for key, entry in node.entries.items():
        info = model.model_fields.get(key)
        if info is not None:
            yield from _value(info.annotation, entry.value, (*path, key))
    if model is Connection:
        yield from _local(node.entries, path)
    if model is Cluster:
        yield from _kubeconfig(node.get("kubeconfig"))


def _value(annotation: Any, node: Node, path: PathParts) -> Iterator[Demand]:
    if isinstance(node, Listing):
        for number, item in enumerate(node.items):
            yield from _value(annotation, item, (*path, number))
        return
    if isinstance(node, Scalar):
        if node.is_null:
            return
        if TunnelCommand in _parts(annotation):
            yield Demand(node.place, dotted(path), "run", node.text)
        elif Path in _parts(annotation):
            yield from _file(node, path)
        return
    for part in _parts(annotation):
        if isinstance(part, type) and issubclass(part, Model):
            yield from _model(part, node, path)
        elif typing.get_origin(part) is dict:
            for key, entry in node.entries.items():
                yield from _value(typing.get_args(part)[1], entry.value, (*path, key))


def _parts(annotation: Any) -> tuple[Any, ...]:
    """What a value may be: the members of a union and of a tuple, without their constraints; a dict as a whole."""
    if annotation == TunnelCommand or isinstance(annotation, type) or typing.get_origin(annotation) is dict:
        return (annotation,)
    return tuple(part for one in typing.get_args(annotation) for part in _parts(one))


def _reference(node: Table, path: PathParts) -> Iterator[Demand]:
    for key, entry in node.entries.items():
        value, inside = entry.value, (*path, key)
        if key == "command":
            items = value.items if isinstance(value, Listing) else (value,)
            words = [one.text for one in items if isinstance(one, Scalar)]
            yield Demand(value.place, dotted(inside), "run", shlex.join(words))
        elif isinstance(value, Scalar) and not value.is_null:
            if key == "env":
                yield Demand(value.place, dotted(inside), "variable", value.text)
            elif key in ("file", "ec2_key"):
                yield from _file(value, inside)


def _file(named: Scalar, path: PathParts) -> Iterator[Demand]:
    """A file outside of the folder of the one that names it; a link in that folder may lead out of it."""
    file, folder = expanded_from(named), Path(named.place.file).parent
    try:
        outside = not file.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        # A circle of links, or no path at all.
        outside = True
    if outside:
        yield Demand(named.place, dotted(path), "file", str(file))


def _local(entries: Mapping[str, Entry], path: PathParts) -> Iterator[Demand]:
    entry = entries.get("transport")
    if entry is not None and isinstance(entry.value, Scalar) and entry.value.text == "local":
        where = dotted((*path, "transport"))
        yield Demand(entry.value.place, where, "run", "the script on this computer")


def _kubeconfig(named: Node | None) -> Iterator[Demand]:
    """The programs that a kubeconfig gets credentials from, and its files. Of all its users: which context is meant, another
    layer may say."""
    file = named.get("file") if isinstance(named, Table) else None
    if not isinstance(file, Scalar) or not is_file(expanded_from(file)):
        return
    try:
        path = expanded_from(file)
        top = compose(read_text(path, decoded), str(path))
    except InvalidInput:
        return
    yield from in_kubeconfig(top)


def in_kubeconfig(top: Table) -> Iterator[Demand]:
    """What a kubeconfig has this computer run, and which files outside of its folder it has it read."""
    for kind in ("user", "cluster"):
        for entry in _entries(top, kind):
            plugin = entry.get("exec")
            if isinstance(plugin, Table):
                yield from _plugin(plugin)
            for key in _KUBECONFIG_FILES:
                value = entry.get(key)
                if isinstance(value, Scalar) and not value.is_null:
                    yield from _file(value, (f"{kind}s", key))


def _entries(top: Table, kind: str) -> Iterator[Table]:
    """`users: [{name: …, user: {…}}]`."""
    for item in _items(top, f"{kind}s"):
        entry = item.get(kind) if isinstance(item, Table) else None
        if isinstance(entry, Table):
            yield entry


def _plugin(plugin: Table) -> Iterator[Demand]:
    """A variable can make another program of an honest one (LD_PRELOAD)."""
    command = plugin.get("command")
    if isinstance(command, Scalar):
        words = [command.text, *(one.text for one in _items(plugin, "args") if isinstance(one, Scalar))]
        pairs = [
            (one.get("name"), one.get("value")) for one in _items(plugin, "env") if isinstance(one, Table)
        ]
        given = [
            f"{name.text}={value.text}"
            for name, value in pairs
            if isinstance(name, Scalar) and isinstance(value, Scalar)
        ]
        yield Demand(command.place, "users.exec", "run", shlex.join([*given, *words]))


def _items(table: Table, key: str) -> tuple[Node, ...]:
    listed = table.get(key)
    return listed.items if isinstance(listed, Listing) else ()

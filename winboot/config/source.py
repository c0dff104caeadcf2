"""YAML that remembers where everything is.

`compose` reads a file into nodes that know their file, line and column, and keep scalars as the text that was
written: `version: 1.30` stays `1.30`. `Complaint` is one thing that is wrong, with its place, in words for
the person who wrote the file.
"""

from __future__ import annotations

import difflib
import re
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import yaml

from winboot.base.errors import InvalidInput

Level = Literal["error", "warning", "info"]
PathParts: TypeAlias = tuple[str | int, ...]

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
# Aliases of aliases multiply; an inventory of five thousand hosts has a quarter of this.
MOST_NODES: Final = 200_000
# The same inventory has a tenth of this.
MOST_BYTES: Final = 4 * 2**20
# A profile needs eight. PyYAML's composer recurses on the C stack: 100,000 open brackets end the whole process.
MOST_LEVELS: Final = 50
_KNOWN_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{kind}"
    for kind in ("null", "bool", "int", "float", "timestamp", "str", "seq", "map", "merge", "value")
)
# lib/ansible/_internal/_yaml/_constructor.py: a text that is encrypted, and one that is not a template.
_ANSIBLES_TAGS: Final = frozenset(("!vault", "!vault-encrypted", "!unsafe"))
# The same loader in C, ten times faster, where PyYAML was built with it.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE: Final = "tag:yaml.org,2002:merge"
# Control characters (line breaks among them), the line and paragraph separators that YAML 1.1 reads as breaks, and
# halves of surrogate pairs: no host, path, address or name has one.
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# A script given to a shell may have several lines.
_MAY_HAVE_LINES: Final = frozenset({"command"})
# What is before the @ of an address, whatever it looks like; an image's digest is behind one too. Tried at the beginnings of
# words and behind // alone: at every letter, a long word in a foreign file took hours.
_LOGIN: Final = re.compile(
    r"(?<![^\s'\"])((?:[A-Za-z][\w+.-]*:)?//|\\\\)?(?:[^\s'\":]*:[^\s'\"]*|(?<=//)[^\s'\"/]*)@(?!sha256:)"
    r"|(?<=//)[^\s'\"/]*@(?!sha256:)"
)
_QUERY: Final = re.compile(r"(?<=[\w/])\?[^\s'\"]*")
# Complaints about one file: a user with more errors has given the wrong file.
MOST_COMPLAINTS: Final = 200


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A spot in a file that a person wrote; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong (or worth knowing): where, what, what was expected, and the likely intention."""

    place: Place | None
    path: str
    wrong: str
    expected: str = ""
    did_you_mean: str = ""
    level: Level = "error"
    source: str = ""
    instead: str = ""

    def __post_init__(self) -> None:
        # Complaints end on terminals and in CI logs.
        for name in ("path", "wrong", "did_you_mean"):
            object.__setattr__(self, name, masked(getattr(self, name)))

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        path = f"{self.path}: " if self.path else ""
        level = "" if self.level == "error" else f"{self.level}: "
        expected = f"; expected {self.expected}" if self.expected else ""
        instead = f"; instead: {self.instead}" if self.instead else ""
        meant = f"; did you mean {self.did_you_mean!r}?" if self.did_you_mean else ""
        return f"{where}{level}{path}{self.wrong}{expected}{instead}{meant}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value as it was written; `plain` is false between quotes or in a block."""

    place: Place
    text: str
    plain: bool

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in _NULL


@dataclass(frozen=True, slots=True)
class Listing:
    """A sequence of nodes."""

    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a map with the place of the key."""

    key_place: Place
    value: Node


@dataclass(frozen=True, slots=True)
class Table:
    """A map; keys are text and unique."""

    place: Place
    entries: Mapping[str, Entry] = field(default_factory=dict)

    def get(self, key: str) -> Node | None:
        """The node under a key, or None where the key is not there."""
        entry = self.entries.get(key)
        return None if entry is None else entry.value


Node: TypeAlias = Scalar | Listing | Table


class Text(str):
    """A scalar on its way into a model: the text, whether it was plain, and where it is."""

    __slots__ = ("place", "plain")

    place: Place
    plain: bool

    @classmethod
    def of(cls, scalar: Scalar) -> Text:
        """The scalar's text with its marks."""
        text = cls(scalar.text)
        text.place = scalar.place
        text.plain = scalar.plain
        return text


class Wrong(ValueError):
    """Raised by a model's validator: what is wrong and what was expected, in the words a complaint uses."""

    def __init__(self, wrong: str, *, expected: str = "", did_you_mean: str = "") -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.expected = expected
        self.did_you_mean = did_you_mean


def text_of(value: Any, expected: str) -> str:
    """A value that must be text. Raises Wrong with what was found instead."""
    if isinstance(value, str):
        return str(value)
    kind = (
        "a mapping"
        if isinstance(value, dict)
        else "a list"
        if isinstance(value, list | tuple)
        else repr(value)
    )
    raise Wrong(f"found {kind}", expected=expected)


def masked(text: str) -> str:
    """The text without what may be a credential: the user part and the query string of every address in it."""
    if "@" not in text and "?" not in text:
        return text
    # A query has a name and a value.
    return _QUERY.sub(lambda found: "?***" if "=" in found[0][2:] else found[0], _LOGIN.sub(r"\1***@", text))


def read(path: Path) -> Table:
    """The map that a YAML file holds; InvalidInput where the file cannot be read or is no such map."""
    return compose(read_text(path), str(path))


def decoded(data: bytes) -> str:
    """UTF-8, or UTF-16 where its mark is in front, as YAML has it: PowerShell's `>` writes so, and kubectl reads
    it. The mark is no part of the text."""
    return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")


def read_standard_input(most: int = -1) -> str:
    """What another program wrote, at most so many bytes. Raises InvalidInput, which holds nothing of it: it may be a secret."""
    with suppress(UnicodeDecodeError):
        return decoded(sys.stdin.buffer.read(most))
    raise InvalidInput("standard input is not UTF-8 text", hint="Write it as UTF-8.")


def read_text(path: Path, decode: Callable[[bytes], str] = bytes.decode) -> str:
    """The text of a file that a person wrote; InvalidInput where it cannot be read."""
    try:
        data = _bytes(path)
        return decode(data)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise _unreadable(path, reason, "Check the path and its permissions.") from error
    except UnicodeDecodeError as error:
        raise _undecodable(path, data, error) from error


def _bytes(path: Path) -> bytes:
    """The file's content, or a refusal of one that no person wrote. A device or a pipe might never end."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise _unreadable(path, f"is {kind}", "Name a file.")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise _unreadable(path, f"is larger than {MOST_BYTES // 2**20} MiB", "Split it into several files.")
    return data


def _unreadable(path: Path, reason: str, hint: str) -> InvalidInput:
    complaint = Complaint(Place(str(path), 1, 1), "", reason)
    return InvalidInput(f"{path}: {reason}", problems=(complaint,), hint=hint)


def _undecodable(path: Path, data: bytes, error: UnicodeDecodeError) -> InvalidInput:
    """Where the first byte is that is not UTF-8, and what the file is instead, where its mark says so."""
    before = error.object[: error.start].decode("utf-8", "replace")
    place = Place(str(path), before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
    utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    wrong = "the file is UTF-16" if utf16 else f"the byte 0x{error.object[error.start]:02x} is not UTF-8"
    complaint = Complaint(place, "", wrong, expected="a file saved as UTF-8")
    return InvalidInput(f"{path}: is not UTF-8 text", problems=(complaint,), hint="Save the file as UTF-8.")


def compose(text: str, file: str, *, foreign: bool = False) -> Table:
    """Text as nodes. With `foreign`, for files of Ansible: values may have several lines and Ansible's tags, and of two equal
    keys the last one counts, as there.

    Refuses, with every place at once: bad YAML, duplicate keys, foreign tags, several documents, control characters, and
    structures that are too large or too deep.
    """
    try:
        _refuse_depth(text, file)
        documents = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise InvalidInput(
            f"{file}: is not valid YAML", problems=(_syntax_complaint(error, text, file),)
        ) from error
    except yaml.reader.ReaderError as error:
        raise InvalidInput(
            f"{file}: is not valid YAML", problems=(_character_complaint(error, text, file),)
        ) from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise InvalidInput(
            f"{file}: is not valid YAML", problems=(Complaint(Place(file, 1, 1), "", str(error)),)
        ) from error
    reader = _Reader(file, foreign=foreign)
    top = reader.document([node for node in documents if node is not None])
    if reader.complaints:
        raise InvalidInput(f"{file}: is not a valid file", problems=tuple(reader.complaints))
    return top


def merge(low: Node, high: Node) -> Node:
    """`high` over `low`: maps merge key by key, everything else replaces. A null of `high` stays, so that it removes."""
    if not (isinstance(low, Table) and isinstance(high, Table)):
        return high
    entries = dict(low.entries)
    for key, entry in high.entries.items():
        former = entries.get(key)
        value = entry.value if former is None else merge(former.value, entry.value)
        entries[key] = Entry(entry.key_place, value)
    return Table(high.place if high.entries else low.place, entries)


def locate(node: Node, path: Iterable[str | int], *, key: bool = False) -> Place:
    """Where the value at `path` is; where a part is missing, the nearest node above it. `key` asks for
    the key."""
    place = node.place
    for part in path:
        step = child(node, part)
        if step is None:
            continue  # a part that only the model knows, such as the index of a lone value
        key_place, node = step
        place = key_place if key else node.place
    return place


def child(node: Node, part: str | int) -> tuple[Place, Node] | None:
    """One step down: the place of the key (or item) and the node under it."""
    if isinstance(node, Table):
        entry = node.entries.get(str(part))
        return None if entry is None else (entry.key_place, entry.value)
    if isinstance(node, Listing) and isinstance(part, int) and part < len(node.items):
        return node.items[part].place, node.items[part]
    return None


def raw(node: Node) -> Any:
    """Nodes as dicts, lists, `Text` and None: what a model is built from."""
    match node:
        case Table():
            return {key: raw(entry.value) for key, entry in node.entries.items()}
        case Listing():
            return [raw(item) for item in node.items]
        case Scalar():
            return None if node.is_null else Text.of(node)


def written(node: Node) -> str:
    """The node as YAML: plain values stay plain, and others text."""
    return str(yaml.serialize(_written(node), Dumper=yaml.SafeDumper, allow_unicode=True, width=110))


def _written(node: Node) -> yaml.Node:
    match node:
        case Table():
            pairs = [
                (_written_text(key, plain=False), _written(entry.value))
                for key, entry in node.entries.items()
            ]
            return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=False)
        case Listing():
            return yaml.SequenceNode(
                "tag:yaml.org,2002:seq", [_written(one) for one in node.items], flow_style=False
            )
        case Scalar():
            return _written_text(node.text, plain=node.plain)


def _written_text(text: str, *, plain: bool) -> yaml.ScalarNode:
    if not plain:
        return yaml.ScalarNode("tag:yaml.org,2002:str", text)
    resolver = yaml.resolver.Resolver()
    # types-PyYAML leaves it untyped.
    tag = resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return yaml.ScalarNode(tag, text)


def typed(value: Any) -> Any:
    """`Text` as YAML 1.2 understands it: numbers and booleans where they were written plain. For open maps."""
    if isinstance(value, dict):
        return {str(key): typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    if not isinstance(value, Text):
        return value
    if value.plain and value in _BOOLEANS:
        return _BOOLEANS[value]
    if value.plain and _INTEGER.fullmatch(value):
        return int(value)
    if value.plain and _FLOAT.fullmatch(value):
        return float(value)
    return str(value)


def in_order(complaints: Iterable[Complaint]) -> list[Complaint]:
    """Each complaint once, in the order of the files; those without a place last."""
    nowhere = Place("", 0, 0)
    return sorted(
        dict.fromkeys(complaints), key=lambda one: (one.place is None, one.place or nowhere, one.path)
    )


def nearest(word: str, candidates: Iterable[str]) -> str:
    """The candidate the writer most likely meant, or "" where none is close."""
    by_form: dict[str, str] = {}
    for candidate in candidates:
        by_form.setdefault(_form(candidate), candidate)
    close = difflib.get_close_matches(_form(word), list(by_form), n=1, cutoff=0.7)
    return by_form[close[0]] if close else ""


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: `cluster.pod_cidr`, `node.taints[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _form(word: str) -> str:
    # maxPods, max_pods and max-pods are the same intention.
    return re.sub(r"[^a-z0-9]", "", word.lower())


def _refuse_depth(text: str, file: str) -> None:
    """Look at the events alone, which takes no stack, before nodes are made of them."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_LEVELS:
                mark = event.start_mark
                place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1, 1)
                wrong = f"more than {MOST_LEVELS} maps and lists inside each other"
                complaint = Complaint(place, "", wrong, expected="a flatter file")
                raise InvalidInput(f"{file}: is nested too deeply", problems=(complaint,))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _character_complaint(error: yaml.reader.ReaderError, text: str, file: str) -> Complaint:
    found = next((one for one in _UNPRINTABLE.finditer(text) if one[0] not in "\t\r\n"), None)
    if found is None:
        return Complaint(Place(file, 1, 1), "", f"{error.reason}", expected="printable text")
    before = text[: found.start()]
    place = Place(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
    return Complaint(place, "", f"contains the control character {_code_point(found[0])}", "printable text")


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"


_YAML: Final = "YAML: `key: value`, deeper keys indented by blanks, and every bracket and quote closed"


def _syntax_complaint(error: yaml.MarkedYAMLError, text: str, file: str) -> Complaint:
    mark = error.problem_mark or error.context_mark
    place = Place(file, 1, 1) if mark is None else Place(file, mark.line + 1, mark.column + 1)
    lines = text.split("\n")
    rest = lines[place.line - 1][place.column - 1 :] if place.line <= len(lines) else ""
    if rest.startswith("\t"):
        return Complaint(place, "", "a tab is used to indent", expected="spaces; YAML allows no tabs there")
    context = f" {error.context}" if error.context else ""
    return Complaint(place, "", f"{error.problem or 'bad YAML'}{context}", expected=_YAML)


class _Reader:
    """Turns PyYAML's nodes into ours and gathers what is wrong with them."""

    def __init__(self, file: str, *, foreign: bool) -> None:
        self.file = file
        self.complaints: list[Complaint] = []
        self._open: set[int] = set()
        self._foreign = self._lines_allowed = foreign
        self._left = MOST_NODES

    def document(self, documents: Sequence[yaml.Node]) -> Table:
        if not documents:
            return Table(Place(self.file, 1, 1))
        if len(documents) > 1:
            self._complain(documents[1], "a second document in the same file", "one document")
        node = self._node(documents[0])
        if isinstance(node, Table):
            return node
        if not (isinstance(node, Scalar) and node.is_null):
            self._complain(documents[0], "the file does not contain a mapping", "a mapping of sections")
        return Table(node.place)

    def _node(self, node: yaml.Node) -> Node:
        place = self._place(node)
        if node.tag not in _KNOWN_TAGS and not (self._foreign and node.tag in _ANSIBLES_TAGS):
            self._complain(node, f"unknown tag {node.tag}", "a value without a tag")
        self._left -= 1
        if self._left == 0:
            self._complain(
                node, f"more than {MOST_NODES} values, counting those behind aliases", "fewer aliases"
            )
        if self._left <= 0:
            return Table(place)
        if id(node) in self._open:
            self._complain(node, "an alias that contains itself", "an alias to a finished value")
            return Table(place)
        self._open.add(id(node))
        try:
            match node:
                case yaml.MappingNode():
                    return Table(place, dict(self._entries(node)))
                case yaml.SequenceNode():
                    return Listing(place, tuple(self._node(item) for item in node.value))
                case yaml.ScalarNode():
                    self._refuse_unprintable(node)
                    return Scalar(place, str(node.value), plain=not node.style)
                case _:
                    raise TypeError(f"PyYAML made a {type(node).__name__}, which YAML has not")
        finally:
            self._open.discard(id(node))

    def _refuse_unprintable(self, node: yaml.ScalarNode) -> None:
        found = _UNPRINTABLE.search(node.value)
        if found is None or (found[0] == "\n" and self._lines_allowed):
            return
        if found[0] == "\n":
            self._complain(
                node, "the value has a line break", "a single line (in a block, >- or |- ends without one)"
            )
        else:
            self._complain(
                node, f"the value contains the control character {_code_point(found[0])}", "printable text"
            )

    def _entries(self, node: yaml.MappingNode) -> Iterator[tuple[str, Entry]]:
        merged: dict[str, Entry] = {}
        own: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged.update(self._merged(value_node))
                continue
            key = self._key(key_node)
            if key is None:
                continue
            former, self._lines_allowed = self._lines_allowed, self._foreign or key in _MAY_HAVE_LINES
            entry = Entry(self._place(key_node), self._node(value_node))
            self._lines_allowed = former
            if key in own and not self._foreign:
                self._complain(
                    key_node,
                    f"duplicate key {key!r}",
                    f"it once (it is first set at {own[key].key_place})",
                )
                continue
            own[key] = entry
        yield from {**merged, **own}.items()

    def _merged(self, node: yaml.Node) -> dict[str, Entry]:
        """The maps behind `<<`; among several the first one wins."""
        found: dict[str, Entry] = {}
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            table = self._node(source)
            if isinstance(table, Table):
                found = {**table.entries, **found}
            else:
                self._complain(source, "<< merges a value that is not a mapping", "an alias of a mapping")
        return found

    def _key(self, node: yaml.Node) -> str | None:
        if isinstance(node, yaml.ScalarNode):
            self._refuse_unprintable(node)
            return str(node.value)
        self._complain(node, "the key is a mapping or a list", "a key that is text")
        return None

    def _place(self, node: yaml.Node) -> Place:
        return Place(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def _complain(self, node: yaml.Node, wrong: str, expected: str) -> None:
        if len(self.complaints) == MOST_COMPLAINTS:
            wrong, expected = f"and more: these are the first {MOST_COMPLAINTS}", "a file with fewer errors"
        if len(self.complaints) <= MOST_COMPLAINTS:
            self.complaints.append(Complaint(self._place(node), "", wrong, expected))

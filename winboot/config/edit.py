"""Put values into a YAML file that a person wrote; every other byte of it stays, comments too.

Where a value belongs is found by the parser's marks; only the text there is replaced or added to.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

import yaml

from winboot.base.errors import InvalidInput

INDENT = 2


def put(text: str, path: Sequence[str], values: Mapping[str, str]) -> str:
    """The text with `values` set in the map at `path`, which is made where it is missing.

    A key that is there gets the new value, others are added behind the last one. Keys and values are written between
    double quotes, so that nothing in them can mean something else. Raises InvalidInput where the path leads through
    something that is not a mapping.
    """
    for key, value in values.items():
        text = _put_one(text, tuple(path), key, _quoted(value))
    return text


def put_reference(text: str, path: Sequence[str], key: str, file: str) -> str:
    """The text with `key: {file: FILE}` in the map at `path`."""
    return _put_one(text, tuple(path), key, f"{{file: {_quoted(file)}}}", quote=False)


def put_empty(text: str, path: Sequence[str], key: str) -> str:
    """The text with `key: {}` in the map at `path`."""
    return _put_one(text, tuple(path), key, "{}")


def drop(text: str, path: Sequence[str], keys: Collection[str]) -> str:
    """The text without these keys of the map at `path`; comments behind them go with them."""
    for key in keys:
        text = _drop_one(text, tuple(path), key)
    return text


def _drop_one(text: str, path: tuple[str, ...], key: str) -> str:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for name in path:
        node = None if node is None else _child(node, name, path)
    if node is None or _is_empty(node):
        return text
    mapping = _as_map(node, path)
    at = next((at for at, (name, _) in enumerate(mapping.value) if name.value == key), None)
    if at is None:
        return text
    if len(mapping.value) == 1:
        return text[: mapping.start_mark.index] + "{}" + text[_end(mapping) :]
    name, value = mapping.value[at]
    start, end = name.start_mark.index, _end(value)
    if not mapping.flow_style:
        # Whole lines; what stands before the first key of a block is its indentation.
        return text[: text.rfind("\n", 0, start) + 1] + text[_line_end(text, end) :]
    if at + 1 < len(mapping.value):
        return text[:start] + text[mapping.value[at + 1][0].start_mark.index :]
    return text[: _end(mapping.value[at - 1][1])] + text[end:]


def _quoted(text: str) -> str:
    """Between double quotes. YAML knows JSON's escapes, but for a character only \\U, not a pair of \\u."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in quoted)


def _put_one(text: str, path: tuple[str, ...], key: str, value: str, *, quote: bool = True) -> str:
    top = yaml.compose(text, Loader=yaml.SafeLoader)
    if top is None:
        return text + _nested(path, _entry(key, value, quote=quote), 0)
    node, depth = top, 0
    owner: yaml.Node | None = None
    while depth < len(path):
        found = _child(node, path[depth], path)
        if found is None:
            break
        owner, node = node, found
        depth += 1
    if _is_empty(node):
        if owner is None:
            start, end = node.start_mark.index, node.end_mark.index
            return text[:start] + _nested(path, _entry(key, value, quote=quote), 0) + text[end:].lstrip("\n")
        entry = _nested(path[depth:], _entry(key, value, quote=quote), owner.start_mark.column + INDENT)
        return _fill(text, node, owner, entry)
    mapping = _as_map(node, path)
    there = None if depth < len(path) else _child(mapping, key, path)
    if there is not None:
        start = there.start_mark.index
        return text[:start] + ("" if text[start - 1] in " \t\r\n" else " ") + value + text[_end(there) :]
    return _append(text, mapping, path[depth:], _entry(key, value, quote=quote))


def _entry(key: str, value: str, *, quote: bool) -> str:
    return f"{_quoted(key) if quote else key}: {value}"


def _nested(path: Sequence[str], entry: str, column: int) -> str:
    """Lines of block style: the maps of the path, and the entry in the last one."""
    lines = [f"{' ' * (column + INDENT * depth)}{name}:" for depth, name in enumerate(path)]
    return "\n".join([*lines, " " * (column + INDENT * len(path)) + entry]) + "\n"


def _as_map(node: yaml.Node, path: Sequence[str]) -> yaml.MappingNode:
    if not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1
        raise InvalidInput(
            f"line {line}: {'.'.join(path)} is not a mapping", hint="Correct the file by hand."
        )
    return node


def _child(node: yaml.Node, key: str, path: Sequence[str]) -> yaml.Node | None:
    if _is_empty(node):
        return None
    for name, value in _as_map(node, path).value:
        if name.value == key:
            assert isinstance(value, yaml.Node)
            return value
    return None


def _is_empty(node: yaml.Node) -> bool:
    """Nothing, `null` or `{}`."""
    if isinstance(node, yaml.MappingNode):
        return not node.value
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _end(node: yaml.Node) -> int:
    """Where the text of a node ends; a block's own end mark stands behind the comments that follow it."""
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _end(node.value[-1])
    return int(node.end_mark.index)


def _line_end(text: str, index: int) -> int:
    """Behind the line in which `index` stands; a block scalar ends at the start of the next line."""
    if index and text[index - 1] == "\n":
        return index
    end = text.find("\n", index)
    return len(text) if end < 0 else end + 1


def _fill(text: str, node: yaml.Node, owner: yaml.Node, entry: str) -> str:
    """Put lines in place of an empty map."""
    start, end = node.start_mark.index, node.end_mark.index
    if getattr(owner, "flow_style", False):
        return text[:start] + "{" + _flow(entry) + "}" + text[end:]
    line = _line_end(text, end)
    head = (text[:start].rstrip(" ") if end > start else text[:start]) + text[end:line]
    return _with_newline(head) + entry + text[line:]


def _append(text: str, node: yaml.MappingNode, path: Sequence[str], entry: str) -> str:
    if node.flow_style:
        inside = entry
        for name in reversed(path):
            inside = f"{name}: {{{inside}}}"
        closing = node.end_mark.index - 1
        # Not all that Python calls space: a no-break space is a value.
        return text[:closing].rstrip(" \t\r\n") + ", " + inside + text[closing:]
    line = _line_end(text, _end(node))
    return _with_newline(text[:line]) + _nested(path, entry, node.start_mark.column) + text[line:]


def _flow(entry: str) -> str:
    parts = [line.strip() for line in entry.splitlines()]
    return " {".join(parts) + "}" * (len(parts) - 1)


def _with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"

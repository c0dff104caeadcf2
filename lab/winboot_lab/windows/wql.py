"""The part of WQL that filters instances: comparisons, LIKE, IS NULL, AND, OR, NOT and parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.door import Plain, Typed

Test = Callable[[dict[str, Plain]], bool]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")|(?P<number>-?\d+)|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<sign><=|>=|<>|!=|=|<|>|\(|\)))"""
)


@dataclass(frozen=True, slots=True)
class Query:
    """`SELECT properties FROM class WHERE test`."""

    class_name: str
    properties: tuple[str, ...]
    test: Test


def parse_query(text: str) -> Query:
    """A whole query."""
    found = re.fullmatch(r"(?is)\s*select\s+(.+?)\s+from\s+(\w+)(?:\s+where\s+(.+?))?\s*", text)
    if found is None:
        raise Refusal("value", text, "a WQL query the lab cannot read")
    names = tuple(n.strip() for n in found.group(1).split(",") if n.strip() != "*")
    test = parse_filter(found.group(3)) if found.group(3) else lambda properties: True
    return Query(found.group(2), names, test)


def parse_filter(text: str) -> Test:
    """A condition as a test on properties; names compare without case."""
    reader = _Reader(text)
    test = reader.any_of()
    if reader.tokens:
        raise Refusal("value", text, "a WQL filter the lab cannot read")
    return lambda properties: test({k.lower(): v for k, v in properties.items()})


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text.rstrip()):
            found = _TOKEN.match(text, position)
            if found is None:
                raise Refusal("value", text, "a WQL filter the lab cannot read")
            kind = found.lastgroup or ""
            self.tokens.append((kind, found.group(kind)))
            position = found.end()

    def _take(self) -> tuple[str, str]:
        if not self.tokens:
            raise Refusal("value", self.text, "a WQL filter that ends too early")
        return self.tokens.pop(0)

    def _is(self, word: str) -> bool:
        return bool(self.tokens) and self.tokens[0][1].lower() == word

    def any_of(self) -> Test:
        left = self.all_of()
        while self._is("or"):
            self._take()
            left = _either(left, self.all_of())
        return left

    def all_of(self) -> Test:
        left = self.one()
        while self._is("and"):
            self._take()
            left = _both(left, self.one())
        return left

    def one(self) -> Test:
        if self._is("not"):
            self._take()
            inner = self.one()
            return lambda p: not inner(p)
        if self._is("("):
            self._take()
            inner = self.any_of()
            if self._take()[1] != ")":
                raise Refusal("value", self.text, "a WQL filter with an open parenthesis")
            return inner
        return self._comparison()

    def _comparison(self) -> Test:
        kind, name = self._take()
        if kind != "word":
            raise Refusal("value", self.text, "a WQL filter the lab cannot read")
        sign = self._take()[1].lower()
        if sign == "is":
            negated = self._is("not")
            if negated:
                self._take()
            self._take()
            return lambda p: (_need(p, name) is None) != negated
        wanted = _literal(*self._take())
        return lambda p: _compare(_need(p, name), sign, wanted)


def _either(first: Test, second: Test) -> Test:
    return lambda p: first(p) or second(p)


def _both(first: Test, second: Test) -> Test:
    return lambda p: first(p) and second(p)


def _need(properties: dict[str, Plain], name: str) -> Plain:
    if name.lower() not in properties:
        raise Refusal("member", name, "a property in a WQL filter")
    return properties[name.lower()]


def _literal(kind: str, text: str) -> str | int | bool:
    if kind == "number":
        return int(text)
    if kind == "text":
        return re.sub(r"\\(.)", r"\1", text[1:-1].replace("''", "'"))
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise Refusal("value", text, "a literal in a WQL filter")


def _compare(value: Plain, sign: str, wanted: str | int | bool) -> bool:
    if isinstance(value, Typed):
        value = value.text if value.text is not None and isinstance(wanted, str) else value.value
    if value is None:
        return False
    if sign == "like":
        pattern = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in str(wanted))
        return re.fullmatch(pattern, str(value), re.IGNORECASE | re.DOTALL) is not None
    left: str | int
    right: str | int
    if isinstance(wanted, str):
        left, right = str(value).lower(), wanted.lower()
    elif isinstance(value, bool | int | float | str):
        left, right = int(value), int(wanted)
    else:
        raise Refusal("value", sign, "a comparison in a WQL filter")
    match sign:
        case "=":
            return left == right
        case "<>" | "!=":
            return left != right
        case "<":
            return left < right  # type: ignore[operator]
        case ">":
            return left > right  # type: ignore[operator]
        case "<=":
            return left <= right  # type: ignore[operator]
        case ">=":
            return left >= right  # type: ignore[operator]
    raise Refusal("operator", sign, "in a WQL filter")

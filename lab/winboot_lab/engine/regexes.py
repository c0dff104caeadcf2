""".NET regular expressions on Python's `re`: one translation, and the values Regex, Match, Group.

What `re` cannot do (right-to-left, balancing groups, lookbehind of open width ...) is refused by name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

from winboot_lab.engine.exceptions import ArgumentException
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import Instance

IGNORE_CASE, MULTILINE, EXPLICIT_CAPTURE, COMPILED, SINGLELINE, IGNORE_WHITESPACE = 1, 2, 4, 8, 16, 32
RIGHT_TO_LEFT, ECMA_SCRIPT, CULTURE_INVARIANT = 64, 256, 512


class Translation:
    """A pattern as Python reads it, with the numbers and names that .NET gives its groups."""

    def __init__(self, pattern: str, options: int) -> None:
        self.pattern = pattern
        self.options = options
        self.position = 0
        self.out: list[str] = []
        self.kinds: list[str | None] = []  # per Python group: its name, or None
        self.repeated: set[int] = set()
        self.scopes: list[_Scope] = [_Scope(options, None)]
        self._run()
        unnamed = [number for number, name in enumerate(self.kinds, 1) if name is None]
        named = [number for number, name in enumerate(self.kinds, 1) if name is not None]
        self.order = [0, *unnamed, *named]
        """Python group numbers in .NET's order: unnamed groups first, then the named ones."""

    # -- reading

    def _peek(self, length: int = 1) -> str:
        return self.pattern[self.position : self.position + length]

    def _take(self, length: int = 1) -> str:
        text = self.pattern[self.position : self.position + length]
        self.position += length
        return text

    def _run(self) -> None:
        while self.position < len(self.pattern):
            self._token()
        scope = self.scopes.pop()
        if self.scopes:
            raise self.error("Not enough )'s.")
        self.out.append(")" * scope.inline)

    def error(self, reason: str) -> ArgumentException:
        """.NET Framework's complaint about a pattern."""
        return ArgumentException(f'parsing "{self.pattern}" - {reason}')

    @property
    def flags(self) -> int:
        return self.scopes[-1].options

    def _token(self) -> None:
        letter = self._peek()
        if self.flags & IGNORE_WHITESPACE and self._skip_blank(letter):
            return
        if letter == "(":
            self._open()
        elif letter == ")":
            self._close()
        elif letter == "|":
            self._take()
            scope = self.scopes[-1]
            self.out.append(")" * scope.inline + "|" + "".join(scope.reopen))
            scope.quantifiable = False
        elif letter == "[":
            self.out.append(self._set())
            self.scopes[-1].quantifiable = True
        elif letter == "\\":
            self._escape()
        elif letter in "*+?{":
            self._quantifier(letter)
        else:
            self._take()
            self.out.append(letter if letter in ".^$" else re.escape(letter))
            self.scopes[-1].quantifiable = True

    def _skip_blank(self, letter: str) -> bool:
        if letter.isspace():
            self._take()
            return True
        if letter == "#":
            end = self.pattern.find("\n", self.position)
            self.position = len(self.pattern) if end < 0 else end + 1
            return True
        return False

    # -- groups

    def _open(self) -> None:
        start = len(self.out)
        if self._peek(3) == "(?#":
            end = self.pattern.find(")", self.position)
            if end < 0:
                raise self.error("Unterminated (?#...) comment.")
            self.position = end + 1
            return
        if self._peek(2) != "(?":
            self._take()
            explicit = bool(self.flags & EXPLICIT_CAPTURE)
            self._push("(?:" if explicit else "(", None if explicit else self._number(None), start)
            return
        for opening in ("(?<=", "(?<!", "(?:", "(?=", "(?!", "(?>"):
            if self._peek(len(opening)) == opening:
                self._take(len(opening))
                self._push(opening, None, start)
                return
        named = re.compile(r"\(\?(?:<(?P<a>[^>]*)>|'(?P<q>[^']*)')").match(self.pattern, self.position)
        if named is not None:
            name = named.group("a") if named.group("a") is not None else named.group("q")
            self._open_named(name, named.end(), start)
            return
        self._inline_options(start)

    def _open_named(self, name: str, end: int, start: int) -> None:
        if not re.fullmatch(r"\w+", name) or name[0].isdigit():
            raise Refusal("value", self.pattern, "balancing or numbered group in a regular expression")
        if name in self.kinds:
            raise Refusal("value", self.pattern, "two groups of one name in a regular expression")
        self.position = end
        self._push(f"(?P<{name}>", self._number(name), start)

    def _number(self, name: str | None) -> int:
        self.kinds.append(name)
        return len(self.kinds)

    def _push(self, text: str, group: int | None, start: int) -> None:
        self.out.append(text)
        self.scopes.append(_Scope(self.flags, group, start, len(self.kinds)))

    def _inline_options(self, start: int) -> None:
        match = re.compile(r"\(\?([imnsx]*)(?:-([imnsx]*))?([:)])", re.IGNORECASE).match(
            self.pattern, self.position
        )
        if match is None:
            if self._peek(3) == "(?(":
                raise Refusal("value", self.pattern, "conditional in a regular expression")
            raise self.error("Unrecognized grouping construct.")
        self.position = match.end()
        options = self.flags
        for letter in match.group(1).lower():
            options |= _INLINE[letter]
        for letter in (match.group(2) or "").lower():
            options &= ~_INLINE[letter]
        opening = _flag_group(self.flags, options)
        if match.group(3) == ":":
            self.out.append(opening)
            self.scopes.append(_Scope(options, None, start, len(self.kinds)))
            return
        scope = self.scopes[-1]
        scope.options = options
        if opening != "(?:":
            scope.inline += 1
            scope.reopen.append(opening)
            self.out.append(opening)
        scope.quantifiable = False

    def _close(self) -> None:
        self._take()
        if len(self.scopes) == 1:
            raise self.error("Too many )'s.")
        scope = self.scopes.pop()
        self.out.append(")" * (scope.inline + 1))
        self.scopes[-1].quantifiable = True
        self.scopes[-1].last_groups = range(scope.groups_before + (scope.group is None), len(self.kinds) + 1)

    # -- atoms

    def _quantifier(self, letter: str) -> None:
        scope = self.scopes[-1]
        if letter == "{":
            counts = re.compile(r"\{\d+(,\d*)?\}").match(self.pattern, self.position)
            if counts is None:
                self._take()
                self.out.append(r"\{")
                scope.quantifiable = True
                return
            text = counts.group()
        else:
            text = letter
        if not scope.quantifiable:
            previous = self.pattern[self.position - 1 : self.position]
            if previous and previous in "*+?}":
                raise self.error(f"Nested quantifier {letter}.")
            raise self.error("Quantifier {x,y} following nothing.")
        self._take(len(text))
        if self._peek() == "?":
            text += self._take()
        self.out.append(text)
        scope.quantifiable = False
        if text[0] != "?":
            self.repeated.update(scope.last_groups)
        scope.last_groups = range(0)

    def _escape(self) -> None:
        self._take()
        self.scopes[-1].quantifiable = True
        self.scopes[-1].last_groups = range(0)
        letter = self._take()
        if not letter:
            raise self.error("Illegal \\ at end of pattern.")
        if letter in "Ab":
            self.out.append("\\" + letter)
        elif letter == "B":
            self.out.append("\\B")
        elif letter == "Z":
            self.out.append(r"(?=\n?\Z)")
        elif letter == "z":
            self.out.append(r"\Z")
        elif letter == "G":
            raise Refusal("value", self.pattern, r"\G in a regular expression")
        elif letter in "k<'":
            self._named_reference(letter)
        elif letter in "123456789":
            self._numbered_reference(letter)
        else:
            text = self._character_escape(letter)
            self.out.append(f"[{text}]" if letter in "pP" else text)

    def _named_reference(self, letter: str) -> None:
        start = self.position if letter == "k" else self.position - 1
        match = re.compile(r"<(\w+)>|'(\w+)'").match(self.pattern, start)
        if match is None:
            raise self.error("Malformed \\k<...> named back reference.")
        name = match.group(1) or match.group(2)
        self.position = match.end()
        if name.isdigit():
            self.out.append(f"(?:\\{name})")
            return
        if name not in self.kinds:
            raise self.error(f"Reference to undefined group name {name}.")
        self.out.append(f"(?P={name})")

    def _numbered_reference(self, letter: str) -> None:
        unnamed = [number for number, name in enumerate(self.kinds, 1) if name is None]
        digits = letter
        while self._peek().isdigit() and int(digits + self._peek()) <= len(unnamed):
            digits += self._take()
        if int(digits) > len(unnamed):
            raise self.error(f"Reference to undefined group number {digits}.")
        self.out.append(f"(?:\\{unnamed[int(digits) - 1]})")

    def _character_escape(self, letter: str) -> str:
        """The text of one escaped character or class, as it may stand inside or outside a set."""
        if letter in "dDsSw":
            return "\\" + letter
        if letter == "W":
            return "\\W"
        if letter in _CONTROL:
            return _CONTROL[letter]
        if letter in "pP":
            return self._category(letter == "P")
        if letter == "x":
            return re.escape(chr(int(self._digits(2), 16)))
        if letter == "u":
            return re.escape(chr(int(self._digits(4), 16)))
        if letter == "c":
            return re.escape(chr(ord(self._take().upper()) - 64))
        if letter == "0":
            digits = "0"
            while len(digits) < 3 and self._peek() in tuple("01234567"):
                digits += self._take()
            return re.escape(chr(int(digits, 8)))
        if letter.isalnum() or letter == "_":
            raise self.error(f"Unrecognized escape sequence \\{letter}.")
        return re.escape(letter)

    def _digits(self, count: int) -> str:
        digits = self._take(count)
        if re.fullmatch(rf"[0-9a-fA-F]{{{count}}}", digits) is None:
            raise self.error("Insufficient hexadecimal digits.")
        return digits

    def _category(self, negated: bool) -> str:
        match = re.compile(r"\{([^}]*)\}").match(self.pattern, self.position)
        if match is None:
            raise self.error("Malformed \\p{X} character escape.")
        self.position = match.end()
        return category_ranges(match.group(1), negated)

    # -- sets

    def _set(self) -> str:
        self._take()
        negated = self._peek() == "^"
        if negated:
            self._take()
        parts: list[str] = []
        subtracted = ""
        first = True
        while True:
            letter = self._peek()
            if not letter:
                raise self.error("Unterminated [] set.")
            if letter == "]" and not first:
                self._take()
                break
            if letter == "-" and self._peek(2) == "-[" and not first:
                self._take()
                subtracted = self._set()
                continue
            first = False
            parts.append(self._set_item())
        text = "".join(parts)
        body = f"[{'^' if negated else ''}{text}]"
        return f"(?:(?!{subtracted}){body})" if subtracted else body

    def _set_item(self) -> str:
        low, single = self._set_character()
        if self._peek() == "-" and self._peek(2) not in ("-]", "-[") and len(self._peek(2)) == 2 and single:
            self._take()
            high, also_single = self._set_character()
            if not also_single:
                raise self.error("Cannot include class in character range.")
            if _character(low) > _character(high):
                raise self.error("[x-y] range in reverse order.")
            return f"{low}-{high}"
        return low

    def _set_character(self) -> tuple[str, bool]:
        letter = self._take()
        if letter != "\\":
            return (re.escape(letter) if letter not in "&~|[^-]" else "\\" + letter), True
        letter = self._take()
        if not letter:
            raise self.error("Unterminated [] set.")
        if letter == "b":
            return r"\x08", True
        return self._character_escape(letter), letter not in "dDsSwWpP"


def _character(text: str) -> str:
    if text.startswith("\\x"):
        return chr(int(text[2:], 16))
    return {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\f": "\f", "\\v": "\v"}.get(text, text[-1])


class _Scope:
    """An open parenthesis: its options, the inline option groups to close with it, what may be repeated."""

    def __init__(self, options: int, group: int | None, start: int = 0, groups_before: int = 0) -> None:
        self.options = options
        self.group = group
        self.start = start
        self.groups_before = groups_before if group is None else group
        self.inline = 0
        self.reopen: list[str] = []
        self.quantifiable = False
        self.last_groups = range(0)


_INLINE = {
    "i": IGNORE_CASE,
    "m": MULTILINE,
    "n": EXPLICIT_CAPTURE,
    "s": SINGLELINE,
    "x": IGNORE_WHITESPACE,
}
_PYTHON_FLAGS = ((IGNORE_CASE, "i"), (MULTILINE, "m"), (SINGLELINE, "s"))
_CONTROL = {
    "a": r"\x07",
    "e": r"\x1b",
    "f": r"\f",
    "n": r"\n",
    "r": r"\r",
    "t": r"\t",
    "v": r"\v",
}


def _flag_group(before: int, after: int) -> str:
    on = "".join(letter for bit, letter in _PYTHON_FLAGS if after & bit and not before & bit)
    off = "".join(letter for bit, letter in _PYTHON_FLAGS if before & bit and not after & bit)
    if "m" in off or "s" in off:
        raise Refusal("value", f"(?-{off})", "switching off this option inside a regular expression")
    return f"(?{on}{'-' + off if off else ''}:"


@lru_cache(maxsize=64)
def category_ranges(name: str, negated: bool) -> str:
    r"""The characters of a Unicode category (`L`, `Lu`, `Nd`), as text for the inside of a set; BMP only."""
    if name.startswith("Is") or not re.fullmatch(r"[A-Z][a-z]?", name):
        raise Refusal("value", name, "Unicode block in a regular expression")
    ranges: list[str] = []
    start: int | None = None
    for number in range(0x10001):
        inside = number < 0x10000 and unicodedata.category(chr(number)).startswith(name) != negated
        if inside and start is None:
            start = number
        elif not inside and start is not None:
            ranges.append(f"\\u{start:04x}-\\u{number - 1:04x}")
            start = None
    return "".join(ranges)


class Regex(Instance):
    """System.Text.RegularExpressions.Regex."""

    def __init__(self, pattern: str, options: int = 0) -> None:
        if options & RIGHT_TO_LEFT:
            raise Refusal("value", "RightToLeft", "regular expression option")
        self.pattern = pattern
        self.options = options
        translation = Translation(pattern, options)
        flags = 0
        for bit, flag in ((IGNORE_CASE, re.IGNORECASE), (MULTILINE, re.MULTILINE), (SINGLELINE, re.DOTALL)):
            if options & bit:
                flags |= flag
        if options & ECMA_SCRIPT:
            flags |= re.ASCII
        try:
            self.compiled = re.compile("".join(translation.out), flags)
        except re.error as problem:
            raise Refusal("value", pattern, f"regular expression: {problem}") from problem
        self.order = translation.order
        self.repeated = translation.repeated
        kinds = ["0", *translation.kinds]
        self.names = [kinds[python] or str(number) for number, python in enumerate(self.order)]

    def search(self, text: str, start: int = 0) -> Match:
        """The first match from a position on; without one a Match without success."""
        return Match(self, text, self.compiled.search(text, start))

    def matches(self, text: str, start: int = 0) -> Iterator[Match]:
        """All matches from left to right."""
        for found in self.compiled.finditer(text, start):
            yield Match(self, text, found)

    def replace(
        self, text: str, replacement: str | Callable[[Match], str], count: int = -1, start: int = 0
    ) -> str:
        """Replace matches by a replacement pattern (`$1`, `${name}`) or by what a function answers."""
        make = replacement if callable(replacement) else _expander(replacement)
        out: list[str] = []
        position = 0
        for found in self.compiled.finditer(text, start):
            if count == 0:
                break
            count -= 1
            out.append(text[position : found.start()])
            out.append(make(Match(self, text, found)))
            position = found.end()
        out.append(text[position:])
        return "".join(out)

    def split(self, text: str, count: int = 0, start: int = 0) -> list[str]:
        """Split at the matches, keeping captured groups; `count` is the number of pieces at most."""
        pieces: list[str] = []
        position = 0
        if count == 1:
            return [text]
        for found in self.compiled.finditer(text, start):
            pieces.append(text[position : found.start()])
            position = found.end()
            pieces.extend(found.group(python) for python in self.order[1:] if found.group(python) is not None)
            count -= 1
            if count == 1:
                break
        pieces.append(text[position:])
        return pieces

    def group_number(self, name: str) -> int | None:
        """The .NET number of a group by name or digits, or None."""
        return self.names.index(name) if name in self.names else None

    def __str__(self) -> str:
        return self.pattern


class Group(Instance):
    """One group of a match (or the match itself: number 0)."""

    def __init__(self, match: Match, number: int) -> None:
        self.match = match
        self.number = number
        found = match.found
        python = match.regex.order[number] if number < len(match.regex.order) else None
        span = found.span(python) if found is not None and python is not None else (-1, -1)
        self.success = span[0] >= 0
        self.index = span[0] if self.success else 0
        self.value = match.text[span[0] : span[1]] if self.success else ""

    @property
    def name(self) -> str:
        names = self.match.regex.names
        return names[self.number] if self.number < len(names) else str(self.number)

    def __str__(self) -> str:
        return self.value


class Match(Group):
    """A match; `found` is Python's match object or None."""

    def __init__(self, regex: Regex, text: str, found: re.Match[str] | None) -> None:
        self.regex = regex
        self.text = text
        self.found = found
        super().__init__(self, 0)

    def groups(self) -> list[Group]:
        """All groups, the whole match first (it alone when the match failed)."""
        if self.found is None:
            return [self]
        return [self, *(Group(self, number) for number in range(1, len(self.regex.order)))]

    def next(self) -> Match:
        """The match after this one."""
        if self.found is None:
            return self
        start = self.found.end()
        for found in self.regex.compiled.finditer(self.text, self.found.start()):
            if found.start() >= start and found.span() != self.found.span():
                return Match(self.regex, self.text, found)
        return Match(self.regex, self.text, None)


_SUBSTITUTION = re.compile(r"\$(?:(\$)|(&)|(`)|(')|(\+)|(_)|(\d+)|\{(\w+)\})")


def _expander(replacement: str) -> Callable[[Match], str]:
    if "$" not in replacement:
        return lambda match: replacement

    def expand(match: Match) -> str:
        return _SUBSTITUTION.sub(lambda item: _substitute(item, match), replacement)

    return expand


def _substitute(item: re.Match[str], match: Match) -> str:
    dollar, whole, before, after, last, everything, number, name = item.groups()
    if dollar:
        return "$"
    if whole:
        return match.value
    if before:
        return match.text[: match.index]
    if after:
        return match.text[match.index + len(match.value) :]
    if everything:
        return match.text
    if last:
        return match.groups()[-1].value
    if number is not None:
        return _numbered(number, match)
    found = match.regex.group_number(name)
    if found is None:
        return item.group()
    return Group(match, found).value


def _numbered(digits: str, match: Match) -> str:
    """`$12` is group 12, or just this text when there is no such group: all digits count."""
    number = int(digits)
    return Group(match, number).value if number < len(match.regex.order) else "$" + digits


@lru_cache(maxsize=512)
def regex(pattern: str, options: int = 0) -> Regex:
    """A Regex, made once for each pattern and options. Raises ArgumentException for a malformed pattern."""
    return Regex(pattern, options)


def escape(text: str) -> str:
    """Regex.Escape."""
    table = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    return "".join(
        table.get(letter) or ("\\" + letter if letter in "\\*+?|{[()^$.# " else letter) for letter in text
    )


def unescape(text: str) -> str:
    """Regex.Unescape."""
    simple = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}

    def put(match: re.Match[str]) -> str:
        body = match.group(1)
        if body[0] in "xu" and len(body) > 1:
            return chr(int(body[1:], 16))
        return simple.get(body, body)

    return re.sub(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)", put, text, flags=re.DOTALL)

"""PowerShell's wildcard patterns: `*`, `?`, `[a-c]`, and the backtick that takes a meaning away."""

from __future__ import annotations

import re
from functools import lru_cache

from winboot_lab.engine.exceptions import RuntimeException, declare_exception

WildcardPatternException = declare_exception(
    "System.Management.Automation.WildcardPatternException", RuntimeException
)
_SPECIAL = "*?[]"


@lru_cache(maxsize=1024)
def compile_wildcard(pattern: str, *, ignore_case: bool = True) -> re.Pattern[str]:
    """The pattern as a regular expression for `fullmatch`. Raises WildcardPatternException."""
    out: list[str] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        position += 1
        if letter == "*":
            out.append(".*")
        elif letter == "?":
            out.append(".")
        elif letter == "`" and position < len(pattern):
            out.append(re.escape(pattern[position]))
            position += 1
        elif letter == "[":
            text, position = _set(pattern, position)
            out.append(text)
        else:
            out.append(re.escape(letter))
    return re.compile("".join(out), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _set(pattern: str, position: int) -> tuple[str, int]:
    members: list[tuple[str, bool]] = []
    while True:
        if position >= len(pattern):
            raise WildcardPatternException(
                f"The specified wildcard character pattern is not valid: {pattern}"
            )
        letter = pattern[position]
        position += 1
        if letter == "]" and members:
            break
        if letter == "`" and position < len(pattern):
            members.append((pattern[position], False))
            position += 1
        else:
            members.append((letter, letter == "-"))
    return _set_text(members), position


def _set_text(members: list[tuple[str, bool]]) -> str:
    parts: list[str] = []
    index = 0
    while index < len(members):
        low = members[index][0]
        if index + 2 < len(members) and members[index + 1][1]:
            high = members[index + 2][0]
            parts.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
            index += 3
        else:
            parts.append("\\" + low if low in "^-]&~|[\\" else re.escape(low))
            index += 1
    body = "".join(parts)
    return f"[{body}]" if body else "(?!)"


def like(text: str, pattern: str, *, ignore_case: bool = True) -> bool:
    """Does the whole text fit the pattern?"""
    return compile_wildcard(pattern, ignore_case=ignore_case).fullmatch(text) is not None


def has_wildcards(text: str) -> bool:
    """Is there a wildcard that no backtick takes back?"""
    skip = False
    for letter in text:
        if skip:
            skip = False
        elif letter == "`":
            skip = True
        elif letter in _SPECIAL:
            return True
    return False


def unescape_wildcards(text: str) -> str:
    """WildcardPattern.Unescape."""
    return re.sub(r"`([*?\[\]`])", r"\1", text)


def fits_pattern(name: str, pattern: str) -> bool:
    """Does a name fit a search pattern of System.IO?"""
    if pattern in ("*", "*.*"):
        return True
    if "[" in pattern:
        pattern = pattern.replace("[", "`[").replace("]", "`]")
    return like(name, pattern) or (pattern.endswith(".*") and "." not in name and like(name, pattern[:-2]))

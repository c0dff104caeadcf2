"""Command lines as Go programs read them: pflag (Kubernetes), the standard flag package (flanneld, runner), urfave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from winboot_lab.programs.base import GoError

TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})

# What kind a flag is: "bool" needs no value; None means the program does not know it.
KindOf = Callable[[str], str | None]


@dataclass(slots=True)
class Flags:
    """Flags by name, each with all its values in order, and the words that are no flags."""

    values: dict[str, list[str]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def text(self, name: str, default: str = "") -> str:
        """The last value given."""
        return self.values[name][-1] if name in self.values else default

    def list(self, name: str) -> list[str]:
        """All values, each split at commas."""
        return [part for value in self.values.get(name, []) for part in value.split(",") if part]

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean."""
        return self.text(name) in TRUE if name in self.values else default

    def __contains__(self, name: object) -> bool:
        return name in self.values


def pflags(arguments: Sequence[str], kind_of: KindOf) -> Flags:
    """Read `--name=value`, `--name value`, `--switch`; an unknown name is pflag's error."""
    found = Flags()
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            found.words += words
            break
        if not word.startswith("-") or word == "-":
            found.words.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        kind = kind_of(name)
        if kind is None:
            raise GoError(f"unknown flag: --{name}" if word.startswith("--") else _shorthand(word))
        if not equals:
            if kind == "bool":
                value = "true"
            elif words:
                value = words.pop(0)
            else:
                raise GoError(f"flag needs an argument: --{name}")
        if kind == "bool" and value not in TRUE | FALSE:
            raise GoError(
                f'invalid argument "{value}" for "--{name}" flag: strconv.ParseBool: parsing "{value}": invalid syntax'
            )
        found.values.setdefault(name, []).append(value)
    return found


def _shorthand(word: str) -> str:
    return f"unknown shorthand flag: {word[1:2]!r} in {word}"


def goflags(arguments: Sequence[str], kinds: dict[str, str]) -> Flags:
    """Read flags as Go's own package does: `-name` and `--name` are alike, the first word ends them."""
    found = Flags()
    words = list(arguments)
    while words and words[0].startswith("-") and words[0] not in ("-", "--"):
        name, equals, value = words.pop(0).lstrip("-").partition("=")
        kind = kinds.get(name)
        if kind is None:
            raise GoError(f"flag provided but not defined: -{name}")
        if not equals:
            if kind == "bool":
                value = "true"
            elif words:
                value = words.pop(0)
            else:
                raise GoError(f"flag needs an argument: -{name}")
        if kind == "bool" and value not in TRUE | FALSE:
            raise GoError(f'invalid boolean value "{value}" for -{name}: parse error')
        found.values.setdefault(name, []).append(value)
    found.words = words
    return found

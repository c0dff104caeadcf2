"""`--limit`: which hosts a pattern means, as Ansible reads it
(docs.ansible.com/ansible/latest/inventory_guide/intro_patterns.html).

    win-7   rack-a   all   win-*   win-[12]   a:b (both)   a:!b (a without b)   a:&b (what is in both)   ~win-[0-9]+

Commas separate, too. First come all plain words, then those with &, then those with !, in whichever order they stand; without a
plain word all hosts are meant.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from winboot.base.errors import UsageError
from winboot.config.source import nearest

ALL: Final = frozenset({"all", "*"})
# A colon within brackets belongs to a pattern.
_COLON: Final = re.compile(r":(?![^\[]*\])")
_GLOB: Final = re.compile(r"[*?\[]")
# Names that an error lists.
NAMED: Final = 12


def chosen(hosts: Mapping[str, Sequence[str]], limit: Sequence[str]) -> set[str]:
    """The hosts that the words of `--limit` mean; `hosts` has the groups of each. All of them without `--limit`.

    Raises UsageError for a word that means nothing, an invalid pattern, and where no host is left.
    """
    words = [word for text in limit for word in _split(text)]
    if not limit:
        return set(hosts)
    for word in words or [""]:
        if not word.lstrip("&!~"):
            # An empty variable, or a file of last night's failures that has none: never all hosts.
            said = word if words else ",".join(limit)
            raise UsageError(f"--limit {said!r} names no host", hint="`all` means all of them.")
    plain = [word for word in words if word[0] not in "&!"]
    found = set().union(*(_meant(word, hosts) for word in plain)) if plain else set(hosts)
    for word in words:
        if word[0] == "&":
            found &= _meant(word[1:], hosts)
    for word in words:
        if word[0] == "!":
            # Nothing is harmed by leaving out what is not there, but by a name that is spelled wrong.
            found -= _meant(word[1:], hosts, may_be_empty=True)
    if not found:
        raise UsageError(
            f"--limit {','.join(limit)}: no host is left", hint="`winboot inventory` lists hosts and groups."
        )
    return found


def _split(text: str) -> list[str]:
    """The words between commas and colons; a regular expression reaches to the next comma, and may begin behind & or !."""
    words: list[str] = []
    for part in text.split(","):
        part = part.strip()
        if part.startswith("@"):
            words += _from_file(Path(part[1:]))
        elif part.lstrip("&!").startswith("~"):
            words.append(part)
        else:
            words += [word.strip() for word in _COLON.split(part)]
    return [word for word in words if word]


def _from_file(path: Path) -> list[str]:
    """@FILE: a word a line."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(
                f"--limit @{path}: it is not a file", hint="Name a file that has a pattern a line."
            )
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"--limit @{path}: the file is not UTF-8", hint="Save it as UTF-8.") from error
    except OSError as error:
        raise UsageError(
            f"--limit @{path}: the file cannot be read: {error.strerror}", hint="Name another file."
        ) from error
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _meant(word: str, hosts: Mapping[str, Sequence[str]], *, may_be_empty: bool = False) -> set[str]:
    """The hosts that are called so, or are in a group that is."""
    if word in ALL:
        return set(hosts)
    if word.startswith("~"):
        matches = _regular(word)
    elif _GLOB.search(word):

        def matches(name: str) -> bool:
            return fnmatch.fnmatchcase(name, word)
    else:

        def matches(name: str) -> bool:
            return name == word

    found = {name for name, groups in hosts.items() if any(map(matches, (name, *groups)))}
    if found or (may_be_empty and (word.startswith("~") or _GLOB.search(word))):
        return found
    raise _unknown(word, {*hosts, *(group for groups in hosts.values() for group in groups)})


def _regular(word: str) -> Callable[[str], bool]:
    try:
        pattern = re.compile(word[1:])
    except re.error as error:
        raise UsageError(
            f"--limit {word}: not a regular expression ({error})", hint="For example ~win-[0-9]+"
        ) from error
    return lambda name: pattern.match(name) is not None


def _unknown(word: str, known: Iterable[str]) -> UsageError:
    if word.startswith("~") or _GLOB.search(word):
        return UsageError(
            f"--limit {word}: no host or group matches", hint="`winboot inventory` lists hosts and groups."
        )
    names = sorted(set(known))
    meant = nearest(word, names)
    hint = f"Did you mean {meant!r}?" if meant else _listed(names)
    return UsageError(f"--limit {word}: no such host or group", hint=hint)


def _listed(names: list[str]) -> str:
    """The hosts and groups of the inventory; of many the first ones."""
    more = f" and {len(names) - NAMED} more (`winboot inventory`)" if len(names) > NAMED else ""
    return f"The inventory has {', '.join(names[:NAMED])}{more}."

"""docs/lab-language.md: the part of PowerShell and .NET that the lab runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from winboot_lab.language import dialect

_HEAD: Final = """\
# The lab's PowerShell

The lab runs Windows PowerShell 5.1 as far as this page lists it. It refuses every other cmdlet, parameter, type and
member by name, and the run ends there: a `try` of the script does not catch a refusal.

This page is made from `lab/winboot_lab/language/data/cmdlets.txt` and `types.txt` (`make golden`). A cmdlet, type or
member that a script needs is added there and in the engine; a test compares the two.

## Cmdlets

Every cmdlet also takes the common parameters.

| cmdlet | parameters |
| --- | --- |
"""

_TYPES: Final = """
## Types

Constructors are listed by their number of arguments; `2+` means two or more.

| type | members | static members | new |
| --- | --- | --- | --- |
"""

_NAMES: Final = """
## Types without members

Enums, and types that only name a value: """


def dialect_page() -> str:
    """docs/lab-language.md."""
    cmdlets = "".join(f"| {name} | {' '.join(has)} |\n" for name, has in dialect.cmdlets().items())
    return _HEAD + cmdlets + _TYPES + "".join(_rows()) + _NAMES + ", ".join(_bare()) + ".\n"


def _rows() -> Iterator[str]:
    for facts in dialect.types().values():
        if not _is_bare(facts):
            columns = (facts.members, facts.statics, facts.constructors)
            yield f"| {_name(facts)} | {' | '.join(' '.join(words) for words in columns)} |\n"


def _bare() -> Iterator[str]:
    return (_name(facts) for facts in dialect.types().values() if _is_bare(facts))


def _is_bare(facts: dialect.TypeFacts) -> bool:
    return not (facts.members or facts.statics or facts.constructors)


def _name(facts: dialect.TypeFacts) -> str:
    return f"`{facts.name.replace('`', '-')}`"

"""Get-, Set-, New-, Clear- and Remove-Variable."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.exceptions import (
    ItemNotFoundException,
    PSArgumentException,
    PSArgumentOutOfRangeException,
)
from winboot_lab.engine.scopes import Scope, Variable
from winboot_lab.engine.values import EnumValue
from winboot_lab.engine.wildcards import has_wildcards, like

Value = Any


def scope_of(call: Call, name: Value) -> Scope:
    """The scope that -Scope names: Global, Script, Local, Private or a number of levels out."""
    if name is None:
        return call.scope
    text = call.text(name).lower()
    if text in ("global", "script", "local", "private"):
        return call.scope.named(text)
    if not text.isdigit():
        call.fail(
            PSArgumentException(f"The scope number '{text}' is not a valid scope.", parameter="scopeID"),
            "Argument",
            "InvalidArgument",
            name,
        )
    found = call.scope.above(int(text))
    if found is None:
        call.fail(
            PSArgumentOutOfRangeException(
                "scopeID", f"The scope number '{text}' exceeds the number of active scopes."
            ),
            "ArgumentOutOfRange",
            "InvalidArgument",
            int(text),
        )
    return found


def visible(scope: Scope, *, only: bool) -> dict[str, Variable]:
    """The variables that can be seen from a scope, or only those in it."""
    found: dict[str, Variable] = {}
    for number, step in enumerate(scope.chain()):
        for key, variable in step.variables.items():
            if not (variable.private and number):
                found.setdefault(key, variable)
        if only:
            break
    return found


def matching(call: Call, patterns: list[str], *, what: str) -> list[tuple[str, Variable]]:
    """The variables the patterns name; a plain name that is missing is reported."""
    scope = scope_of(call, call["Scope"])
    known = visible(scope, only=call.has("Scope"))
    found: list[tuple[str, Variable]] = []
    for pattern in patterns:
        hits = [(key, variable) for key, variable in known.items() if like(variable.name, pattern)]
        if not hits and not has_wildcards(pattern):
            missing(call, pattern)
        found.extend(sorted(hits))
    excluded = call.items("Exclude")
    return [entry for entry in found if not any(like(entry[1].name, pattern) for pattern in excluded)]


def missing(call: Call, name: str) -> None:
    """Report a variable that is not there."""
    call.error(
        ItemNotFoundException(
            f"Cannot find a variable with the name '{name}'.", "VariableNotFound", "ObjectNotFound", name
        ),
        "VariableNotFound",
        "ObjectNotFound",
        name,
    )


def _options(call: Call, variable: Variable) -> None:
    if call.has("Option"):
        option = call["Option"]
        assert isinstance(option, EnumValue)
        names = frozenset(part.strip() for part in str(option).split(",")) - {"None"}
        variable.options = names
        if "AllScope" in names:
            call.session.shared[variable.name.lower()] = variable
        variable.private = "Private" in names
    if call.has("Description"):
        variable.description = call["Description"]

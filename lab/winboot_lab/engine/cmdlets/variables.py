"""Get-, Set-, New-, Clear- and Remove-Variable."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.exceptions import (
    ItemNotFoundException,
    PSArgumentException,
    PSArgumentOutOfRangeException,
    SessionStateException,
    SessionStateUnauthorizedAccessException,
)
from winboot_lab.engine.objects import PSVariable
from winboot_lab.engine.scopes import ComputedVariable, Scope, Variable, not_writable
from winboot_lab.engine.values import NOTHING, Array, EnumValue
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


@cmdlet(
    "Get-Variable",
    """
    Name: string[] position=0 value name
    ValueOnly: switch
    Include: string[] refused
    Exclude: string[]
    Scope: string
    """,
)
def get_variable(call: Call) -> None:
    for _, variable in matching(call, call.items("Name") or ["*"], what="Get"):
        if call.flag("ValueOnly"):
            value = variable.value
            if value is NOTHING:
                value = None
            call.write(value)
        else:
            call.write(PSVariable(variable))


@cmdlet(
    "Set-Variable",
    """
    Name: string[] mandatory position=0 name
    Value: object position=1 value name
    Include: string[] refused
    Exclude: string[] refused
    Description: string
    Option: System.Management.Automation.ScopedItemOptions
    Force: switch
    Visibility: object refused
    PassThru: switch
    Scope: string
    """,
    should_process=True,
)
class SetVariable:
    """Set variables, in this scope or a named one; pipeline input becomes an array."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.collected: list[Value] = []

    def process(self) -> None:
        if self.call.expects_input and "value" in self.call.bound:
            self.collected.append(self.call["Value"])

    def end(self) -> None:
        call = self.call
        value = call["Value"] if call.has("Value") else NOTHING
        if call.expects_input and not call.has("Value") and not self.collected:
            value = None
        elif self.collected:
            value = self.collected[0] if len(self.collected) == 1 else Array(self.collected)
        for name in call.items("Name"):
            for plain_name in self._names(name):
                variable = self._set(plain_name, value)
                if variable is not None and call.flag("PassThru"):
                    call.write(PSVariable(variable))

    def _names(self, name: str) -> list[str]:
        if not has_wildcards(name):
            return [name]
        scope = scope_of(self.call, self.call["Scope"])
        known = visible(scope, only=self.call.has("Scope"))
        return [variable.name for variable in known.values() if like(variable.name, name)]

    def _set(self, name: str, value: Value) -> Variable | None:
        call = self.call
        scope = scope_of(call, call["Scope"])
        if ":" in name:
            place, _, rest = name.partition(":")
            if place.lower() in ("global", "script", "local", "private"):
                scope, name = call.scope.named(place.lower()), rest
        key = name.lower()
        variable = scope.variables.get(key) or call.session.shared.get(key)
        new = variable is None
        if variable is None:
            variable = Variable(name)
        if (not new and "Constant" in variable.options) or (
            not new and "ReadOnly" in variable.options and not call.flag("Force")
        ):
            failure = not_writable(name)
            call.error(failure, "VariableNotWritable", "WriteError", name)
            return None
        if value is not NOTHING:
            if isinstance(variable, ComputedVariable):
                variable.set(value)
            else:
                variable.value = value if variable.convert is None else variable.convert(value)
        elif new:
            variable.value = None
        if new:
            scope.variables[key] = variable
        _options(call, variable)
        return variable


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


@cmdlet(
    "New-Variable",
    """
    Name: string mandatory position=0 name
    Value: object position=1 value name
    Description: string
    Option: System.Management.Automation.ScopedItemOptions
    Visibility: object refused
    Force: switch
    PassThru: switch
    Scope: string
    """,
    should_process=True,
)
def new_variable(call: Call) -> None:
    scope, name = scope_of(call, call["Scope"]), call["Name"]
    known = scope.variables.get(name.lower())
    if known is not None and not call.flag("Force"):
        call.error(
            SessionStateException(
                f"A variable with name '{name}' already exists.",
                "VariableAlreadyExists",
                "ResourceExists",
                name,
            ),
            "VariableAlreadyExists",
            "ResourceExists",
            name,
        )
        return
    if known is not None and "Constant" in known.options:
        call.error(not_writable(name), "VariableNotWritable", "WriteError", name)
        return
    variable = scope.variables[name.lower()] = Variable(name, call["Value"])
    _options(call, variable)
    if call.flag("PassThru"):
        call.write(PSVariable(variable))


@cmdlet(
    "Clear-Variable",
    """
    Name: string[] mandatory position=0 name
    Include: string[] refused
    Exclude: string[]
    Force: switch
    PassThru: switch
    Scope: string
    """,
    should_process=True,
)
def clear_variable(call: Call) -> None:
    from winboot_lab.engine.exceptions import DotNetException

    for _, variable in matching(call, call.items("Name"), what="Clear"):
        if "Constant" in variable.options or ("ReadOnly" in variable.options and not call.flag("Force")):
            call.error(not_writable(variable.name), "VariableNotWritable", "WriteError", variable.name)
            continue
        try:
            variable.value = None if variable.convert is None else variable.convert(None)
        except DotNetException:
            variable.value = None
        if call.flag("PassThru"):
            call.write(PSVariable(variable))


@cmdlet(
    "Remove-Variable",
    """
    Name: string[] mandatory position=0 name
    Include: string[] refused
    Exclude: string[]
    Force: switch
    Scope: string
    """,
    should_process=True,
)
def remove_variable(call: Call) -> None:
    scope = scope_of(call, call["Scope"])
    for key, variable in matching(call, call.items("Name"), what="Remove"):
        if not call.should_process():
            continue
        if "Constant" in variable.options or ("ReadOnly" in variable.options and not call.flag("Force")):
            name = variable.name
            call.error(
                SessionStateUnauthorizedAccessException(
                    f"Cannot remove variable {name} because it is constant or read-only. If the variable is read-only, "
                    "try the operation again specifying the Force option.",
                    "VariableNotRemovable",
                    "WriteError",
                    name,
                ),
                "VariableNotRemovable",
                "WriteError",
                name,
            )
            continue
        for step in scope.chain():
            if step.variables.get(key) is variable:
                del step.variables[key]
                break

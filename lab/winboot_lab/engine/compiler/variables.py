"""Reading and writing variables: plain, scope-qualified, and those of drives (`$env:X`, `$function:f`)."""

from __future__ import annotations

from collections.abc import Callable

from winboot_lab.engine.compiler.core import Eval, Value, compiles_expression
from winboot_lab.engine.errors import undefined_variable
from winboot_lab.engine.exceptions import DriveNotFoundException
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.values import NOTHING
from winboot_lab.engine.variables import Variable, not_writable
from winboot_lab.language import syntax

Assign = Callable[[Scope, Value], None]

_CONSTANTS = {"null": None, "true": True, "false": False}


@compiles_expression(syntax.Variable)
def read_variable(node: syntax.Variable) -> Eval:
    """Code that gives the value of a variable."""
    if node.splatted:

        def splatted(_scope: Scope) -> Value:
            raise Refusal("construct", f"@{node.path}", "splatting outside a command")

        return splatted
    if node.drive is not None:
        return _read_drive(node)
    key = variable_key(node)
    if node.scope == "using":

        def refused(_scope: Scope) -> Value:
            raise Refusal("construct", f"${node.path}")

        return refused
    if node.scope is None:
        if key in _CONSTANTS:
            constant = _CONSTANTS[key]
            return lambda _scope: constant
        return _read_plain(key, node.path)
    return _read_scoped(key, node.scope, node.path)


def variable_key(node: syntax.Variable) -> str:
    """The name under which scopes keep it; `$PSItem` is another name of `$_`."""
    key = node.name.lower()
    return "_" if key == "psitem" else key


def _read_plain(key: str, path: str) -> Eval:
    def read(scope: Scope) -> Value:
        variable = scope.variables.get(key)
        if variable is None:
            variable = scope.find(key)
            if variable is None:
                if scope.strict:
                    raise undefined_variable(path)
                return None
        return variable.value

    return read


def _read_scoped(key: str, where: str, path: str) -> Eval:
    def read(scope: Scope) -> Value:
        variable = scope.named(where).variables.get(key)
        if variable is None and where == "global":
            variable = scope.session.shared.get(key)
        if variable is None:
            if scope.strict:
                raise undefined_variable(path)
            return None
        return variable.value

    return read


# -- drives


def _read_drive(node: syntax.Variable) -> Eval:
    drive, name = node.drive or "", node.name
    key = drive.lower()
    if key == "env":
        return lambda scope: read_environment(scope, name)
    if key == "variable":
        return _read_plain("_" if name.lower() == "psitem" else name.lower(), name)
    if key == "function":

        def read_function(scope: Scope) -> Value:
            found = scope.find_function(name.lower())
            return None if found is None else found.block()

        return read_function

    def read_other(scope: Scope) -> Value:
        if scope.session.locations.knows_drive(drive):
            raise Refusal("construct", f"${{{drive}:…}}", "a variable on that drive")
        # Reading from a drive that does not exist gives nothing, without an error.
        return None

    return read_other


def read_environment(scope: Scope, name: str) -> Value:
    """An environment variable of the session's process, or None."""
    found = scope.machine.invoke("environment.get", {"name": name}).objects
    return found[0] if found else None


# -- assigning


def assign_variable(node: syntax.Variable) -> Assign:
    """Code that assigns to a variable."""
    if node.drive is not None:
        return _assign_drive(node)
    key, name = variable_key(node), node.name
    if node.scope is None:
        if key == "null":
            return lambda _scope, _value: None
        if key in _CONSTANTS or key == "?":
            return _refuse_constant(name)
        return lambda scope, value: scope.assign(key, name, value)
    where = node.scope

    def assign(scope: Scope, value: Value) -> None:
        place = scope.named(where)
        variable = place.variables.get(key)
        if variable is None:
            shared = scope.session.shared.get(key)
            if shared is not None:
                shared.set(value)
                return
            variable = place.variables[key] = Variable(name, value)
        else:
            variable.set(value)
        if where == "private":
            variable.private = True

    return assign


def _refuse_constant(name: str) -> Assign:
    def assign(_scope: Scope, _value: Value) -> None:
        raise not_writable(name)

    return assign


def _assign_drive(node: syntax.Variable) -> Assign:
    from winboot_lab.engine.texts import to_text

    drive, name = node.drive or "", node.name
    key = drive.lower()
    if key == "env":

        def assign_environment(scope: Scope, value: Value) -> None:
            text = None if value is None or value is NOTHING else to_text(value, scope)
            scope.machine.invoke("environment.set", {"name": name, "value": text})

        return assign_environment
    if key == "variable":
        return lambda scope, value: scope.assign(name.lower(), name, value)

    def assign_other(scope: Scope, value: Value) -> None:
        if key == "function":
            scope.blocks.define(scope, name, value)
            return
        if scope.session.locations.knows_drive(drive):
            raise Refusal("construct", f"${{{drive}:…}} = …", "a variable on that drive")
        raise DriveNotFoundException(
            f"Cannot find drive. A drive with the name '{drive}' does not exist.",
            "DriveNotFound",
            "ObjectNotFound",
            drive,
        )

    return assign_other


def local_variable(scope: Scope, key: str) -> Variable | None:
    """The variable that a compound assignment starts from.

    A block with a scope of its own looks only there: `$n += 5` in a function starts from $null even where the caller has an
    `$n`. Dot-sourced blocks and ForEach-Object's start from the inherited value.
    """
    if scope.session.stack[-1].local:
        return scope.variables.get(key)
    return scope.find(key)

"""Variables of a script, and those whose value is worked out when it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from winboot_lab.engine.exceptions import SessionStateUnauthorizedAccessException

Value = Any


class Variable:
    """One variable. `convert` turns (or refuses) every new value: a typed or validated variable has one."""

    __slots__ = ("convert", "name", "options", "private", "value")

    def __init__(self, name: str, value: Value = None, options: frozenset[str] = frozenset()) -> None:
        self.name = name
        self.value = value
        self.options = options
        self.private = False
        self.convert: Callable[[Value], Value] | None = None

    @property
    def locked(self) -> bool:
        """Is it ReadOnly or Constant?"""
        return "ReadOnly" in self.options or "Constant" in self.options

    def set(self, value: Value) -> None:
        """Assign, converted; raises when the variable is read-only or its type does not take the value."""
        if self.options and self.locked:
            raise not_writable(self.name)
        self.value = value if self.convert is None else self.convert(value)


class ComputedVariable(Variable):
    """An automatic variable whose value is worked out when it is read (`$PWD`, `$?`)."""

    __slots__ = "_get"

    def __init__(self, name: str, get: Callable[[], Value]) -> None:
        super().__init__(name)
        self._get = get

    @property
    def value(self) -> Value:
        return self._get()

    @value.setter
    def value(self, new: Value) -> None:
        pass  # only the constructor of the base class comes here

    def set(self, value: Value) -> None:
        raise not_writable(self.name)


def not_writable(name: str) -> SessionStateUnauthorizedAccessException:
    """The error of assigning to a read-only or constant variable."""
    return SessionStateUnauthorizedAccessException(
        f"Cannot overwrite variable {name} because it is read-only or constant.",
        "VariableNotWritable",
        "WriteError",
        name,
    )

"""Variables and the chain of scopes they are looked up in.

Scoping is dynamic: the parent of a scope is the scope of the caller. Names compare without case, so every table is keyed
by the lower-case name. A scope also answers what effectful members ask of their caller (machine, strict mode).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.session import Session, action_name
from winboot_lab.engine.variables import Variable

Value = Any


class Blocks(Protocol):
    """Running script blocks, which a scope does on behalf of code below the invoker."""

    def call(self, scope: Scope, block: Any, arguments: Sequence[Value], this: Value) -> Value:
        """As a delegate: one value, an array, or None."""

    def with_underbar(self, scope: Scope, block: Any, item: Value, arguments: Sequence[Value]) -> Value:
        """In the current scope with `$_` set."""

    def define(self, scope: Scope, name: str, value: Value) -> None:
        """As a function."""


class Scope:
    """One scope. `script` is the scope that `$script:` names from here, `strict` the strict mode that holds here,
    `top` the global scope."""

    __slots__ = (
        "_aliases",
        "_functions",
        "parent",
        "script",
        "session",
        "strict",
        "top",
        "variables",
    )

    blocks: ClassVar[Blocks]  # set by `invoke`, which needs this module first

    def __init__(self, session: Session, parent: Scope | None) -> None:
        self.session = session
        self.parent = parent
        self.top: Scope = self if parent is None else parent.top
        self.variables: dict[str, Variable] = {}
        self.script: Scope = self if parent is None else parent.script
        self.strict: int = parent.strict if parent is not None else 0
        self._functions: dict[str, Any] | None = None
        self._aliases: dict[str, Any] | None = None

    def leave(self) -> None:
        """Nothing runs here any more. Typed variables point back at their scope, a script's scope at itself."""
        self.variables.clear()
        self._functions = self._aliases = None
        self.script = self.top

    # -- what effectful members ask of their caller -------------------------------------------------------------

    @property
    def machine(self) -> Any:
        """The Windows machine the script runs on."""
        return self.session.machine

    def call(self, block: Any, arguments: Sequence[Value], this: Value = None) -> Value:
        """Run a script block as a delegate or script member."""
        return self.blocks.call(self, block, arguments, this)

    def call_with_underbar(self, block: Any, item: Value, arguments: Sequence[Value] = ()) -> Value:
        """Run a script block here with `$_` set to an item; its output as one value."""
        return self.blocks.with_underbar(self, block, item, arguments)

    # -- the chain -----------------------------------------------------------------------------------------------

    def find(self, key: str) -> Variable | None:
        """The variable of that (lower-case) name that is visible from here."""
        variable = self.variables.get(key)
        if variable is not None:
            return variable
        scope = self.parent
        while scope is not None:
            variable = scope.variables.get(key)
            if variable is not None and not variable.private:
                return variable
            scope = scope.parent
        return None

    def get(self, key: str, default: Value = None) -> Value:
        """The value of a visible variable, or the default."""
        variable = self.find(key)
        return default if variable is None else variable.value

    def assign(self, key: str, name: str, value: Value) -> None:
        """`$name = value`: in this scope, whatever the outer ones hold."""
        variable = self.variables.get(key)
        if variable is None:
            outer = self.session.shared.get(key)
            if outer is None:
                self.variables[key] = Variable(name, value)
                return
            variable = outer
        variable.set(value)

    def put(self, name: str, value: Value) -> Variable:
        """Set an automatic variable in this scope, without asking any option or type."""
        key = name.lower()
        variable = self.variables.get(key)
        if variable is None:
            variable = self.variables[key] = Variable(name, value)
        else:
            variable.value = value
        return variable

    def named(self, which: str) -> Scope:
        """The scope that `global`, `script`, `local` or `private` means from here."""
        if which == "global":
            return self.top
        if which == "script":
            return self.script
        return self

    def preference(self, key: str, default: str) -> str:
        """A preference variable as one of ActionPreference's names.

        5.1 throws NotSupportedException where a variable that says Ignore or Suspend is looked at; Inquire asks a person.
        """
        variable = self.find(key)
        if variable is None:
            return default
        action = action_name(variable.value, default)
        if action in ("Ignore", "Suspend", "Inquire"):
            raise Refusal("value", f"${variable.name} = '{action}'")
        return action

    # -- functions and aliases -----------------------------------------------------------------------------------

    @property
    def functions(self) -> dict[str, Any]:
        """The functions defined in this very scope."""
        if self._functions is None:
            self._functions = {}
        return self._functions

    @property
    def aliases(self) -> dict[str, Any]:
        """The aliases defined in this very scope."""
        if self._aliases is None:
            self._aliases = {}
        return self._aliases

    def find_function(self, key: str) -> Any:
        """The function of that name that is visible from here, or None."""
        scope: Scope | None = self
        while scope is not None:
            if scope._functions is not None:
                found = scope._functions.get(key)
                if found is not None:
                    return found
            scope = scope.parent
        return None

    def find_alias(self, key: str) -> Any:
        """The alias of that name that is visible from here, or None."""
        scope: Scope | None = self
        while scope is not None:
            if scope._aliases is not None:
                found = scope._aliases.get(key)
                if found is not None:
                    return found
            scope = scope.parent
        return None

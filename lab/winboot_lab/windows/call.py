"""What a cmdlet or primitive of the machine is written against: one call with its typed parameters and result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.door import CommandSignature, InSet, Parameter, Plain, Problem, Record, Result, Typed
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.session import Computer, Session


@dataclass(slots=True)
class Call:
    """One invocation of a cmdlet: which session asks, with what, and the result that grows."""

    session: Session
    command: CommandSignature
    parameters: Mapping[str, Plain]
    result: Result = field(default_factory=Result)

    @property
    def machine(self) -> Computer:
        """The machine the session is on."""
        return self.session.machine

    def has(self, name: str) -> bool:
        """Whether the parameter was given, even as null."""
        return name in self.parameters

    def give(self, *objects: Plain) -> None:
        """Put objects on the output."""
        self.result.objects.extend(objects)

    def fail(self, problem: Problem) -> None:
        """Write a non-terminating error."""
        self.result.errors.append(problem)

    def refuse(self, parameter: str, detail: str = "") -> Refusal:
        """A refusal that names the parameter of this command."""
        return Refusal("parameter", f"{self.command.name} -{parameter}", detail)

    def text(self, name: str, default: str = "") -> str:
        """A parameter as text; enums and other scalars by their text."""
        value = self.parameters.get(name)
        return default if value is None else as_text(value)

    def texts(self, name: str) -> list[str]:
        """A parameter as a list of texts; empty when it was not given."""
        value = self.parameters.get(name)
        if value is None:
            return []
        items = value if isinstance(value, list) else [value]
        return [as_text(item) for item in items]

    def flag(self, name: str, default: bool = False) -> bool:
        """A switch or boolean; GpoBoolean and friends by their text."""
        value = self.parameters.get(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        word = as_text(value).lower()
        if word in ("true", "1", "enabled", "yes"):
            return True
        if word in ("false", "0", "disabled", "no"):
            return False
        raise self.refuse(name, f"value {word!r}")

    def number(self, name: str, default: int = 0) -> int:
        """A parameter as a whole number."""
        value = self.parameters.get(name)
        return default if value is None else as_int(value)

    def numbers(self, name: str) -> list[int]:
        """A parameter as a list of whole numbers."""
        value = self.parameters.get(name)
        if value is None:
            return []
        items = value if isinstance(value, list) else [value]
        return [as_int(item) for item in items]

    def records(self, name: str) -> list[Record]:
        """A parameter that takes objects of the machine (-InputObject and the like)."""
        value = self.parameters.get(name)
        if value is None:
            return []
        items = value if isinstance(value, list) else [value]
        found = [item for item in items if isinstance(item, Record)]
        if len(found) != len(items):
            raise self.refuse(name, "takes objects the machine gave")
        return found


def as_text(value: Plain) -> str:
    """A scalar as PowerShell would turn it into a string."""
    match value:
        case str():
            return value
        case bool():
            return "True" if value else "False"
        case int() | float():
            return str(value)
        case Typed():
            return value.text if value.text is not None else str(value.value)
        case Record() if value.text is not None:
            return value.text
        case None:
            return ""
        case _:
            raise Refusal("value", type(value).__name__, "a text was expected")


def as_int(value: Plain) -> int:
    """A scalar as a whole number."""
    match value:
        case Typed():
            return int(value.value)
        case bool() | int():
            return int(value)
        case float() if value.is_integer():
            return int(value)
        case str():
            try:
                return int(value, 0)
            except ValueError:
                raise Refusal("value", value, "a number was expected") from None
        case _:
            raise Refusal("value", type(value).__name__, "a number was expected")


CmdletFunction = Callable[[Call], None]
PrimitiveFunction = Callable[..., tuple[Plain, ...]]


@dataclass(frozen=True, slots=True)
class Cmdlet:
    """A cmdlet: what the binder needs, what it does, and when it exists on a machine."""

    signature: CommandSignature
    function: CmdletFunction
    exists: Callable[[Computer], bool]


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive: its function takes the session and keyword parameters."""

    name: str
    function: PrimitiveFunction
    parameters: frozenset[str]


CMDLETS: dict[str, Cmdlet] = {}
PRIMITIVES: dict[str, Primitive] = {}

_F = TypeVar("_F", bound=CmdletFunction)
_P = TypeVar("_P", bound=PrimitiveFunction)


def cmdlet(
    name: str,
    module: str,
    *parameters: Parameter,
    exists: Callable[[Computer], bool] | None = None,
    **rest: Any,
) -> Callable[[_F], _F]:
    """Register the decorated function as a cmdlet; `rest` goes to `CommandSignature`."""

    def register(function: _F) -> _F:
        signature = CommandSignature(name, module, parameters, **rest)
        CMDLETS[name.lower()] = Cmdlet(signature, function, exists or (lambda machine: True))
        return function

    return register


def primitive(name: str) -> Callable[[_P], _P]:
    """Register the decorated function as a primitive; its keyword parameters are the primitive's."""

    def register(function: _P) -> _P:
        names = list(inspect.signature(function).parameters)[1:]
        PRIMITIVES[name] = Primitive(name, function, frozenset(names))
        return function

    return register


def dispatch(session: Session, command: str, parameters: Mapping[str, Plain]) -> Result:
    """Run a cmdlet or primitive for a session."""
    primitive = PRIMITIVES.get(command)
    if primitive is not None:
        unknown = set(parameters) - primitive.parameters
        if unknown:
            raise Refusal("parameter", f"{command} {min(unknown)}")
        try:
            objects = list(primitive.function(session, **parameters))
        except Failure as failed:
            return Result(errors=[failed.problem])
        if command == "object.call":
            # Its first object is the one it was called on, as it is now.
            now = objects.pop(0)
            assert isinstance(now, Record)
            return Result(objects, refreshed=now.properties)
        return Result(objects)
    cmdlet = CMDLETS.get(command.lower())
    if cmdlet is None or not cmdlet.exists(session.machine):
        raise Refusal("command", command)
    known = {p.name for p in cmdlet.signature.parameters}
    unknown = set(parameters) - known
    if unknown:
        raise Refusal("parameter", f"{cmdlet.signature.name} -{min(unknown)}")
    call = Call(session, cmdlet.signature, parameters)
    try:
        cmdlet.function(call)
    except Failure as failed:
        call.fail(failed.problem)
    return call.result


STRING = "System.String"
STRINGS = "System.String[]"
INT = "System.Int32"
SWITCH = "System.Management.Automation.SwitchParameter"
BOOL = "System.Boolean"


def parameter(
    name: str,
    type_name: str = STRING,
    position: int | None = None,
    *,
    mandatory: bool = False,
    aliases: tuple[str, ...] = (),
    words: tuple[str, ...] = (),
    by_value: bool = False,
    by_name: bool = False,
    sets: tuple[str, ...] = ("__AllParameterSets",),
) -> Parameter:
    """A parameter that behaves alike in all the sets named."""
    places = tuple(InSet(s, mandatory, position, by_value, by_name) for s in sets)
    return Parameter(name, type_name, aliases, words, places)


def switch(
    name: str, *, aliases: tuple[str, ...] = (), sets: tuple[str, ...] = ("__AllParameterSets",)
) -> Parameter:
    """A switch parameter."""
    return parameter(name, SWITCH, aliases=aliases, sets=sets)

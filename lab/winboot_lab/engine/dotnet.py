""".NET types as values, and how one is declared.

A type is one `DotNetType`. Declaring it is one small statement; adding a member is one line with its C#-like signature:

    VERSION = dotnet("System.Version", Version, base=OBJECT)

    @VERSION.constructor("string version")
    def _(text: str) -> Version: ...

    @VERSION.static_method("Parse(string input)")
    def _(text: str) -> Version: ...

    @VERSION.method("CompareTo(object value)")
    def _(self: Version, other: Value) -> int: ...

    VERSION.prop("Major", "int", lambda self: self.major)

Signatures know `params T[]`, `ref T` / `out T` (the function gets a `Reference` and sets `.value`) and optional
parameters (`int count = 0`: the argument is simply left out). Arguments arrive converted to the declared types.
A function declared with `effect=True` receives the `Runtime` (machine, strict mode, script block calls) first.

Each member is listed in the dialect (language/data/types.txt). Using another one is refused by name, but where the dialect
knows what a type `lacks`: there any other name gives PowerShell's own "does not contain a method named ...".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from winboot_lab.language import dialect

LACKS = {name: facts.lacks for name, facts in dialect.types().items() if facts.lacks is not None}
"""Members that .NET has and the lab lacks, by type: any other name that is not declared does not exist there either."""

Value: TypeAlias = Any
"""Anything a PowerShell variable can hold (see values.py)."""

Function: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Runtime(Protocol):
    """What effectful members and script members may ask of the evaluator that calls them."""

    @property
    def machine(self) -> Any:
        """The Windows machine (lab/winboot_lab/windows/door.py)."""

    @property
    def strict(self) -> int:
        """Strict mode as a number: 0 off, 1, 2 or 3 (latest)."""

    def get(self, key: str, default: Value = None) -> Value:
        """The value of a visible variable by its lower-case name, or the default."""

    def put(self, name: str, value: Value) -> Any:
        """Set an automatic variable (`$Matches`) in the current scope."""

    def call(self, block: Any, arguments: Sequence[Value], this: Value = None) -> Value:
        """Run a script block as a delegate or script member; answers one value, an Array, or None."""

    def call_with_underbar(self, block: Any, item: Value, arguments: Sequence[Value] = ()) -> Value:
        """Run a script block with `$_` set to an item."""


RUNTIME: ContextVar[Runtime | None] = ContextVar("the evaluator that runs in this thread", default=None)
"""For conversions, which get no runtime of their own: a cast to FileInfo looks at the machine's files."""


@dataclass(slots=True)
class Reference:
    """A `[ref]`: PowerShell's PSReference. `get` and `set` reach the variable behind it."""

    get: Callable[[], Value]
    set: Callable[[Value], None]

    @property
    def value(self) -> Value:
        return self.get()

    @value.setter
    def value(self, new: Value) -> None:
        self.set(new)


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter of a signature."""

    type_name: str
    name: str
    by_reference: bool = False
    spread: bool = False
    optional: bool = False


@dataclass(slots=True)
class Overload:
    """One way to call a method or constructor. A `void` one has no result at all."""

    signature: str
    function: Function
    effect: bool = False
    void: bool = False
    _slots: tuple[Slot, ...] | None = None
    _types: tuple[DotNetType, ...] | None = None
    _generic: bool = False

    @property
    def slots(self) -> tuple[Slot, ...]:
        if self._slots is None:
            self._slots = tuple(_parse_slots(self.signature))
            self._generic = any(_TYPE_PARAMETER.search(slot.type_name) for slot in self._slots)
        return self._slots

    def types(self, owner: DotNetType | None = None) -> tuple[DotNetType, ...]:
        """The parameter types (of a `params` slot: the array type); T, TKey and TValue are those of `owner`."""
        if self._types is not None:
            return self._types
        slots = self.slots
        if not self._generic:
            self._types = tuple(named(slot.type_name) for slot in slots)
            return self._types
        return tuple(named(_close_parameters(slot.type_name, owner)) for slot in slots)

    @property
    def least(self) -> int:
        """The smallest number of arguments."""
        return sum(1 for slot in self.slots if not slot.optional and not slot.spread)

    @property
    def spreads(self) -> bool:
        return bool(self.slots) and self.slots[-1].spread


_TYPE_PARAMETER = re.compile(r"\b(?:TKey|TValue|T)\b")


def _close_parameters(type_name: str, owner: DotNetType | None) -> str:
    arguments = owner.arguments if owner is not None else ()
    by_name = {"T": arguments[:1], "TKey": arguments[:1], "TValue": arguments[1:2]}

    def put(match: re.Match[str]) -> str:
        found = by_name[match.group()]
        return _spelling(found[0]) if found else "object"

    return _TYPE_PARAMETER.sub(put, type_name)


def _spelling(kind: DotNetType) -> str:
    """A type's name as `named` reads it."""
    if kind.kind == "array" and kind.element is not None:
        return _spelling(kind.element) + "[" + "," * (kind.rank - 1) + "]"
    if kind.arguments:
        head = kind.name.partition("`")[0]
        return head + "[" + ",".join(_spelling(argument) for argument in kind.arguments) + "]"
    return kind.name


@dataclass(slots=True)
class Method:
    """All overloads of one name."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    plans: dict[Any, Any] = field(default_factory=dict)  # what overloads.py knows of calls already seen


@dataclass(slots=True)
class Property:
    """A readable and perhaps writable member of a type. `effect` functions get the Runtime first."""

    name: str
    type_name: str
    get: Function
    set: Function | None = None
    effect: bool = False
    field: bool = False


Member: TypeAlias = Method | Property


class DotNetType:
    """A .NET type. It is itself a PowerShell value (`[int]` is one, of type System.RuntimeType)."""

    def __init__(
        self,
        name: str,
        *,
        base: DotNetType | None = None,
        interfaces: Sequence[DotNetType] = (),
        kind: str = "class",
        element: DotNetType | None = None,
        rank: int = 1,
        definition: DotNetType | None = None,
        arguments: tuple[DotNetType, ...] = (),
        constants: Mapping[str, int] | None = None,
        flags: bool = False,
        underlying: DotNetType | None = None,
        default: Function | None = None,
    ) -> None:
        self.name = name
        self.base = base
        self.interfaces = tuple(interfaces)
        self.kind = kind  # class | value | enum | interface | array | static | abstract
        self.element = element
        self.rank = rank
        self.definition = definition
        self.arguments = arguments
        self.constants = dict(constants or {})
        self.flags = flags
        self.underlying = underlying
        self.default = default
        self.members: dict[str, Member] = {}
        self.statics: dict[str, Member] = {}
        self.constructors = Method("new")
        self.extension: Any = None
        self._found: dict[str, Member | None] = {}

    # -- what it is

    @property
    def short_name(self) -> str:
        """`Name` in .NET: the last part, with `[]` and generic arity, without namespace."""
        head, bracket, tail = self.name.partition("[")
        if self.kind == "array":
            assert self.element is not None
            return self.element.short_name + "[" + "," * (self.rank - 1) + "]"
        short = head.rsplit(".", 1)[-1].rsplit("+", 1)[-1]
        return short if self.arguments or not bracket else short + bracket + tail

    @property
    def namespace(self) -> str | None:
        """The part before the last dot, or None."""
        if self.kind == "array":
            assert self.element is not None
            return self.element.namespace
        head = self.name.partition("[")[0].partition("+")[0]
        return head.rsplit(".", 1)[0] if "." in head else None

    @property
    def is_value_type(self) -> bool:
        return self.kind in ("value", "enum")

    def lineage(self) -> Iterator[DotNetType]:
        """The type, its bases, outermost last (what PSObject.TypeNames shows)."""
        current: DotNetType | None = self
        while current is not None:
            yield current
            current = current.base

    def all_interfaces(self) -> Iterator[DotNetType]:
        """Every interface of the type and its bases; one may come twice."""
        for step in self.lineage():
            yield from step.interfaces
            if step.definition is not None:
                for face in step.definition.interfaces:
                    yield face
                    yield from face.all_interfaces()
            for face in step.interfaces:
                yield from face.all_interfaces()

    def is_a(self, other: DotNetType) -> bool:
        """True if code that needs `other` accepts a value of this type (IsAssignableFrom, the other way round)."""
        if self is other or other.name == "System.Object":
            return True
        step = self.base
        while step is not None:
            if step is other:
                return True
            step = step.base
        if other.kind == "interface":
            return any(face is other for face in self.all_interfaces())
        if self.kind == "array" and other.kind == "array" and self.rank == other.rank:
            assert self.element is not None
            assert other.element is not None
            return not self.element.is_value_type and self.element.is_a(other.element)
        return False

    def __repr__(self) -> str:
        return f"[{self.name}]"

    # -- declaring members

    def constructor(self, signature: str = "", *, effect: bool = False) -> Callable[[F], F]:
        """Declare `new(signature)`; the decorated function makes the value."""

        def add(function: F) -> F:
            self.constructors.overloads.append(Overload(signature, function, effect))
            return function

        return add

    def method(self, *signatures: str, effect: bool = False) -> Callable[[F], F]:
        """Declare an instance method: `Substring(int startIndex, int length)`, `void Clear()` (no result at all)."""
        return self._methods(self.members, signatures, effect)

    def static_method(self, *signatures: str, effect: bool = False) -> Callable[[F], F]:
        """Declare a static method by its signature."""
        return self._methods(self.statics, signatures, effect)

    @staticmethod
    def _methods(table: dict[str, Member], signatures: Sequence[str], effect: bool) -> Callable[[F], F]:
        def add(function: F) -> F:
            for signature in signatures:
                head, _, rest = signature.rpartition(")")[0].partition("(")
                void = head.startswith("void ")
                name = head.removeprefix("void ")
                method = table.setdefault(name.lower(), Method(name))
                assert isinstance(method, Method)
                method.overloads.append(Overload(rest, function, effect, void))
            return function

        return add

    def prop(
        self,
        name: str,
        type_name: str,
        get: Function,
        set: Function | None = None,
        *,
        effect: bool = False,
    ) -> None:
        """Declare an instance property: `get(self)`, `set(self, value)` (value arrives converted)."""
        self.members[name.lower()] = Property(name, type_name, get, set, effect)

    def static_prop(
        self, name: str, type_name: str, get: Function, set: Function | None = None, *, effect: bool = False
    ) -> None:
        """Declare a static property: `get()`, `set(value)`."""
        self.statics[name.lower()] = Property(name, type_name, get, set, effect)

    def static_field(self, name: str, type_name: str, value: Value) -> None:
        """Declare a constant or static read-only field."""
        self.statics[name.lower()] = Property(name, type_name, lambda: value, None, field=True)

    # -- finding members

    def find(self, name: str) -> Member | None:
        """The instance member of that name (case does not count), from the type, its definition or its bases."""
        key = name.lower()
        if key in self._found:
            return self._found[key]
        member = next((step.members[key] for step in self._member_sources() if key in step.members), None)
        self._found[key] = member
        return member

    def find_static(self, name: str) -> Member | None:
        """The static member of that name, inherited ones included."""
        key = name.lower()
        for step in self._member_sources():
            member = step.statics.get(key)
            if member is not None:
                return member
        return None

    def knows_absence(self, name: str) -> bool:
        """True when it is certain that .NET Framework's type has no such member either (`lacks` of the dialect)."""
        key = name.lower()
        kinds = (step.definition or step for step in self._member_sources())
        return all(
            kind.kind in ("enum", "array") or (kind.name in LACKS and key not in LACKS[kind.name])
            for kind in kinds
        )

    def _member_sources(self) -> Iterator[DotNetType]:
        for step in self.lineage():
            yield step
            if step.definition is not None:
                yield step.definition
        if self.kind == "interface":
            yield from self.all_interfaces()

    def all_members(self) -> Iterator[Member]:
        """Every declared instance member once, those of the type itself before those of its bases."""
        seen: set[str] = set()
        for step in self._member_sources():
            for key, member in step.members.items():
                if key not in seen:
                    seen.add(key)
                    yield member


# -- the registry

_BY_NAME: dict[str, DotNetType] = {}
_BY_CLASS: dict[type, DotNetType] = {}
_ACCELERATORS: dict[str, DotNetType] = {}
_ARRAYS: dict[tuple[int, int], DotNetType] = {}
_MAKERS: dict[str, Callable[[tuple[DotNetType, ...]], DotNetType]] = {}
_CLOSED: dict[tuple[str, tuple[int, ...]], DotNetType] = {}


def dotnet(
    name: str,
    python: type | None = None,
    *,
    base: DotNetType | None = None,
    interfaces: Sequence[DotNetType] = (),
    kind: str = "class",
    accelerators: Iterable[str] = (),
    default: Function | None = None,
) -> DotNetType:
    """Declare a .NET type; `python` is the class whose instances are its values, `default` makes `default(T)`."""
    made = DotNetType(
        name,
        base=base if base is not None or kind == "interface" or name == "System.Object" else OBJECT,
        interfaces=interfaces,
        kind=kind,
        default=default,
    )
    return register(made, python, accelerators)


def register(made: DotNetType, python: type | None = None, accelerators: Iterable[str] = ()) -> DotNetType:
    """Enter a type under its name, its accelerators, and its Python class."""
    _BY_NAME[made.name.lower()] = made
    for alias in accelerators:
        _ACCELERATORS[alias.lower()] = made
    if python is not None:
        _BY_CLASS[python] = made
    return made


def enum_type(
    name: str,
    constants: Mapping[str, int],
    *,
    flags: bool = False,
    underlying: str = "System.Int32",
) -> DotNetType:
    """Declare an enum. Names keep their order; flags enums print as `A, B`."""
    made = DotNetType(
        name, base=ENUM, kind="enum", constants=constants, flags=flags, underlying=named(underlying)
    )
    return register(made)


def generic(name: str, make: Callable[[tuple[DotNetType, ...]], DotNetType]) -> None:
    """Declare a generic definition (name without arity); `make(arguments)` closes it, once for each arguments."""
    _MAKERS[name.lower()] = make


def close_generic(name: str, arguments: tuple[DotNetType, ...]) -> DotNetType:
    """The closed type, e.g. List`1 of System.String; the same object each time."""
    key = (name.lower(), tuple(id(argument) for argument in arguments))
    made = _CLOSED.get(key)
    if made is None:
        made = _CLOSED[key] = _MAKERS[name.lower()](arguments)
    return made


def array_of(element: DotNetType, rank: int = 1) -> DotNetType:
    """The array type of an element type; the same object each time."""
    key = (id(element), rank)
    made = _ARRAYS.get(key)
    if made is None:
        made = DotNetType(
            element.name + "[" + "," * (rank - 1) + "]", base=ARRAY, kind="array", element=element, rank=rank
        )
        _ARRAYS[key] = made
    return made


def lookup(name: str) -> DotNetType | None:
    """A plain (not generic, not array) name: accelerator, full name, or name without `System.`; or None."""
    key = name.lower()
    return _ACCELERATORS.get(key) or _BY_NAME.get(key) or _BY_NAME.get("system." + key)


def is_generic_definition(name: str) -> str | None:
    """The registered generic name behind a spelling without arity, or None."""
    key = name.lower()
    if key in _MAKERS:
        return key
    return "system." + key if "system." + key in _MAKERS else None


_ARRAY_TAIL = re.compile(r"\[(,*)\]\s*$")


def parse_type(text: str, plain: Callable[[str], DotNetType]) -> DotNetType:
    """Read `int[]`, `List[string]`, `Dictionary[string,int[]]`; `plain` resolves each name, or raises."""
    text = text.strip()
    tail = _ARRAY_TAIL.search(text)
    if tail is not None:
        return array_of(parse_type(text[: tail.start()], plain), len(tail.group(1)) + 1)
    if text.endswith("]") and "[" in text:
        head, _, inner = text[:-1].partition("[")
        head = re.sub(r"`\d+$", "", head.strip())
        key = is_generic_definition(head)
        if key is None:
            return plain(text)
        return close_generic(key, tuple(parse_type(part.strip(), plain) for part in _split_arguments(inner)))
    return plain(text)


def _split_arguments(inner: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, letter in enumerate(inner):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth == 0:
            yield inner[start:index]
            start = index + 1
    yield inner[start:]


def every_type() -> list[DotNetType]:
    """All registered types, each once, by name."""
    return sorted(set(_BY_NAME.values()), key=lambda kind: kind.name)


def accelerate(alias: str, made: DotNetType) -> None:
    """Give a type a further short name."""
    _ACCELERATORS[alias.lower()] = made


def accelerator_of(made: DotNetType) -> str | None:
    """The first short name of a type, or None: `[string]$type` writes it."""
    return next((alias for alias, kind in _ACCELERATORS.items() if kind is made), None)


def named(name: str) -> DotNetType:
    """A type that must be declared: for Python code that names types. Raises KeyError when it is not."""

    def plain(text: str) -> DotNetType:
        found = lookup(text)
        if found is None:
            raise KeyError(f"no .NET type {text!r} is declared")
        return found

    return parse_type(name, plain)


def class_type(python: type) -> DotNetType | None:
    """The .NET type that instances of exactly this Python class have, if it is fixed by the class."""
    return _BY_CLASS.get(python)


def _parse_slots(signature: str) -> Iterator[Slot]:
    for part in _split_arguments(signature) if signature.strip() else ():
        words = part.strip()
        optional = "=" in words
        words = words.partition("=")[0].strip()
        spread = words.startswith("params ")
        by_reference = words.startswith(("ref ", "out "))
        if spread or by_reference:
            words = words.partition(" ")[2].strip()
        type_name, _, name = words.rpartition(" ") if " " in words else (words, "", "value")
        yield Slot(type_name.strip(), name, by_reference, spread, optional)


# -- the roots

OBJECT = register(DotNetType("System.Object"), object, ("object",))
VALUE_TYPE = register(DotNetType("System.ValueType", base=OBJECT, kind="abstract"))
ENUM = register(DotNetType("System.Enum", base=VALUE_TYPE, kind="abstract"))
ARRAY = register(DotNetType("System.Array", base=OBJECT, kind="abstract"), None, ("array",))
RUNTIME_TYPE_BASE = register(DotNetType("System.Type", base=OBJECT), None, ("type",))
RUNTIME_TYPE = register(DotNetType("System.RuntimeType", base=RUNTIME_TYPE_BASE), DotNetType)

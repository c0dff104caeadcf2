"""What the binder knows of a command: its parameters, their sets, and how one is declared for a cmdlet in Python.

A cmdlet's parameters are written as text, one line each, in PowerShell's own terms:

    Path: string[]       mandatory position=0 value name set=Path
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralPath
    Raw: switch          dynamic
    Credential: PSCredential refused

`value` and `name` mean ValueFromPipeline and ValueFromPipelineByPropertyName, `rest` ValueFromRemainingArguments; `set=A,B`
names parameter sets (without it: all of them); a second line of the same name adds another set. `words=a,b` is a
ValidateSet, `range=1,10` a ValidateRange. `null`, `empty` and `none` allow $null, '' and an empty collection for a
mandatory parameter. `filled` forbids null and empty, `given` forbids null. `dynamic` parameters come from the provider and
are matched late. `refused` ones exist in Windows PowerShell but not in the lab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from winboot_lab.engine.dotnet import OBJECT, DotNetType, named
from winboot_lab.engine.values import SWITCH_PARAMETER
from winboot_lab.language.commands import COMMON_PARAMETERS

ALL_SETS = "__AllParameterSets"

Value = Any


@dataclass(frozen=True, slots=True)
class Place:
    """How a parameter behaves in one parameter set."""

    mandatory: bool = False
    position: int | None = None
    by_value: bool = False
    by_name: bool = False
    rest: bool = False


class Validator(Protocol):
    """A validation attribute: `check` raises ValidationFailure for a value that does not fit."""

    def check(self, value: Value, scope: Any) -> None: ...


@dataclass(slots=True)
class ParameterSpec:
    """One parameter. `default` works out its value in the function's scope when the caller gave none."""

    name: str
    type: DotNetType = OBJECT
    aliases: tuple[str, ...] = ()
    places: dict[str, Place] = field(default_factory=dict)
    validators: tuple[Validator, ...] = ()
    default: Callable[[Any], Value] | None = None
    allow_null: bool = False
    allow_empty_string: bool = False
    allow_empty_collection: bool = False
    refused: bool = False
    dynamic: bool = False
    common: bool = False
    typed: bool = True
    types: tuple[DotNetType, ...] = ()
    guard: Callable[[Value], bool] | None = None  # says which positional values are not meant for it
    key: str = field(init=False)  # the name as tables hold it

    def __post_init__(self) -> None:
        self.key = self.name.lower()

    @property
    def is_switch(self) -> bool:
        return self.type is SWITCH_PARAMETER

    @property
    def in_all_sets(self) -> bool:
        return ALL_SETS in self.places

    @property
    def mandatory_somewhere(self) -> bool:
        return any(place.mandatory for place in self.places.values())

    @property
    def takes_pipeline(self) -> bool:
        return any(place.by_value or place.by_name for place in self.places.values())

    def place_in(self, which: str) -> Place | None:
        """Its place in one set: the one for that set, or the one for all sets."""
        return self.places.get(which) or self.places.get(ALL_SETS)


class CommandSpec:
    """The parameters of one command. `suffix` ends the error ids; `advanced` means: no `$args`, unknown names are errors."""

    def __init__(
        self,
        name: str,
        parameters: Iterable[ParameterSpec],
        *,
        default_set: str | None = None,
        suffix: str | None = None,
        advanced: bool = True,
        script: bool = False,
        should_process: bool = False,
    ) -> None:
        self.name = name
        self.parameters = list(parameters)
        self.default_set = default_set
        self.suffix = name if suffix is None else suffix
        self.advanced = advanced
        self.script = script
        self.should_process = should_process
        self.partial = False
        self.confirm_impact = "Medium"
        self.by_name: dict[str, ParameterSpec] = {}
        for parameter in self.parameters:
            self.by_name[parameter.key] = parameter
            for alias in parameter.aliases:
                self.by_name.setdefault(alias.lower(), parameter)
        names: dict[str, None] = {}
        for parameter in self.parameters:
            for which in parameter.places:
                if which != ALL_SETS:
                    names[which] = None
        if default_set and default_set not in names and default_set != ALL_SETS:
            names[default_set] = None
        self.set_names: tuple[str, ...] = tuple(names)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The positions that some parameter has in some set, in order."""
        everything = {
            place.position
            for parameter in self.parameters
            for place in parameter.places.values()
            if place.position is not None and not place.rest
        }
        return tuple(sorted(everything))

    @cached_property
    def takers(self) -> tuple[ParameterSpec, ...]:
        """The parameters that take pipeline input in some set."""
        return tuple(parameter for parameter in self.parameters if parameter.takes_pipeline)

    def match(self, name: str, *, dynamic: bool) -> list[ParameterSpec]:
        """The parameters a (possibly abbreviated) name can mean; an exact name or alias wins."""
        key = name.lower()
        exact = self.by_name.get(key)
        if exact is not None and (dynamic or not exact.dynamic):
            return [exact]
        found: list[ParameterSpec] = []
        for known, parameter in self.by_name.items():
            if known.startswith(key) and (dynamic or not parameter.dynamic) and parameter not in found:
                found.append(parameter)
        if len(found) > 1:
            # A command's own parameter wins over a common one of the same beginning.
            own = [parameter for parameter in found if not parameter.common]
            if len(own) == 1:
                return own
        return found


# -- the text form -----------------------------------------------------------------------------------------------

_FLAGS = frozenset(
    ["mandatory", "value", "name", "rest", "null", "empty", "none", "filled", "given", "dynamic", "refused"],
)


def parse_signature(text: str) -> list[ParameterSpec]:
    """Read the text form above."""
    found: dict[str, ParameterSpec] = {}
    for line in text.splitlines():
        line = line.strip()
        if line:
            _parse_line(line, found)
    return list(found.values())


def _parse_line(line: str, found: dict[str, ParameterSpec]) -> None:
    name, _, rest = line.partition(":")
    type_name, *words = rest.split()
    flags = {word for word in words if word in _FLAGS}
    settings = dict(word.split("=", 1) for word in words if word not in _FLAGS)
    unknown = set(settings) - {"position", "alias", "set", "words", "range"}
    if unknown:
        raise ValueError(f"a parameter line does not understand {sorted(unknown)}: {line}")
    place = Place(
        mandatory="mandatory" in flags,
        position=int(settings["position"]) if "position" in settings else None,
        by_value="value" in flags,
        by_name="name" in flags,
        rest="rest" in flags,
    )
    places = dict.fromkeys(settings.get("set", ALL_SETS).split(","), place)
    known = found.get(name)
    if known is not None:
        known.places.update(places)
        return
    found[name] = ParameterSpec(
        name=name,
        type=type_named(type_name),
        aliases=tuple(settings["alias"].split(",")) if "alias" in settings else (),
        places=places,
        validators=_validators(flags, settings),
        allow_null="null" in flags,
        allow_empty_string="empty" in flags,
        allow_empty_collection="none" in flags,
        refused="refused" in flags,
        dynamic="dynamic" in flags,
    )


def _validators(flags: set[str], settings: dict[str, str]) -> tuple[Validator, ...]:
    from winboot_lab.engine.validation import InRange, NotNull, NotNullOrEmpty, OneOf

    made: list[Validator] = []
    if "words" in settings:
        made.append(OneOf(tuple(settings["words"].split(","))))
    if "range" in settings:
        low, high = settings["range"].split(",")
        made.append(InRange(int(low), int(high)))
    if "filled" in flags:
        made.append(NotNullOrEmpty())
    if "given" in flags:
        made.append(NotNull())
    return tuple(made)


def type_named(name: str) -> DotNetType:
    """A type by the short name a signature uses; a type that is not declared yet counts as object."""
    try:
        return named(name)
    except KeyError:
        raise ValueError(f"a signature names the unknown type {name!r}") from None


# -- common parameters -------------------------------------------------------------------------------------------

_COMMON = """
    Verbose: switch alias=vb
    Debug: switch alias=db
    ErrorAction: System.Management.Automation.ActionPreference alias=ea
    WarningAction: System.Management.Automation.ActionPreference alias=wa
    InformationAction: System.Management.Automation.ActionPreference alias=infa
    ErrorVariable: string alias=ev
    WarningVariable: string alias=wv
    InformationVariable: string alias=iv
    OutVariable: string alias=ov
    OutBuffer: int alias=ob
    PipelineVariable: string alias=pv
"""
_SHOULD_PROCESS = """
    WhatIf: switch alias=wi
    Confirm: switch alias=cf
"""


def _common(text: str) -> tuple[ParameterSpec, ...]:
    made = parse_signature(text)
    for parameter in made:
        parameter.common = True
    return tuple(made)


_cache: dict[str, tuple[ParameterSpec, ...]] = {}


def common_parameters(*, should_process: bool) -> tuple[ParameterSpec, ...]:
    """The parameters that every cmdlet and advanced function has."""
    if not _cache:
        _cache["all"] = _common(_COMMON)
        _cache["process"] = _cache["all"] + _common(_SHOULD_PROCESS)
    return _cache["process" if should_process else "all"]


COMMON_NAMES: frozenset[str] = frozenset(name.lower() for name in COMMON_PARAMETERS)

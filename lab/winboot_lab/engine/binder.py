"""The one parameter binder: for functions, for cmdlets, and for the commands of the machine.

It follows the order of PowerShell's binder: named, positional (by set, without conversion first), provider (dynamic)
parameters, remaining arguments, defaults from `$PSDefaultParameterValues`, choice of the parameter set, mandatory check.
Then it binds every pipeline object by value and by property name, without conversion first.

More than 800 lines: one class holds the state of a binding through all of these stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from winboot_lab.engine.adapted import property_of
from winboot_lab.engine.convert import convert, to_bool
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Reference
from winboot_lab.engine.exceptions import (
    DotNetException,
    ParameterBindingArgumentTransformationException,
    ParameterBindingException,
    ParameterBindingValidationException,
    PSInvalidCastException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.signatures import ALL_SETS, CommandSpec, ParameterSpec, Place
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.validation import ValidationFailure
from winboot_lab.engine.values import (
    BOOLEAN,
    NOTHING,
    NUMBER_CLASSES,
    PS_OBJECT,
    PS_REFERENCE,
    STRING,
    SWITCH_PARAMETER,
    VERSION,
    Array,
    Decorated,
    Extension,
    Hashtable,
    ScriptBlock,
    SwitchParameter,
    array_of,
    enumerate_value,
    is_enumerable,
    plain,
    type_of,
)
from winboot_lab.engine.wildcards import like
from winboot_lab.language.commands import find as find_facts

Value = Any


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()
"""No value was given (which is something else than $null)."""


@dataclass(slots=True)
class Argument:
    """One argument of a call: a parameter name, a value, or both.

    `text` is the parameter's name as the script wrote it (`-Name:`), `written` a number as the script wrote it. `is_list`
    marks a literal list (`a,b`). `verbatim` marks the text after `--%`, which matters to programs only.
    """

    name: str | None = None
    value: Value = ABSENT
    text: str = ""
    splatted: bool = False
    written: str = ""
    is_list: bool = False
    verbatim: bool = False


class Binding:
    """The outcome so far: `bound` by lower-case parameter name, `rest` without a parameter (a simple function's `$args`)."""

    def __init__(self, spec: CommandSpec, scope: Scope, *, expects_input: bool) -> None:
        self.spec = spec
        self.scope = scope
        self.expects_input = expects_input
        self.bound: dict[str, Value] = {}
        self.given: dict[str, Value] = {}
        self.rest: list[Value] = []
        self.sets: tuple[str, ...] = spec.set_names
        self.narrowed = False
        self.set_name = ALL_SETS
        self.delayed: dict[str, ScriptBlock] = {}
        self._line_sets: tuple[str, ...] = ()
        self._line_narrowed = False
        self._by_pipeline: set[str] = set()

    # -- the command line ------------------------------------------------------------------------------------------

    def command_line(self, arguments: Sequence[Argument]) -> None:
        """Bind everything that stands on the command line; raises ParameterBindingException."""
        pairs = self._whole_names(arguments)
        if pairs is not None:
            for parameter, value, written in pairs:
                self.bind(parameter, value, written)
            self._defaults()
            self._settle_command_line()
            self._line_sets = self.sets
            self._line_narrowed = self.narrowed
            return
        left = self._named(self._reparse(arguments, dynamic=False))
        left, problem = self._positional(left)
        self._defaults()
        self._choose_set(before_input=True, settle=False)
        if any(argument.name is not None for argument in left):
            left = self._named(self._reparse(left, dynamic=True))
        left, later = self._positional(left)
        self._remaining(left, problem or later)
        self._settle_command_line()
        self._line_sets = self.sets
        self._line_narrowed = self.narrowed

    def _whole_names(self, arguments: Sequence[Argument]) -> list[tuple[ParameterSpec, Value, str]] | None:
        """The values by parameter where each has its parameter's whole name before it, and there are no sets to choose from:
        most calls of a script. None for any other command line."""
        if self.spec.set_names:
            return None
        pairs: dict[str, tuple[ParameterSpec, Value, str]] = {}
        waiting = iter(arguments)
        for argument in waiting:
            parameter = self.spec.by_name.get(argument.name.lower()) if argument.name is not None else None
            if parameter is None or parameter.dynamic or parameter.key in pairs:
                return None
            value, written = argument.value, argument.written
            if value is ABSENT and parameter.is_switch:
                value = SwitchParameter(present=True)
            elif value is ABSENT:
                following = next(waiting, argument)
                if following.name is not None or following.text == "--":
                    return None
                value, written = following.value, following.written
            if value is ABSENT:
                return None
            pairs[parameter.key] = (parameter, value, written)
        return list(pairs.values())

    def _settle_command_line(self) -> None:
        if not self.expects_input:
            self._choose_set(before_input=False, settle=True)
        else:
            count = self._choose_set(before_input=True, settle=False)
            if count > 1:
                taking = tuple(name for name in self.sets if self._takes_input(name))
                if taking and taking != self.sets:
                    self.sets, self.narrowed = taking, True
                    self._choose_set(before_input=True, settle=False)
        missing = self._missing()
        if missing:
            names = " ".join(parameter.name for parameter in missing)
            raise self._problem(
                "MissingMandatoryParameter",
                f"Cannot process command because of one or more missing mandatory parameters: {names}.",
            )

    def _reparse(self, arguments: Sequence[Argument], *, dynamic: bool) -> list[Argument]:
        """Join `-Name value` pairs; leave names this command does not know for later."""
        done: list[Argument] = []
        index = 0
        while index < len(arguments):
            argument = arguments[index]
            index += 1
            if argument.text == "--" and argument.value in ("--", ABSENT):
                # What follows `--` is no parameter, whatever it looks like.
                done.extend(_as_value(rest) for rest in arguments[index:])
                break
            if argument.name is None:
                done.append(argument)
                continue
            parameter = self._matching(argument.name, dynamic=dynamic)
            if parameter is None:
                if not self.spec.advanced and argument.value is ABSENT and index < len(arguments):
                    following = arguments[index]
                    if following.name is None:
                        index += 1
                        argument = Argument(
                            argument.name, following.value, argument.text, written=following.written
                        )
                done.append(argument)
                continue
            if argument.value is not ABSENT:
                done.append(
                    Argument(
                        parameter.name, argument.value, argument.text, argument.splatted, argument.written
                    )
                )
            elif parameter.is_switch:
                done.append(Argument(parameter.name, SwitchParameter(present=True), argument.text))
            elif index < len(arguments) and not self._is_parameter(arguments[index], dynamic=dynamic):
                following = arguments[index]
                index += 1
                value = following.text if following.name is not None else following.value
                done.append(Argument(parameter.name, value, argument.text, written=following.written))
            else:
                raise self._problem(
                    "MissingArgument",
                    f"Missing an argument for parameter '{parameter.name}'. Specify a parameter of type "
                    f"'{parameter.type.name}' and try again.",
                )
        return done

    def _is_parameter(self, argument: Argument, *, dynamic: bool) -> bool:
        if argument.name is None:
            return False
        return bool(self.spec.match(argument.name, dynamic=dynamic)) or argument.value is not ABSENT

    def _matching(self, name: str, *, dynamic: bool) -> ParameterSpec | None:
        found = self.spec.match(name, dynamic=dynamic)
        if len(found) > 1:
            listed = " ".join(f"-{parameter.name}" for parameter in found)
            raise self._problem(
                "AmbiguousParameter",
                f"Parameter cannot be processed because the parameter name '{name}' is ambiguous. Possible matches "
                f"include: {listed}.",
            )
        return found[0] if found else None

    def _named(self, arguments: Sequence[Argument]) -> list[Argument]:
        left: list[Argument] = []
        for argument in arguments:
            parameter = self.spec.by_name.get(argument.name.lower()) if argument.name is not None else None
            if parameter is None or argument.value is ABSENT:
                left.append(argument)
                continue
            key = parameter.key
            if key in self.bound or key in self.delayed:
                raise self._problem(
                    "ParameterAlreadyBound",
                    f"Cannot bind parameter because parameter '{parameter.name}' is specified more than once. To "
                    "provide multiple values to parameters that can accept multiple values, use the array syntax. "
                    'For example, "-parameter value1,value2,value3".',
                )
            self.bind(parameter, argument.value, argument.written)
        return left

    def _positional(self, arguments: Sequence[Argument]) -> tuple[list[Argument], DotNetException | None]:
        """Bind what has no name by position; what finds no place is left."""
        values = _positional_arguments(arguments)
        if not values:
            return list(arguments), None
        taken: set[int] = set()
        problem: DotNetException | None = None
        waiting = iter(values)
        for position in self.spec.positions:
            bucket = self._bucket(position)
            if not bucket:
                continue
            argument = next(waiting, None)
            if argument is None:
                break
            done, failure = self._into_bucket(bucket, argument.value, argument.written)
            if done:
                taken.add(id(argument))
            problem = problem or failure
        left = [argument for argument in arguments if id(argument) not in taken]
        return left, problem

    def _bucket(self, position: int) -> list[tuple[ParameterSpec, set[str]]]:
        """The unbound parameters at a position, with the valid sets in which they have that position."""
        found = []
        for parameter in self.spec.parameters:
            if parameter.key in self.bound or parameter.key in self.delayed:
                continue
            sets = set()
            for which, place in parameter.places.items():
                if place.position != position or place.rest:
                    continue
                if which == ALL_SETS or which in self.sets:
                    sets.add(which)
            if sets:
                found.append((parameter, sets))
        return found

    def _into_bucket(
        self, bucket: list[tuple[ParameterSpec, set[str]]], value: Value, written: str
    ) -> tuple[bool, DotNetException | None]:
        default = self.spec.default_set
        in_default = [
            p for p, sets in bucket if ALL_SETS in sets or (default is not None and default in sets)
        ]
        everyone = [p for p, _ in bucket]
        use_default = default is not None and (not self.sets or default in self.sets)
        tries: list[tuple[list[ParameterSpec], bool]] = []
        if use_default:
            tries.append((in_default, False))
        tries.append((everyone, False))
        if use_default:
            tries.append((in_default, True))
        tries.append((everyone, True))
        problem: DotNetException | None = None
        for parameters, coerce in tries:
            for parameter in parameters:
                if parameter.guard is not None and not parameter.guard(value):
                    continue
                if not coerce and not fits(value, parameter):
                    continue
                try:
                    self.bind(parameter, value, written, coerce=coerce)
                except (ParameterBindingValidationException, Refusal):
                    raise
                except DotNetException as failure:
                    problem = problem or failure
                    continue
                return True, None
        return False, problem

    def _remaining(self, left: Sequence[Argument], problem: DotNetException | None) -> None:
        """Hand what is left to a ValueFromRemainingArguments parameter, to `$args`, or complain."""
        if not left:
            return
        taker = self._taker()
        if taker is not None:
            values: list[Value] = []
            for argument in left:
                if argument.name is not None:
                    values.append(argument.text or f"-{argument.name}")
                if argument.value is not ABSENT:
                    values.append(argument.value)
            if len(values) == 1 and (not self.spec.script or is_enumerable(plain(values[0]))):
                self.bind(taker, values[0])
            else:
                self.bind(taker, Array(values))
            return
        if problem is not None:
            raise problem
        if not self.spec.advanced:
            for argument in left:
                if argument.name is not None:
                    self.rest.append(Decorated(argument.text or f"-{argument.name}", ParameterMark()))
                if argument.value is not ABSENT:
                    self.rest.append(argument.value)
            return
        first = next((argument for argument in left if argument.name is not None), left[0])
        if first.name is not None:
            if not self.spec.script and has_real_parameter(self.spec.name, first.name):
                raise Refusal("parameter", f"{self.spec.name} -{first.name}")
            raise self._problem(
                "NamedParameterNotFound",
                f"A parameter cannot be found that matches parameter name '{first.name}'.",
            )
        shown = to_text(left[0].value, self.scope)
        raise self._problem(
            "PositionalParameterNotFound",
            f"A positional parameter cannot be found that accepts argument '{shown}'.",
        )

    def _taker(self) -> ParameterSpec | None:
        for parameter in self.spec.parameters:
            if parameter.key in self.bound:
                continue
            for which, place in parameter.places.items():
                if place.rest and (which == ALL_SETS or which in self.sets):
                    return parameter
        return None

    def _defaults(self) -> None:
        """`$PSDefaultParameterValues`, for advanced functions and cmdlets."""
        if not self.spec.advanced:
            return
        table = self.scope.get("psdefaultparametervalues")
        if not isinstance(table, Hashtable) or not len(table) or to_bool(table.get("Disabled")):
            return
        for key, value in table.items():
            command, cut, name = key.partition(":") if isinstance(key, str) else ("", "", "")
            if not cut or not like(self.spec.name, command.strip("'\" ")):
                continue
            found = self.spec.match(name.strip("'\" "), dynamic=True)
            if len(found) != 1 or found[0].name.lower() in self.bound:
                continue
            if isinstance(value, ScriptBlock):
                raise Refusal("value", key, "a script block in $PSDefaultParameterValues")
            self.bind(found[0], value)
            self.given.pop(found[0].name.lower(), None)

    # -- parameter sets ----------------------------------------------------------------------------------------------

    def _narrow(self, parameter: ParameterSpec) -> None:
        if parameter.in_all_sets or not parameter.places:
            return
        self.sets = tuple(which for which in self.sets if which in parameter.places)
        self.narrowed = True

    def _choose_set(self, *, before_input: bool, settle: bool) -> int:
        """How many sets are still possible; raises AmbiguousParameterSet when the arguments do not decide."""
        spec = self.spec
        default = spec.default_set
        if not spec.set_names:
            self.set_name = default or ALL_SETS
            return 1
        if not self.sets:
            raise self._ambiguous_set()
        if len(self.sets) == 1:
            self.set_name = self.sets[0]
            if before_input or self.narrowed:
                return 1
        if before_input and any(self._takes_input(which) for which in self.sets) and len(self.sets) > 1:
            if not self.narrowed and default:
                self.set_name = default
            return len(self.sets)
        if default and default in self.sets:
            self.set_name = default
            if settle:
                self.sets = (default,)
            return 1 if settle else len(self.sets)
        if before_input and self.expects_input:
            return len(self.sets)
        if len(self.sets) == 1:
            return 1
        possible = [which for which in self.sets if not self._missing_in(which)]
        chosen = [which for which in possible if self._has_own_mandatory(which)] or possible
        if len(chosen) == 1 and (len(possible) == 1 or self._has_own_mandatory(chosen[0])):
            self.set_name = chosen[0]
            self.sets = (chosen[0],)
            return 1
        raise self._ambiguous_set()

    def _has_own_mandatory(self, which: str) -> bool:
        return any(
            parameter.key in self.bound and which in parameter.places and parameter.places[which].mandatory
            for parameter in self.spec.parameters
        )

    def _takes_input(self, which: str) -> bool:
        """Is there an unbound parameter in this set that takes pipeline input?"""
        for parameter in self.spec.parameters:
            if parameter.key in self.bound:
                continue
            place = parameter.place_in(which)
            if place is not None and (place.by_value or place.by_name):
                return True
        return False

    def _missing_in(self, which: str) -> list[ParameterSpec]:
        found = []
        for parameter in self.spec.parameters:
            place = parameter.place_in(which)
            if place is None or not place.mandatory:
                continue
            key = parameter.key
            if key in self.bound or key in self.delayed:
                continue
            if self.expects_input and (place.by_value or place.by_name):
                continue
            found.append(parameter)
        return found

    def _missing(self) -> list[ParameterSpec]:
        """The mandatory parameters without a value, in the set that would be used."""
        if not self.spec.set_names:
            return self._missing_in(ALL_SETS)
        best: list[ParameterSpec] | None = None
        candidates = list(self.sets)
        if self.spec.default_set in candidates:
            candidates.remove(self.spec.default_set)
            candidates.insert(0, self.spec.default_set)
        for which in candidates:
            missing = self._missing_in(which)
            if not missing:
                return []
            best = missing if best is None else best
        return best or []

    def _ambiguous_set(self) -> ParameterBindingException:
        return self._problem(
            "AmbiguousParameterSet",
            "Parameter set cannot be resolved using the specified named parameters. One or more parameters issued cannot "
            "be used together or an insufficient number of parameters were provided.",
        )

    # -- one value into one parameter -----------------------------------------------------------------------------------

    def bind(self, parameter: ParameterSpec, value: Value, written: str = "", *, coerce: bool = True) -> None:
        """Convert, validate and store one value; `written` is how a number stood in the script.

        Without `coerce` the value fits as it is, as positional arguments are tried first.
        """
        if written and type(value) in NUMBER_CLASSES and parameter.type is not OBJECT:
            value = _number_or_text(parameter, value, written)
        if parameter.refused:
            raise Refusal("parameter", f"{self.spec.name} -{parameter.name}")
        key = parameter.key
        if value is NOTHING:
            value = None
        if isinstance(value, ScriptBlock) and self._delays(parameter):
            self.delayed[key] = value
            self._narrow(parameter)
            return
        self.bound[key] = self.given[key] = self.converted(parameter, value, coerce=coerce)
        self._narrow(parameter)

    def _delays(self, parameter: ParameterSpec) -> bool:
        if not parameter.takes_pipeline or not self.expects_input:
            return False
        kind = parameter.type.element if parameter.type.kind == "array" else parameter.type
        return kind not in (OBJECT, PS_OBJECT, type_of(_A_BLOCK))

    def converted(self, parameter: ParameterSpec, value: Value, *, coerce: bool = True) -> Value:
        """The value as the parameter's type, or a binding error."""
        if self.spec.script and not coerce and parameter.types == (array_of(STRING),):
            # ParameterBinderBase.EncodeCollection copies fitting elements: $null among texts stays $null. Only a
            # coercion (by name, or when something does not fit) goes through a conversion, which makes it ''.
            value = self._coerce_array(parameter.type, value)
        elif self.spec.script:
            value = self._transform(parameter, value)
        else:
            value = self._coerce(parameter, value)
        for validator in reversed(parameter.validators):
            try:
                validator.check(value, self.scope)
            except ValidationFailure as failure:
                raise ParameterBindingValidationException(
                    f"Cannot validate argument on parameter '{parameter.name}'. {failure.text}",
                    self._id("ParameterArgumentValidationError"),
                    inner=failure.inner,
                ) from failure
        if parameter.mandatory_somewhere:
            self._check_not_empty(parameter, value)
        return value

    def _transform(self, parameter: ParameterSpec, value: Value) -> Value:
        """What the type constraints of a script's parameter do."""
        for kind in parameter.types or (parameter.type,):
            if kind is OBJECT or kind is PS_OBJECT:
                continue
            if kind is PS_REFERENCE:
                if not isinstance(value, Reference):
                    raise self._problem(
                        "ParameterArgumentTransformationError",
                        f"Cannot process argument transformation on parameter '{parameter.name}'. Reference type is "
                        "expected in argument.",
                        ParameterBindingArgumentTransformationException,
                    )
                continue
            try:
                if kind is STRING and self.spec.advanced and is_enumerable(plain(value)) and _is_array(value):
                    raise PSInvalidCastException(
                        "Cannot convert value to type System.String.", "InvalidCastFromAnyTypeToString"
                    )
                element = kind.element if kind.kind == "array" else kind
                if element in (BOOLEAN, SWITCH_PARAMETER):
                    items = [value] if kind.kind != "array" else list(enumerate_value(value) or [value])
                    for item in items:
                        _check_bool(item, kind if kind.kind != "array" else BOOLEAN)
                value = convert(value, kind)
            except DotNetException as failure:
                raise ParameterBindingArgumentTransformationException(
                    f"Cannot process argument transformation on parameter '{parameter.name}'. {failure.message}",
                    self._id("ParameterArgumentTransformationError"),
                    inner=failure,
                ) from failure
        return value

    def _coerce(self, parameter: ParameterSpec, value: Value) -> Value:
        """What the binder does for a cmdlet's parameter."""
        kind = parameter.type
        if kind is OBJECT or kind is PS_OBJECT:
            return value
        try:
            if kind.kind == "array":
                return self._coerce_array(kind, value)
            return self._coerce_one(kind, value, parameter)
        except ParameterBindingException:
            raise
        except DotNetException as failure:
            raise ParameterBindingException(
                f"Cannot bind parameter '{parameter.name}'. {failure.message}",
                self._id("CannotConvertArgumentNoMessage"),
                inner=failure,
            ) from failure

    def _coerce_array(self, kind: DotNetType, value: Value) -> Value:
        assert kind.element is not None
        if value is None:
            return None
        if type_of(value) is kind:
            bare = plain(value)
            if any(type(item) is Decorated for item in bare):
                return Array((plain(item) for item in bare), kind.element)
            return bare
        items = enumerate_value(value)
        if kind.element is OBJECT or kind.element is PS_OBJECT:
            return Array([value] if items is None else items)
        if kind.element is STRING and items is not None:
            # $null inside a list stays $null here, so that it can be complained of.
            texts = [None if item is None else convert(item, STRING) for item in items]
            return Array(texts, STRING)
        return convert(value, kind)

    def _coerce_one(self, kind: DotNetType, value: Value, parameter: ParameterSpec) -> Value:
        if type_of(value).is_a(kind) and value is not None:
            return plain(value)
        if kind in (BOOLEAN, SWITCH_PARAMETER):
            bare = plain(value)
            if not isinstance(bare, (bool, SwitchParameter)) and type(bare) not in NUMBER_CLASSES:
                raise self._problem(
                    "CannotConvertArgument",
                    f"Cannot convert '{type_of(value).name}' to the type '{kind.name}' required by parameter "
                    f"'{parameter.name}'. ",
                )
        if _is_array(value) and kind.kind != "interface":
            raise self._problem(
                "CannotConvertArgument",
                f"Cannot convert '{type_of(value).name}' to the type '{kind.name}' required by parameter "
                f"'{parameter.name}'. Specified method is not supported.",
            )
        return convert(value, kind)

    def _check_not_empty(self, parameter: ParameterSpec, value: Value) -> None:
        if value is None:
            if not parameter.allow_null:
                raise self._empty("Null", parameter, "it is null")
            return
        if type(value) is str:
            if not value and parameter.type is STRING and not parameter.allow_empty_string:
                raise self._empty("EmptyString", parameter, "it is an empty string")
            return
        if parameter.type.kind != "array" and parameter.type is not OBJECT:
            return
        if parameter.type.kind != "array":
            return
        items = enumerate_value(value)
        if items is None:
            return
        items = list(items)
        if not items and not parameter.allow_empty_collection:
            raise self._empty("EmptyArray", parameter, "it is an empty array")
        for item in items:
            if item is None and not parameter.allow_null:
                raise self._empty("Null", parameter, "it is null")
            is_empty = type(item) is str and not item and parameter.type.element is STRING
            if is_empty and not parameter.allow_empty_string:
                raise self._empty("EmptyString", parameter, "it is an empty string")

    def _empty(self, what: str, parameter: ParameterSpec, why: str) -> ParameterBindingValidationException:
        return ParameterBindingValidationException(
            f"Cannot bind argument to parameter '{parameter.name}' because {why}.",
            self._id(f"ParameterArgumentValidationError{what}NotAllowed"),
        )

    def only_input(self) -> str | None:
        """The one parameter that takes every pipeline object as it is, when there is just that one to bind."""
        if self.delayed or not self.expects_input:
            return None
        takers = [p for p in self.spec.takers if p.key not in self.bound]
        if len(takers) != 1 or takers[0].type not in (OBJECT, PS_OBJECT):
            return None
        only = takers[0]
        places = list(only.places.values())
        if (
            len(places) != 1
            or not places[0].by_value
            or places[0].mandatory
            or only.validators
            or only.refused
        ):
            return None
        if self.sets and not only.in_all_sets:
            return None
        if len(self.sets) > 1:
            self._choose_set(before_input=False, settle=True)
        return only.key

    # -- pipeline objects ---------------------------------------------------------------------------------------------

    def pipeline_object(self, item: Value) -> bool:
        """Bind one object from the pipeline; False means: nothing takes it (InputObjectNotBound)."""
        self.sets = self._line_sets
        self.narrowed = self._line_narrowed
        for key in self._by_pipeline:
            self.bound.pop(key, None)
            self.given.pop(key, None)
        self._by_pipeline.clear()
        done = self._run_delayed(item)
        for by_value, coerce in ((True, False), (False, False), (True, True), (False, True)):
            if self._bind_state(item, by_value=by_value, coerce=coerce):
                done = True
        if not done:
            return False
        self._choose_set(before_input=False, settle=True)
        missing = self._missing_after_input()
        if missing:
            names = " ".join(parameter.name for parameter in missing)
            raise self._problem(
                "InputObjectMissingMandatory",
                f"The input object cannot be bound because it did not contain the information required to bind all "
                f"mandatory parameters:  {names}",
            )
        return True

    def _missing_after_input(self) -> list[ParameterSpec]:
        outer, self.expects_input = self.expects_input, False
        try:
            return self._missing()
        finally:
            self.expects_input = outer

    def _run_delayed(self, item: Value) -> bool:
        for key, block in self.delayed.items():
            parameter = self.spec.by_name[key]
            answer = self.scope.call_with_underbar(block, item)
            self.bound[key] = self.given[key] = self.converted(parameter, answer)
            self._by_pipeline.add(key)
        return bool(self.delayed)

    def _bind_state(self, item: Value, *, by_value: bool, coerce: bool) -> bool:
        default = self.spec.default_set
        prefers = default is not None and default in self.sets and len(self.sets) > 1
        if prefers and self._bind_state_in((str(default),), item, by_value=by_value, coerce=coerce):
            return True
        return self._bind_state_in(self.sets, item, by_value=by_value, coerce=coerce)

    def _bind_state_in(self, sets: Sequence[str], item: Value, *, by_value: bool, coerce: bool) -> bool:
        done = False
        for parameter in self.spec.parameters:
            key = parameter.key
            if key in self.bound:
                continue
            place = self._valid_place(parameter, sets, by_value=by_value)
            if place is None:
                continue
            value = item if by_value else self._property(parameter, item)
            if value is ABSENT or (not coerce and not fits(value, parameter)):
                continue
            try:
                converted = self.converted(parameter, value)
            except ParameterBindingValidationException:
                raise
            except DotNetException:
                continue
            self.bound[key] = self.given[key] = converted
            self._by_pipeline.add(key)
            self._narrow(parameter)
            done = True
        return done

    def _valid_place(self, parameter: ParameterSpec, sets: Sequence[str], *, by_value: bool) -> Place | None:
        for which, place in parameter.places.items():
            if (which == ALL_SETS or which in sets) and (place.by_value if by_value else place.by_name):
                return place
        return None

    def _property(self, parameter: ParameterSpec, item: Value) -> Value:
        if item is None:
            return ABSENT
        for name in (parameter.name, *parameter.aliases):
            found = property_of(item, name, self.scope)
            if found is not None:
                return found[0]
        return ABSENT

    # -- errors -----------------------------------------------------------------------------------------------------

    def _id(self, short: str) -> str:
        return f"{short},{self.spec.suffix}"

    def _problem(
        self,
        short: str,
        message: str,
        kind: type[ParameterBindingException] = ParameterBindingException,
    ) -> ParameterBindingException:
        made = kind(message, self._id(short))
        made.error_id = short
        made.command = self.spec.name
        return made


def _positional_arguments(arguments: Sequence[Argument]) -> list[Argument]:
    """What has no name; the value behind a name that is not known yet is taken to belong to that name."""
    values: list[Argument] = []
    belongs = False
    for argument in arguments:
        if argument.name is None and not belongs:
            values.append(argument)
        belongs = argument.name is not None and argument.value is ABSENT
    return values


def _as_value(argument: Argument) -> Argument:
    """An argument after `--`: a parameter name is only text there."""
    if argument.name is None:
        return argument
    return Argument(None, argument.text or f"-{argument.name}", argument.text)


def _number_or_text(parameter: ParameterSpec, value: Value, written: str) -> Value:
    """A number goes into a text or version parameter as it was written (`1.20`), into others as a number."""
    kind = parameter.type.element if parameter.type.kind == "array" else parameter.type
    if kind is STRING or kind is VERSION:
        return written
    return value


class ParameterMark(Extension):
    """Beside a `-name` in `$args`: text for the script, a parameter name again when `$args` is splatted."""

    __slots__ = ()


_A_BLOCK = ScriptBlock("")


def has_real_parameter(command: str, name: str) -> bool:
    """Does the real command have a parameter of that (perhaps abbreviated) name, which its signature here lacks?"""
    facts = find_facts(command)
    key = name.lower()
    return facts is not None and any(known.startswith(key) for known in facts.parameters)


def _is_array(value: Value) -> bool:
    return isinstance(plain(value), list) or is_enumerable(plain(value))


def _check_bool(value: Value, kind: DotNetType) -> None:
    bare = plain(value)
    if isinstance(bare, (bool, SwitchParameter)) or type(bare) in NUMBER_CLASSES:
        return
    if bare is None and kind is SWITCH_PARAMETER:
        return  # `-Force:$null` is a switch that is off; only [bool] minds
    shown = "" if bare is None or bare is NOTHING else type_of(bare).name
    raise PSInvalidCastException(
        f'Cannot convert value "{shown}" to type "{kind.name}". Boolean parameters accept only Boolean values and '
        "numbers, such as $True, $False, 1 or 0.",
        "InvalidCast",
    )


def fits(value: Value, parameter: ParameterSpec) -> bool:
    """Can the value go into the parameter without conversion?"""
    kind = parameter.type
    if kind is OBJECT or kind is PS_OBJECT:
        return True
    if value is None or value is NOTHING:
        return not kind.is_value_type
    if kind.kind == "array":
        assert kind.element is not None
        if kind.element is OBJECT:
            return True
        items = enumerate_value(value)
        checked: Iterable[Value] = [value] if items is None else items
        return all(type_of(item).is_a(kind.element) for item in checked if item is not None)
    return type_of(value).is_a(kind)

"""Attributes in scripts: what they make of a parameter, and the rules a typed or validated variable keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from winboot_lab.engine.compiler.core import expression
from winboot_lab.engine.convert import cast, convert, from_nothing, to_bool
from winboot_lab.engine.dotnet import OBJECT, DotNetType
from winboot_lab.engine.exceptions import (
    ArgumentTransformationMetadataException,
    DotNetException,
    PSInvalidCastException,
    RuntimeException,
    ValidationMetadataException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.signatures import ALL_SETS, ParameterSpec, Place, Validator
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.validation import (
    HasCount,
    HasLength,
    InRange,
    Matches,
    NotNull,
    NotNullOrEmpty,
    OneOf,
    Script,
    ValidationFailure,
)
from winboot_lab.engine.values import (
    BOOLEAN,
    NOTHING,
    NUMBER_CLASSES,
    STRING,
    SWITCH_PARAMETER,
    ScriptBlock,
    SwitchParameter,
    enumerate_value,
    plain,
    type_of,
)
from winboot_lab.language import syntax

Value = Any


def attribute_name(node: syntax.Attribute) -> str:
    """The attribute's name in lower case, without namespace and without a trailing `Attribute`."""
    name = node.type.name.lower().rpartition(".")[2]
    return name.removesuffix("attribute") if name != "attribute" else name


def named_values(node: syntax.Attribute, scope: Scope, known: Sequence[str]) -> dict[str, Value]:
    """The `Name = value` arguments, by lower-case name; an unknown one is PowerShell's error."""
    found: dict[str, Value] = {}
    for argument in node.named:
        key = argument.name.lower()
        if key == "errormessage":
            raise Refusal("construct", f"[{node.type.name}(ErrorMessage = …)]", "PowerShell 7 only")
        if key not in known:
            raise RuntimeException(
                f"Property '{argument.name}' cannot be found for type "
                f"'System.Management.Automation.{node.type.name}Attribute'.",
                "PropertyNotFoundForType",
                "InvalidOperation",
            )
        found[key] = True if argument.value is None else expression(argument.value)(scope)
    return found


def positional_values(node: syntax.Attribute, scope: Scope) -> list[Value]:
    """The arguments without a name."""
    return [expression(argument)(scope) for argument in node.positional]


_IGNORED = frozenset(
    ("outputtype", "argumentcompleter", "psdefaultvalue", "supportswildcards", "dontshow", "suppressmessage")
)


def validator_of(node: syntax.Attribute, scope: Scope) -> Validator | None:
    """The check that an attribute declares, or None when it checks nothing."""
    name = attribute_name(node)
    if name not in _VALIDATORS:
        return None
    return _VALIDATORS[name](node, scope)


def _validate_set(node: syntax.Attribute, scope: Scope) -> Validator:
    options = named_values(node, scope, ("ignorecase",))
    words = tuple(to_text(value, scope) for value in positional_values(node, scope))
    return OneOf(words, ignore_case=to_bool(options.get("ignorecase", True)))


def _validate_range(node: syntax.Attribute, scope: Scope) -> Validator:
    named_values(node, scope, ())
    values = positional_values(node, scope)
    if len(values) != 2:
        raise Refusal("construct", "[ValidateRange] without two limits")
    return InRange(values[0], values[1])


def _validate_pattern(node: syntax.Attribute, scope: Scope) -> Validator:
    from winboot_lab.engine.regexes import IGNORE_CASE, regex

    options = named_values(node, scope, ("options",))
    if options:
        raise Refusal("parameter", "[ValidatePattern(Options = …)]")
    pattern = to_text(positional_values(node, scope)[0], scope)
    return Matches(pattern, regex(pattern, IGNORE_CASE))


def _validate_length(node: syntax.Attribute, scope: Scope) -> Validator:
    named_values(node, scope, ())
    low, high = positional_values(node, scope)
    return HasLength(int(low), int(high))


def _validate_count(node: syntax.Attribute, scope: Scope) -> Validator:
    named_values(node, scope, ())
    low, high = positional_values(node, scope)
    return HasCount(int(low), int(high))


def _validate_script(node: syntax.Attribute, scope: Scope) -> Validator:
    named_values(node, scope, ())
    block = positional_values(node, scope)[0]
    assert isinstance(block, ScriptBlock)
    return Script(block)


_VALIDATORS: dict[str, Callable[[syntax.Attribute, Scope], Validator]] = {
    "validateset": _validate_set,
    "validaterange": _validate_range,
    "validatepattern": _validate_pattern,
    "validatelength": _validate_length,
    "validatecount": _validate_count,
    "validatescript": _validate_script,
    "validatenotnull": lambda _node, _scope: NotNull(),
    "validatenotnullorempty": lambda _node, _scope: NotNullOrEmpty(),
}

_PARAMETER_SETTINGS = (
    "mandatory",
    "position",
    "parametersetname",
    "valuefrompipeline",
    "valuefrompipelinebypropertyname",
    "valuefromremainingarguments",
    "helpmessage",
    "helpmessagebasename",
    "helpmessageresourceid",
    "dontshow",
)


def is_known_attribute(node: syntax.Attribute) -> bool:
    """Does the lab know what this attribute means?"""
    name = attribute_name(node)
    return name in _VALIDATORS or name in _IGNORED or name in _PARAMETER_MARKS


_PARAMETER_MARKS = frozenset(
    ["parameter", "alias", "allownull", "allowemptystring", "allowemptycollection", "cmdletbinding"]
)


def parameter_spec(node: syntax.Parameter, scope: Scope) -> ParameterSpec:
    """What the binder needs to know of one declared parameter. Raises TypeNotFound for an unknown type."""
    from winboot_lab.engine.compiler.types import resolve_type

    spec = ParameterSpec(node.name)
    types: list[DotNetType] = []
    validators: list[Validator] = []
    for attribute in node.attributes:
        if isinstance(attribute, syntax.TypeConstraint):
            types.append(resolve_type(scope, attribute.type))
            continue
        name = attribute_name(attribute)
        if name == "parameter":
            which, place = _place(attribute, scope)
            spec.places[which] = place
        elif name == "alias":
            spec.aliases += tuple(to_text(value, scope) for value in positional_values(attribute, scope))
        elif name == "allownull":
            spec.allow_null = True
        elif name == "allowemptystring":
            spec.allow_empty_string = True
        elif name == "allowemptycollection":
            spec.allow_empty_collection = True
        elif name in _VALIDATORS:
            validators.append(_VALIDATORS[name](attribute, scope))
        elif name not in _IGNORED:
            resolve_type(scope, attribute.type)
            raise Refusal("type", attribute.type.full, "as an attribute")
    if not spec.places:
        spec.places[ALL_SETS] = Place()
    spec.validators = tuple(validators)
    spec.types = tuple(reversed(types))
    spec.type = types[-1] if types else OBJECT
    spec.typed = bool(types)
    if node.default is not None:
        spec.default = expression(node.default)
    return spec


def _place(node: syntax.Attribute, scope: Scope) -> tuple[str, Place]:
    values = named_values(node, scope, _PARAMETER_SETTINGS)
    which = to_text(values.get("parametersetname", ALL_SETS), scope)
    position = values.get("position")
    return which, Place(
        mandatory=to_bool(values.get("mandatory", False)),
        position=None if position is None else int(convert(position, type_of(0))),
        by_value=to_bool(values.get("valuefrompipeline", False)),
        by_name=to_bool(values.get("valuefrompipelinebypropertyname", False)),
        rest=to_bool(values.get("valuefromremainingarguments", False)),
    )


# -- variables


def variable_rules(
    scope: Scope,
    name: str,
    rules: Sequence[syntax.Attribute | syntax.TypeConstraint],
    *,
    first: bool,
) -> Callable[[Value], Value]:
    """What an assignment to `[int][ValidateRange(1, 3)]$name` does to the value, now and later."""
    from winboot_lab.engine.compiler.types import resolve_type

    types = [resolve_type(scope, rule.type) for rule in rules if isinstance(rule, syntax.TypeConstraint)]
    checks: list[Validator] = []
    for rule in rules:
        if isinstance(rule, syntax.Attribute):
            made = validator_of(rule, scope)
            if made is not None:
                checks.append(made)
            elif not is_known_attribute(rule):
                resolve_type(scope, rule.type)
                raise Refusal("type", rule.type.full, "as an attribute")
    return keep_rules(scope, name, types, checks, first=first)


def keep_rules(
    scope: Scope,
    name: str,
    types: Sequence[DotNetType],
    checks: Sequence[Validator],
    *,
    first: bool = False,
    converts: bool = False,
) -> Callable[[Value], Value]:
    """A converter for new values of a variable. In a block with its own scope a failed conversion is a plain cast error."""
    local = scope.session.stack[-1].local or converts

    def apply(value: Value) -> Value:
        if value is NOTHING and types:
            # A function's own variable is a slot of that type, which is set through a cast; others are set through
            # LanguagePrimitives.ConvertTo, to which "no output" is $null.
            if local and not converts and len(types) == 1:
                return from_nothing(types[0])
            value = None
        for kind in reversed(types):
            value = _convert_for_variable(value, kind, scope, local=local)
        for check in reversed(checks):
            try:
                check.check(value, scope)
            except ValidationFailure as failure:
                shown = to_text(value, scope)
                text = (
                    f"The attribute cannot be added because variable {name} with value {shown} would no longer be valid."
                    if first
                    else f"The variable cannot be validated because the value {shown} is not a valid value for the "
                    f"{name} variable."
                )
                raise ValidationMetadataException(text, "ValidateSetFailure", "MetadataError") from failure
        return value

    return apply


def _convert_for_variable(value: Value, kind: DotNetType, scope: Scope, *, local: bool) -> Value:
    if kind is STRING and enumerate_value(value) is not None:
        return to_text(value, scope)
    try:
        if kind in (BOOLEAN, SWITCH_PARAMETER) and not local:
            bare = plain(value)
            if (
                not isinstance(bare, (bool, SwitchParameter))
                and type(bare) not in NUMBER_CLASSES
                and bare is not None
            ):
                raise PSInvalidCastException(
                    f'Cannot convert value "{type_of(bare).name}" to type "{kind.name}". Boolean parameters accept only '
                    "Boolean values and numbers, such as $True, $False, 1 or 0.",
                )
        return convert(value, kind)
    except DotNetException as failure:
        if local:
            return cast(value, kind)
        raise ArgumentTransformationMetadataException(
            failure.message, "RuntimeException", "MetadataError", inner=failure
        ) from failure

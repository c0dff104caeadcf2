"""`dynamicparam`: parameters that a function works out when it is called, and the objects it describes them with."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.dotnet import OBJECT, DotNetType, dotnet
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.signatures import ALL_SETS, CommandSpec, ParameterSpec, Place, Validator
from winboot_lab.engine.validation import NotNullOrEmpty, OneOf
from winboot_lab.engine.values import STRING, Dictionary, Instance, enumerate_value

Value = Any
_SMA = "System.Management.Automation."

ATTRIBUTE = dotnet("System.Attribute")
ATTRIBUTE.refuses("TypeId Match IsDefaultAttribute GetHashCode")


class ParameterAttribute(Instance):
    """[Parameter()] as an object."""

    def __init__(self) -> None:
        self.mandatory = False
        self.position = -(2**31)
        self.set_name = ALL_SETS
        self.by_value = False
        self.by_name = False
        self.rest = False
        self.help = None

    @property
    def place(self) -> Place:
        position = None if self.position == -(2**31) else self.position
        return Place(self.mandatory, position, self.by_value, self.by_name, self.rest)


PARAMETER = dotnet(
    _SMA + "ParameterAttribute", ParameterAttribute, base=ATTRIBUTE, accelerators=["parameter"]
)
PARAMETER.constructor("")(ParameterAttribute)
for _name, _type, _field in (
    ("Mandatory", "bool", "mandatory"),
    ("Position", "int", "position"),
    ("ParameterSetName", "string", "set_name"),
    ("ValueFromPipeline", "bool", "by_value"),
    ("ValueFromPipelineByPropertyName", "bool", "by_name"),
    ("ValueFromRemainingArguments", "bool", "rest"),
    ("HelpMessage", "string", "help"),
):
    PARAMETER.prop(
        _name,
        _type,
        lambda self, field=_field: getattr(self, field),
        lambda self, value, field=_field: setattr(self, field, value),
    )
PARAMETER.refuses("HelpMessageBaseName HelpMessageResourceId DontShow TypeId")


class SetAttribute(Instance):
    """[ValidateSet()] as an object."""

    def __init__(self, words: list[str]) -> None:
        self.words = tuple(words)


SET_ATTRIBUTE = dotnet(
    _SMA + "ValidateSetAttribute", SetAttribute, base=ATTRIBUTE, accelerators=["validateset"]
)
SET_ATTRIBUTE.constructor("params string[] validValues")(lambda words: SetAttribute(list(words)))
SET_ATTRIBUTE.prop("ValidValues", "object", lambda self: _texts(self.words))
SET_ATTRIBUTE.refuses("IgnoreCase TypeId")


def _texts(words: tuple[str, ...]) -> Value:
    from winboot_lab.engine.values import Array

    return Array(words, STRING)


class NotEmptyAttribute(Instance):
    """[ValidateNotNullOrEmpty()] as an object."""


NOT_EMPTY_ATTRIBUTE = dotnet(_SMA + "ValidateNotNullOrEmptyAttribute", NotEmptyAttribute, base=ATTRIBUTE)
NOT_EMPTY_ATTRIBUTE.constructor("")(NotEmptyAttribute)
NOT_EMPTY_ATTRIBUTE.refuses("TypeId")


class ConverterAttribute(Instance):
    """What stands for a parameter's type among its attributes."""


dotnet(_SMA + "ArgumentTypeConverterAttribute", ConverterAttribute, base=ATTRIBUTE).refuses(
    "TransformNullOptionalParameters Transform TypeId"
)


def attribute_of(validator: Validator) -> Value:
    """The attribute behind a validator, or None for one that is not known as an object."""
    if isinstance(validator, OneOf):
        return SetAttribute(list(validator.words))
    return NotEmptyAttribute() if isinstance(validator, NotNullOrEmpty) else None


class RuntimeParameter(Instance):
    """System.Management.Automation.RuntimeDefinedParameter."""

    def __init__(self, name: str = "", kind: DotNetType = OBJECT, attributes: Value = None) -> None:
        self.name = name
        self.kind = kind
        self.attributes = attributes
        self.value: Value = None
        self.is_set = False


RUNTIME_PARAMETER = dotnet(_SMA + "RuntimeDefinedParameter", RuntimeParameter)
RUNTIME_PARAMETER.constructor("")(RuntimeParameter)
RUNTIME_PARAMETER.constructor("string name, type parameterType, object attributes")(RuntimeParameter)
RUNTIME_PARAMETER.prop("Name", "string", lambda self: self.name)
RUNTIME_PARAMETER.prop("ParameterType", "type", lambda self: self.kind)
RUNTIME_PARAMETER.prop("Value", "object", lambda self: self.value)
RUNTIME_PARAMETER.prop("IsSet", "bool", lambda self: self.is_set)
RUNTIME_PARAMETER.prop("Attributes", "object", lambda self: self.attributes)
RUNTIME_PARAMETER.complete()


class RuntimeParameters(Dictionary):
    """System.Management.Automation.RuntimeDefinedParameterDictionary."""

    def __init__(self) -> None:
        super().__init__(STRING, RUNTIME_PARAMETER, ignore_case=True)

    @property
    def dotnet_type(self) -> DotNetType:
        return RUNTIME_PARAMETERS


RUNTIME_PARAMETERS = dotnet(
    _SMA + "RuntimeDefinedParameterDictionary",
    RuntimeParameters,
    base=Dictionary(STRING, RUNTIME_PARAMETER).dotnet_type,
)
RUNTIME_PARAMETERS.constructor("")(RuntimeParameters)
RUNTIME_PARAMETERS.refuses("HelpFile Data")


def with_dynamic(spec: CommandSpec, given: list[Value]) -> CommandSpec:
    """The command's parameters together with those its dynamicparam block answered."""
    found: list[ParameterSpec] = []
    for answer in given:
        if answer is None:
            continue
        if not isinstance(answer, RuntimeParameters):
            raise Refusal(
                "construct", "dynamicparam", "an answer that is not a RuntimeDefinedParameterDictionary"
            )
        found.extend(_spec_of(entry) for entry in answer.values())
    made = CommandSpec(
        spec.name,
        [*spec.parameters, *found],
        default_set=spec.default_set,
        suffix=spec.suffix,
        advanced=spec.advanced,
        script=spec.script,
        should_process=spec.should_process,
    )
    made.confirm_impact = spec.confirm_impact
    return made


def _spec_of(entry: RuntimeParameter) -> ParameterSpec:
    spec = ParameterSpec(entry.name, entry.kind, typed=entry.kind is not OBJECT, types=(entry.kind,))
    validators: list[Validator] = []
    for attribute in enumerate_value(entry.attributes) or ():
        if isinstance(attribute, ParameterAttribute):
            spec.places[attribute.set_name] = attribute.place
        elif isinstance(attribute, SetAttribute):
            validators.append(OneOf(attribute.words))
        elif isinstance(attribute, NotEmptyAttribute):
            validators.append(NotNullOrEmpty())
        else:
            raise Refusal("type", type(attribute).__name__, "as an attribute of a dynamic parameter")
    spec.validators = tuple(validators)
    spec.dynamic_only = True
    if not spec.places:
        spec.places[ALL_SETS] = Place()
    return spec


__all__ = ["ParameterAttribute", "RuntimeParameters", "to_bool", "with_dynamic"]

"""Script blocks, references, switches as objects; Activator and Tuple."""

from __future__ import annotations

from winboot_lab.engine.dotnet import DotNetType, Reference, Runtime, dotnet, generic
from winboot_lab.engine.values import (
    NOTHING,
    PS_REFERENCE,
    SCRIPT_BLOCK,
    SWITCH_PARAMETER,
    Instance,
    ScriptBlock,
    SwitchParameter,
    Value,
)

# -- script blocks


@SCRIPT_BLOCK.method("Invoke(params object[] args)", effect=True)
def _invoke(runtime: Runtime, self: ScriptBlock, arguments: Value) -> Value:
    from winboot_lab.engine.invoke import invoke_collection
    from winboot_lab.engine.scopes import Scope

    assert isinstance(runtime, Scope)
    return invoke_collection(runtime, self, list(arguments))


@SCRIPT_BLOCK.method("InvokeReturnAsIs(params object[] args)", effect=True)
def _invoke_as_is(runtime: Runtime, self: ScriptBlock, arguments: Value) -> Value:
    result = runtime.call(self, list(arguments))
    return NOTHING if result is None else result


@SCRIPT_BLOCK.method("GetNewClosure()", effect=True)
def _closure(runtime: Runtime, self: ScriptBlock) -> ScriptBlock:
    from winboot_lab.engine.invoke import close_over
    from winboot_lab.engine.scopes import Scope

    assert isinstance(runtime, Scope)
    return close_over(runtime, self)


@SCRIPT_BLOCK.static_method("Create(string script)")
def create_block(text: str) -> ScriptBlock:
    """A script block from text; a text that does not parse is a ParseException."""
    from winboot_lab.engine.invoke import code_of

    made = ScriptBlock(text)
    code_of(made)
    return made


SCRIPT_BLOCK.method("ToString()")(lambda self: self.text)
SCRIPT_BLOCK.prop("Module", "object", lambda self: None)
SCRIPT_BLOCK.prop("IsFilter", "bool", lambda self: False)
SCRIPT_BLOCK.prop("File", "string", lambda self: None)
SCRIPT_BLOCK.refuses(
    "Attributes DebuggerHidden Id IsConfiguration StartPosition CheckRestrictedLanguage GetSteppablePipeline "
    "InvokeWithContext GetPowerShell GetObjectData"
)

# -- references and switches


def _get(self: Reference) -> Value:
    return self.value


def _set(self: Reference, value: Value) -> None:
    self.value = value


PS_REFERENCE.prop("Value", "object", _get, _set)
PS_REFERENCE.name = "System.Management.Automation.PSReference"
PS_REFERENCE.complete()
SWITCH_PARAMETER.prop("IsPresent", "bool", lambda self: self.present)
SWITCH_PARAMETER.method("ToBool()")(lambda self: self.present)
SWITCH_PARAMETER.method("ToString()")(str)
SWITCH_PARAMETER.static_prop("Present", SWITCH_PARAMETER.name, lambda: SwitchParameter(present=True))
SWITCH_PARAMETER.constructor("bool isPresent")(lambda present: SwitchParameter(present=present))
SWITCH_PARAMETER.refuses("GetHashCode")

# -- Activator, Tuple

ACTIVATOR = dotnet("System.Activator", kind="static")


@ACTIVATOR.static_method("CreateInstance(type type)", effect=True)
@ACTIVATOR.static_method("CreateInstance(type type, params object[] args)", effect=True)
def _create(runtime: Runtime, kind: DotNetType, arguments: Value = ()) -> Value:
    from winboot_lab.engine.members import new_object

    return new_object(kind, list(arguments), runtime)


ACTIVATOR.refuses("CreateInstanceFrom CreateComInstanceFrom GetObject")


class Tuple(Instance):
    """System.Tuple of any size."""

    def __init__(self, items: list[Value], dotnet_type: DotNetType) -> None:
        self.items = items
        self.dotnet_type = dotnet_type

    def __str__(self) -> str:
        from winboot_lab.engine.formatting import dotnet_text

        return f"({', '.join(dotnet_text(item) for item in self.items)})"


def _tuple_type(arguments: tuple[DotNetType, ...]) -> DotNetType:
    text = ",".join(argument.name for argument in arguments)
    made = DotNetType(f"System.Tuple`{len(arguments)}[{text}]", base=TUPLE, arguments=arguments)
    for number, argument in enumerate(arguments):
        made.prop(f"Item{number + 1}", argument.name, lambda self, number=number: self.items[number])
    made.complete()
    return made


TUPLE = dotnet("System.Tuple")
generic("System.Tuple", _tuple_type)


def _make_tuple(*items: Value) -> Tuple:
    from winboot_lab.engine.values import OBJECT, close_generic, type_of

    kinds = tuple(OBJECT if item is None else type_of(item) for item in items)
    return Tuple(list(items), close_generic("System.Tuple", kinds))


for _count in range(1, 8):
    TUPLE.static_method(f"Create({', '.join(f'object item{n + 1}' for n in range(_count))})")(_make_tuple)
TUPLE.method("ToString()")(str)
TUPLE.refuses("Rest CompareTo")

"""Script blocks, references, switches as objects; Activator and Tuple."""

from __future__ import annotations

from winboot_lab.engine.dotnet import DotNetType, Reference, dotnet, generic
from winboot_lab.engine.values import (
    PS_REFERENCE,
    SCRIPT_BLOCK,
    ScriptBlock,
    Value,
)

# -- script blocks


@SCRIPT_BLOCK.static_method("Create(string script)")
def create_block(text: str) -> ScriptBlock:
    """A script block from text; a text that does not parse is a ParseException."""
    from winboot_lab.engine.invoke import code_of

    made = ScriptBlock(text)
    code_of(made)
    return made


SCRIPT_BLOCK.method("ToString()")(lambda self: self.text)
SCRIPT_BLOCK.prop("File", "string", lambda self: None)

# -- references and switches


def _get(self: Reference) -> Value:
    return self.value


def _set(self: Reference, value: Value) -> None:
    self.value = value


PS_REFERENCE.name = "System.Management.Automation.PSReference"

# -- Activator, Tuple

ACTIVATOR = dotnet("System.Activator", kind="static")


def _tuple_type(arguments: tuple[DotNetType, ...]) -> DotNetType:
    text = ",".join(argument.name for argument in arguments)
    made = DotNetType(f"System.Tuple`{len(arguments)}[{text}]", base=TUPLE, arguments=arguments)
    for number, argument in enumerate(arguments):
        made.prop(f"Item{number + 1}", argument.name, lambda self, number=number: self.items[number])
    return made


TUPLE = dotnet("System.Tuple")
generic("System.Tuple", _tuple_type)

"""Script blocks, references, switches as objects; Activator and Tuple."""

from __future__ import annotations

from winboot_lab.engine.values import (
    PS_REFERENCE,
    SCRIPT_BLOCK,
    ScriptBlock,
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


PS_REFERENCE.prop("Value", "object", lambda self: self.value, lambda self, new: setattr(self, "value", new))
PS_REFERENCE.name = "System.Management.Automation.PSReference"

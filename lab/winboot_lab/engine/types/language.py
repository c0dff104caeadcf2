"""System.Management.Automation.Language: parsing a text without running it, and the little of its tree that scripts read."""

from __future__ import annotations

from winboot_lab.engine.dotnet import OBJECT, Reference, dotnet, named
from winboot_lab.engine.programs import refuse_newer
from winboot_lab.engine.values import (
    SCRIPT_BLOCK,
    Array,
    Instance,
    ReadOnlyCollection,
    ScriptBlock,
    Value,
)
from winboot_lab.language import syntax
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import ParseErrors

_LANGUAGE = "System.Management.Automation.Language."


class ScriptExtent(Instance):
    """Where a piece of a script stands."""

    def __init__(self, text: str, first: tuple[int, int], last: tuple[int, int]) -> None:
        self.text = text
        self.first = first
        self.last = last

    def __str__(self) -> str:
        return self.text


class Ast(Instance):
    """A node of the tree."""

    def __init__(self, node: syntax.Node | None, text: str) -> None:
        self.node = node
        self.text = text

    @property
    def extent(self) -> ScriptExtent:
        if self.node is None:
            lines = self.text.split("\n")
            return ScriptExtent(self.text, (1, 1), (len(lines), len(lines[-1]) + 1))
        extent = self.node.extent
        return ScriptExtent(extent.text, extent.position, extent.end_position)

    def __str__(self) -> str:
        return self.text


class ScriptBlockAst(Ast):
    """A script, or what stands in braces."""


class ParamBlockAst(Ast):
    """`param(…)`."""


class ParameterAst(Ast):
    """One declared parameter."""


class Tokens(Instance):
    """Token[]: scripts pass a reference for them and rarely look inside."""


class Complaint(Instance):
    """System.Management.Automation.Language.ParseError."""

    def __init__(self, error: syntax.ParseError) -> None:
        self.error = error

    def __str__(self) -> str:
        return f"At line:{self.error.line} char:{self.error.column}\r\n{self.error.message}"


EXTENT = dotnet(_LANGUAGE + "InternalScriptExtent", ScriptExtent, base=OBJECT)
EXTENT.prop("Text", "string", lambda self: self.text)
EXTENT.prop("StartLineNumber", "int", lambda self: self.first[0])
EXTENT.prop("StartColumnNumber", "int", lambda self: self.first[1])
EXTENT.prop("EndLineNumber", "int", lambda self: self.last[0])
EXTENT.prop("EndColumnNumber", "int", lambda self: self.last[1])
EXTENT.prop("File", "string", lambda self: None)
EXTENT.method("ToString()")(lambda self: self.text)
EXTENT.refuses("StartScriptPosition EndScriptPosition StartOffset EndOffset")

AST = dotnet(_LANGUAGE + "Ast", Ast, base=OBJECT, kind="abstract")
AST.prop("Extent", EXTENT.name, lambda self: self.extent)
AST.method("ToString()")(lambda self: self.text)
AST.refuses("Parent Find FindAll Visit Copy SafeGetValue")


def _parameters(self: ParamBlockAst) -> Value:
    assert isinstance(self.node, syntax.ParamBlock)
    made = [ParameterAst(parameter, parameter.extent.text) for parameter in self.node.parameters]
    return ReadOnlyCollection(list(made), named(_LANGUAGE + "ParameterAst"))


def _param_block(self: ScriptBlockAst) -> Value:
    assert isinstance(self.node, syntax.ScriptBlock)
    block = self.node.params
    return None if block is None else ParamBlockAst(block, block.extent.text)


SCRIPT = dotnet(_LANGUAGE + "ScriptBlockAst", ScriptBlockAst, base=AST)
SCRIPT.prop("ParamBlock", _LANGUAGE + "ParamBlockAst", _param_block)
SCRIPT.refuses(
    "Attributes UsingStatements BeginBlock ProcessBlock EndBlock DynamicParamBlock ScriptRequirements GetHelpContent "
    "GetScriptBlock"
)
PARAMETER = dotnet(_LANGUAGE + "ParameterAst", ParameterAst, base=AST)
PARAMETER.refuses("Attributes Name DefaultValue StaticType")
PARAMS = dotnet(_LANGUAGE + "ParamBlockAst", ParamBlockAst, base=AST)
PARAMS.prop("Parameters", "object", _parameters)
PARAMS.refuses("Attributes")

TOKENS = dotnet(_LANGUAGE + "Token[]", Tokens, base=OBJECT)
COMPLAINT = dotnet(_LANGUAGE + "ParseError", Complaint, base=OBJECT)
COMPLAINT.prop("ErrorId", "string", lambda self: self.error.id)
COMPLAINT.prop("Message", "string", lambda self: self.error.message)
COMPLAINT.method("ToString()")(str)
COMPLAINT.refuses("Extent IncompleteInput")


# -- the parser

PARSER = dotnet(_LANGUAGE + "Parser", kind="static")


@PARSER.static_method("ParseInput(string input, ref object tokens, ref object errors)")
def _parse_input(text: str, tokens: Reference, errors: Reference) -> Value:
    found: list[Value] = []
    tree: syntax.ScriptBlock | None = None
    try:
        tree = parse(text or "")
    except ParseErrors as problems:
        refuse_newer(problems)
        found = [Complaint(error) for error in problems.errors]
    if tokens is not None:
        tokens.value = Tokens()
    if errors is not None:
        errors.value = Array(found, COMPLAINT)
    return ScriptBlockAst(tree, text or "")


PARSER.refuses("ParseFile")


def _ast(self: ScriptBlock) -> Value:
    from winboot_lab.engine.invoke import code_of

    code, _ = code_of(self)
    return ScriptBlockAst(code.tree, self.text)


SCRIPT_BLOCK.prop("Ast", AST.name, _ast)

__all__ = ["Ast", "ScriptBlockAst"]

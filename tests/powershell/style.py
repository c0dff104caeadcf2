"""What the library is held to beyond correctness.

Singular nouns, no parameter that nothing reads, and no argument by position, as PSScriptAnalyzer's PSUseSingularNouns,
PSReviewUnusedParameter and PSAvoidUsingPositionalParameters ask for. The last is stricter here: that rule allows two
positional arguments (`argumentsWithoutProcedingParameters > 2` in its Engine/Helper.cs, commit 4b0117c), this one none
for a function of the library, and for a cmdlet only the block of ForEach-Object and Where-Object. Programs have no names
for their arguments.

Every parameter has a type, and every function says in its first lines what it does and returns: whoever approves a
script reads that before the code. The comment is inside of the function, because a rendered script carries functions.

This is for our own text; a step of the profile's own is not asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from winboot_lab.language import commands
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import (
    Command,
    CommandParameter,
    Expression,
    FunctionDefinition,
    Node,
    Parameter,
    Variable,
    walk,
)

Rule = Literal["plural", "unread", "untyped", "uncommented", "positional"]

# Function name → names of its switches, all in lower case.
Switches = Mapping[str, frozenset[str]]

# Endings of nouns in the singular (Address, Status, Axis, Dns).
_SINGULAR: Final = ("ss", "us", "is", "dns")
# PSScriptAnalyzer 1.20 asks Pluralize.NET, which takes data for a plural.
_PLURAL: Final = "data"
# Cmdlets whose block everybody reads without a name.
_BLOCK_FIRST: Final = frozenset({"foreach-object", "where-object"})


@dataclass(frozen=True, slots=True)
class Remark:
    """One breach of a rule.

    `name` is the function's, or of the command that is called; `subject` the parameter or the argument. Lines are 1-based.
    """

    rule: Rule
    name: str
    line: int
    subject: str = ""


def remarks(text: str, library: Switches | None = None) -> list[Remark]:
    """What is to be said about a script, in the order of the text.

    `library` are functions of other files that it may call, as `switches_of` gives them. Raises ParseErrors.
    """
    nodes = list(walk(parse(text)))
    known = {**(library or {}), **_switches(nodes)}
    found = [one for node in nodes for one in _about(node, known)]
    return sorted(found, key=lambda one: one.line)


def switches_of(text: str) -> Switches:
    """The functions that a script defines, with their switches. Raises ParseErrors."""
    return _switches(walk(parse(text)))


def _switches(nodes: Iterator[Node] | list[Node]) -> dict[str, frozenset[str]]:
    return {
        node.name.lower(): frozenset(
            one.name.lower() for one in _parameters(node) if one.type and one.type.full.lower() == "switch"
        )
        for node in nodes
        if isinstance(node, FunctionDefinition)
    }


def _about(node: Node, library: Switches) -> Iterator[Remark]:
    if isinstance(node, FunctionDefinition):
        yield from _about_function(node)
    elif isinstance(node, Command):
        for argument in _positional(node, library):
            yield Remark("positional", node.name or "", argument.extent.line, argument.extent.text)


def _about_function(function: FunctionDefinition) -> Iterator[Remark]:
    if _is_plural(function.name.rpartition("-")[2]):
        yield Remark("plural", function.name, function.extent.line)
    if not _has_comment(function):
        yield Remark("uncommented", function.name, function.extent.line)
    for parameter in _parameters(function):
        if parameter.type is None:
            yield Remark("untyped", function.name, parameter.extent.line, parameter.name)
        if not _is_read(parameter, function):
            yield Remark("unread", function.name, parameter.extent.line, parameter.name)


def _is_plural(noun: str) -> bool:
    lower = noun.lower()
    return lower.endswith(_PLURAL) or (lower.endswith("s") and not lower.endswith(_SINGULAR))


def _parameters(function: FunctionDefinition) -> tuple[Parameter, ...]:
    block = function.body.params
    return tuple(block.parameters if block is not None else function.parameters or ())


def _has_comment(function: FunctionDefinition) -> bool:
    """Whether what comes first behind the opening brace is a comment."""
    return function.extent.text.partition("{")[2].lstrip().startswith(("#", "<#"))


def _is_read(parameter: Parameter, function: FunctionDefinition) -> bool:
    """In the function or in a block nested in it; `$PSBoundParameters` and `@PSBoundParameters` read them all."""
    names = {parameter.name.lower(), "psboundparameters"}
    return any(
        isinstance(node, Variable) and node.name.lower() in names and node is not parameter.variable
        for node in walk(function)
    )


def _positional(call: Command, library: Switches) -> list[Expression]:
    """The arguments without a name before them.

    Which parameters of a cmdlet are switches is not known here: what follows one of them counts as its value.
    """
    name = (call.name or "").lower()
    switches = library.get(name)
    if switches is None and commands.find(name) is None:
        return []
    free = list(_without_name(call, switches or frozenset()))
    return free[1:] if switches is None and name in _BLOCK_FIRST else free


def _without_name(call: Command, switches: frozenset[str]) -> Iterator[Expression]:
    named = False
    for element in call.elements[1:]:
        if isinstance(element, CommandParameter):
            named = element.argument is None and element.name.lower() not in switches
        elif not named and not (isinstance(element, Variable) and element.splatted):
            yield element
        else:
            named = False

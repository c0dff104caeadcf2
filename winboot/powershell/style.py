"""What the library is held to beyond correctness: singular nouns, and no parameter that nothing reads.

PSScriptAnalyzer has the same two rules, PSUseSingularNouns and PSReviewUnusedParameter. This is for our own text; a step of
the profile's own is not asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from winboot.powershell.parser import parse
from winboot.powershell.syntax import FunctionDefinition, Node, Parameter, Variable, children

# Endings of nouns in the singular (Address, Status, Axis, Dns).
_SINGULAR = ("ss", "us", "is", "dns")


@dataclass(frozen=True, slots=True)
class Remark:
    """A function whose noun is plural, or one of whose parameters (`parameter`) nothing reads; the line is 1-based."""

    function: str
    line: int
    parameter: str = ""


def remarks(text: str) -> list[Remark]:
    """What is to be said about the functions of a script, in the order of the text. Raises ParseErrors."""
    functions = [node for node in _walk(parse(text)) if isinstance(node, FunctionDefinition)]
    return [remark for function in functions for remark in _about(function)]


def _about(function: FunctionDefinition) -> Iterator[Remark]:
    if _is_plural(function.name.rpartition("-")[2]):
        yield Remark(function.name, function.extent.line)
    for parameter in _parameters(function):
        if not _is_read(parameter, function):
            yield Remark(function.name, parameter.extent.line, parameter.name)


def _is_plural(noun: str) -> bool:
    lower = noun.lower()
    return lower.endswith("s") and not lower.endswith(_SINGULAR)


def _parameters(function: FunctionDefinition) -> tuple[Parameter, ...]:
    block = function.body.params
    return tuple(block.parameters if block is not None else function.parameters or ())


def _is_read(parameter: Parameter, function: FunctionDefinition) -> bool:
    """In the function or in a block nested in it; `$PSBoundParameters` and `@PSBoundParameters` read them all."""
    names = {parameter.name.lower(), "psboundparameters"}
    return any(
        isinstance(node, Variable) and node.name.lower() in names and node is not parameter.variable
        for node in _walk(function)
    )


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _walk(child)

"""`function name { … }` as a statement."""

from __future__ import annotations

from winboot_lab.engine.blocks import Code
from winboot_lab.engine.commands import Function
from winboot_lab.engine.compiler.core import Run, compiles_statement, refusing
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit
from winboot_lab.language import syntax

_PLACES = frozenset(("global", "script", "local", "private"))


@compiles_statement(syntax.FunctionDefinition)
def _function(node: syntax.FunctionDefinition) -> Run:
    if node.kind == "workflow":
        refuse = refusing(node, "workflow")
        return lambda scope, _out: refuse(scope)
    qualifier, _, rest = node.name.partition(":")
    place = qualifier.lower() if rest and qualifier.lower() in _PLACES else ""
    name = rest if place else node.name
    code = Code(node.body, name=name, parameters=node.parameters)

    def run(scope: Scope, _out: Emit) -> None:
        made = Function(name, code, scope=None)
        scope.named(place).functions[name.lower()] = made
        for alias in code.aliases:
            scope.named(place).aliases[alias.lower()] = name

    return run

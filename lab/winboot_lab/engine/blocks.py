"""A script block as code: its phases compiled on first use, its parameters read when it is first bound."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from winboot_lab.engine.attributes import attribute_name, named_values, parameter_spec
from winboot_lab.engine.compiler.core import Run
from winboot_lab.engine.compiler.statements import block, returned
from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.exceptions import MetadataException
from winboot_lab.engine.places import ABOVE
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit
from winboot_lab.engine.signatures import (
    ALL_SETS,
    COMMON_NAMES,
    CommandSpec,
    ParameterSpec,
    Place,
    common_parameters,
)
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import SWITCH_PARAMETER
from winboot_lab.language import syntax

_BINDING_SETTINGS = (
    "defaultparametersetname",
    "supportsshouldprocess",
    "confirmimpact",
    "positionalbinding",
    "helpuri",
    "supportstransactions",
    "supportspaging",
    "remotingcapability",
)


class Code:
    """The code of one script block or function body. `name` is what the stack trace and the errors call it."""

    def __init__(
        self,
        tree: syntax.ScriptBlock,
        *,
        name: str = "",
        parameters: Sequence[syntax.Parameter] | None = None,
    ) -> None:
        self.tree = tree
        self.name = name
        declared = parameters if parameters is not None else ()
        if tree.params is not None:
            declared = tree.params.parameters
        self.parameters: Sequence[syntax.Parameter] = declared
        self.attributes = tree.params.attributes if tree.params is not None else ()
        self._spec: CommandSpec | None = None
        self._phases: dict[str, Run | None] = {}
        self._advanced: bool | None = None
        text = tree.extent.text.lower()
        self.uses_input = "$input" in text

    @property
    def display(self) -> str:
        """The name in a stack trace."""
        return self.name or "<ScriptBlock>"

    def named(self, name: str) -> Code:
        """The same code under another name: a script that is run as a file. What is compiled of one is of both."""
        made = copy(self)
        made.name = name
        made._spec = None
        return made

    @property
    def advanced(self) -> bool:
        """Does it bind like a cmdlet: [CmdletBinding()], or a [Parameter()] anywhere?"""
        if self._advanced is None:
            self._advanced = any(attribute_name(node) == "cmdletbinding" for node in self.attributes) or any(
                isinstance(attribute, syntax.Attribute) and attribute_name(attribute) == "parameter"
                for parameter in self.parameters
                for attribute in parameter.attributes
            )
        return self._advanced

    @property
    def aliases(self) -> list[str]:
        """The names that `[Alias('x')] param()` gives a function."""
        return [
            argument.value
            for node in self.attributes
            if attribute_name(node) == "alias"
            for argument in node.positional
            if isinstance(argument, syntax.StringConstant)
        ]

    @property
    def has_process(self) -> bool:
        return self.tree.process is not None

    def phase(self, kind: str) -> Run | None:
        """The compiled statements of `begin`, `process` or `end`, or None when the block is not written."""
        if kind not in self._phases:
            node: syntax.NamedBlock | None = getattr(self.tree, kind)
            self._phases[kind] = None if node is None or not node.statements else _compile_phase(node)
        return self._phases[kind]

    def spec(self, scope: Scope) -> CommandSpec:
        """What the binder needs; made once. Raises what a bad declaration raises when the function is called."""
        if self._spec is None:
            self._spec = self._make_spec(scope)
        return self._spec

    def _make_spec(self, scope: Scope) -> CommandSpec:
        settings: dict[str, Any] = {}
        for node in self.attributes:
            if attribute_name(node) == "cmdletbinding":
                settings = named_values(node, scope, _BINDING_SETTINGS)
        for unknown in ("supportspaging", "supportstransactions"):
            if to_bool(settings.get(unknown, False)):
                raise Refusal("construct", f"[CmdletBinding({unknown})]")
        specs = [parameter_spec(parameter, scope) for parameter in self.parameters]
        if to_bool(settings.get("positionalbinding", True)):
            _give_positions(specs)
        should_process = to_bool(settings.get("supportsshouldprocess", False))
        if self.advanced:
            for spec in specs:
                if spec.name.lower() in COMMON_NAMES and (
                    should_process or spec.name.lower() not in ("whatif", "confirm")
                ):
                    raise MetadataException(
                        f"A parameter with the name '{spec.name}' was defined multiple times for the command.",
                        "ParameterNameAlreadyExistsForCommand",
                        "MetadataError",
                    )
            specs.extend(common_parameters(should_process=should_process))
        default = settings.get("defaultparametersetname")
        made = CommandSpec(
            self.name,
            specs,
            default_set=None if default is None else to_text(default, scope),
            advanced=self.advanced,
            script=True,
            should_process=should_process,
        )
        made.confirm_impact = to_text(settings.get("confirmimpact", "Medium"), scope)
        return made


class PiecedCode(Code):
    """A script of which the last part, its library, is compiled already: it is the same for many scripts.

    `lines_above` is how many lines stand above the library.
    """

    def __init__(self, tree: syntax.ScriptBlock, above: Code, library: Code, lines_above: int) -> None:
        super().__init__(tree)
        self.lines_above = lines_above
        self._above = above
        self._library = library

    def phase(self, kind: str) -> Run | None:
        """The statements of both, one part after the other."""
        first, second = self._above.phase(kind), self._library.phase(kind)
        if first is None or second is None:
            return first or second

        def run(scope: Scope, out: Emit) -> None:
            before = ABOVE.set(self.lines_above)
            try:
                first(scope, out)
                second(scope, out)
            finally:
                ABOVE.reset(before)

        return run


def _give_positions(specs: list[ParameterSpec]) -> None:
    """Number the parameters in the order of declaration if none has a position; switches get no position."""
    if any(place.position is not None for spec in specs for place in spec.places.values()):
        return
    position = 0
    for spec in specs:
        if spec.type is SWITCH_PARAMETER:
            continue
        for which, place in spec.places.items():
            spec.places[which] = Place(place.mandatory, position, place.by_value, place.by_name, place.rest)
        position += 1


def _compile_phase(node: syntax.NamedBlock) -> Run:
    """A `return` as the last statement needs no jump."""
    last = node.statements[-1]
    if isinstance(last, syntax.Return) and not node.traps:
        return block(node.statements, last=returned(last))
    return block(node.statements, node.traps)


__all__ = ["ALL_SETS", "Code"]

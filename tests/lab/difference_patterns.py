"""Every `what` that a look can emit, read from the syntax tree of the templates and of the controller's own steps.

A `what` is put together from constants and values: `"file ${path}: sha256"`. Here it becomes a pattern in which
each value is a wildcard, so that a concrete `what` can be matched with the place that emits it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from winboot_lab.language import syntax as ps
from winboot_lab.language.parser import parse

import winboot
from winboot.script.library import templates_root

ANY: Final = "\N{BULLET}"
_EMITTERS: Final = {"new-difference", "compare-wanted"}
_PYTHON: Final = ("node/admission.py", "remote/cluster/labels.py")


@dataclass(frozen=True, slots=True, order=True)
class What:
    """One place that emits differences. `text` has ANY where a value stands."""

    text: str
    place: str
    policy: bool = False

    def matches(self, what: str) -> bool:
        """Whether a concrete `what` can come from here."""
        return re.fullmatch(".+".join(map(re.escape, self.text.split(ANY))), what) is not None


def pattern_of(what: str, patterns: Sequence[What]) -> What | None:
    """The pattern a concrete `what` comes from: of those that match, the one that says most."""
    fitting = [one for one in patterns if one.matches(what)]
    return max(fitting, key=lambda one: len(one.text.replace(ANY, "")), default=None)


@functools.cache
def all_whats() -> tuple[What, ...]:
    """From the library, the steps and the controller, each pattern once."""
    found: dict[str, What] = {}
    for one in [*_scripts(), *_controller()]:
        before = found.get(one.text)
        # Emitted in two places, once as another owner's: it counts as a difference that winboot can correct.
        if before is None or (before.policy and not one.policy):
            found[one.text] = one
    return tuple(sorted(found.values()))


def _scripts() -> Iterator[What]:
    for place, tree in _trees():
        # The callers of the emitters report what the emitters pass on.
        if not (isinstance(tree, ps.FunctionDefinition) and tree.name.lower() in _EMITTERS):
            yield from _emitted(tree, place)


@functools.cache
def _trees() -> tuple[tuple[str, ps.Node], ...]:
    """The functions of the library and the templates of the steps, with where they are."""
    root = templates_root()
    found: list[tuple[str, ps.Node]] = [
        (f"{path.name} {node.name}", node)
        for path in sorted((root / "lib").glob("*.ps1"))
        # Things that `winboot remove` deletes are not damage: tests/lab/test_remove.py compares the machine afterwards.
        if path.name != "removal.ps1"
        for node in _nodes(parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ps.FunctionDefinition)
    ]
    for path in sorted((root / "steps").glob("*.j2")):
        text = re.sub(r"\{%.*?%\}|\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        found.append((path.name, parse(re.sub(r"\{\{.*?\}\}", "$value", text))))
    return tuple(found)


def _controller() -> Iterator[What]:
    package = Path(winboot.__file__).parent
    for name in _PYTHON:
        for node in ast.walk(ast.parse((package / name).read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Difference"
            ):
                first = node.args[0]
                if isinstance(first, ast.JoinedStr):
                    parts = [p.value if isinstance(p, ast.Constant) else ANY for p in first.values]
                    yield What("".join(map(str, parts)), name)


class _Names:
    """What the variables of one function can hold, as texts with wildcards."""

    def __init__(self, function: ps.Node) -> None:
        self._function = function

    def texts(self, expression: ps.Node) -> list[str]:
        """The texts an expression can give."""
        match expression:
            case ps.StringConstant(value=value):
                return [value]
            case ps.Paren(pipeline=inner) | ps.CommandExpression(expression=inner):
                return self.texts(inner)
            case ps.Pipeline(elements=(inner,)):
                return self.texts(inner)
            case ps.Binary(operator=operator, left=left, right=right) if operator.lower() == "+":
                return [a + b for a in self.texts(left) for b in self.texts(right)]
            case ps.Binary(operator=operator, left=left, right=right) if operator.lower().lstrip("-") == "f":
                values = right.elements if isinstance(right, ps.ArrayLiteral) else (right,)
                choices = [self.texts(value) for value in values]
                return [
                    _filled(text, chosen)
                    for text in self.texts(left)
                    for chosen in itertools.product(*choices)
                ]
            case ps.ExpandableString(parts=parts):
                pieces = [[part] if isinstance(part, str) else self.texts(part) for part in parts]
                return ["".join(chosen) for chosen in itertools.product(*pieces)]
            case ps.Variable(name=name):
                return self._variable(name.lower())
        return [ANY]

    def _variable(self, name: str) -> list[str]:
        given = [
            text
            for node in _below(self._function)
            if isinstance(node, ps.Assignment)
            and isinstance(node.target, ps.Variable)
            and node.target.name.lower() == name
            for text in self.texts(node.value)
        ]
        return given or self._from_callers(name) or [ANY]

    def _from_callers(self, name: str) -> list[str]:
        """A parameter: whatever the functions that call this one give for it."""
        if not isinstance(self._function, ps.FunctionDefinition):
            return []
        mine = self._function.name.lower()
        return [
            text
            for caller, command in _calls().get(mine, ())
            for value in [_argument(command, name)]
            if value is not None
            for text in _Names(caller).texts(value)
        ]


def _filled(text: str, values: tuple[str, ...]) -> str:
    """What -f makes of a text."""
    return re.sub(r"\{(\d+)[^}]*\}", lambda place: values[int(place[1])], text)


def _emitted(tree: ps.Node, place: str) -> Iterator[What]:
    names = _Names(tree)
    for node in _below(tree):
        if isinstance(node, ps.Command) and _name(node) in _EMITTERS:
            value = _argument(node, "what")
            if value is not None:
                policy = any(_is_switch(element, "policy") for element in node.elements)
                yield from (What(text, place, policy) for text in names.texts(value) if text != ANY)


def _name(command: ps.Command) -> str:
    first = command.elements[0]
    return first.value.lower() if isinstance(first, ps.StringConstant) else ""


def _argument(command: ps.Command, name: str) -> ps.Node | None:
    for at, element in enumerate(command.elements):
        if isinstance(element, ps.CommandParameter) and element.name.lower() == name:
            return element.argument or command.elements[at + 1]
    return None


def _is_switch(element: ps.Node, name: str) -> bool:
    return (
        isinstance(element, ps.CommandParameter) and element.name.lower() == name and element.argument is None
    )


@functools.cache
def _below(function: ps.Node) -> tuple[ps.Node, ...]:
    """`_nodes` of a function, which many ask for."""
    return tuple(_nodes(function))


@functools.cache
def _calls() -> dict[str, list[tuple[ps.Node, ps.Command]]]:
    """The commands of library and steps by their names, each with its function."""
    found: dict[str, list[tuple[ps.Node, ps.Command]]] = {}
    for _, caller in _trees():
        for node in _below(caller):
            if isinstance(node, ps.Command):
                found.setdefault(_name(node), []).append((caller, node))
    return found


@functools.cache
def _field_names(kind: type[ps.Node]) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(kind))


def _nodes(tree: object) -> Iterator[ps.Node]:
    """The node and everything below it."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ps.Node):
            yield one
            waiting += [getattr(one, name) for name in reversed(_field_names(type(one)))]
        elif isinstance(one, tuple):
            waiting += reversed(one)

"""Nothing is decided by display text: `what`, `is` and `want` of a difference are for people, `key` and `unknown` for code."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import (
    Command,
    CommandParameter,
    ExpandableString,
    Member,
    Node,
    StringConstant,
    Variable,
    children,
    walk,
)

from tests.every import assert_none_wrong
from winboot.report.events import KNOWN_LATER
from winboot.script.library import library_files, templates_root

ROOT = Path(__file__).parents[1]


def all_powershell(findings: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """Each library file and each template of a step → its findings."""
    steps = {
        path.name: without_template(path.read_text(encoding="utf-8"))
        for path in sorted((templates_root() / "steps").glob("*.j2"))
    }
    return {name: findings(text) for name, text in (library_files() | steps).items()}


@cache
def all_modules() -> dict[str, ast.Module]:
    """The Python of the tool: path below the repository → its syntax tree."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "winboot").rglob("*.py"))
    }


# ---- PowerShell: what, is and want of an object stand inside texts that people read, and nowhere else ------------------


def decided(text: str) -> list[str]:
    """Members of that name outside a text in double quotes, each with its line."""
    return [f"line {node.extent.line}: {node.extent.text}" for node in _outside_texts(parse(text))]


def _outside_texts(node: Node) -> Iterator[Node]:
    if isinstance(node, ExpandableString):
        return
    if (
        isinstance(node, Member)
        and isinstance(node.member, StringConstant)
        and node.member.value.lower() in ("what", "is", "want")
    ):
        yield node
    for child in children(node):
        yield from _outside_texts(child)


def without_template(text: str) -> str:
    """The PowerShell of a step's template, with a text for each value."""
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}", "", text, flags=re.DOTALL)
    return re.sub(r"\{\{.*?\}\}", "'value'", text, flags=re.DOTALL)


def test_no_function_of_the_library_and_no_step_decides_by_what_people_read():
    assert_none_wrong(all_powershell(decided))


@pytest.mark.parametrize(
    "text",
    [
        "$d | Where-Object { $_.what -like 'HNS network *' }",
        "if ($d.want -match 'x') { 1 }",
        "$seen.ContainsKey($d.what)",
        "switch ($d.is) { 'x' { 1 } }",
        "$texts = $d | ForEach-Object { $_.What }",
    ],
)
def test_each_way_to_decide_by_a_text_is_seen(text: str):
    assert len(decided(text)) == 1


def test_a_message_may_name_what_differs():
    assert decided("\"still different: $($d.what -join '; ')\"") == []


# ---- PowerShell: every difference has a key of its own, which no text for people is a part of ---------------------------

EMITTERS = ("new-difference", "compare-wanted")
# What is worded for people, or by Windows in the language of the machine.
WORDED = ("what", "message", "displayname", "description", "friendlyname", "caption")


def keyless(text: str) -> list[str]:
    """Calls that emit a difference without `-Key`, or with a key that depends on wording."""
    return [
        f"line {node.extent.line}: {node.extent.text}"
        for node in walk(parse(text))
        if isinstance(node, Command) and (node.name or "").lower() in EMITTERS and not _has_stable_key(node)
    ]


def _has_stable_key(call: Command) -> bool:
    for name, value in pairwise(call.elements):
        if isinstance(name, CommandParameter) and name.name.lower() == "key":
            return not any(_is_worded(node) for node in walk(value))
    return False


def _is_worded(node: Node) -> bool:
    if isinstance(node, Member):
        return isinstance(node.member, StringConstant) and node.member.value.lower() in WORDED
    return isinstance(node, Variable) and node.name.lower() in WORDED


def test_every_difference_of_the_library_and_of_a_step_has_a_stable_key():
    assert_none_wrong(all_powershell(keyless))


@pytest.mark.parametrize(
    "text",
    [
        "New-Difference -What 'page file' -Is 1 -Want 2",
        "foreach ($one in $all) { Compare-Wanted -What $one -Want 2 }",
        'New-Difference -Key "file: $what" -What $what',
        'New-Difference -Key "service:$($service.DisplayName)" -What $what',
        "New-Difference @common",
    ],
)
def test_a_difference_without_a_stable_key_is_seen(text: str):
    assert len(keyless(text)) == 1


def test_a_key_may_hold_names_that_are_the_same_on_every_machine():
    assert keyless('New-Difference -Key "service:$($service.Name):$path" -What $what') == []


def test_how_something_unknown_is_shown_is_written_once_on_each_side():
    holders = [
        name
        for name, text in library_files().items()
        for node in walk(parse(text))
        if isinstance(node, StringConstant) and KNOWN_LATER in node.value
    ]
    spelled = [
        path
        for path, module in all_modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and node.value == KNOWN_LATER
    ]

    assert holders == ["difference.ps1"]
    assert spelled == ["winboot/report/events.py"]


# ---- Python: such a text is shown, joined and handed on; it is compared with nothing but None ----------------------------


def decided_in_python(module: ast.Module) -> list[str]:
    """Places where an attribute of that name is compared, searched, matched, or asked for one of its methods."""
    found = []
    for node in ast.walk(module):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                if all(isinstance(op, ast.Is | ast.IsNot) for op in ops):
                    continue
                parts = [left, *others]
            case ast.Attribute(value=value):
                parts = [value]
            case ast.Match(subject=subject):
                parts = [subject]
            case ast.Subscript(value=value, slice=index):
                parts = [value, index]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re" | "fnmatch")), args=args):
                parts = list(args)
            case _:
                continue
        found += [f"line {part.lineno}: {ast.unparse(part)}" for part in parts if _is_shown(part)]
    return found


def _is_shown(node: ast.expr) -> bool:
    # `x.want or ""` decides like `x.want`.
    inner = node.values if isinstance(node, ast.BoolOp) else [node]
    return any(isinstance(one, ast.Attribute) and one.attr in ("what", "is_", "want") for one in inner)


def test_no_module_decides_by_what_people_read():
    assert_none_wrong({path: decided_in_python(module) for path, module in all_modules().items()})


@pytest.mark.parametrize(
    "text",
    [
        "d.want == 'x'",
        "'later' in (d.want or '')",
        "d.what.startswith('HNS')",
        "re.match('x', d.is_)",
        "table[d.what]",
        "match d.is_:\n    case 'x': pass",
    ],
)
def test_each_way_to_decide_by_a_text_is_seen_in_python(text: str):
    assert len(decided_in_python(ast.parse(text))) == 1


@pytest.mark.parametrize("text", ["d.is_ is None", "f'{d.what}'", "show(d.want)", "{'what': d.what}"])
def test_a_text_may_be_shown_in_python(text: str):
    assert decided_in_python(ast.parse(text)) == []

"""What users read is plain English: the worst translations do not come back."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from winboot.cli.commands import COMMANDS, LAB_SUMMARY
from winboot.config.schema import inventory_schema, profile_schema
from winboot.report.hints import HINTS

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
# Code whose sentences users read, those that the lab says in the place of Windows or a cluster too; docstrings are not
# among them.
COMPLAINTS = sorted((ROOT / "winboot").rglob("*.py"))
# An administrator reads what is rendered from them before he approves it.
SCRIPTS = sorted(file for file in (ROOT / "templates").rglob("*") if file.suffix in (".ps1", ".j2"))
LAB = sorted((ROOT / "lab/winboot_lab").rglob("*.py"))
# What it said, and what a native reader would write.
WORDS = {
    r"stands? (here|twice|there|where)\b": "found, is",
    r"\bshall\b": "is to",
    r"\banew\b": "again",
    r"\bmend(s|ed)?\b": "fix, correct",
    r"\bturned over\b": "rotated",
    r"\bfor ever\b": "without end",
    r"\b(is|are) told\b(?! apart)": "is reported",
    r"\bno map\b": "not a mapping",
    r"\bgoes on\b": "continues",
}
_WRONG = re.compile("|".join(WORDS))


def _sentences() -> Iterator[tuple[str, str]]:
    """Each text that users see, with where it is from."""
    for problem, hint in HINTS.items():
        yield f"hints.py {problem}", hint
    for command in COMMANDS:
        yield f"winboot {command.name}", command.summary
    yield "winboot lab", LAB_SUMMARY
    yield "schema of a profile", json.dumps(profile_schema())
    yield "schema of an inventory", json.dumps(inventory_schema())
    yield "compat texts", (ROOT / "winboot/config/compat/data/texts.json").read_text(encoding="utf-8")
    for script in SCRIPTS:
        yield script.name, script.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", ROOT / "lab/README.md", *PAGES):
        yield str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    for file in (*COMPLAINTS, *LAB):
        yield from _strings(file)


def _strings(file: Path) -> Iterator[tuple[str, str]]:
    """The texts in the code of a module, docstrings left out."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield f"{file.name}:{node.lineno}", node.value


def test_no_text_that_users_read_is_a_translation() -> None:
    """By a list of words that have no other use in these texts."""
    found = [f"{where}: {match[0]}" for where, text in _sentences() for match in _WRONG.finditer(text)]

    assert found == []


def test_all_of_it_is_read() -> None:
    """A folder that moved would pass everything."""
    read = {where.partition(":")[0] for where, _ in _sentences()}

    assert {
        "README.md",
        "docs/changelog.md",
        "demo.py",
        "up.py",
        "windows.py",
        "run.py",
        "binder.py",
        "guard.ps1",
    } <= read


@pytest.mark.parametrize(
    "text", ["no map stands here", "what the kubelet shall do", "the log is turned over", "mend it"]
)
def test_the_list_finds_what_it_is_for(text: str) -> None:
    """The sentences that a reviewer stumbled over."""
    assert _WRONG.search(text)

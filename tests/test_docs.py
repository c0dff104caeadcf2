"""What the documents name is there: files, folders, and the targets of links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
# What the how-to pages add is not there.
EXAMPLES = ("error_reporting", "antrea")
# In code style, from the top of the repository; `<step>` and `*` stand for any name.
PATH = re.compile(r"`((?:winboot|templates|profiles|inventories|tests|docs|benchmarks)/[^`\s:]*)`")


def links(page: Path) -> Iterator[str]:
    """The targets of links to other files of the repository."""
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            yield target


def is_there(path: str) -> bool:
    """Whether some file or folder fits."""
    pattern = re.sub(r"<[^>]*>|\{[^}]*\}", "*", path).rstrip("/")
    return any(ROOT.glob(pattern))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Relative to the page that has it."""
    assert [target for target in links(page) if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    """Also as a pattern."""
    named = PATH.findall(page.read_text(encoding="utf-8"))

    assert [path for path in named if not any(one in path for one in EXAMPLES) and not is_there(path)] == []

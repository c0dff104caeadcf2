"""What the documents name is there: files, folders, and the targets of links."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.exceptions import TyperException

from tests.docs_commands import command_lines, parse

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
# What the how-to pages add is not there.
EXAMPLES = ("error_reporting", "lagoon")
# In code style, from the top of the repository; `<step>` and `*` stand for any name.
PATH = re.compile(r"`((?:winboot|lab|templates|profiles|inventories|tests|docs|benchmarks)/[^`\s:]*)`")


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


MODULE = re.compile(r"\bpython -m ((?:winboot|winboot_lab|tools|tests|benchmarks)[\w.]*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_that_a_page_runs_can_be_run(page: Path) -> None:
    for name in MODULE.findall(page.read_text(encoding="utf-8")):
        inside = name.replace(".", "/")
        places = [
            ROOT / room / f"{inside}{end}"
            for room in ("", "lab")
            for end in (".py", "/__main__.py", "/__init__.py")
        ]
        found = next((one for one in places if one.is_file()), None)
        assert found is not None, name
        assert found.name == "__main__.py" or "__main__" in found.read_text(encoding="utf-8"), name


COMMANDS: Final = [
    (page.name, words)
    for page in PAGES
    if page.name not in ("changelog.md", "seeds.md")  # of the past, and of others
    for words in command_lines(page)
]


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=[f"{page}-{' '.join(words)}" for page, words in COMMANDS]
)
def test_a_command_line_of_a_page_is_one_that_winboot_takes(page: str, words: list[str]) -> None:
    parse(words)


def test_a_wrong_command_line_is_noticed() -> None:
    for wrong in (
        ["join", "--no-such-option"],
        ["hook", "serve", "extra"],
        ["plan", "-o", "xml"],
        ["hook", "nothing"],
    ):
        with pytest.raises(TyperException):
            parse(wrong)


def test_every_page_of_the_first_day_shows_commands() -> None:
    assert {"README.md", "tutorial.md", "first-boot.md", "troubleshooting.md", "vsphere.md"} <= {
        page for page, _ in COMMANDS
    }


ARCHITECTURE: Final = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
# What somebody asks on the first day, by the words of the page.
QUESTIONS: Final = (
    "what `winboot join` does",
    "where a profile key is checked",
    "what text will run for a step",
    "how a network solution differs",
    "what happens when a login is refused",
    "what an exit code means",
    "when something is tried again",
    "where a quirk of Windows Server 2025 is kept",
    "how to add a network",
    "a lab cmdlet",
    "where a bootstrap token is minted",
    "which tests hold admission and drain",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_of_the_first_day_is_answered_by_two_files_at_most(question: str) -> None:
    rows = [line for line in ARCHITECTURE.splitlines() if line.startswith("| ") and question in line]

    assert len(rows) == 1
    answer = rows[0].split("|")[2]
    if not rows[0].startswith("| how to add"):  # one row for three pages, one for each
        assert 1 <= len({*PATH.findall(answer), *LINK.findall(answer)}) <= 2


def _layers() -> dict[str, list[str]]:
    """Package ("" for the whole) → its parts from left to right, as import-linter checks them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layered = [one for one in contracts if one["type"] == "layers"]
    return {
        one.get("containers", [""])[0].removeprefix("winboot."): [
            layer.removeprefix("winboot.") for layer in one["layers"]
        ]
        for one in layered
    }


def test_the_arrow_on_the_page_is_the_one_that_is_checked() -> None:
    start = ARCHITECTURE.index("    cli ")
    shown = " ".join(ARCHITECTURE[start : ARCHITECTURE.index("\n\n", start)].split())

    assert shown.split(" → ") == _layers()[""]


def test_the_table_of_packages_names_every_package_and_its_inner_order() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", ARCHITECTURE, re.MULTILINE))

    assert set(rows) >= set(_layers()[""])
    for package, parts in _layers().items():
        if package:
            assert rows[package].replace("`", "").split(" → ") == [
                part.replace(" | ", ", ") for part in parts
            ]

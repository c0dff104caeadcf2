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
from tests.every import assert_none_wrong, failure

ROOT = Path(__file__).parents[1]
PAGES = {
    path: path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
# What the how-to pages add is not there.
EXAMPLES = ("error_reporting", "lagoon")
# In code style, from the top of the repository; `<step>` and `*` stand for any name.
PATH = re.compile(r"`((?:winboot|lab|templates|profiles|inventories|tests|docs|benchmarks)/[^`\s:]*)`")


def links(text: str) -> Iterator[str]:
    """The targets of links to other files of the repository."""
    for target, _ in LINK.findall(text):
        if "://" not in target:
            yield target


def is_there(path: str) -> bool:
    """Whether some file or folder fits."""
    pattern = re.sub(r"<[^>]*>|\{[^}]*\}", "*", path).rstrip("/")
    return any(ROOT.glob(pattern))


def test_every_link_leads_somewhere() -> None:
    """Relative to the page that has it."""
    assert_none_wrong(
        {
            page.name: [target for target in links(text) if not (page.parent / target).exists()]
            for page, text in PAGES.items()
        }
    )


def test_every_file_that_is_named_is_there() -> None:
    """Also as a pattern."""
    named = {page.name: PATH.findall(text) for page, text in PAGES.items()}
    missing = {
        path
        for path in set().union(*named.values())
        if not any(one in path for one in EXAMPLES) and not is_there(path)
    }

    assert_none_wrong({page: sorted(missing.intersection(paths)) for page, paths in named.items()})


MODULE = re.compile(r"\bpython -m ((?:winboot|winboot_lab|tools|tests|benchmarks)[\w.]*)")


def can_be_run(module: str) -> bool:
    inside = module.replace(".", "/")
    places = [
        ROOT / room / f"{inside}{end}"
        for room in ("", "lab")
        for end in (".py", "/__main__.py", "/__init__.py")
    ]
    found = next((one for one in places if one.is_file()), None)
    return found is not None and (
        found.name == "__main__.py" or "__main__" in found.read_text(encoding="utf-8")
    )


def test_every_module_that_a_page_runs_can_be_run() -> None:
    assert_none_wrong(
        {
            page.name: [name for name in MODULE.findall(text) if not can_be_run(name)]
            for page, text in PAGES.items()
        }
    )


COMMANDS: Final = [
    (page.name, words)
    for page in PAGES
    if page.name not in ("changelog.md", "seeds.md")  # of the past, and of others
    for words in command_lines(page)
]


def test_a_command_line_of_a_page_is_one_that_winboot_takes() -> None:
    pages: dict[tuple[str, ...], list[str]] = {}
    for page, words in COMMANDS:
        pages.setdefault(tuple(words), []).append(page)

    assert_none_wrong(
        {
            f"{', '.join(names)}: winboot {' '.join(words)}": failure(TyperException, parse, [*words])
            for words, names in pages.items()
        }
    )


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


def unanswered(question: str) -> str:
    """What the page lacks; empty if one row names one or two files."""
    rows = [line for line in ARCHITECTURE.splitlines() if line.startswith("| ") and question in line]
    if len(rows) != 1:
        return f"{len(rows)} rows"
    answer = rows[0].split("|")[2]
    named = {*PATH.findall(answer), *LINK.findall(answer)}
    # One row for three pages, one for each.
    return "" if rows[0].startswith("| how to add") or 1 <= len(named) <= 2 else f"{len(named)} files"


def test_a_question_of_the_first_day_is_answered_by_two_files_at_most() -> None:
    assert_none_wrong({question: unanswered(question) for question in QUESTIONS})


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

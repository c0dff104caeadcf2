"""The library's functions that can end without output, as the check finds them: a change of the list is read in the diff."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

from winboot_lab.language.parser import parse
from winboot_lab.language.silent import functions_of, silent_functions, unguarded_uses
from winboot_lab.language.syntax import FunctionDefinition

from winboot.script.library import library_files

LIST = Path(__file__).parent / "silent-functions.txt"


def test_the_list_of_silent_functions_is_the_one_that_was_reviewed() -> None:
    found = "\n".join(sorted(silent_functions(parse("\n".join(library_files().values()))))) + "\n"
    if os.environ.get("WINBOOT_GOLDEN") == "write":
        LIST.write_text(found, encoding="utf-8")

    assert found == LIST.read_text(encoding="utf-8")


ASKED = ("Get-", "Read-", "Find-", "Expand-", "ConvertFrom-", "ConvertTo-")


def test_a_function_that_is_asked_for_a_value_and_may_have_none_says_so() -> None:
    """Whoever calls it has to know: no output is not $null (AutomationNull). A look's differences may always be none."""
    functions = functions_of(parse("\n".join(library_files().values())))
    untold = [
        name
        for name in LIST.read_text(encoding="utf-8").split()
        if name.startswith(ASKED) and not name.endswith(("Difference", "Notice"))
        if not re.search("nothing|null|empty", comment(functions[name.lower()]), re.IGNORECASE)
    ]

    assert untold == []


def comment(function: FunctionDefinition) -> str:
    """The comment lines that a function begins with."""
    lines = [line.strip() for line in function.extent.text.split("\n")[1:]]
    return " ".join(itertools.takewhile(lambda line: line.startswith("#"), lines))


def test_no_use_of_them_takes_null_for_a_text() -> None:
    text = "\n".join(library_files().values())

    uses = [(use.function, use.how, use.node.extent.text) for use in unguarded_uses(parse(text))]

    assert uses == []

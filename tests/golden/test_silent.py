"""The library's functions that can end without output, as the check finds them: a change of the list is read in the diff."""

from __future__ import annotations

import os
from pathlib import Path

from winboot.powershell.parser import parse
from winboot.powershell.silent import silent_functions, unguarded_uses
from winboot.script import library_files

LIST = Path(__file__).parent / "silent-functions.txt"


def test_the_list_of_silent_functions_is_the_one_that_was_reviewed() -> None:
    found = "\n".join(sorted(silent_functions(parse("\n".join(library_files().values()))))) + "\n"
    if os.environ.get("WINBOOT_GOLDEN") == "write":
        LIST.write_text(found, encoding="utf-8")

    assert found == LIST.read_text(encoding="utf-8")


def test_no_use_of_them_takes_null_for_a_text() -> None:
    text = "\n".join(library_files().values())

    uses = [(use.function, use.how, use.node.extent.text) for use in unguarded_uses(parse(text))]

    assert uses == []

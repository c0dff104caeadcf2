"""Singular nouns and read parameters: the rules on small texts, and the library held to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from winboot.powershell.style import Remark, remarks

LIBRARY = Path(__file__).parents[2] / "templates/powershell/lib"
# Functions that are called with one table or by a computed name, as their siblings are, and do not read all of it.
ONE_SIGNATURE = {
    ("Get-AzureStateDifference", "Network"),
    ("Get-FolderDifference", "Ours"),
    ("Get-EndpointVip", "Known"),
}


@pytest.mark.parametrize("name", ["Get-Items", "Set-Routes", "Remove-SERVICES"])
def test_a_plural_noun_is_named(name: str) -> None:
    assert remarks(f"\nfunction {name} {{ 1 }}") == [Remark(name, 2)]


@pytest.mark.parametrize("name", ["Get-Address", "Get-Status", "Get-Axis", "Set-ClientDns", "Get-Item"])
def test_a_singular_noun_that_ends_with_s_is_not(name: str) -> None:
    assert remarks(f"function {name} {{ 1 }}") == []


def test_a_parameter_that_nothing_reads_is_named_with_its_line() -> None:
    text = "function Get-One {\n    param([string]$Used,\n        [string]$Idle)\n    $used\n}"
    assert remarks(text) == [Remark("Get-One", 3, "Idle")]


@pytest.mark.parametrize(
    "body", ["(& { $One })", '"a $One b"', "@PSBoundParameters", "f @One", "$One = 1; $One", "{ $One }"]
)
def test_a_parameter_may_be_read_in_a_nested_block_in_a_text_or_with_all_others(body: str) -> None:
    assert remarks(f"function Get-One {{ param($One) Get-Item {body} }}") == []


@pytest.mark.parametrize("path", sorted(LIBRARY.glob("*.ps1")), ids=lambda path: path.name)
def test_the_library_has_singular_nouns_and_reads_its_parameters(path: Path) -> None:
    found = remarks(path.read_text(encoding="utf-8"))

    assert [one for one in found if (one.function, one.parameter) not in ONE_SIGNATURE] == []

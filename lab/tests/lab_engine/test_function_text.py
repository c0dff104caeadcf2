"""What a function says of itself as a text: a script that does the same."""

from typing import Any

import pytest
from winboot_lab.engine.run import run_script


def text_of(session: Any, definition: str) -> str:
    said: list[str] = []
    script = f"{definition}; (Get-Command -Name F -CommandType Function).ScriptBlock.ToString()"
    run_script(session, script, {}, emit=lambda _stream, value: said.append(str(value)))
    (text,) = said
    return text


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("function F { 'x' }", " 'x' "),
        ("function F() { 'x' }", " 'x' "),
        ("function F { param($A) $A }", " param($A) $A "),
        (
            "function F([string[]]$Names, [long]$Most = 5) { $Names }",
            "param([string[]]$Names, [long]$Most = 5)\r\n $Names ",
        ),
    ],
)
def test_parameters_beside_the_name_become_a_param_block(session: Any, definition: str, text: str) -> None:
    assert text_of(session, definition) == text

"""Commands take their options from dataclasses, so that each option is declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from winboot.base import exits
from winboot.cli.options import expanded


@dataclass(frozen=True)
class Size:
    """Options of two commands."""

    width: Annotated[int, typer.Option("--width", "-w", help="How wide it is.")] = 3
    colour: Annotated[str, typer.Option("--colour")] = "red"


@dataclass(frozen=True)
class Box(Size):
    """More options of one of them."""

    height: Annotated[int, typer.Option("--height")] = 4


made: list[object] = []


def draw(box: Box, name: Annotated[str, typer.Option("--name")] = "a") -> None:
    """Draw a box."""
    made.extend((box, name))


def run(*words: str, without: tuple[str, ...] = ()) -> tuple[int, str, list[object]]:
    """The exit code, the output and what the command got."""
    app = typer.Typer()
    app.command()(expanded(without=without)(draw))
    made.clear()
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output, list(made)


@pytest.mark.parametrize(
    ("words", "got"),
    [
        ((), [Box(), "a"]),
        (("-w", "7", "--height", "9", "--name", "b"), [Box(7, "red", 9), "b"]),
    ],
)
def test_a_command_gets_its_options_as_one_value(words: tuple[str, ...], got: list[object]) -> None:
    assert run(*words) == (exits.DONE, "", got)


def test_help_shows_each_field_as_an_option() -> None:
    _, text, _ = run("--help")

    assert "Draw a box." in text
    assert all(one in text for one in ("--width", "How wide it is.", "--colour", "--height", "--name"))


def test_an_option_that_a_command_leaves_out_is_refused_and_keeps_its_default() -> None:
    code, _, got = run("--colour", "blue", without=("colour",))

    assert (code != exits.DONE, got) == (True, [])
    assert run(without=("colour",)) == (exits.DONE, "", [Box(), "a"])


def test_two_options_of_one_name_are_refused() -> None:
    def twice(one: Box, other: Size) -> None:
        """Both have a width."""

    with pytest.raises(ValueError, match="duplicate parameter name"):
        expanded()(twice)

"""The Typer application: one command line from its words to its exit code."""

from __future__ import annotations

import typer
from typer.exceptions import TyperException

from winboot import __version__
from winboot.base import exits
from winboot.base.errors import WinbootError
from winboot.cli import commands
from winboot.cli.failure import explain_bug, explain_error, explain_usage

app = typer.Typer(
    name="winboot",
    help="Turn Windows Server machines into Ready Kubernetes nodes, and show all changes first.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"winboot {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options that come before the command."""


def execute(arguments: list[str]) -> int:
    """Run one command line; every error becomes words on standard error and an exit code."""
    commands.register(app, arguments)
    try:
        result = app(args=arguments, prog_name="winboot", standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        return exits.INTERRUPTED
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except TyperException as error:
        explain_usage(error)
        return exits.USAGE
    except WinbootError as error:
        explain_error(error)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the one boundary: a bug becomes a file and a sentence, not a traceback
        explain_bug(error, arguments)
        return exits.FAILED
    return result if isinstance(result, int) else 0

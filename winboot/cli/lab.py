"""`winboot lab` where the lab is not installed: a command that says how to get it."""

from __future__ import annotations

import typer

from winboot.errors import UsageError

app = typer.Typer(
    help="A rehearsal stage on loopback (a distribution of its own: winboot-lab).",
    invoke_without_command=True,
)


@app.callback(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def missing() -> None:
    """Say how to get the lab."""
    raise UsageError(
        "the lab is not installed in this environment",
        hint="it is the folder lab/ of winboot's repository: in a checkout run `pip install ./lab`",
    )

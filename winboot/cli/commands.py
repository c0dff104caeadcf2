"""The commands, in the order `winboot --help` shows them. Each lives in a file of its own name."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

import typer

from winboot.cli import check, explain, init, join, lab, manifests, ping, plan, render, steps

GROUP: Final = "winboot.commands"  # entry points of other distributions: a name, and a Typer app


def register(app: typer.Typer) -> None:
    """Put every command on the app; calling it twice is harmless (tests run several command lines)."""
    if app.registered_commands:
        return
    app.command("init")(init.init)
    app.command("check")(check.check)
    app.command("render")(render.render)
    app.command("ping")(ping.ping)
    app.command("plan")(plan.plan)
    app.command("join")(join.join)
    app.command("repair")(join.repair)
    app.command("steps")(steps.steps)
    # A flag may be asked for as it stands on a command line.
    app.command("explain", context_settings={"ignore_unknown_options": True})(explain.explain)
    app.command("manifests")(manifests.manifests)
    found = {point.name: point for point in entry_points(group=GROUP)}
    app.add_typer(found["lab"].load() if "lab" in found else lab.app, name="lab")

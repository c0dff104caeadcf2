"""The commands, in the order `winboot --help` shows them. Each lives in a file of its own name."""

from __future__ import annotations

import typer

from winboot.cli import check, explain, init, join, lab, manifests, ping, plan, render, steps


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
    app.add_typer(lab.app, name="lab")

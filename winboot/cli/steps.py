"""`winboot steps`: the catalogue, in the order it runs."""

from __future__ import annotations

import typer

from winboot.cli.options import Lines, LinesForm


def steps(output: LinesForm = Lines.table) -> None:
    """List every step: what it is called, what it needs, and why it exists."""
    from winboot.report.shape import json_line
    from winboot.script.steps import STEPS

    if output is Lines.json:
        for s in STEPS:
            row = {"step": s.name, "why": s.why, "needs": list(s.needs), "side": s.side}
            typer.echo(json_line("step", row), nl=False)
        return
    width = max(len(step.name) for step in STEPS)
    for step in STEPS:
        typer.echo(f"{step.name.ljust(width)}  {step.why}")
        if step.needs:
            typer.echo(f"{' ' * width}  after {', '.join(step.needs)}")

"""`winboot steps`: the catalogue, in the order it runs."""

from __future__ import annotations

import typer

from winboot.cli.options import Lines, LinesForm


def steps(output: LinesForm = Lines.table) -> None:
    """List every step: what it is called, what it needs, and why it exists."""
    from winboot.cli.output import listed
    from winboot.report.line import json_line
    from winboot.report.shape import Step
    from winboot.script.steps import STEPS

    if output is Lines.json:
        for s in STEPS:
            typer.echo(json_line(Step(step=s.name, why=s.why, needs=s.needs, side=s.side)), nl=False)
        return
    rows = []
    for step in STEPS:
        rows.append((step.name, step.why))
        if step.needs:
            rows.append(("", f"after {', '.join(step.needs)}"))
    listed(rows)

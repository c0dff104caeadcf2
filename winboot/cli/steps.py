"""`winboot steps`: the catalogue, in the order it runs."""

from __future__ import annotations

from typing import Final

import typer

from winboot.cli.colour import tell
from winboot.cli.options import Lines, LinesForm

# The phase in which the steps of a side are done.
_SIDES: Final = {"change": "node", "admit": "cluster"}


def steps(output: LinesForm = Lines.table) -> None:
    """List the phases of a join with their steps, on the machine (change) and at the cluster (admit): why each exists."""
    from winboot.cli.output import listed
    from winboot.operations.join.story import PHASES
    from winboot.report.line import json_line
    from winboot.report.shape import Step
    from winboot.script.steps import STEPS

    if output is Lines.json:
        for s in STEPS:
            typer.echo(json_line(Step(step=s.name, why=s.why, needs=s.needs, side=s.side)), nl=False)
        return
    for phase in PHASES:
        tell(f"{phase.name}: {phase.title}")
        rows = []
        for step in STEPS:
            if step.side == _SIDES.get(phase.name):
                rows.append((step.name, step.why))
                if step.needs:
                    rows.append(("", f"after {', '.join(step.needs)}"))
        if rows:
            listed(rows)

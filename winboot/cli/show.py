"""`winboot show`: what a plan file holds, in the words of `winboot plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file from `winboot plan --out FILE`.")],
) -> None:
    """Show a plan from a file; contact nothing."""
    from winboot.cli.approval import load_plan
    from winboot.cli.output import console
    from winboot.report.table import planned_lines

    plan = load_plan(file)
    out = console()
    out.print(f"plan of {plan.made} by {plan.by}, winboot {plan.winboot}, sha256 {plan.sha256}", markup=False)
    for line in planned_lines(plan):
        out.print(line, markup=False)

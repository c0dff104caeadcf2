"""The story of `make demo`: a lab comes up, three bare machines become nodes, and a second run finds nothing to do."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from winboot.cli.options import Output, View


def play(nodes: int, reports: Path) -> int:
    """Play the story; 0 when it ended as it should. Reports go to `reports`."""
    from winboot.cli.output import console, progress, show
    from winboot.cli.targets import load_targets, run_context
    from winboot.operations.join import Options, join, survey
    from winboot.report.file import ReportFile
    from winboot_lab.cli.staging import stage
    from winboot_lab.up import Lab

    reports.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="winboot-demo-") as folder, Lab(nodes=nodes) as lab:
        staged = stage(lab, Path(folder))
        specs = load_targets(staged.inventory, ())
        names = [spec.node.name for spec in specs]
        typer.echo(
            f"demo: lab up with {', '.join(f'{p.name} (Windows Server {p.release})' for p in lab.plans)}"
        )
        with (
            progress(View(Output.table), names) as listener,
            run_context(specs, listener) as (context, tuned),
        ):
            planned = survey(specs, context, tuned(Options()))
        typer.echo("\n# winboot plan")
        show(planned, Output.table)
        with (
            progress(View(Output.table), names) as listener,
            run_context(specs, listener) as (context, tuned),
        ):
            first = join(specs, context, tuned(Options()))
        typer.echo("\n# winboot join")
        show(first, Output.table)
        with (
            progress(View(Output.table), names) as listener,
            run_context(specs, listener) as (context, tuned),
        ):
            second = join(specs, context, tuned(Options()))
        typer.echo("\n# winboot join, again")
        show(second, Output.table)
        for name, report in (("plan", planned), ("join", first), ("second-join", second)):
            for form in ("html", "jsonl"):
                ReportFile(reports / f"{name}.{form}").save(report)
        refusals = [refusal for node in lab.nodes.values() for refusal in node.refusals]
    for refusal in refusals:
        console().print(f"the lab refused: {refusal}", style="red")
    ready = sum(node.ready is True for node in second.nodes)
    typer.echo(f"\nreports: {reports}")
    typer.echo(f"demo: {ready} nodes Ready, second run: {second.changed} changed")
    story = all(node.reboots and node.detached for node in first.nodes)
    good = ready == nodes and not second.changed and not second.exit_code and not refusals and story
    return 0 if good else 1

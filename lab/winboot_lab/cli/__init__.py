"""`winboot lab`: Windows machines, WinRM endpoints and a cluster on loopback, to rehearse with."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from winboot_lab import engines
from winboot_lab.memory import collect_rarely

app = typer.Typer(
    help="A rehearsal stage: the same scripts, run against modelled Windows machines on loopback.",
    no_args_is_help=True,
)


@app.callback()
def _prepare() -> None:
    collect_rarely()


Nodes = Annotated[
    int, typer.Option("--nodes", min=1, max=500, help="How many machines; 2019, 2022 and 2025 in turn.")
]


class Engine(StrEnum):
    """What runs the scripts of the lab's machines."""

    LAB = "lab"
    PWSH = "pwsh"


WithEngine = Annotated[
    Engine,
    typer.Option("--engine", help="What runs the scripts: the lab's own engine, or a real PowerShell."),
]
Pwsh = Annotated[str, typer.Option("--pwsh", help="The PowerShell for --engine pwsh: a name or a path.")]


def _choose(engine: Engine, name: str) -> None:
    """Let that engine run the scripts, or end with what is missing."""
    if engine is Engine.LAB:
        return
    path = engines.find_powershell(name)
    if path is None:
        typer.echo(f"There is no PowerShell {name!r} on this machine. {engines.HOW_TO_GET}", err=True)
        raise typer.Exit(69)
    engines.use_powershell(path)


@app.command("up")
def up(
    nodes: Nodes = 3,
    folder: Annotated[
        Path, typer.Option("--folder", help="Where inventory, profile and kubeconfig are written.")
    ] = Path("lab-files"),
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile", help="A profile of yours to rehearse; cluster and artifacts become the lab's."
        ),
    ] = None,
    engine: WithEngine = Engine.LAB,
    pwsh: Pwsh = "pwsh",
) -> None:
    """Bring the lab up, print the inventory and the profile, and stay until Ctrl-C."""
    _choose(engine, pwsh)
    from winboot_lab.cli.staging import fitting_cluster, stage
    from winboot_lab.up import Lab

    with Lab(nodes=nodes, cluster=fitting_cluster(profile)) as lab:
        staged = stage(lab, folder, profile)
        typer.echo(staged.inventory.read_text(encoding="utf-8"))
        typer.echo(staged.profile.read_text(encoding="utf-8"))
        typer.echo(f"# password: export {staged.password_variable}={staged.password}")
        typer.echo(f"# then, in another terminal: winboot plan -i {staged.inventory}")
        typer.echo("# Ctrl-C ends the lab")
        lab.wait()


@app.command("demo")
def demo(
    nodes: Nodes = 3,
    report: Annotated[Path, typer.Option("--report", help="The folder for the reports.")] = Path(
        "demo-report"
    ),
    engine: WithEngine = Engine.LAB,
    pwsh: Pwsh = "pwsh",
) -> None:
    """Plan, join, join again, and write the report: the whole story in a minute."""
    _choose(engine, pwsh)
    from winboot_lab.cli.demo import play

    raise typer.Exit(play(nodes, report))

"""`winboot lab`: Windows machines, WinRM endpoints and a cluster on loopback, to rehearse with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winboot_lab import engines
from winboot_lab.memory import collect_rarely

if TYPE_CHECKING:
    from winboot_lab.up import Lab, NodePlan

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


Folder = Annotated[
    Path, typer.Option("--folder", help="Where inventory, profile, kubeconfig and env of the lab are.")
]
FOLDER = Path("lab-files")


@app.command("up")
def up(
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", min=1, max=500, help="How many machines; 2019, 2022 and 2025 in turn. [default: 3]"
        ),
    ] = None,
    folder: Folder = FOLDER,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            help="A profile of yours to rehearse, with the proxies and registries it mentions; cluster and artifacts "
            "become the lab's.",
        ),
    ] = None,
    inventory: Annotated[
        Path | None,
        typer.Option(
            "--inventory",
            "-i",
            help="An inventory of yours to rehearse: its names, groups, releases, profiles, and the proxies and "
            "registries they mention.",
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            metavar="BUNDLE.zip",
            help="A bundle of `winboot collect`: machines of its releases, updates and hardware, before their join.",
        ),
    ] = None,
    boot: Annotated[
        bool,
        typer.Option(
            "--boot",
            help="Rehearse first boot: machines reach port 9443 of this computer as boot.lab:9443, and `winboot lab boot` "
            "gives them their user data.",
        ),
    ] = False,
    engine: WithEngine = Engine.LAB,
    pwsh: Pwsh = "pwsh",
) -> None:
    """Bring the lab up, write its files, and stay until Ctrl-C."""
    from winboot.base.errors import UsageError

    if inventory is not None and profile is not None:
        raise UsageError("--inventory and --profile are two ways", hint="An inventory names its profiles.")
    if inventory is not None and boot:
        raise UsageError(
            "--inventory and --boot do not go together", hint="Rehearse first boot with a profile of yours."
        )
    if inventory is not None and nodes is not None:
        raise UsageError(
            "--inventory and --nodes do not go together: the inventory says which machines there are",
            hint="Leave --nodes out.",
        )
    if like is not None and (inventory is not None or nodes is not None):
        raise UsageError(
            "--like does not go together with --inventory or --nodes: the bundle has the machines",
            hint="Leave the other option out.",
        )
    _choose(engine, pwsh)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--folder {folder} cannot be made: {error.strerror}", hint="Name another folder."
        ) from error
    if inventory is not None:
        _up_as(inventory, folder)
    else:
        _up_with(profile, nodes or 3 if like is None else _plans(like), folder, boot=boot)


def _plans(bundle: Path) -> Sequence[NodePlan]:
    from winboot_lab.cli.like import plans_of

    return plans_of(bundle)


def _up_with(profile: Path | None, nodes: int | Sequence[NodePlan], folder: Path, *, boot: bool) -> None:
    """A lab of these machines, or of so many, and what the profile mentions of the world."""
    from winboot_lab.cli.staging import fitting_cluster
    from winboot_lab.cli.twin import stage_profile
    from winboot_lab.up import Lab

    before = dict(os.environ)
    with Lab(nodes=nodes, cluster=fitting_cluster(profile)) as lab:
        invented = stage_profile(lab, profile, folder, node_ip=boot)
        if boot:
            lab.open_boot()
        _stay(lab, folder, invented, _set_since(before))


def _up_as(inventory: Path, folder: Path) -> None:
    """A lab like the site of an inventory."""
    from winboot_lab.cli.staging import fitting_cluster
    from winboot_lab.cli.twin import stage_twin, twin_of
    from winboot_lab.up import Lab

    twin = twin_of(inventory)
    before = dict(os.environ)
    with Lab(nodes=twin.plans, cluster=fitting_cluster(twin.inventory.machines[0].profile_file)) as lab:
        _, invented = stage_twin(lab, twin, folder)
        _stay(lab, folder, invented, _set_since(before))


def _set_since(before: Mapping[str, str]) -> dict[str, str]:
    """The variables of the environment that are new: the passwords that profiles name and the user had not set."""
    return {name: value for name, value in os.environ.items() if name not in before}


def _stay(lab: Lab, folder: Path, invented: list[str], more: dict[str, str]) -> None:
    """Say what there is, and stay until Ctrl-C."""
    from contextlib import nullcontext

    from winboot_lab.cli.control import Control
    from winboot_lab.cli.staging import MIRROR_VARIABLE, write_environment

    env = write_environment(folder, lab.password, {**more, MIRROR_VARIABLE: lab.mirror.url})
    try:
        control: Control | nullcontext[None] = Control(lab, folder)
    except OSError as error:
        typer.echo(f"warning: no exec, break and heal ({error.strerror or error})", err=True)
        control = nullcontext()
    with control:
        from winboot_lab.cli.breaking import EXAMPLE

        kinds = ", ".join(f"{plan.name} ({plan.release})" for plan in lab.plans[:8])
        more_nodes = f" and {len(lab.plans) - 8} more" if len(lab.plans) > 8 else ""
        typer.echo(f"lab up: {kinds}{more_nodes}")
        typer.echo(f"files:  {folder}/inventory.yaml, profile.yaml, ca.crt, kubeconfig, env")
        for one in invented:
            typer.echo(f"the lab's own: {one}")
        typer.echo("\nIn another terminal:")
        typer.echo(
            f"  . {env}                  # password, WINBOOT_INVENTORY, KUBECONFIG, WINBOOT_LAB_MIRROR"
        )
        typer.echo("  winboot plan; winboot join; kubectl get nodes")
        typer.echo(f"  winboot lab break NODE KIND; winboot lab heal; winboot lab exec NODE '{EXAMPLE}'")
        if lab.boots:
            typer.echo("  winboot hook serve --bootstrap 127.0.0.1:9443 --proxy-from 127.0.0.2/32")
            typer.echo(
                "  winboot lab boot NODE USERDATA      # of `winboot userdata --endpoint boot.lab:9443`"
            )
        typer.echo("Ctrl-C ends the lab.")
        lab.wait()


@app.command("exec")
def exec_(
    node: Annotated[str, typer.Argument(help="Which machine.")],
    script: Annotated[str, typer.Argument(help="PowerShell to run at its console; - reads it from here.")],
    folder: Folder = FOLDER,
) -> None:
    """Run PowerShell at the console of a machine of the lab that is up; its exit code is the command's."""
    import sys

    from winboot_lab.cli.control import ask

    text = sys.stdin.read() if script == "-" else script
    answer = ask(folder, {"do": "exec", "node": node, "script": text})
    typer.echo(answer["said"], nl=False)
    raise typer.Exit(int(answer["code"]) & 0xFF)


@app.command("boot")
def boot_(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Which machine; it is no node yet.")],
    userdata: Annotated[
        Path, typer.Argument(metavar="USERDATA", help="What `winboot userdata --for file` has printed.")
    ],
    folder: Folder = FOLDER,
) -> None:
    """Start a machine of a lab that was brought up with --boot for the first time, with this user data."""
    from winboot.base.errors import UsageError
    from winboot_lab.cli.control import ask

    try:
        script = userdata.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{userdata} cannot be read: {error}", hint="`winboot userdata --for file`."
        ) from error
    typer.echo(ask(folder, {"do": "boot", "node": node, "script": script})["said"], nl=False)


def _kinds() -> str:
    from winboot_lab.cli.breaking import KINDS

    return "\n".join(f"{name:12} {kind.says}" for name, kind in KINDS.items())


@app.command("break")
def break_(
    node: Annotated[str, typer.Argument(help="Which machine; without one the kinds are listed.")] = "",
    kind: Annotated[str, typer.Argument(help="What happens to it.")] = "",
    folder: Folder = FOLDER,
) -> None:
    """Let something happen to a machine of the lab that is up."""
    from winboot.base.errors import UsageError
    from winboot_lab.cli.control import ask

    if not node:
        typer.echo(_kinds())
        return
    if not kind:
        raise UsageError("break takes NODE and KIND", hint="`winboot lab break` lists the kinds.")
    typer.echo(ask(folder, {"do": "break", "node": node, "kind": kind})["said"], nl=False)


@app.command("heal")
def heal(
    node: Annotated[str, typer.Argument(help="Which machine; without one all of them.")] = "",
    folder: Folder = FOLDER,
) -> None:
    """Take back what `break` did outside of a machine; what is wrong within it, `winboot repair` heals."""
    from winboot_lab.cli.control import ask

    typer.echo(ask(folder, {"do": "heal", "node": node})["said"], nl=False)


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

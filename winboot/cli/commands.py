"""The commands, in the order `winboot --help` shows them. Each lives in a file of its own name and is imported when a
command line names it: help for all of them costs no more than this table."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import typer

GROUP: Final = "winboot.commands"  # entry points of other distributions: a name, and a Typer app


@dataclass(frozen=True, slots=True)
class Command:
    """One command: the module below winboot.cli with a function of its name, and a line for the list of commands."""

    name: str
    module: str
    summary: str

    def function(self) -> Any:
        """What Typer calls; a Typer app where the command has commands of its own."""
        return getattr(importlib.import_module(f"winboot.cli.{self.module}"), self.name.replace("-", "_"))


# `winboot --help` shows the commands below these titles, in this order.
GROUPS: Final = {
    "First steps": (
        Command("init", "init", "Write profile.yaml, inventory.yaml, ca.crt, or fill them in."),
        Command("check", "check", "Check inventories, profiles and scripts; contact nothing."),
        Command("host", "host", "Add machines to an inventory, also from Terraform or govc."),
        Command("inventory", "inventory", "Show the machines of an inventory or a cloud."),
        Command("ping", "ping", "Log in to every machine and show what prevents a join."),
        Command("preflight", "preflight", "Check cluster and machines before a join; change nothing."),
    ),
    "Every day": (
        Command("plan", "plan", "Look at every node, show the differences; change nothing."),
        Command("join", "join", "Change all differences until every node is Ready."),
        Command("repair", "join", "The same as join, for nodes that have joined before."),
        Command("status", "status", "Show version, readiness, drift and last run of each node."),
        Command("verify", "verify", "Try traffic between pods, nodes, services; clean up after."),
        Command("doctor", "doctor", "Find faults of nodes, their causes and their fixes."),
        Command("collect", "collect", "Write facts of nodes to a zip file, without secrets."),
    ),
    "A node's life": (
        Command("upgrade", "upgrade", "Give nodes the versions of the profile, one by one."),
        Command("rollback", "rollback", "Return nodes to the versions before an upgrade."),
        Command("remove", "remove", "Restore machines to their former state, delete their Nodes."),
        Command("csr", "csr", "List, approve or watch requests for serving certificates."),
    ),
    "Look back": (
        Command("runs", "runs", "List earlier runs."),
        Command("log", "log", "Show the output of the machines in an earlier run."),
        Command("report", "report", "Show the report of an earlier run, in every form."),
        Command("render", "render", "Show the PowerShell that would run; contact nothing."),
        Command("show", "show", "Show a plan from `plan --out`."),
        Command("verify-report", "verify_report", "Compare a report's hashes with the current rendering."),
    ),
    "Clouds and fleets": (
        Command("cloud", "cloud", "Check a node against its cloud; print rights; run a demo."),
        Command("hook", "hook", "Join and drain the machines of a cloud's groups."),
        Command("fleet", "fleet", "Run over many nodes with several workers, as a Job."),
        Command("bake", "bake", "Prepare a template machine for an image of many nodes."),
        Command("userdata", "first_boot", "Print user data that makes machines join themselves."),
        Command("why", "first_boot", "Show the progress of a machine's first boot."),
    ),
    "Reference": (
        Command("explain", "explain", "Explain a flag, field, build, network, problem or step."),
        Command("steps", "steps", "List every step: its name, its needs, and its reason."),
        Command("schema", "schema", "Print a JSON Schema: of profiles, inventories or plans."),
        Command("manifests", "manifests", "Print manifests that nodes or pods on Windows need."),
        Command("compat", "compat", "Read the flags and gates of a node's programs."),
    ),
}
COMMANDS: Final = tuple(command for group in GROUPS.values() for command in group)
# Words of kubectl, Ansible and Terraform, and what winboot has for them.
OTHER_WORDS: Final = {
    "apply": "winboot join",
    "completion": "winboot --install-completion (or --show-completion), for the current shell",
    "delete": "winboot remove",
    "describe": "winboot status",
    "destroy": "winboot remove",
    "get": "winboot status",
    "logs": "winboot log",
}
_PREVIEW: Final = "winboot plan shows all differences and changes nothing"
OTHER_OPTIONS: Final = {
    "--check": _PREVIEW,
    "--dry-run": _PREVIEW,
    "--version": "winboot --version; the version of Kubernetes is kubernetes.version in the profile",
}
LAB_SUMMARY: Final = "Rehearse on loopback (a separate distribution: winboot-lab)."
# `winboot explain --FLAG`: the argument may look like an option.
_SETTINGS: Final[dict[str, dict[str, Any]]] = {"explain": {"ignore_unknown_options": True}}


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Put the command that these arguments name on the app, or all of them where they name none."""
    app.registered_commands.clear()
    app.registered_groups.clear()
    word = next((one for one in arguments if not one.startswith("-")), "")
    named = [one for one in COMMANDS if one.name == word]
    for command in named or COMMANDS:
        _add(app, command)
    if not named:
        _register_lab(app)


def _add(app: typer.Typer, command: Command) -> None:
    """One command, or a command with commands of its own."""
    from typer import Typer

    from winboot.cli.help import Grouped, group_options

    function = command.function()
    if isinstance(function, Typer):
        app.add_typer(group_options(function), name=command.name)
    else:
        app.command(command.name, cls=Grouped, context_settings=_SETTINGS.get(command.name))(function)


def _register_lab(app: typer.Typer) -> None:
    """The lab's commands if it is installed, else one command that says how to install it."""
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=GROUP)}
    if "lab" in found:
        from winboot.cli.help import group_options

        app.add_typer(group_options(found["lab"].load()), name="lab")
        return
    from winboot.cli import lab

    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("lab", help=LAB_SUMMARY, context_settings=anything)(lab.missing)


def help_text() -> str:
    """What `winboot --help` prints, in 80 columns."""
    width = max(len(one.name) for one in COMMANDS)
    rows = [
        line
        for title, group in GROUPS.items()
        for line in (f"{title}:", *(f"  {one.name.ljust(width)}  {one.summary}" for one in group), "")
    ]
    return "\n".join(
        (
            "Usage: winboot [OPTIONS] COMMAND [ARGS]...",
            "",
            "Turn Windows Server machines into Ready Kubernetes nodes.",
            "`plan` shows all differences and changes nothing.",
            "`join` makes the changes; run it again to repair.",
            "",
            "Options:",
            "  --version             Show the version; with -v also the date of the data.",
            "  --install-completion  Install completion for the current shell.",
            "  --show-completion     Show completion for the current shell.",
            "  -h, --help            Show this text.",
            "",
            *rows,
            "Rehearsal:",
            f"  {'lab'.ljust(width)}  {LAB_SUMMARY}",
            "",
            "winboot COMMAND --help shows the options of one command.",
        )
    )

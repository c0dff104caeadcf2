"""The commands, in the order `winboot --help` shows them. Each lives in a file of its own name and is imported when it is
asked for: help for all of them costs no more than this table."""

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


COMMANDS: Final = (
    Command(
        "init", "init", "Write profile.yaml, inventory.yaml and ca.crt, or fill in what existing ones miss."
    ),
    Command("check", "check", "Check inventories and profiles, and the scripts they make; contact nothing."),
    Command("render", "render", "Show the PowerShell that would run, without contacting anything."),
    Command("inventory", "inventory", "Show the machines of an inventory; a cloud's are asked for."),
    Command("host", "host", "Add machines to an inventory: one, or a list of Terraform's or govc's."),
    Command("ping", "ping", "Try to reach and log in to every machine, and say what is in the way."),
    Command("preflight", "preflight", "Look at cluster and machines before a join; change nothing."),
    Command("plan", "plan", "Look at every node and show the differences; change nothing."),
    Command("show", "show", "Show a plan that `plan --out` has written."),
    Command("verify-report", "verify_report", "Compare a report's hashes with what is rendered now."),
    Command("join", "join", "Change what differs until every node is Ready."),
    Command(
        "verify", "verify", "Try whether traffic flows between pods, nodes and services; clean up after."
    ),
    Command("repair", "join", "The same as join, for nodes that have joined before."),
    Command("upgrade", "upgrade", "Give nodes the versions of the profile, one after the other."),
    Command("rollback", "rollback", "Take nodes back to the versions they had before an upgrade."),
    Command("remove", "remove", "Put machines back as they were before winboot, and delete their Nodes."),
    Command("status", "status", "Show each node's version, whether it is Ready, its drift and its last run."),
    Command("runs", "runs", "List earlier runs."),
    Command("log", "log", "Show what the machines said in an earlier run."),
    Command("report", "report", "Show the report of an earlier run, in every form."),
    Command("fleet", "fleet", "Run over many nodes by several workers, as a Job of the cluster."),
    Command("hook", "hook", "Work on the machines that a cloud's groups start and end."),
    Command("userdata", "first_boot", "Print what makes a machine become a node by itself."),
    Command("why", "first_boot", "Say how far a machine's first boot has come."),
    Command("csr", "csr", "List, approve or watch the requests for serving certificates."),
    Command("steps", "steps", "List every step: its name, what it needs, and why it exists."),
    Command("explain", "explain", "Explain a flag, field, build, network, problem, step, key or exit code."),
    Command("compat", "compat", "Learn from a node's own programs what winboot's data does not know."),
    Command("schema", "schema", "Print a JSON Schema: of profiles, inventories, JSON lines or plans."),
    Command("manifests", "manifests", "Print Kubernetes manifests that nodes or pods on Windows need."),
    Command("cloud", "cloud", "Check a node against its cloud; print the rights needed there; a demo."),
)
LAB_SUMMARY: Final = "A rehearsal stage on loopback (a separate distribution: winboot-lab)."
# A flag may be asked for as it stands on a command line.
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

    function = command.function()
    if isinstance(function, Typer):
        app.add_typer(function, name=command.name)
    else:
        app.command(command.name, context_settings=_SETTINGS.get(command.name))(function)


def _register_lab(app: typer.Typer) -> None:
    """The lab's commands where it is installed, else one that says how to get it, whatever it is asked for."""
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=GROUP)}
    if "lab" in found:
        app.add_typer(found["lab"].load(), name="lab")
        return
    from winboot.cli import lab

    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("lab", help=LAB_SUMMARY, context_settings=anything)(lab.missing)


def help_text() -> str:
    """What `winboot --help` prints, in 80 columns."""
    width = max(len(one.name) for one in COMMANDS)
    rows = [f"  {one.name.ljust(width)}  {one.summary}" for one in COMMANDS]
    return "\n".join(
        (
            "Usage: winboot [OPTIONS] COMMAND [ARGS]...",
            "",
            "Turn Windows Server machines into Ready Kubernetes nodes, and say first what would change.",
            "`plan` shows what would change and changes nothing; `join` again repairs, or",
            "does nothing.",
            "",
            "Options:",
            "  --version             Show the version; with -v the date of the compatibility data, too.",
            "  --install-completion  Install completion for the current shell.",
            "  --show-completion     Show completion for the current shell.",
            "  -h, --help            Show this text.",
            "",
            "Commands:",
            *rows,
            f"  {'lab'.ljust(width)}  {LAB_SUMMARY}",
            "",
            "winboot COMMAND --help shows the options of one command.",
        )
    )

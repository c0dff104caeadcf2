"""`winboot host add`: machines for an inventory that exists; every other byte of the file stays."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winboot.base.errors import InvalidInput, UsageError
from winboot.cli.approval import at_terminal, confirm
from winboot.cli.options import DEFAULT_INVENTORY, DryRun, InventoryFile, Yes

if TYPE_CHECKING:
    from winboot.config.host_list import Listed
    from winboot.config.source import Table

host = typer.Typer(help="Add machines to an inventory that exists.", no_args_is_help=True)


@host.callback()
def _group() -> None:
    """Add machines to an inventory that exists."""


@host.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the Node.")] = "",
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Its address; default: its name.")] = "",
    os: Annotated[str, typer.Option("--os", help="2019, 2022 or 2025; default: the group's.")] = "",
    group: Annotated[
        str, typer.Option("--group", help="The group; default: the only one, or the group of the release.")
    ] = "",
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Many machines: lines NAME ADDRESS OS, or JSON of terraform, az, aws, gcloud, kubectl or govc; - "
            "reads from standard input.",
        ),
    ] = None,
    inventory: InventoryFile = DEFAULT_INVENTORY,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Add a machine, or, after a prompt, those of a list. winboot writes nothing that `winboot check` would refuse."""
    from winboot.base.private import others_say
    from winboot.config.host_list import Listed
    from winboot.config.inventory import inventory_of
    from winboot.config.source import compose, read_text

    if bool(name) == (source is not None):
        raise UsageError(
            "host add takes a NAME, or --from FILE", hint="winboot host add win-9 10.0.1.19 --os 2022"
        )
    if not inventory.is_file():
        raise UsageError(f"there is no inventory {inventory}", hint="`winboot init` makes one.")
    machines = listed(source) if source is not None else (Listed(name, address, os),)
    text = before = read_text(inventory)
    text = added(text, machines, str(inventory), os, group)
    inventory_of(inventory, compose(text, str(inventory)))
    if dry_run:
        typer.echo("\n".join(unified_diff(before.splitlines(), text.splitlines(), lineterm="")))
        return
    if source is not None:
        approve(machines, str(inventory), yes=yes)
    if (whose := others_say(inventory)) != "":
        typer.echo(f"warning: {whose}", err=True)
    if text != before:
        inventory.write_text(text, encoding="utf-8")
    hosts = ",".join(one.name for one in machines)
    typer.echo(f"{inventory}: {hosts}")
    typer.echo(f"next: winboot ping -i {inventory} --limit {hosts}")


def listed(source: Path) -> tuple[Listed, ...]:
    """The machines of a file, or of standard input for `-`."""
    from winboot.config.host_list import read_hosts
    from winboot.config.source import decoded, read_standard_input, read_text

    if str(source) == "-":
        return read_hosts(read_standard_input(), "standard input")
    return read_hosts(read_text(source, decoded), str(source))


def approve(machines: Sequence[Listed], target: str, *, yes: bool) -> None:
    """Show the machines that were found in a list, and ask once. Raises UsageError where no person can answer, Declined where
    the answer is no."""
    width = max(len(one.name) for one in machines)
    for one in machines:
        typer.echo(f"  {one.name:{width}}  {one.address or '-'}  {one.os}".rstrip(), err=True)
    if not yes and not at_terminal():
        raise UsageError(
            "the machines above are not approved, and standard input is not a terminal",
            hint="Check them, and give --yes.",
        )
    if not yes:
        confirm(f"Write {len(machines)} machine{'s' if len(machines) > 1 else ''} to {target}?")


def added(text: str, machines: Sequence[Listed], file: str, os: str = "", group: str = "") -> str:
    """The inventory's text with these machines in it. Raises UsageError where no group can be chosen, and for a machine that is
    there already; InvalidInput where the text is not a winboot inventory."""
    from winboot.config.edit import put, put_empty
    from winboot.config.source import Table, compose

    for machine in machines:
        groups = compose(text, file).get("groups")
        if not isinstance(groups, Table) or not groups.entries:
            raise InvalidInput(f"{file}: it has no winboot groups", hint="Edit an Ansible inventory by hand.")
        release = machine.os or os
        home = group or _home(groups, release, machine.name)
        if home not in groups.entries:
            raise UsageError(f"there is no group {home}", hint=f"It has {', '.join(groups.entries)}.")
        for name, entry in groups.entries.items():
            hosts = entry.value.get("hosts") if isinstance(entry.value, Table) else None
            if isinstance(hosts, Table) and machine.name in hosts.entries:
                raise UsageError(f"{machine.name} is already in the group {name}", hint="Edit it there.")
        values = {"address": machine.address} if machine.address else {}
        if release and release != _os_of(groups, home):
            values["os"] = release
        path = ("groups", home, "hosts")
        text = put(text, (*path, machine.name), values) if values else put_empty(text, path, machine.name)
    return text


def _home(groups: Table, release: str, name: str) -> str:
    """The only group, or the only one of that release."""
    fitting = [one for one in groups.entries if not release or _os_of(groups, one) == release]
    candidates = fitting if len(fitting) == 1 else list(groups.entries)
    if len(candidates) != 1:
        raise UsageError(
            f"{name}: the host's group is missing", hint=f"Give --group, one of {', '.join(groups.entries)}."
        )
    return candidates[0]


def _os_of(groups: Table, name: str) -> str:
    from winboot.config.source import Scalar, Table

    table = groups.get(name)
    value = table.get("os") if isinstance(table, Table) else None
    return value.text if isinstance(value, Scalar) else ""

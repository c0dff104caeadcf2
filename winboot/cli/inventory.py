"""`winboot inventory`: the machines of an inventory, as people, Ansible or a file see them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winboot.cli.help import NodesOrCommand
from winboot.cli.options import DEFAULT_INVENTORY, DryRun, InventoryFile, Limit, Trust, Yes, chosen

if TYPE_CHECKING:
    from winboot.config.inventory import Inventory
    from winboot.remote.cloud.composing import Member
    from winboot.remote.cloud.pool import Pool


inventory = typer.Typer(
    cls=NodesOrCommand,
    subcommand_metavar="[NODE]... | import FILE",
    help="Show the machines of an inventory, or import an Ansible inventory.",
)


@inventory.callback(invoke_without_command=True)
def show(
    context: typer.Context,
    inventory: InventoryFile = DEFAULT_INVENTORY,
    graph: Annotated[
        bool, typer.Option("--graph", help="Groups and their hosts as a tree (default).")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="JSON in the form of Ansible's inventory programs.")
    ] = False,
    freeze: Annotated[
        Path | None,
        typer.Option("--freeze", help="Write a static inventory to this file, in the inventory's folder."),
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Query the cloud and ignore the cache.")] = False,
    limit: Limit = None,
) -> None:
    """Show the machines of an inventory. For `*.aws.yaml` and `*.azure.yaml` it queries the cloud; it changes nothing."""
    from winboot.base.errors import UsageError
    from winboot.config.inventory.cloud_name import provider_of

    if context.invoked_subcommand is not None:
        return
    limits = chosen(context.args, limit)
    if sum((graph, list_, freeze is not None)) > 1:
        raise UsageError("--graph, --list and --freeze do not go together", hint="Choose one.")
    if not inventory.exists():
        raise UsageError(f"there is no inventory {inventory}", hint="Name one with --inventory.")
    if provider_of(inventory) is None:
        _static(inventory, limits, list_=list_, freeze=freeze)
    elif limits:
        raise UsageError(
            "a selection of hosts needs a static inventory file", hint="`--freeze FILE` makes one."
        )
    else:
        _cloud(inventory, list_=list_, freeze=freeze, refresh=refresh)


@inventory.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="An Ansible inventory: a file or a folder.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The file to write, in FILE's folder; default: inventory.yaml."),
    ] = None,
    password_env: Annotated[
        str,
        typer.Option(
            "--password-env",
            help="The environment variable with the password of hosts that set no winboot password.",
        ),
    ] = "",
    trust: Trust = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Run `ansible-inventory` on scripts, plug-ins and vaults, show the machines, and write a winboot inventory. It
    never writes values from a vault."""
    from winboot.cli.inventory_import import import_inventory

    import_inventory(source, out, password_env, trust=trust, yes=yes, dry_run=dry_run)


def _static(file: Path, limit: tuple[str, ...], *, list_: bool, freeze: Path | None) -> None:
    from winboot.base.errors import UsageError
    from winboot.config import pattern
    from winboot.config.inventory import load_inventory

    if freeze is not None:
        raise UsageError(f"{file} is static already", hint="--freeze is for *.aws.yaml and *.azure.yaml.")
    loaded = load_inventory(file)
    names = pattern.chosen({machine.name: machine.groups for machine in loaded}, limit)
    loaded = replace(loaded, machines=tuple(one for one in loaded if one.name in names))
    typer.echo(json.dumps(_ansible(loaded), indent=2) if list_ else "\n".join(tree(_groups(loaded))))


def _cloud(file: Path, *, list_: bool, freeze: Path | None, refresh: bool) -> None:
    from winboot.remote.cloud.pool import Pool, ansible_list, group_members

    pool = Pool.read(file)
    members = pool.members(pool.hosts(refresh=refresh, warn=_warn), _warn)
    if list_:
        typer.echo(json.dumps(ansible_list(pool, members), indent=2))
    elif freeze is not None:
        _freeze(pool, members, freeze)
    else:
        addresses = {one.name: f"{one.host.id}  {one.host.private_ip}" for one in members}
        typer.echo("\n".join(tree(group_members(pool, members), addresses)))


def _freeze(pool: Pool, members: Sequence[Member], target: Path) -> None:
    from winboot.base.errors import UsageError
    from winboot.config.inventory.cloud_name import provider_of
    from winboot.remote.cloud.pool import frozen_text

    if target.resolve().parent != pool.path.resolve().parent or provider_of(target) is not None:
        raise UsageError(
            f"{target}: put the frozen inventory into the folder of {pool.path}, under a name that ends in .yaml without a"
            " cloud's suffix such as .aws.yaml",
            hint=f"Its paths are relative to that folder: --freeze {pool.path.parent / 'frozen.yaml'}",
        )
    pool.inventory(members)  # complaints now, not when it is read
    target.write_text(frozen_text(pool, members), encoding="utf-8")
    typer.echo(f"{target}: {len(members)} hosts", err=True)


def _warn(text: str) -> None:
    typer.echo(f"warning: {text}", err=True)


def tree(groups: Mapping[str, Sequence[str]], beside: Mapping[str, str] | None = None) -> list[str]:
    """Groups and hosts as `ansible-inventory --graph` draws them."""
    lines = ["@all:"]
    for name, hosts in groups.items():
        lines.append(f"  |--@{name}:")
        for host in hosts:
            more = (beside or {}).get(host, "")
            lines.append(f"  |  |--{host}{'  ' + more if more else ''}")
    return lines


def _groups(loaded: Inventory) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for machine in loaded:
        for group in machine.groups:
            groups.setdefault(group, []).append(machine.name)
    return groups


def _ansible(loaded: Inventory) -> dict[str, Any]:
    groups = _groups(loaded)
    variables = {
        one.name: {
            "ansible_host": one.connection.host,
            "ansible_port": one.connection.port_number,
            **({"ansible_user": one.connection.user} if one.connection.user else {}),
            **({"provider_id": one.provider_id} if one.provider_id else {}),
        }
        for one in loaded
    }
    answer: dict[str, Any] = {name: {"hosts": hosts} for name, hosts in groups.items()}
    return {**answer, "all": {"children": ["ungrouped", *groups]}, "_meta": {"hostvars": variables}}

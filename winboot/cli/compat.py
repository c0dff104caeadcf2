"""`winboot compat`: what kubelet and kube-proxy of a node know, as newer facts for a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from winboot.base.errors import UsageError
from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Trust

compat = typer.Typer(
    help="Read a node's programs for flags and gates that winboot's data does not have.",
    no_args_is_help=True,
)
OUT = typer.Option("--out", help="Write the overlay to this file instead of printing it.")


AGE = typer.Option(
    "--age", help="Print the day of the last comparison with upstream for each part of the data."
)


@compat.callback(invoke_without_command=True)
def _commands(age: Annotated[bool, AGE] = False) -> None:
    """The age of the data, next to the commands."""
    if age:
        from winboot.config.compat import load
        from winboot.config.compat.age import parts

        for name, day, days in parts(load()):
            typer.echo(f"{name:<16}{day}  {days} days")


@compat.command()
def learn(
    node: Annotated[str, typer.Argument(help="A host of the inventory on which the programs are installed.")],
    inventory: InventoryFile = DEFAULT_INVENTORY,
    out: Annotated[Path | None, OUT] = None,
    trust: Trust = False,
) -> None:
    """Read from a node's kubelet.exe and kube-proxy.exe which flags and gates they have, and write the differences to winboot's
    data as an overlay for `kubernetes.overlay`. Changes nothing on the node.

    Use it for a minor that is newer than the data, and for vendors' builds.
    """
    from winboot.cli.targets import load_targets, open_transport
    from winboot.config.compat import load
    from winboot.config.compat.age import today
    from winboot.config.compat.learned import as_text
    from winboot.node.knowledge import learn as ask

    (spec,) = load_targets(inventory, (node,), trust=trust)
    with open_transport(spec) as transport:
        learned = ask(spec, transport, load())
    text = as_text(learned.sections, node, learned.programs, today())
    count = sum(len(entries) for entries in learned.sections.values())
    versions = ", ".join(f"{one.component} {one.version}" for one in learned.programs)
    differ = f"{count} {'entry differs' if count == 1 else 'entries differ'} from winboot's data"
    typer.echo(f"{node}: {versions}: {differ if count else 'as in the data'}", err=True)
    if out is None:
        typer.echo(text, nl=False)
    else:
        try:
            out.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"{out} cannot be written: {error.strerror}") from error

"""`winboot collect`: facts and configuration of nodes in one file, for `winboot doctor --from FILE` and for other people."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winboot import __version__
from winboot.base import exits
from winboot.base.errors import UsageError
from winboot.cli.doctor import gathered, write
from winboot.cli.options import Machines, Workers, expanded

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.doctor.collection import Item
    from winboot.operations.doctor.gather import Reading
    from winboot.operations.join import RunContext

_LONGEST_S = 31 * 24 * 3600


@expanded()
def collect(
    machines: Machines,
    since: Annotated[
        str, typer.Option("--since", metavar="DURATION", help="Age of the oldest events: 2h, 90m.")
    ] = "24h",
    logs: Annotated[
        bool, typer.Option("--logs", help="Add the text of logs. Programs may have written secrets there.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.zip", help="The file to write. [default: by date]")
    ] = None,
    workers: Workers = 8,
) -> None:
    """Write facts, allowed settings and versions of nodes to a zip file, for `winboot doctor --from FILE` and for a report of a
    problem. Holds no key, token, password, environment or command line; with --logs, the text of logs as it is. Changes
    nothing but a task and its files on the node, which it removes. Exits with 1 if a machine did not answer.
    """
    from winboot.operations.doctor.bundle import of_document, pack

    seconds = _seconds(since)
    items: dict[str, list[Item]] = {}

    def reading(context: RunContext, spec: NodeSpec) -> Reading:
        from winboot.operations.doctor.collection import Collection
        from winboot.operations.doctor.items import collected
        from winboot.script.rendering import collect as script

        run = Collection(
            lambda: context.connect(spec),
            script(spec, collected(spec, logs=logs)),
            seconds,
            context.stop.wait,
        )
        items[spec.node.name] = run.items
        return run.look

    documents = gathered(machines, workers, reading)
    file = out or Path(f"winboot-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip")
    nodes = {one.node: (of_document(one), *items[one.node]) for one in documents}
    write(file, pack(nodes, winboot=__version__, since_s=seconds, logs=logs))
    for one in documents:
        typer.echo(f"{one.node}: {one.login_problem or f'{len(items[one.node])} items'}")
        for item in items[one.node]:
            if item.error:
                typer.echo(f"  not read: {item.name}: {item.error}")
    typer.echo(f"{file}: {'with' if logs else 'without'} the text of logs")
    raise typer.Exit(exits.FAILED if any(one.login_problem for one in documents) else exits.DONE)


def _seconds(since: str) -> int:
    """Raises UsageError for what is not a duration of a second to a month."""
    from winboot.config.compat.values import seconds

    found = seconds(since)
    if found is None or not 1 <= found <= _LONGEST_S:
        raise UsageError(f"--since {since}: write a duration of up to 744h, such as 2h or 90m")
    return int(found)

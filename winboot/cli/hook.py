"""`winboot hook serve`: work on the machines that a cloud's groups start and end."""

from __future__ import annotations

import contextlib
import socket
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Workers

if TYPE_CHECKING:
    from winboot.hook import Worker
    from winboot.join import RunContext

hook = typer.Typer(no_args_is_help=True, help="Join machines that a group starts, drain those that it ends.")


@hook.callback()
def _group() -> None:
    """Keep `serve` a word of its own."""


@hook.command()
def serve(
    queue: Annotated[
        str, typer.Option("--queue", help="URL of the SQS queue that the lifecycle hooks write to.")
    ],
    inventory: InventoryFile = DEFAULT_INVENTORY,
    namespace: Annotated[
        str, typer.Option("--namespace", help="Where the claims (Leases) on machines are.")
    ] = "winboot-system",
    join_timeout: Annotated[
        int, typer.Option("--join-timeout", help="Seconds until a join is abandoned.")
    ] = 2400,
    drain_timeout: Annotated[
        int, typer.Option("--drain-timeout", help="Seconds that pods have to leave.")
    ] = 600,
    listen: Annotated[str, typer.Option("--listen", help="Address of /metrics and /healthz.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Their port; 0 takes a free one.")] = 9345,
    idle_exit: Annotated[
        float | None, typer.Option("--idle-exit", help="End after so many quiet seconds; default: never.")
    ] = None,
    workers: Workers = 8,
) -> None:
    """Receive lifecycle messages: join and CONTINUE, drain and CONTINUE, or ABANDON with a reason. SIGTERM finishes first."""
    from winboot.cli.targets import run_context
    from winboot.cloud.pool import Pool
    from winboot.cluster.claims import Claimant
    from winboot.hook import Settings, Worker
    from winboot.hook.metrics import MetricsServer
    from winboot.hook.work import NodeWork
    from winboot.join import Options

    pool = Pool.read(_cloud_file(inventory))
    with run_context([], _Quiet()) as (context, _):
        work = NodeWork(pool, _finishing(context), Options(), join_timeout, drain_timeout)
        worker = Worker(
            # Only the AWS provider has queues; _cloud_file has refused the others.
            queue=cast("Any", pool.provider).hooks(queue),
            work=work,
            claimant=Claimant(f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}", time.monotonic),
            leases=lambda target: target.cluster.leases(namespace),
            stop=context.stop,
            settings=Settings(workers=workers, idle=idle_exit),
        )
        with MetricsServer(worker.metrics, lambda: worker.healthy, address=listen, port=port) as server:
            worker.log("listening", address=listen, port=server.port)
            _run(worker)


def _run(worker: Worker) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        worker.run()


def _finishing(context: RunContext) -> RunContext:
    """The context of the machines' work: SIGTERM ends the loop, and what is held is finished."""
    from dataclasses import replace

    from winboot.run import Stop

    return replace(context, stop=Stop())


def _cloud_file(inventory: Path) -> Path:
    from winboot.cloud.settings import provider_of
    from winboot.errors import UsageError

    if not inventory.exists():
        raise UsageError(f"there is no inventory {inventory}", hint="Name one with --inventory.")
    if provider_of(inventory) != "aws":
        raise UsageError(
            f"{inventory}: only AWS has a queue of lifecycle hooks",
            hint="Name a *.aws.yaml with --inventory.",
        )
    return inventory


class _Quiet:
    """A listener that says nothing: the log has a line for each message, the journal the rest."""

    def event(self, node: str, event: object) -> None:
        """Nothing."""

    def say(self, node: str, text: str) -> None:
        """Nothing."""

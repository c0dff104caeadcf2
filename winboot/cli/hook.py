"""`winboot hook serve`: work on the machines that a cloud's groups start and end."""

from __future__ import annotations

import contextlib
import socket
import time
import uuid
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from winboot.base.errors import UsageError
from winboot.base.extras import require
from winboot.base.state import state_folder
from winboot.cli.first_boot import (
    Certificates,
    Key,
    approve,
    endpoint,
    proof_of,
    serve_alone,
    voucher,
)
from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Lines, LinesForm, Workers
from winboot.cli.output import columns
from winboot.report.line import json_line

if TYPE_CHECKING:
    from winboot.operations.hook import Worker
    from winboot.operations.hook.metrics import Log
    from winboot.operations.hook.work import NodeWork
    from winboot.operations.join import RunContext
    from winboot.remote.cloud.base import HookQueue
    from winboot.remote.cloud.pool import Pool

hook = typer.Typer(no_args_is_help=True, help="Join machines that a group starts, drain those it ends.")


@hook.callback()
def _group() -> None:
    """Keep `serve` a separate word."""


@hook.command()
def serve(
    inventory: InventoryFile = DEFAULT_INVENTORY,
    queue: Annotated[
        str, typer.Option("--queue", help="AWS: URL of the SQS queue that the lifecycle hooks write to.")
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", help="The namespace of the claims (Leases) on machines.")
    ] = "winboot-system",
    self_registering: Annotated[
        bool,
        typer.Option(
            "--self-registering",
            help="Machines join by themselves; the hook handles only certificate, labels and startup taint.",
        ),
    ] = False,
    join_timeout: Annotated[
        int, typer.Option("--join-timeout", help="Seconds until winboot gives up a join.")
    ] = 2400,
    drain_timeout: Annotated[
        int, typer.Option("--drain-timeout", help="Seconds to wait until the pods are evicted.")
    ] = 600,
    every: Annotated[
        float,
        typer.Option(
            "--every",
            min=1.0,
            help="Azure and --self-registering: seconds between two checks of the machines.",
        ),
    ] = 30.0,
    listen: Annotated[
        str, typer.Option("--listen", help="Address of /metrics, /healthz and /readyz.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port of /metrics; 0 uses a free port.")] = 9345,
    idle_exit: Annotated[
        float | None,
        typer.Option("--idle-exit", help="End after this many seconds without a message; default: never."),
    ] = None,
    workers: Workers = 8,
    bootstrap: Annotated[
        str,
        typer.Option(
            "--bootstrap",
            metavar="ADDRESS[:PORT]",
            help="Also accept machines that call at their first boot (docs/first-boot.md); port 9443.",
        ),
    ] = "",
    bootstrap_key: Key = None,
    aws_certificates: Certificates = None,
    proxy_from: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy-from",
            metavar="CIDR",
            help="Addresses of load balancers that name each caller by the PROXY protocol (repeat): at most a /28, without a "
            "host of the inventory.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print what each message in the queue would start, and end. Claim, answer and delete nothing.",
        ),
    ] = False,
) -> None:
    """Join machines that a group starts and drain those that it ends: AWS by --queue, Azure by its scheduled events.

    The hook answers each with CONTINUE, or with ABANDON and a reason in the log. On SIGTERM it finishes the work in progress.
    """
    from winboot.config.inventory.cloud_name import provider_of

    if dry_run and bootstrap:
        raise UsageError(
            "--dry-run reads a cloud's queue, and --bootstrap waits for machines that call",
            hint="Leave one of them out.",
        )
    if bootstrap and inventory.exists() and (provider_of(inventory) is None or _queueless(inventory, queue)):
        serve_alone(
            inventory,
            bootstrap,
            bootstrap_key,
            proxy_from or (),
            workers=workers,
            join_timeout=join_timeout,
            idle_exit=idle_exit,
            listen=listen,
            port=port,
            certificates=aws_certificates,
        )
        return
    self_registering = self_registering or bool(bootstrap)
    file = _cloud_file(inventory, queue)
    from winboot.cli.targets import run_context
    from winboot.cli.trust import settle_files
    from winboot.config.demands import files_of
    from winboot.node.run import Quiet
    from winboot.operations.hook import Settings, Worker
    from winboot.operations.hook.metrics import Log, MetricsServer
    from winboot.operations.hook.status import StatusServer, status_of
    from winboot.operations.hook.work import NodeWork
    from winboot.operations.join import Options
    from winboot.remote.cloud.pool import Pool
    from winboot.remote.cluster.claims import Claimant

    # The profiles, too, before a machine needs them: the user sees at once which files belong to another account.
    settle_files(files_of(file))
    pool, log = Pool.read(file, settle_files), Log()
    with run_context([], Quiet(), in_cluster=True) as (context, _):
        work = NodeWork(
            pool,
            _finishing(context),
            Options(),
            join_timeout,
            drain_timeout,
            self_registering=self_registering,
        )
        if dry_run:
            _forecast(_queue(pool, queue, work, context, log, every, dry=True), work)
            return
        worker = Worker(
            queue=_queue(pool, queue, work, context, log, every),
            work=work,
            claimant=Claimant(
                f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}", time.monotonic, run=context.run
            ),
            leases=lambda cluster: cluster.leases(namespace),
            stop=context.stop,
            # Azure's queue looks at all machines by itself.
            settings=Settings(
                workers=workers, idle=idle_exit, sweep=every if self_registering and queue else None
            ),
            log=log,
        )
        called: AbstractContextManager[object] = contextlib.nullcontext()
        if bootstrap:
            called = endpoint(
                bootstrap,
                bootstrap_key,
                proxy_from or (),
                lambda: [(one.spec, one.member.groups) for one in work.targets()],
                context,
                log,
                workers=workers,
                join_timeout=join_timeout,
                proof=proof_of(pool, aws_certificates, log),
            )
        work.unresolved = lambda instance, problem: log(
            "the settings of a machine are not valid", instance=instance, problem=problem
        )
        served = MetricsServer(
            worker.metrics, lambda: worker.healthy, lambda: worker.ready, address=listen, port=port
        )
        with served as server, called, StatusServer(state_folder("hook"), lambda: status_of(worker.items)):
            worker.log("listening", address=listen, port=server.port)
            _run(worker)


def _queueless(inventory: Path, queue: str) -> bool:
    """Whether only machines that call are worked on: AWS without a queue, as with Karpenter, which has no groups."""
    from winboot.config.inventory.cloud_name import provider_of

    return provider_of(inventory) == "aws" and not queue


def _queue(
    pool: Pool, url: str, work: NodeWork, context: RunContext, log: Log, every: float, *, dry: bool = False
) -> HookQueue:
    """Where the cloud says what its groups do. A `dry` one waits for nothing."""
    if pool.name == "aws":
        queue: HookQueue = cast("Any", pool.provider).hooks(url)
        return queue
    from winboot.remote.cloud.azure_queue import AzureQueue

    provider = cast("Any", pool.provider)
    if dry:
        return AzureQueue(provider, work, context.connect, bool, log, every=every, dry=True)
    return AzureQueue(provider, work, context.connect, context.stop.wait, log, every=every)


def _forecast(queue: HookQueue, work: NodeWork) -> None:
    from winboot.operations.hook.dry_run import forecasts

    count = 0
    for action, what in forecasts(queue, work):
        count += 1
        typer.echo(f"{action.kind} {action.instance}: would {what}" if action else f"message: would {what}")
    if not count:
        typer.echo("The queue has no message.", err=True)


@hook.command()
def status(output: LinesForm = Lines.table) -> None:
    """Show the work items of the running `winboot hook serve` and their states."""
    from winboot.operations.hook.status import read_status

    items = read_status(state_folder("hook"))
    if output is Lines.json:
        for one in items:
            typer.echo(json_line(one), nl=False)
    elif items:
        columns(
            [
                {
                    "state": one.state,
                    "action": one.action,
                    "machine": one.node or one.machine.rpartition("/")[2],
                    "age": f"{one.seconds} s",
                    "reason": one.reason,
                }
                for one in items
            ]
        )
    else:
        typer.echo("The hook runs and works on no machine.")


def _run(worker: Worker) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        worker.run()


def _finishing(context: RunContext) -> RunContext:
    """The context of the machines' work: SIGTERM ends the loop, and what is held is finished. The worker has the claims."""
    from dataclasses import replace

    from winboot.node.run import Stop

    return replace(context, stop=Stop(), claims=None)


def _cloud_file(inventory: Path, queue: str) -> Path:
    """The inventory, where it and the queue fit each other."""
    from winboot.operations.hook_manifest import hooked_cloud

    if not inventory.exists():
        raise UsageError(f"there is no inventory {inventory}", hint="Name one with --inventory.")
    require(hooked_cloud(inventory, queue), "`winboot hook serve`")
    return inventory


hook.command()(voucher)
hook.command()(approve)

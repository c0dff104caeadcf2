"""`winboot fleet`: a run over many nodes by workers of the cluster, which share it by their claims."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from winboot.base import exits
from winboot.base.errors import UsageError
from winboot.cli.options import (
    DEFAULT_INVENTORY,
    Drain,
    InventoryFile,
    Lines,
    LinesForm,
    Output,
    Trust,
    expanded,
)
from winboot.cli.pace import Pacing

if TYPE_CHECKING:
    from winboot.config.inventory import Inventory
    from winboot.config.node_spec import NodeSpec
    from winboot.node.fleet import Budget, RunContext
    from winboot.node.fleet.budget import Pace
    from winboot.operations.fleet import View
    from winboot.operations.fleet.manifest import FleetJob
    from winboot.remote.cluster.claims import Leases

fleet = typer.Typer(
    no_args_is_help=True, help="Run over many nodes by several workers, as a Job of the cluster."
)

_RUN: Final = typer.Argument(help="The run's name, from `winboot fleet render`.")
Image = Annotated[str, typer.Option("--image", help="The image made from docs/examples/hook/Containerfile.")]
Shards = Annotated[
    int, typer.Option("--shards", min=1, max=1000, help="Number of workers (pods of the Job).")
]
PerWorker = Annotated[
    int, typer.Option("--workers", min=1, max=64, help="Number of nodes at a time, for each worker.")
]
Namespace = Annotated[
    str, typer.Option("--namespace", help="The namespace of the workers and of the claims (Leases) on nodes.")
]
Name = Annotated[str, typer.Option("--name", help="The run's name; default: from files and options.")]


@dataclass(frozen=True)
class Rendered:
    """The Job that is to be printed."""

    inventory: InventoryFile = DEFAULT_INVENTORY
    image: Image = ""
    shards: Shards = 4
    workers: PerWorker = 8
    namespace: Namespace = "winboot-system"
    drain: Drain = False
    trust: Trust = False


@fleet.command()
@expanded()
def render(wanted: Rendered, pacing: Pacing, name: Name = "") -> None:
    """Print Namespace, RBAC, the inventory's files and an Indexed Job as YAML for `kubectl apply`; contact nothing."""
    from winboot.operations.fleet.manifest import fleet_manifest

    job, mints, gmsa = _job(wanted, pacing, name)
    typer.echo(fleet_manifest(job, mints=mints, drains=wanted.drain, gmsa=gmsa), nl=False)


@fleet.command()
@expanded()
def work(
    run: Annotated[str, _RUN],
    pacing: Pacing,
    inventory: InventoryFile = DEFAULT_INVENTORY,
    shard: Annotated[int, typer.Option("--shard", min=0, help="The number of the shard, from 0 on.")] = 0,
    shards: Shards = 1,
    attempt: Annotated[
        int,
        typer.Option("--attempt", min=1, help="The attempt's number: a new one starts failed nodes again."),
    ] = 1,
    workers: PerWorker = 8,
    namespace: Namespace = "winboot-system",
    drain: Drain = False,
    trust: Trust = False,
    every: Annotated[
        float, typer.Option("--every", min=0.05, help="Seconds between two checks of the claims.")
    ] = 2.0,
) -> None:
    """Run one worker: its own shard first, then remaining nodes of other shards. The Job's pods run this command."""
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_fleet, run_context
    from winboot.node.fleet import Options
    from winboot.operations.fleet import FleetWorker, RunId, Shard
    from winboot.operations.fleet.joining import Joining
    from winboot.operations.fleet.release import Release
    from winboot.remote.cluster.claims import Claimant
    from winboot.remote.cluster.sessions import DURATION, Session, clock
    from winboot.report.results import Report

    if shard >= shards:
        raise UsageError(f"--shard {shard} of --shards {shards}", hint="Shards are counted from 0 on.")
    budget = pacing.budget()
    loaded = load_fleet(inventory, (), pinned=True, trust=trust, may_ask=False)
    specs = [_in_pod(spec) for spec in loaded.specs]
    names = [spec.node.name for spec in specs]
    reporting = Reporting(None, Output.json)
    with (
        progress(Output.json, names) as listener,
        run_context(specs, listener, in_cluster=True, fleet=loaded) as (context, tuned),
    ):
        leases, run_id = _leases(specs, context, namespace), RunId(run, attempt)
        holder = f"{socket.gethostname()} (run {run}, shard {shard})"
        session = Session(
            leases,
            Claimant(holder, clock, DURATION, run),
            f"{run}-{attempt}-{shard}-{uuid.uuid4().hex[:6]}",
        )
        worker = FleetWorker(
            run_id,
            names,
            Shard(shard, shards, workers, every),
            leases,
            session,
            Release(
                run_id,
                names,
                session,
                lambda order, elapsed: _pace(order, elapsed, budget, specs, context),
                lambda view: _done(view, specs),
            ),
            Joining(specs, context, tuned(Options(drain=drain))),
            context.stop,
            {spec.node.name: _notes(spec) for spec in specs}.__getitem__,
            lambda text: typer.echo(text, err=True),
        )
        began = time.monotonic()
        code = worker.run()
        nodes = [worker.reports[name] for name in names if name in worker.reports]
        report = Report("fleet work", context.run, "", tuple(nodes), time.monotonic() - began, by=holder)
        written = reporting.end(report, context.stop)
    raise typer.Exit(code or (written if written == exits.NOT_WRITTEN else code))


@fleet.command()
def status(
    run: Annotated[str, _RUN],
    inventory: InventoryFile = DEFAULT_INVENTORY,
    namespace: Namespace = "winboot-system",
    output: LinesForm = Lines.table,
    trust: Trust = False,
) -> None:
    """Show the result of each node of a run, from the claims. Exits with 2 while a node is not done."""
    from winboot.cli.output import columns
    from winboot.report.line import json_line
    from winboot.report.shape import Fleet

    with _claims(inventory, namespace, trust=trust) as (specs, leases):
        view = _newest(run, leases)
        waves = view.order([spec.node.name for spec in specs])
        rows = [_row(view, node, wave) for node, wave in _in_order(specs, waves)]
    if output is Lines.json:
        for row in rows:
            typer.echo(json_line(Fleet(**row)), nl=False)
    else:
        columns([{key: str(value) for key, value in row.items()} for row in rows])
        typer.echo(_summary(view, rows), err=True)
    raise typer.Exit(exits.DONE if all(row["state"] == "ok" for row in rows) else exits.NOT_DONE)


@fleet.command()
@expanded()
def resume(run: Annotated[str, _RUN], wanted: Rendered, pacing: Pacing) -> None:
    """Print the Job for another try of a run: it skips finished nodes and starts all others again."""
    from winboot.operations.fleet.manifest import fleet_manifest

    with _claims(wanted.inventory, wanted.namespace, trust=wanted.trust) as (specs, leases):
        view = _newest(run, leases)
    if view.release is None:
        raise UsageError(
            f"no worker of the run {run} has started in {wanted.namespace}",
            hint="`winboot fleet render` names its run; `kubectl -n winboot-system get leases` lists the claims.",
        )
    left = [spec.node.name for spec in specs if view.result(spec.node.name) != "ok"]
    job, mints, gmsa = _job(wanted, pacing, run)
    job = replace(job, attempt=view.run.attempt + 1)
    typer.echo(f"{len(left)} of {len(specs)} nodes are not finished", err=True)
    typer.echo(fleet_manifest(job, mints=mints, drains=wanted.drain, gmsa=gmsa, only_job=True), nl=False)


def _job(wanted: Rendered, pacing: Pacing, name: str) -> tuple[FleetJob, bool, bool]:
    """What is to be rendered, whether bootstrap tokens are minted, and whether a profile has gMSA accounts."""
    from winboot.cli.targets import load_fleet
    from winboot.config.inventory import load_inventory, own_text
    from winboot.config.inventory.cloud_name import provider_of
    from winboot.operations.fleet.manifest import FleetJob, fleet_files

    inventory = wanted.inventory
    words = (*pacing.words(), *(("--drain",) if wanted.drain else ()))
    if not wanted.image:
        raise UsageError("--image is missing", hint="Build one from docs/examples/hook/Containerfile.")
    if inventory.exists() and provider_of(inventory) is not None:
        raise UsageError(
            f"{inventory} queries a cloud, but workers need a fixed inventory",
            hint="`winboot inventory --freeze FILE` writes its present machines to a file: render that file.",
        )
    loaded = load_fleet(inventory, (), pinned=True, trust=wanted.trust, may_ask=False)
    files = fleet_files(inventory, _named_by(load_inventory(inventory)))
    name_there = inventory.name
    # An inventory of Ansible's is for other programs, too: their passwords are not the workers'.
    if (own := own_text(inventory)) is not None:
        name_there = inventory.with_suffix(".yaml").name
        files = {name_there: own} | {path: text for path, text in files.items() if path != inventory.name}
    job = FleetJob(
        name_there, files, wanted.image, wanted.shards, wanted.workers, words, wanted.namespace, name
    )
    mints = any(spec.cluster.bootstrap_token == "mint" for spec in loaded.specs)
    return job, mints, any(spec.gmsa for spec in loaded.specs)


def _named_by(inventory: Inventory) -> list[Path]:
    """The profiles, and the files that profiles and connections name. Keys and passwords are not among them: the pods find
    those in their Secret."""
    from winboot.operations.worker_pod import SECRETS

    found: dict[Path, None] = {}
    for machine in inventory:
        profile, way = machine.profile, machine.connection
        certificates = (profile.cluster.ca, way.tls.ca if way.tls is not None else None, way.certificate)
        named = (
            machine.profile_file,
            profile.kubernetes.overlay,
            *(one.file for one in (*certificates, *profile.windows.trust_roots) if one is not None),
            *(file for step in profile.steps for file in step.files.values()),
            way.known_hosts,
            *(jump.known_hosts for jump in way.proxy_jump),
            *(jump.certificate.file for jump in way.proxy_jump if jump.certificate is not None),
        )
        found |= dict.fromkeys(file for file in named if file is not None)
    return [file for file in found if not file.is_relative_to(SECRETS)]


def _in_pod(spec: NodeSpec) -> NodeSpec:
    """In a pod the workers have the service account, whatever kubeconfig the profile names."""
    from winboot.remote.cluster import Kubeconfig

    if Kubeconfig.of_pod() is None:
        return spec
    return replace(spec, cluster=replace(spec.cluster, kubeconfig=None, context=None))


def _leases(specs: Sequence[NodeSpec], context: RunContext, namespace: str) -> Leases:
    """Where the claims are. Raises UsageError where the nodes are of several clusters, or of none."""
    clusters = {id(one): one for spec in specs if (one := context.cluster(spec)) is not None}
    if len(clusters) != 1:
        raise UsageError(
            f"the nodes are of {len(clusters)} clusters",
            hint="The claims of a run are in one cluster: give its kubeconfig.",
        )
    return next(iter(clusters.values())).leases(namespace)


def _pace(
    order: Sequence[str], elapsed: float, budget: Budget, specs: Sequence[NodeSpec], context: RunContext
) -> Pace:
    from winboot.node.fleet import pace_of

    return pace_of(specs, order, context, budget, elapsed=elapsed)


def _done(view: View, specs: Sequence[NodeSpec]) -> frozenset[str]:
    from winboot.node.fleet.ownership import is_done

    return frozenset(
        spec.node.name
        for spec in specs
        if (claim := view.claims.get(spec.node.name)) is not None and is_done(claim, spec)
    )


def _notes(spec: NodeSpec) -> dict[str, str]:
    from winboot.node.fleet.ownership import notes_of

    return notes_of(spec)


@contextmanager
def _claims(inventory: Path, namespace: str, *, trust: bool) -> Iterator[tuple[list[NodeSpec], Leases]]:
    """The nodes of an inventory, and the claims on them."""
    from winboot.cli.targets import load_fleet, run_context
    from winboot.node.run import Quiet

    specs = load_fleet(inventory, (), trust=trust, may_ask=False).specs
    with run_context(specs, Quiet(), in_cluster=True) as (context, _):
        yield specs, _leases(specs, context, namespace)


def _newest(run: str, leases: Leases) -> View:
    """What the claims say of the last try of a run."""
    from winboot.operations.fleet.view import newest

    return newest(run, leases.all())


def _in_order(specs: Sequence[NodeSpec], waves: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each node of an inventory, in its order, with the number that it is let in by."""
    number = {node: place for place, node in enumerate(waves, 1)}
    yield from ((spec.node.name, number[spec.node.name]) for spec in specs)


def _row(view: View, node: str, wave: int) -> dict[str, Any]:
    claim = view.claims.get(node)
    result = view.result(node)
    state = result or (
        "working" if claim is not None and claim.holder else "waits" if wave > view.wave else "next"
    )
    return {
        "node": node,
        "wave": wave,
        "state": state,
        "holder": claim.holder if claim is not None else "",
    }


def _summary(view: View, rows: Sequence[dict[str, Any]]) -> str:
    done = sum(row["state"] == "ok" for row in rows)
    failed = sum(str(row["state"]).startswith("failed") for row in rows)
    said = (
        f"try {view.run.attempt}: {done} of {len(rows)} done, {failed} failed, let in up to wave {view.wave}"
    )
    return f"{said}; stopped: {view.stopped}" if view.stopped else said

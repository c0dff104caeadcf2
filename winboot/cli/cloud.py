"""`winboot cloud`: is a node as its cloud sees it, which rights does winboot need there, and how does a group scale?"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from winboot.base.errors import UsageError
from winboot.base.extras import how_to_install
from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Lines, LinesForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from winboot.config.node_spec import NodeSpec
    from winboot.node.cloud_check import Sight
    from winboot.remote.cluster.base import ServerClock

PartName = TypeVar("PartName", bound=str)

cloud = typer.Typer(
    help="Check a node against its cloud, and print the rights that winboot needs in this cloud.",
    no_args_is_help=True,
)


class CloudName(StrEnum):
    """The clouds whose rights are known."""

    aws = "aws"
    azure = "azure"


@cloud.command()
def check(
    node: Annotated[str, typer.Argument(help="A host of the inventory.")],
    inventory: InventoryFile = DEFAULT_INVENTORY,
    output: LinesForm = Lines.table,
) -> None:
    """Compare a node with its cloud and its cluster, and look inside; change nothing. Exits with 1 on an error.

    Node name, provider id, metadata route, source/destination check or IP forwarding, pod route, clock.
    """
    from winboot.node.cloud_check import findings
    from winboot.report.line import json_line

    found = findings(_look(_named(node, inventory)))
    if output is Lines.json:
        for one in found:
            typer.echo(json_line(one), nl=False)
    else:
        for one in found:
            typer.echo(f"{one.level}  {one.id}: {one.reason}\n    fix: {one.fix}")
        if not found:
            typer.echo(f"{node}: the node in its cloud")
    raise typer.Exit(1 if any(one.stops for one in found) else 0)


@cloud.command()
def policy(
    name: Annotated[CloudName, typer.Argument(help="Which cloud.")],
    scope: Annotated[
        str,
        typer.Option(help="azure: the scope of the role: /subscriptions/ID, or a resource group in it."),
    ] = "/subscriptions/00000000-0000-0000-0000-000000000000",
    cluster: Annotated[
        str,
        typer.Option(
            help="aws: the NAME of the tag kubernetes.io/cluster/NAME on everything that winboot may change."
        ),
    ] = "",
    queue: Annotated[str, typer.Option(help="aws: the ARN of the queue that lifecycle hooks write to.")] = "",
    queue_key: Annotated[
        str, typer.Option(help="aws: the ARN of your KMS key, if it encrypts the queue.")
    ] = "",
    part: Annotated[
        list[str] | None,
        typer.Option(help="Only the rights for this part: hook, inventory … (repeat); default: all."),
    ] = None,
) -> None:
    """Print the least permissions that winboot needs, in the form of the cloud's own tools."""
    if name is CloudName.aws:
        typer.echo(json.dumps(_aws_policy(cluster, queue, queue_key, part or []), indent=2))
        return
    from winboot.remote.cloud.azure_policy import PARTS, role

    typer.echo(role(scope, _parts(part or [], PARTS)), nl=False)


@cloud.command()
def demo() -> None:
    """Watch an Auto Scaling group go from 0 to 3 to 1 nodes: lab machines and a model of AWS, on loopback."""
    from importlib import import_module
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    from winboot.cli.commands import GROUP

    lab = next((one for one in entry_points(group=GROUP) if one.name == "lab"), None)
    lacking = [
        what
        for what, there in {
            "the lab": lab is not None,
            "boto3": find_spec("boto3") is not None,
            "moto": find_spec("moto") is not None,
        }.items()
        if not there
    ]
    if lab is None or lacking:
        raise UsageError(
            f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed",
            hint=f"To install the packages of the demo, run {how_to_install('aws', lab=True)}.",
        )
    raise typer.Exit(import_module(f"{lab.module}.cloud_demo").play())


def _aws_policy(cluster: str, queue: str, key: str, parts: list[str]) -> dict[str, Any]:
    from winboot.remote.cloud.aws_policy import PARTS, policy

    if not cluster:
        raise UsageError(
            "--cluster is missing", hint="The policy allows winboot to change only this cluster's machines."
        )
    chosen = _parts(parts, PARTS)
    if "hook" in chosen and not queue:
        typer.echo("without --queue, this policy allows access to every queue of the account", err=True)
    return policy(chosen, cluster=cluster, queue=queue or "*", key=key)


def _parts(asked: list[str], known: tuple[PartName, ...]) -> tuple[PartName, ...]:
    """The parts that the options name, or all of them."""
    for one in asked:
        if one not in known:
            raise UsageError(f"--part {one}: winboot has no such part", hint=f"One of {', '.join(known)}.")
    return tuple(one for one in known if not asked or one in asked)


def _named(node: str, inventory: InventoryFile) -> NodeSpec:
    """The one host of that name; a group is not one."""
    from winboot.cli.targets import load_targets

    for spec in load_targets(inventory, (node,)):
        if spec.node.name == node:
            return spec
    raise UsageError(f"{node} is a group, not a host", hint="Name one host of the inventory.")


def _look(spec: NodeSpec) -> Sight:
    """See the node from all sides; what the cluster or the machine does not answer is an error, not a finding."""
    from winboot.cli.targets import Clusters, open_transport, stopping
    from winboot.node.cloud_check import Sight
    from winboot.remote.cloud import metadata
    from winboot.remote.cloud.lookup import machine_of

    with stopping() as stop, closing(Clusters(stop.wait)) as clusters:
        cluster = clusters(spec)
        node = cluster.node(spec.node.name) if cluster is not None else None
        ahead = _ahead(cluster)
    provider_id = spec.machine.provider_id or (node.provider_id if node is not None else "")
    if not provider_id:
        raise UsageError(
            f"{spec.node.name}: neither the inventory nor the Node has the machine's provider id",
            hint="Set the host's `provider_id` in the inventory, or use a cloud inventory (pool.aws.yaml).",
        )
    provider, host = machine_of(provider_id)
    pods = node.pod_cidrs if node is not None else ()
    with open_transport(spec) as transport:

        def run(script: str, arguments: Mapping[str, object]) -> Iterable[str]:
            return transport.run(script, arguments, {})

        return Sight(
            name=spec.node.name,
            network=spec.network.solution,
            host=host,
            identity=provider.identity(host),
            node=node,
            forwarding=provider.forwarding(host, pods),
            metadata=metadata.probe(run),
            clock=transport.probe().clock_offset - ahead,
        )


def _ahead(cluster: ServerClock | None) -> timedelta:
    """How far the cluster's clock is ahead of this computer's; zero without a cluster."""
    return cluster.server_time() - datetime.now(UTC) if cluster is not None else timedelta()

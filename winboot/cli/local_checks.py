"""Problems of this computer, found before winboot contacts the first machine. Nodes that share one are reported together: a
variable that is not set, a file or a program that is missing, an API server that does not answer.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from winboot.base.errors import ClusterError, InvalidInput, WinbootError
from winboot.report.results import Failure, NodeReport

if TYPE_CHECKING:
    from winboot.config.inventory import Connection
    from winboot.config.node_spec import NodeSpec
    from winboot.config.profile.reference import Reference
    from winboot.operations.join import RunContext
    from winboot.remote.cluster.base import Cluster


def able(specs: Sequence[NodeSpec], context: RunContext) -> tuple[list[NodeSpec], tuple[NodeReport, ...]]:
    """The nodes that this side can work on, and the reports of the others, which are not begun.

    winboot reads a reference and forgets its value. It only looks for a reference's program, since that may prompt a person.
    It contacts a cluster if more than one node needs it.
    """
    lost: dict[str, WinbootError] = {}
    for spec in specs:
        problem = _unread(spec)
        if problem is not None:
            lost[spec.node.name] = problem
    lost |= _without_cluster([spec for spec in specs if spec.node.name not in lost], context)
    left = [_report(spec, lost[spec.node.name]) for spec in specs if spec.node.name in lost]
    return [spec for spec in specs if spec.node.name not in lost], tuple(left)


def _report(spec: NodeSpec, error: WinbootError) -> NodeReport:
    return NodeReport(spec.node.name, spec.machine.address, spec.machine.os, failure=Failure.of(error))


def _unread(spec: NodeSpec) -> WinbootError | None:
    """Why what the node's session needs cannot be had here; None where all of it can."""
    for owner, reference in _references(spec):
        try:
            _try(reference, f"{spec.node.name}: {owner}")
        except WinbootError as error:
            return error
    return None


def _references(spec: NodeSpec) -> Iterator[tuple[str, Reference]]:
    connection: Connection = spec.machine.connection
    keys = {"winrm": ("password",), "ssh": ("password", "key", "passphrase", "certificate")}
    for key in keys.get(connection.transport, ()):
        reference = getattr(connection, key)
        if reference is not None and reference.instance_key is None:
            yield f"connection.{key}", reference


def _try(reference: Reference, owner: str) -> None:
    """Raises InvalidInput where the reference gives nothing."""
    if reference.command is None:
        reference.read(owner)
    elif shutil.which(reference.command[0]) is None:
        raise InvalidInput(
            f"{owner}: the program {reference.command[0]} does not exist",
            hint="Install the program, or change the reference in the file.",
        )


def _without_cluster(specs: Sequence[NodeSpec], context: RunContext) -> dict[str, WinbootError]:
    """The nodes whose API server does not answer, each with the reason."""
    lost: dict[str, WinbootError] = {}
    sharing: dict[int, tuple[Cluster, list[str]]] = {}
    for spec in specs:
        try:
            cluster = context.cluster(spec)
        except WinbootError as error:
            lost[spec.node.name] = error
            continue
        if cluster is not None:
            sharing.setdefault(id(cluster), (cluster, []))[1].append(spec.node.name)
    for cluster, names in sharing.values():
        if len(names) > 1 and not context.stop.requested:
            try:
                cluster.version()
            except ClusterError as error:
                lost |= dict.fromkeys(names, error)
    return lost

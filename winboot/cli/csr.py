"""`winboot csr`: the requests for certificates of the inventory's machines, judged by the rules of a join."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winboot.base import exits
from winboot.cli.options import DryRun, Lines, LinesForm, Machines, expanded
from winboot.cli.output import age, columns
from winboot.report import shape
from winboot.report.line import json_line

if TYPE_CHECKING:
    from winboot.cli.targets import Clusters
    from winboot.config.node_spec import NodeSpec
    from winboot.node.roster import Roster
    from winboot.node.run import Stop
    from winboot.remote.cluster.base import CertificateRequests, Cluster, Request, Verdict


class Action(StrEnum):
    """What is done with the requests."""

    list = "list"
    approve = "approve"
    watch = "watch"


ACTION = typer.Argument(
    help="list shows every kubelet's request; approve decides the pending ones once; watch continues until "
    "it is stopped."
)
EVERY = typer.Option("--every", min=1.0, max=3600.0, help="watch: seconds between two checks.")
LIMIT_S = typer.Option("--for", min=0.0, help="watch: end after this many seconds; 0 means never.")


@expanded(without=("trust",))
def csr(
    action: Annotated[Action, ACTION],
    machines: Machines,
    output: LinesForm = Lines.table,
    dry_run: DryRun = False,
    every: Annotated[float, EVERY] = 5.0,
    duration: Annotated[float, LIMIT_S] = 0.0,
) -> None:
    """List, approve or watch requests for kubelets' serving certificates, for machines that join by themselves.

    winboot approves only what the inventory allows for its machines, and reports every other request. The cluster's own
    controller-manager approves client certificates. Exits with 2 if it refused a request of these machines.
    """
    from winboot.cli.targets import Clusters, load_targets, stopping

    specs = load_targets(machines.inventory, machines.chosen)
    with stopping() as stop, closing(Clusters(stop.wait, in_cluster=True)) as clusters:
        desks = _desks(specs, clusters, output)
        if action is Action.list or dry_run:
            refused = sum(desk.show() for desk in desks)
        elif action is Action.approve:
            refused = sum(desk.approve() for desk in desks)
        else:
            refused = _watch(desks, stop, every, duration)
        settled = exits.NOT_DONE if refused and action is not Action.list else exits.DONE
        unasked = exits.foremost(desk.unasked for desk in desks)
        code = stop.exit_code if stop.requested else exits.foremost((settled, unasked))
    raise typer.Exit(code)


def _desks(specs: Sequence[NodeSpec], clusters: Clusters, output: Lines) -> list[Desk]:
    """One desk for each cluster of these machines."""
    from winboot.base.errors import UsageError
    from winboot.node.roster import Roster

    by_cluster: dict[int, tuple[Cluster, list[NodeSpec]]] = {}
    for spec in specs:
        cluster = clusters(spec)
        if cluster is None:
            raise UsageError(
                f"{spec.node.name}: the profile has no cluster.kubeconfig",
                hint="Set it; in a pod of the cluster, winboot uses the pod's service account.",
            )
        by_cluster.setdefault(id(cluster), (cluster, []))[1].append(spec)
    return [Desk(cluster, Roster.of(several), output) for cluster, several in by_cluster.values()]


def _watch(desks: Sequence[Desk], stop: Stop, every: float, duration: float) -> int:
    """Settle again and again. A cluster that does not answer is reported once, and tried again."""
    import time

    from winboot.base.errors import ClusterUnreachable

    end = time.monotonic() + duration if duration else None
    while True:
        for desk in desks:
            try:
                desk.approve()
            except ClusterUnreachable as error:
                desk.unasked = error.exit_code
                desk.say_once(error.problem)
            else:
                desk.unasked = exits.DONE
        left = None if end is None else end - time.monotonic()
        if (left is not None and left <= 0) or stop.wait(every if left is None else min(every, left)):
            return sum(desk.refused for desk in desks)


class Desk:
    """The requests at one cluster, and what winboot printed about them."""

    def __init__(self, cluster: CertificateRequests, roster: Roster, output: Lines) -> None:
        self._cluster = cluster
        self._roster = roster
        self._json = output is Lines.json
        self._said: set[str] = set()
        self._refused: set[str] = set()
        # The exit code of the last look, while it failed.
        self.unasked = exits.DONE

    @property
    def refused(self) -> int:
        """How many requests were refused so far."""
        return len(self._refused)

    def show(self) -> int:
        """Show every request with what would become of it; gives how many would be refused."""
        found = sorted(self._cluster.certificate_requests(), key=lambda one: (one.made or _NEVER, one.name))
        rows = [self._row(request) for request in found]
        if self._json:
            for row in rows:
                typer.echo(json_line(shape.Request(**row)), nl=False)
        elif rows:
            columns([_cells(row) for row in rows])
        else:
            typer.echo("the cluster has no certificate requests of kubelets")
        return sum(row["decision"] == "refuse" for row in rows)

    def approve(self) -> int:
        """Settle what is pending and say what became of each, each thing once; gives how many are refused."""
        nodes: dict[str, str] = {}

        def judge(request: Request) -> tuple[str, ...] | None:
            node = self._roster.node(request)
            nodes[request.name] = node.name if node is not None else ""
            return self._roster.judge(request)

        verdicts = self._cluster.judge_requests(judge)
        self._refused |= {one.request for one in verdicts if not one.approved}
        for verdict in verdicts:
            self._say(verdict, nodes[verdict.request])
        return sum(not one.approved for one in verdicts)

    def _say(self, verdict: Verdict, node: str) -> None:
        what = "approved" if verdict.approved else "refused"
        row: dict[str, Any] = {
            "request": verdict.request,
            "certificate": verdict.kind,
            "node": node,
            "decision": what,
        }
        text = f"{node}: {verdict.kind} certificate request {verdict.request}: {what}"
        reasons = "; ".join(verdict.reasons)
        self.say_once(
            json_line(shape.Request(**row, reasons=verdict.reasons)).rstrip()
            if self._json
            else _with(text, reasons),
            out=True,
        )

    def say_once(self, text: str, *, out: bool = False) -> None:
        """A line, the first time; on standard error unless it is an answer."""
        if text not in self._said:
            self._said.add(text)
            typer.echo(text, err=not out)

    def _row(self, request: Request) -> dict[str, Any]:
        node = self._roster.node(request)
        decision, reasons = _decision(request, known=node is not None, reasons=self._roster.judge(request))
        return {
            "request": request.name,
            "made": request.made.isoformat() if request.made is not None else None,
            "certificate": request.kind,
            "node": node.name if node is not None else None,
            "user": request.user,
            "state": request.state,
            "decision": decision,
            "reasons": reasons,
        }


_NEVER = datetime.max.replace(tzinfo=UTC)


def _decision(
    request: Request, *, known: bool, reasons: tuple[str, ...] | None
) -> tuple[str, tuple[str, ...]]:
    """`approve`, `refuse` or `leave`, and why."""
    if request.state != "pending":
        return "leave", ()
    if not known:
        return "leave", ("no machine of the inventory made this request",)
    if reasons is None:
        return "leave", ("the cluster's controller-manager approves client certificates",)
    return ("refuse", reasons) if reasons else ("approve", ())


def _cells(row: dict[str, Any]) -> dict[str, str]:
    made, reasons = row["made"], row["reasons"]
    decision = _with(str(row["decision"]), "; ".join(reasons)) if row["state"] == "pending" else ""
    return {
        "request": str(row["request"]),
        "age": age(made) if isinstance(made, str) else "",
        "kind": str(row["certificate"]),
        "node": str(row["node"] or "-"),
        "state": str(row["state"]),
        "what winboot does": decision,
    }


def _with(text: str, reasons: str) -> str:
    return f"{text}: {reasons}" if reasons else text

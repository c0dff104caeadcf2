"""`winboot status`: the nodes as the cluster has them now, against what the profile wants; no machine is contacted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from winboot.base import exits
from winboot.cli.options import Machines, expanded

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.remote.cluster.base import NodeFacts
    from winboot.report.archive import Archive, PastRun
    from winboot.report.results import NodeReport

_BUILD: Final = "node.kubernetes.io/windows-build"


class Form(StrEnum):
    """How the command answers."""

    table = "table"
    wide = "wide"
    yaml = "yaml"
    json = "json"
    name = "name"


@dataclass(frozen=True, slots=True)
class Last:
    """What earlier runs here say of a node: the newest one, and how the newest look or join left it."""

    run: PastRun
    outcome: str
    # What is not as wanted: the first cause by its id and step (`DiskTooSmall (node-preflight)`), or how many steps.
    drift: str


@expanded()
def status(
    machines: Machines,
    output: Annotated[
        Form,
        typer.Option("--output", "-o", help="table, wide, yaml or json lines, or name alone for pipes."),
    ] = Form.table,
) -> None:
    """Show each node's version, build, readiness, differences from the profile, and last run. It queries the cluster but no
    machine; `winboot plan` looks at the machines. Exits with 2 if a node is missing, not Ready or differs."""
    from winboot.cli.output import age, columns
    from winboot.cli.targets import Clusters, load_fleet, stopping
    from winboot.report.archive import Archive
    from winboot.report.line import json_line
    from winboot.report.shape import Status

    fleet = load_fleet(machines.inventory, machines.chosen, trust=machines.trust)
    with stopping() as stop:
        clusters = Clusters(stop.wait)
        try:
            nodes = _nodes(fleet.specs, clusters)
        finally:
            clusters.close()
    last = _last(Archive(), {spec.node.name for spec in fleet.specs})
    rows = [_row(spec, fleet.groups, nodes[spec.node.name], last.get(spec.node.name)) for spec in fleet.specs]
    match output:
        case Form.json:
            for row in rows:
                typer.echo(json_line(Status(**row)), nl=False)
        case Form.yaml:
            _yaml(rows)
        case Form.name:
            for row in rows:
                typer.echo(row["node"])
        case _:
            short = {
                name: f"{one.run.command} {age(one.run.started)} ago: {one.outcome}"
                for name, one in last.items()
            }
            columns(
                [
                    _shown({**row, "last run": short.get(row["node"])}, wide=output is Form.wide)
                    for row in rows
                ]
            )
    right = all(row["state"] == "Ready" and not row["drift"] for row in rows)
    raise typer.Exit(exits.DONE if right else exits.NOT_DONE)


def _nodes(specs: Sequence[NodeSpec], clusters: Any) -> dict[str, NodeFacts | str]:
    """Each machine's Node, or why it has no Node. winboot asks each cluster once. Raises ClusterError."""
    listed: dict[int, Mapping[str, NodeFacts]] = {}
    found: dict[str, NodeFacts | str] = {}
    for spec in specs:
        cluster, name = clusters(spec), spec.node.name
        if cluster is None:
            found[name] = "unknown: the profile has no cluster.kubeconfig"
            continue
        if id(cluster) not in listed:
            listed[id(cluster)] = {node.name: node for node in cluster.nodes()}
        found[name] = listed[id(cluster)].get(name, "no Node")
    return found


def _row(
    spec: NodeSpec, groups: Mapping[str, str], node: NodeFacts | str, last: Last | None
) -> dict[str, Any]:
    """One node by the keys of its JSON line."""
    from winboot.node.addresses import address_problem
    from winboot.report.shape import LastRun

    row: dict[str, Any] = {
        "node": spec.node.name,
        "group": groups.get(spec.node.name, ""),
        "os": spec.machine.os,
        "address": spec.machine.address,
        "state": node if isinstance(node, str) else _state(node),
        "kubelet": None,
        "runtime": None,
        "build": None,
        "wanted": str(spec.kubernetes.version),
        "drift": [],
        "problem": None,
        "unschedulable": None,
        "last": None,
        "last_run": None,
    }
    if not isinstance(node, str):
        row |= {
            "kubelet": node.kubelet_version or None,
            "runtime": node.runtime_version or None,
            "build": node.labels.get(_BUILD),
            "unschedulable": node.unschedulable,
            "drift": list(_drift(spec, node)),
        }
        problem = address_problem(node, {spec.machine.node_ip} if spec.machine.node_ip else ())
        if problem is not None:
            row["problem"] = problem[0]
            row["drift"].append(f"address: {problem[1]}")
    if last is not None:
        run = last.run
        row["last"] = f"{run.run}: {run.command} at {run.started}: {last.outcome}"
        row["last_run"] = LastRun(run.run, run.command, run.started, last.outcome)
        if last.drift and last.outcome in ("would-change", "failed", "blocked"):
            row["drift"].append(f"{last.drift} when {run.command} looked")
    return row


def _state(node: NodeFacts) -> str:
    if node.ready:
        return "Ready"
    return f"NotReady ({node.reason})" if node.reason else "NotReady"


def _drift(spec: NodeSpec, node: NodeFacts) -> list[str]:
    """The Node object differs from the profile."""
    wanted = f"v{spec.kubernetes.version}"
    runtime = f"{spec.runtime.name}://{spec.runtime.version}"
    build = f"10.0.{spec.machine.build}"
    told = node.labels.get(_BUILD, build)
    found = [
        ("kubelet", node.kubelet_version, wanted),
        ("runtime", node.runtime_version.replace("://v", "://"), runtime),
        ("build", told, build),
    ]
    return [f"{what} {is_}, wanted {want}" for what, is_, want in found if is_ and is_ != want]


def _last(archive: Archive, names: set[str]) -> dict[str, Last]:
    """The newest run over each node. Reports are read from the newest on, until each name was met."""
    from winboot.base.errors import UsageError

    found: dict[str, Last] = {}
    for run in archive.runs():
        wanted = (names - set(found)) & set(run.nodes)
        if not wanted or run.command in ("preflight", "ping"):
            continue
        try:
            report = archive.report(run)
        except UsageError:
            continue
        for node in report.nodes:
            if node.node in wanted:
                found[node.node] = Last(run, node.outcome if run.ended else "not ended", _left(node))
        if len(found) == len(names):
            break
    return found


def _left(node: NodeReport) -> str:
    """What a run left to do: one finding by its name; the steps that wait for it are not findings of their own."""
    from winboot.report.causes import causes

    for cause in causes([node]):
        if cause.failure is not None:
            return cause.failure.name
        if cause.step is not None and cause.step.problem is not None:
            return f"{cause.step.problem.id} ({cause.step.name})"
    steps = sum(count for state, count in node.counts.items() if state not in ("ok", "changed"))
    counted = "1 step" if steps == 1 else f"{steps} steps"
    if steps:
        return f"{counted} not as wanted"
    return f"clock {node.clock}" if node.clock else ""


def _shown(row: Mapping[str, Any], *, wide: bool) -> dict[str, str]:
    """The columns of a table; `wide` has all."""
    state = row["state"] + (", cordoned" if row["unschedulable"] else "")
    cells = {
        "node": row["node"],
        "group": row["group"],
        "os": row["os"],
        "state": state,
        "version": row["kubelet"] or "-",
        "wanted": f"v{row['wanted']}",
        "build": row["build"] or "-",
        "runtime": row["runtime"] or "-",
        "address": row["address"],
        "drift": "; ".join(row["drift"]) or "-",
        "last run": row["last"] or "-",
    }
    if wide:
        return cells
    narrow = ("node", "os", "state", "version", "drift", "last run")
    # `runs` and `-o wide` have the whole of it.
    cells["last run"] = row["last run"] or "-"
    cells["drift"] = ", ".join(map(_brief, row["drift"])) or "-"
    return {name: cells[name] for name in narrow}


def _brief(drift: str) -> str:
    """`kubelet`, `DiskTooSmall`, `3 steps`: what of a drift fits into a column."""
    steps, found, _ = drift.partition(" not as wanted")
    return steps if found else drift.split()[0]


def _yaml(rows: Sequence[Mapping[str, Any]]) -> None:
    import msgspec
    import yaml

    typer.echo(
        yaml.safe_dump(msgspec.to_builtins({"nodes": list(rows)}), sort_keys=False, allow_unicode=True),
        nl=False,
    )

"""Ask the machine and the cluster for the facts of one node; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from winboot.base.clean import clean
from winboot.base.errors import ClusterError, Interrupted, WinbootError
from winboot.config.node_spec import NodeSpec
from winboot.config.node_spec.node import ServiceSpec
from winboot.node.probes import Look, look, vtep_mac
from winboot.operations.doctor.document import SCHEMA, ApiView, Document, Expected, NodeView, rows_of
from winboot.operations.doctor.signatures import SIGNATURES, unwrapped
from winboot.remote.cluster.base import REQUEST_KINDS, Cluster, ExpectedNode, NodeFacts
from winboot.remote.cluster.requests import concerns
from winboot.remote.transport.base import Transport
from winboot.script.rendering import doctor as doctor_script
from winboot.script.steps.services import started_on_demand

WINDOW_S: Final = 24 * 3600  # how far back events count
_PENDING: Final = timedelta(minutes=1)
_WINDOWS: Final = ("hns", "vmcompute", "mpssvc", "BFE", "docker")


Reading = Callable[[NodeSpec, Callable[[], datetime]], Look]


def live(connect: Callable[[], Transport]) -> Reading:
    """Reads the facts of a machine in one script."""

    def read(spec: NodeSpec, now: Callable[[], datetime]) -> Look:
        with connect() as transport:
            return look(spec, transport, WINDOW_S, now, doctor_script(spec, wanted(spec)))

    return read


def gather(spec: NodeSpec, read: Reading | None, cluster: Cluster | None) -> Document:
    """The document of a node. `read` reads the machine, None: ask the cluster only. An error of one side is in the document;
    it does not stop the other side."""
    api, api_problem, clock = _of_cluster(spec, cluster)
    now = datetime.now(UTC)
    machine: dict[str, list[dict[str, Any]]] = {}
    problems: dict[str, str] = {}
    margin, login, login_problem = timedelta(), False, ""
    if read is not None:
        try:
            found = read(spec, clock)
            machine = {subject: rows_of(rows) for subject, rows in found.facts.items()}
            problems, now, margin, login = dict(found.problems), found.at, found.margin, True
        except Interrupted:
            raise
        except WinbootError as error:
            login_problem = clean(str(error))
    if (
        not login
        and cluster is not None
        and api is not None
        and api.node is not None
        and not api.node.silent_since
    ):
        machine, problems = _of_logs(spec, cluster, now)
    return Document(
        schema=SCHEMA,
        node=spec.node.name,
        taken=now.isoformat(),
        margin_s=margin.total_seconds(),
        expected=_expected(spec),
        machine=machine,
        problems=problems,
        login=login,
        login_problem=login_problem,
        api=api,
        api_problem=api_problem,
    )


def wanted(spec: NodeSpec) -> dict[str, object]:
    """What the script of doctor is to look at."""
    paths = spec.paths
    return {
        "known": [
            *({"name": name, "files": []} for name in _WINDOWS if name not in spec.services),
            *({"name": one.name, "files": _programs(spec, one)} for one in spec.services.all),
        ],
        "logs": [
            {
                "service": one.name,
                "path": one.log_file,
                "signatures": [
                    {"id": mark.id, "text": text}
                    for mark in SIGNATURES
                    if one.name in mark.services
                    for text in mark.texts
                ],
            }
            for one in spec.services.all
            if one.log_file
        ],
        "cni_conf": paths.cni_conf,
        "subnet_env": spec.network.solution.paths.get("subnet_env", ""),
        "store": spec.network.ipam_store,
        "credential": {
            "node": spec.node.name,
            "server": spec.cluster.server,
            "kubeconfig": paths.kubeconfig,
            "certificate": paths.kubelet_client_certificate,
            "ca_path": paths.cluster_ca,
            "ca_sha256": spec.cluster.ca_sha256,
            "bootstrap_path": paths.bootstrap_kubeconfig,
        },
        "serving": rf"{paths.kubelet_pki}\kubelet-server-current.pem",
        "files": [rf"{paths.containerd_root}\panic.log"],
    }


def _programs(spec: NodeSpec, service: ServiceSpec) -> list[str]:
    """The programs without which a service cannot start."""
    runner = [spec.paths.kube_log_runner] if service.log_runner else []
    manager = [spec.paths.nssm] if service.manager == "nssm" else []
    return [*runner, *manager, service.runs or service.program]


def _expected(spec: NodeSpec) -> Expected:
    network, solution = spec.network, spec.network.solution
    return Expected(
        kubernetes=str(spec.kubernetes.version),
        services=tuple(one.name for one in spec.services.all),
        on_demand=started_on_demand(spec),
        displays={one.display_name: one.name for one in spec.services.all},
        pause_image=spec.runtime.pause_image,
        network=network.network_name,
        hns_type=solution.hns_type or "",
        solution=solution.id,
        network_owner=solution.owners.hns_network,
        overlay=solution.hns_type == "Overlay",
        pod_cidr=bool(solution.pod_cidr),
        first_pod=solution.pods_in_node_network,
        source_vip=solution.source_vip and solution.source_vip_endpoint is None,
        routes=network.routes or solution.owners.routes in ("agent", "winboot"),
        nat=solution.owners.cni_conf in ("winboot", "agent") and not solution.pods_in_node_network,
        pod_cidrs=spec.cluster.pod_cidrs,
        service_cidrs=spec.cluster.service_cidrs,
        dns=spec.cluster.dns_service_ips,
        kube_proxy=spec.kube_proxy.wanted,
        cni_file=network.cni_conf_path.rpartition("\\")[2] if network.cni_conf is not None else "",
        computer_name=spec.machine.computer_name,
        provider=str(spec.kubelet.config.get("providerID") or "").partition(":")[0],
        startup_taint=spec.node.startup_taint.key,
        taints=tuple(map(str, spec.node.taints)),
        labels=dict(spec.node.labels),
        rules=tuple(rule.id for rule in spec.firewall),
    )


def _of_cluster(
    spec: NodeSpec, cluster: Cluster | None
) -> tuple[ApiView | None, str, Callable[[], datetime]]:
    """The cluster's side, what kept it from answering, and the clock to compare with: the cluster's if it answers."""
    if cluster is None:
        return None, "", lambda: datetime.now(UTC)
    try:
        now = cluster.server_time()
        node = cluster.node(spec.node.name)
        api = ApiView(
            version=str(cluster.version()),
            node=None if node is None else _node_view(spec, node),
            pending=tuple(_pending(spec, cluster, now)),
            loose_daemon_sets=cluster.unselective_daemon_sets(),
        )
    except ClusterError as error:
        return None, clean(str(error)), lambda: datetime.now(UTC)
    return api, "", cluster.server_time


def _of_logs(
    spec: NodeSpec, cluster: Cluster, now: datetime
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Known texts in the logs of services, as the machine would count them, and what kept them from being read."""
    since, rows, given = now - timedelta(seconds=WINDOW_S), [], False
    try:
        for service in (one.name for one in spec.services.all):
            text = cluster.node_log(spec.node.name, service, since)
            given = given or text is not None
            log = unwrapped(text or "")
            counts = {mark.id: mark.count(log) for mark in SIGNATURES if service in mark.services}
            rows += [{"service": service, "id": id, "count": count} for id, count in counts.items() if count]
    except ClusterError as error:
        return {}, {"signatures": clean(str(error))}
    return ({"signatures": rows}, {}) if given else ({}, {})


def _node_view(spec: NodeSpec, node: NodeFacts) -> NodeView:
    return NodeView(
        ready=node.ready,
        reason=clean(node.reason),
        message=clean(node.message),
        pod_cidrs=spec.network.solution.pod_networks(node.pod_cidrs, node.annotations),
        labels=dict(node.labels),
        taints=tuple(map(str, node.taints)),
        addresses=node.addresses,
        kubelet=node.kubelet_version,
        silent_since=node.silent_since.isoformat() if node.silent_since is not None else "",
        network_reason=clean(node.network_reason),
        unschedulable=node.unschedulable,
        vtep=vtep_mac(node),
    )


def _pending(spec: NodeSpec, cluster: Cluster, now: datetime) -> Iterator[str]:
    """The kinds of this node's certificate requests that wait for a decision for longer than a minute."""
    own = ExpectedNode(spec.node.name)
    for one in cluster.certificate_requests():
        waits = one.state == "pending" and one.made is not None and now - one.made > _PENDING
        if waits and concerns(one, own):
            yield REQUEST_KINDS[one.signer]

"""Does a node work? What a Ready condition does not show: services that die again and again, load balancers that are
missing, endpoints that hang on nothing, ports that are used up.

`probe_node` asks the machine by one script (`templates/powershell/_probes.ps1.j2`) and the cluster by its Node. Each
answer is a `Probe` with what was expected and seen, the probable cause and the next step. Nothing is changed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from winboot.base.clean import clean
from winboot.base.clock import CLOCK_WARNS, clock_level
from winboot.base.foreign import Malformed, decoded
from winboot.config.node_spec import NodeSpec
from winboot.node.addresses import address_problem
from winboot.node.facts import Facts, facts_of, said
from winboot.remote.cluster.base import NodeFacts
from winboot.remote.transport.base import Transport
from winboot.report.hints import HINTS
from winboot.script.rendering import probes as probes_script

# A service that was started less long ago may yet end.
YOUNG_S: Final = 60
# How far back the ends of services count.
WINDOW_S: Final = 600
FREE_BLOCKS: Final = 10  # of 64 ports; HNS takes them in blocks
_BLOCK: Final = 64
_FREE_SHARE: Final = 0.15
_CERTIFICATE: Final = timedelta(days=1)
# EndpointState of microsoft/hcsshim internal/hns/hnsendpoint.go: 2 attached (the host's own), 3 attached to a namespace that
# several containers share, as a pod's.
_ATTACHED: Final = frozenset({2, 3})
_IN_EFFECT: Final = 2  # state of a policy list (AgentBaker, networkhealth.ps1)
_THEIRS: Final = "Look at the program that makes this network: winboot does not make it."
_VTEP: Final = "flannel.alpha.coreos.com/backend-data"


@dataclass(frozen=True, slots=True)
class Probe:
    """One answer. `id` is stable; `passed` None: winboot could not ask, or with `left_out` need not. `seen` has the reason."""

    id: str
    what: str
    passed: bool | None
    expected: str
    seen: str
    cause: str = ""
    next: str = ""
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What the machine said, by subject, and what it could not say."""

    facts: Mapping[str, Sequence[Facts]]
    problems: Mapping[str, str] = field(default_factory=dict)
    # The time elsewhere, in the middle of the look, and how far from it the machine may have read its own clock. A
    # look waits for services, and a busy machine takes its time.
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    margin: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class ServicePort:
    """One port of a Service as kube-proxy must have it: cluster IP, port, protocol (6 TCP, 17 UDP)."""

    name: str
    address: str
    port: int
    protocol: int = 6


def _utc() -> datetime:
    return datetime.now(UTC)


def probe_node(
    spec: NodeSpec,
    transport: Transport,
    node: NodeFacts | None,
    *,
    services: Sequence[ServicePort] | None = None,
    changed_s: float | None = None,
    wait: Callable[[float], bool] = lambda seconds: False,
    now: Callable[[], datetime] = _utc,
) -> tuple[Probe, ...]:
    """Ask a node everything. `node` is its Node object, None without a Node or a cluster; `services` the ports that
    have ready backends, None where they were not read. `changed_s`: so many seconds ago the node was changed, and
    ends of services before that do not count. winboot then waits for services younger than a minute, a minute at
    most.
    `now`: the clock that the node's is held against, best the cluster's (`Cluster.server_time`). Raises
    TransportError, ScriptFailed, and whatever `now` does.
    """
    probes, _ = probe_and_look(
        spec, transport, node, services=services, changed_s=changed_s, wait=wait, now=now
    )
    return probes


def probe_and_look(
    spec: NodeSpec,
    transport: Transport,
    node: NodeFacts | None,
    *,
    services: Sequence[ServicePort] | None = None,
    changed_s: float | None = None,
    wait: Callable[[float], bool] = lambda seconds: False,
    now: Callable[[], datetime] = _utc,
) -> tuple[tuple[Probe, ...], Look]:
    """The same, with the facts that were judged."""
    window = WINDOW_S if changed_s is None else max(0.0, min(WINDOW_S, changed_s))
    found = look(spec, transport, window, now)
    young = youngest(found)
    if changed_s is not None and young is not None and young < YOUNG_S:
        wait(YOUNG_S - young)
        found = look(spec, transport, window + YOUNG_S - young, now)
    return judge(spec, found, node, services=services), found


def look(
    spec: NodeSpec,
    transport: Transport,
    seconds: float = WINDOW_S,
    now: Callable[[], datetime] = _utc,
    script: str = "",
) -> Look:
    """Run the script once, or one that answers in the same form. Raises TransportError, ScriptFailed, ExcessiveOutput."""
    before = now()
    facts: dict[str, Sequence[Facts]] = {}
    problems: dict[str, str] = {}
    for one in said(transport.run(script or probes_script(spec), {"Seconds": int(seconds)}, {}), "subject"):
        subject = str(one["subject"])
        facts[subject], wrong = facts_of(subject, one.get("facts") or [])
        if one.get("problem") or wrong:
            problems[subject] = str(one.get("problem") or wrong)
    half = (now() - before) / 2
    return Look(facts, problems, before + half, half)


def youngest(found: Look) -> int | None:
    """How many seconds the youngest running service has been running; None where none runs."""
    ages = [int(one["seconds"]) for one in found.facts.get("services", ()) if int(one["seconds"]) >= 0]
    return min(ages, default=None)


def judge(
    spec: NodeSpec,
    found: Look,
    node: NodeFacts | None,
    *,
    services: Sequence[ServicePort] | None = None,
) -> tuple[Probe, ...]:
    """What the facts mean."""
    maker = next((str(one["what"]) for one in found.facts.get("maker", ()) if one["what"]), "")
    judged = [
        # Another tool need not run kube-proxy or this runtime as a service.
        _of(found, "services", lambda facts: _services([one for one in facts if one["state"] or not maker])),
        _of(found, "processes", _processes),
        _of(found, "runtime", _runtime),
        _node(spec, node),
        _address(spec, found.facts.get("interfaces", ()), node),
        _of(found, "networks", lambda facts: _network(spec, facts, node)),
        _of(found, "endpoints", _endpoints),
        *_balancers(spec, found, services),
        _of(found, "ports", _ports),
        _of(found, "server", _server),
        _of(found, "disk", lambda facts: _disk(spec, facts)),
        _of(found, "clock", lambda facts: _clock(facts, found.at, found.margin)),
    ]
    answers = (one for one in judged if one is not None)
    return tuple(_left_out(one, maker) if maker and one.id in _WINBOOTS else one for one in answers)


# What each probe is called, by its id: for help and documents.
PROBES: Final[Mapping[str, str]] = {
    "node-services": "services run and have not ended unexpectedly",
    "node-processes": "exactly one kubelet and one kube-proxy",
    "node-runtime": "the container runtime and its network are ready",
    "node-object": "the Node is Ready and has its labels and taints",
    "node-address": "the Node has an address of its machine",
    "node-network": "the HNS network has its subnet and address",
    "node-endpoints": "HNS endpoints are attached",
    "node-services-in-hns": "HNS has a working load balancer for each service",
    "node-ports": "HNS has free blocks of ports",
    "node-server": "the node can connect to the API server",
    "node-disk": "the disk has space, and the pause image exists",
    "node-clock": "the clock is right, and the kubelet's certificate does not expire soon",
}


def _of(found: Look, subject: str, judged: Callable[[Sequence[Facts]], Probe]) -> Probe:
    probe = judged(found.facts.get(subject, ()))
    problem = found.problems.get(subject)
    if subject not in found.facts:
        problem = problem or "the machine sent no result"
    return _unasked(probe, problem) if problem else probe


# They ask winboot's crictl, or read the certificate where winboot's kubelet has it.
_WINBOOTS: Final = frozenset({"node-runtime", "node-disk", "node-clock"})


def _left_out(probe: Probe, maker: str) -> Probe:
    why = f"another tool made this node ({maker}), which has no crictl and no certificate of winboot"
    return replace(
        probe, passed=None, seen=why, cause="", next="`winboot join --adopt` takes it over.", left_out=True
    )


def _unasked(probe: Probe, problem: str) -> Probe:
    return Probe(
        probe.id, probe.what, None, probe.expected, problem, "", "Run again; see the machine's event log."
    )


def _probe(id: str, expected: str, faults: Iterable[str], seen: str, cause: str, next: str) -> Probe:
    wrong = list(faults)
    if wrong:
        return Probe(id, PROBES[id], False, expected, "; ".join(wrong), cause, next)
    return Probe(id, PROBES[id], True, expected, seen)


def _services(facts: Sequence[Facts]) -> Probe:
    def faults() -> Iterator[str]:
        for one in facts:
            if one["state"] != "Running":
                yield f"{one['name']} is {one['state'] or 'missing'}"
            elif one["ends"]:
                yield f"{one['name']} ended unexpectedly {one['ends']} times"

    names = ", ".join(str(one["name"]) for one in facts)
    return _probe(
        "node-services",
        "running, no unexpected end",
        faults(),
        f"running: {names}",
        "a service is stopped, or its program ends with an error again and again",
        r"Read the service's log below C:\var\log; `winboot repair` starts stopped services.",
    )


def _processes(facts: Sequence[Facts]) -> Probe:
    return _probe(
        "node-processes",
        "one process of each",
        (f"{one['count']} processes of {one['name']}" for one in facts if one["count"] != 1),
        ", ".join(f"1 {one['name']}" for one in facts),
        "a program does not run, or runs twice (as a service and outside it)",
        "End the process that is not a service; `winboot repair` starts missing programs.",
    )


def _runtime(facts: Sequence[Facts]) -> Probe:
    conditions = {one["name"]: one for one in facts}

    def faults() -> Iterator[str]:
        for name in ("RuntimeReady", "NetworkReady"):
            one = conditions.get(name)
            if one is None:
                yield f"{name}: no answer"
            elif not one["ok"]:
                yield f"{name}: {one['message'] or 'false'}"

    return _probe(
        "node-runtime",
        "RuntimeReady, NetworkReady",
        faults(),
        "both true",
        "containerd does not answer, or it has no CNI configuration",
        "`winboot plan` shows the differences in containerd-config and cni-config.",
    )


def _node(spec: NodeSpec, node: NodeFacts | None) -> Probe:
    def faults() -> Iterator[str]:
        if node is None:
            yield "the Node is missing"
            return
        if not node.ready:
            yield f"not Ready: {node.message or node.reason}"
        for label, value in spec.node.labels.items():
            if node.labels.get(label) != value:
                yield f"label {label} is {node.labels.get(label)!r}"
        for taint in spec.node.taints:
            if taint not in node.taints:
                yield f"taint {taint} is missing"
        if node.has_taint(spec.node.startup_taint.key):
            yield f"the Node still has the taint {spec.node.startup_taint.key}"

    return _probe(
        "node-object",
        "Ready, labels, taints",
        faults(),
        "as in the profile",
        "the kubelet does not report, or the join is not finished",
        "`winboot join` finishes the join.",
    )


def _address(spec: NodeSpec, facts: Sequence[Facts], node: NodeFacts | None) -> Probe | None:
    if node is None:
        return None
    own = {spec.machine.node_ip} if spec.machine.node_ip else {str(one["address"]) for one in facts}
    problem = address_problem(node, own)
    return _probe(
        "node-address",
        "an InternalIP that the machine has",
        [": ".join(problem)] if problem else [],
        "as on the machine",
        "the kubelet was started with an address that the machine does not have",
        HINTS[problem[0]] if problem else "",
    )


def _network(spec: NodeSpec, facts: Sequence[Facts], node: NodeFacts | None) -> Probe:
    name, kind = spec.network.network_name, spec.network.solution.hns_type
    if not name:
        return _some_network(facts)
    theirs = spec.network.solution.owners.hns_network == "operator"

    def faults() -> Iterator[str]:
        network = next((one for one in facts if str(one["name"]).lower() == name.lower()), None)
        if network is None:
            if not spec.network.solution.pods_in_node_network:  # made with the first pod
                yield f"there is no HNS network {name}"
            return
        if kind and str(network["type"]).lower() != kind.lower():
            yield f"{name} is of type {network['type']}"
        if not network["management"]:
            yield f"{name} has no management address"
        solution = spec.network.solution
        asked = node if solution.pod_cidr else None
        cidrs = () if asked is None else solution.pod_networks(asked.pod_cidrs, asked.annotations)
        if cidrs and not set(network["subnets"]) & set(cidrs):
            subnets = ", ".join(network["subnets"]) or "none"
            yield f"{name} has the subnet {subnets}; the Node has {', '.join(cidrs)}"
        yield from _other_router(network, node)

    return _probe(
        "node-network",
        f"{name}, with the Node's pod CIDR" if spec.network.solution.pod_cidr else name,
        faults(),
        "as expected",
        "the network was made for an earlier Node, or a program removed it",
        _THEIRS if theirs else "`winboot repair --drain` makes the network again.",
    )


def _some_network(facts: Sequence[Facts]) -> Probe:
    """Where another component brings the network and the profile does not say its name: any will do."""
    ready = [str(one["name"]) for one in facts if one["management"]]
    return _probe(
        "node-network",
        "a network with a management address",
        () if ready else ("no such network",),
        ", ".join(ready),
        "the network's own program has not made it, or a program removed it",
        _THEIRS,
    )


class _BackendData(msgspec.Struct):
    """What flanneld writes into its node's annotation (flannel:pkg/backend/vxlan/vxlan_windows.go, vxlanLeaseAttrs)."""

    VtepMAC: str = ""


_BACKEND_DATA: Final = msgspec.json.Decoder(_BackendData | None)


def vtep_mac(node: NodeFacts) -> str:
    """The MAC address that flanneld wrote for other nodes; empty if the annotation holds none."""
    try:
        data = decoded(_BACKEND_DATA, node.annotations.get(_VTEP, "") or "null")
    except Malformed:
        return ""
    return clean(data.VtepMAC) if data is not None else ""


def _other_router(network: Facts, node: NodeFacts | None) -> Iterator[str]:
    """VXLAN packets go to the MAC address that the Node's annotation names: it must be the network's own."""
    mac = vtep_mac(node) if node is not None else ""
    own = str(network["router"]).replace("-", ":").lower()
    if mac and own and mac.lower() != own:
        yield f"other nodes send to {mac}, but the network's MAC address is {own}"


def _endpoints(facts: Sequence[Facts]) -> Probe:
    return _probe(
        "node-endpoints",
        "attached",
        (
            f"{one['name']} is in state {one['state']}"
            for one in facts
            # kube-proxy attaches its source address to nothing, and names none of its endpoints (hns.go, createEndpoint).
            if one["name"] and one["state"] not in _ATTACHED
        ),
        f"{len(facts)} attached",
        "an endpoint belongs to a deleted pod, or the host's own endpoint was detached",
        "Restart pods that do not answer; `winboot repair --drain` makes the network again.",
    )


def _balancers(spec: NodeSpec, found: Look, services: Sequence[ServicePort] | None) -> Iterator[Probe]:
    if spec.network.solution.cni == "none" and not spec.kube_proxy.wanted:
        return
    yield _of(found, "balancers", lambda facts: _balanced(spec, facts, services))


def _balanced(spec: NodeSpec, facts: Sequence[Facts], services: Sequence[ServicePort] | None) -> Probe:
    have = {(one["address"], one["port"], one["protocol"]): one for one in facts}

    def faults() -> Iterator[str]:
        missing = [one for one in services or () if (one.address, one.port, one.protocol) not in have]
        if missing:
            yield "without a load balancer: " + _some(
                f"{one.name} {one.address}:{one.port}" for one in missing
            )
        broken = [one for one in facts if one["state"] != _IN_EFFECT]
        if broken:
            yield "not in effect: " + _some(f"{one['address']}:{one['port']}" for one in broken)
        if spec.kube_proxy.wanted:
            wanted = spec.kube_proxy.dsr
            other = [
                one for one in facts if bool(one["dsr"]) != wanted and _takes_dsr(spec, str(one["address"]))
            ]
            if other:
                is_ = "without" if wanted else "with"
                yield f"{is_} direct server return: " + _some(
                    f"{one['address']}:{one['port']}" for one in other
                )

    return _probe(
        "node-services-in-hns",
        "a working load balancer per service, all with the same direct server return",
        faults(),
        f"{len(facts)} load balancers",
        "kube-proxy does not run, cannot read the services, or ran with other settings earlier",
        "`Restart-Service kube-proxy` makes them again; kube-proxy's log has the reason of a refusal.",
    )


def _takes_dsr(spec: NodeSpec, address: str) -> bool:
    """True for a service's own address: node ports and outer addresses have direct server return only for local traffic
    (kubernetes pkg/proxy/winkernel/proxier.go, localTrafficDSR)."""
    if not address:
        return False
    own = ipaddress.ip_address(address)
    return any(own in ipaddress.ip_network(cidr) for cidr in spec.cluster.service_cidrs)


def _some(texts: Iterable[str], most: int = 3) -> str:
    several = list(texts)
    rest = f" and {len(several) - most} more" if len(several) > most else ""
    return ", ".join(several[:most]) + rest


def free_blocks(range_: str, excluded: Iterable[Sequence[int]]) -> int:
    """How many blocks of 64 client ports no reservation touches; `range_` is start+count."""
    start, _, count = range_.partition("+")
    if not (re.fullmatch("[0-9]{1,5}", start) and re.fullmatch("[0-9]{1,5}", count)):
        return 0
    first, last = int(start), int(start) + int(count) - 1
    taken = [(int(low), int(high)) for low, high in excluded]
    blocks = range(first + -first % _BLOCK, last - _BLOCK + 2, _BLOCK)
    return sum(all(high < block or low >= block + _BLOCK for low, high in taken) for block in blocks)


def _ports(facts: Sequence[Facts]) -> Probe:
    free = {str(one["name"]): free_blocks(str(one["range"]), one["excluded"]) for one in facts}
    return _probe(
        "node-ports",
        f"more than {FREE_BLOCKS} free blocks of {_BLOCK} ports",
        (f"{name}: {count} blocks" for name, count in free.items() if count <= FREE_BLOCKS),
        ", ".join(f"{name}: {count}" for name, count in free.items()),
        "the range of client ports is small, or endpoints and load balancers use all of it",
        "Widen windows.dynamic_ports in the profile; remove unused services.",
    )


def _server(facts: Sequence[Facts]) -> Probe:
    return _probe(
        "node-server",
        "a TCP connection",
        (f"{one['server']} does not accept a connection" for one in facts if not one["ok"]),
        ", ".join(str(one["server"]) for one in facts),
        "a missing route, or a firewall, between node and control plane",
        "Run `Test-NetConnection` on the node; check routes and the control plane's firewall.",
    )


def _free(disk: Facts) -> str:
    return f"{100 * disk['free'] // disk['size']} % free"


def _disk(spec: NodeSpec, facts: Sequence[Facts]) -> Probe:
    def faults() -> Iterator[str]:
        for one in facts:
            if one["size"] and one["free"] / one["size"] <= _FREE_SHARE:
                yield f"{_free(one)} on {one['drive']}"
        if not all(one["image"] for one in facts):
            yield f"the pause image {spec.runtime.pause_image} is missing"

    free = ", ".join(f"{_free(one)} on {one['drive']}" for one in facts if one["size"])
    return _probe(
        "node-disk",
        f"more than {_FREE_SHARE:.0%} of each disk is free, and the pause image is there",
        faults(),
        free,
        "images and logs fill the drive, or the kubelet removed the pause image as unused",
        "Run `crictl rmi --prune`; `winboot repair` pulls the pause image.",
    )


def _clock(facts: Sequence[Facts], now: datetime, margin: timedelta) -> Probe:
    def faults() -> Iterator[str]:
        for one in facts:
            off = max(abs(_time(one["now"]) - now) - margin, timedelta())
            if clock_level(off) != "ok":
                yield f"the clock is {off.total_seconds():.0f} s off"
            if not one["end"]:
                yield "the kubelet has no client certificate"
            elif _time(one["end"]) - now < _CERTIFICATE:
                yield f"the kubelet's certificate ends {one['end'][:16]}"

    return _probe(
        "node-clock",
        f"within {CLOCK_WARNS.total_seconds():.0f} s, and a certificate valid for at least one day",
        faults(),
        "right",
        "the machine reaches no time server, or the kubelet cannot renew its certificate",
        r"Run `w32tm /resync` on the machine; the log in C:\var\log\kubelet shows failed renewals.",
    )


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

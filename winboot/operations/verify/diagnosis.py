"""The probable cause of a flow that fails: from how it failed, and from what the machines on both ends say of themselves."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from winboot.node.facts import Facts
from winboot.operations.verify.objects import PORT
from winboot.operations.verify.scene import NodeScene, Scene
from winboot.operations.verify.trials import Outcome, Trial

Cause = tuple[str, str]  # the probable cause, and the next step
_KUBE_PROXY: Final = "Run `Restart-Service kube-proxy` on the node; its log has the reason of a refusal."
_REPAIR: Final = "`winboot plan` shows the differences; `winboot repair` corrects them."
_LARGE: Final = 1500
_UDP, _TCP = 17, 6
_NAMED: Final = 5
_BETWEEN_PODS: Final = (
    "pod-pod-local",
    "pod-pod-remote",
    "pod-linux",
    "linux-pod",
    "pod-service",
    "linux-service",
)


# A flow that goes by other flows' ways: where the facts say nothing, it has their cause.
_BELOW: Final[Mapping[str, tuple[str, ...]]] = {
    "pod-pod-large": ("pod-pod-remote",),
    "port-forward": ("node-pod",),
    "pod-service": ("pod-pod-local", "pod-pod-remote"),
    "service-pod": ("pod-pod-local", "pod-pod-remote"),
    "linux-service": ("linux-pod",),
    "node-port": ("pod-pod-local", "node-pod-remote", "pod-pod-remote"),
    "dns-full": ("pod-linux", "pod-service"),
    "dns-short": ("dns-full",),
    "egress": ("dns-full",),
}


def cause_of(trial: Trial, outcome: Outcome, scene: Scene, known: Mapping[str, Cause]) -> Cause:
    """The first cause that the facts speak for, else that of a failed flow below this one (`known`, by flow), else
    the one that this flow usually has."""
    looked: Sequence[Callable[[], Iterator[Cause]]] = (
        lambda: _api(trial, outcome),
        lambda: _workload(trial),
        lambda: _hidden(trial, outcome),
        lambda: _names(trial, outcome, scene),
        lambda: _services(trial, scene),
        lambda: _large(trial),
        lambda: _outside(trial, outcome),
        lambda: _own_node(trial),
        lambda: _node_port(trial),
        lambda: _ways(trial, scene),
        lambda: _listed(trial),
        lambda: _below(trial, outcome, known),
    )
    for look in looked:
        found = next(look(), None)
        if found is not None:
            return found
    return _usual(trial, outcome, scene)


# What the flows of accounts and volumes usually fail for; the network below them has flows of its own.
_WORKLOADS: Final[Mapping[str, Cause]] = {
    "gmsa": (
        "the machine cannot read the account's password, or no domain controller answers it",
        "`winboot plan` shows the notices of the step gmsa; docs/identity.md explains them.",
    ),
    "smb": (
        "the account has no right on the share, or the share's server name does not resolve",
        "Set the known fix smb-compartment, and look at the share's permissions for the account.",
    ),
    "volume": (
        "the driver of the StorageClass has no pod on the node, or needs csi-proxy there",
        "`kubectl describe pvc` and `kubectl describe pod`, with --keep; docs/storage.md lists the drivers.",
    ),
}


def _workload(trial: Trial) -> Iterator[Cause]:
    if trial.flow in _WORKLOADS:
        yield _WORKLOADS[trial.flow]


def _facts(node: NodeScene | None, subject: str) -> Sequence[Facts]:
    if node is None or node.look is None:
        return ()
    return node.look.facts.get(subject, ())


def _endpoint(node: NodeScene | None) -> Facts | None:
    """The endpoint of the pod that asks."""
    if node is None or node.client is None:
        return None
    return next((one for one in _facts(node, "endpoints") if one["address"] == node.client.address), None)


def _within(address: str, prefix: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(prefix, strict=False)
    except ValueError:
        return False


def _api(trial: Trial, outcome: Outcome) -> Iterator[Cause]:
    if outcome.symptom != "api" or trial.to is None:
        return
    name = trial.to.name
    if trial.flow == "port-forward" and trial.to.reached.get(f"{_server(trial.to)}:{PORT}", "open") != "open":
        # https://github.com/containerd/containerd/blob/v2.1.0/internal/cri/server/sandbox_portforward_windows.go
        yield from _host_side(trial.to)
        yield from _blocked(trial.to, _server(trial.to), "In", PORT, trial.to.address)
        yield (
            f"{name} does not reach its own pods, and containerd connects to the pod's address",
            "See node-pod.",
        )
    service = next((one for one in _facts(trial.to, "services") if one["name"] == "kubelet"), None)
    if service is not None and service["state"] != "Running":
        yield f"the kubelet of {name} is {service['state']}", "`winboot repair` starts it; then read its log."
    if not _rule(trial.to, "winboot-kubelet"):
        yield (
            f"the firewall of {name} blocks port 10250 for the API server",
            "`winboot repair` writes the rule winboot-kubelet; a Group Policy may override the rule.",
        )
    yield (
        f"the API server cannot connect to the kubelet of {name}, or the pod's container has ended",
        "Check the network path from the control plane to port 10250 of the node, and the kubelet's log.",
    )


def _rule(node: NodeScene | None, name: str) -> bool:
    """Whether one of our firewall rules lets in; true where the machine said nothing of it."""
    found = next((one for one in _facts(node, "rules") if one["name"] == name), None)
    return found is None or bool(found["ok"])


def _hidden(trial: Trial, outcome: Outcome) -> Iterator[Cause]:
    if outcome.symptom != "hidden" or trial.at is None:
        return
    yield (
        f"the exceptions of OutBoundNAT in the CNI configuration of {trial.at.name} lack the pod network",
        "`winboot repair` writes cni-config; existing pods keep the old rules: start them again.",
    )


def _names(trial: Trial, outcome: Outcome, scene: Scene) -> Iterator[Cause]:
    if outcome.symptom != "name" or trial.at is None:
        return
    endpoint, spec = _endpoint(trial.at), trial.at.spec
    if endpoint is not None:
        servers = [one for one in str(endpoint["dns"]).split(",") if one]
        wanted = list(spec.cluster.dns_service_ips)
        if wanted and not set(servers) & set(wanted):
            yield (
                f"pods on {trial.at.name} use the DNS server {', '.join(servers) or '-'}, the cluster's is {wanted[0]}",
                "Run `winboot repair`: the kubelet's clusterDNS must be cluster.dns_service_ip.",
            )
        suffix = str(endpoint["suffix"]).partition(",")[0]
        if trial.flow == "dns-short" and suffix != f"{scene.space}.svc.{scene.domain}":
            yield (
                f"the DNS suffix of pods on {trial.at.name} is {suffix or 'empty'}, not their namespace's",
                "clusterDomain of the kubelet and the capability dns of the CNI configuration make it: `winboot repair`.",
            )
    for address in spec.cluster.dns_service_ips[:1]:
        yield from _balanced(trial.at, address, 53, _UDP)
    yield from _ways_of(trial.at, scene, _dns_backend(trial.at), None)


def _dns_backend(node: NodeScene) -> str:
    """The pod behind the cluster's DNS, as HNS has it."""
    for one in _facts(node, "balancers"):
        if one["port"] == 53 and one.get("to"):
            return str(one["to"][0])
    return ""


def _balanced(node: NodeScene, address: str, port: int, protocol: int) -> Iterator[Cause]:
    """What is wrong with the load balancer of a service on a node."""
    if node.look is None:
        return
    found = next(
        (
            one
            for one in _facts(node, "balancers")
            if (one["address"], one["port"], one["protocol"]) == (address, port, protocol)
        ),
        None,
    )
    where = f"{address}:{port}" if address else f"the NodePort {port}"
    if found is None:
        proxy = next((one for one in _facts(node, "services") if one["name"] == "kube-proxy"), None)
        if proxy is not None and proxy["state"] != "Running":
            yield (
                f"kube-proxy of {node.name} is {proxy['state']}",
                "`winboot repair` starts it; then read its log.",
            )
        yield f"HNS of {node.name} has no load balancer for {where}", _KUBE_PROXY
        return
    if not found["backends"]:
        yield f"the load balancer of {node.name} for {where} has no backend", _KUBE_PROXY
    network = _network(node)
    source = str(found["source"])
    # For what lies outside the pods' networks kube-proxy takes the node's own address.
    own = network is None or source == node.address or any(_within(source, one) for one in network["subnets"])
    if node.overlay and not own:
        yield (
            f"kube-proxy of {node.name} answers from {source or 'no address'}, which is not in its pod network",
            "The source VIP is of an earlier network: `winboot repair` reserves the right one and restarts kube-proxy.",
        )
    endpoint = _endpoint(node)
    bridged = endpoint is not None and address and not node.overlay and not found["dsr"]
    if endpoint is not None and bridged and not any(_within(address, str(one)) for one in endpoint["routes"]):
        yield (
            f"pods on {node.name} have no HNS route policy for services",
            "`winboot repair` writes cni-config; start the pods again.",
        )


def _services(trial: Trial, scene: Scene) -> Iterator[Cause]:
    if trial.at is None or trial.flow not in ("pod-service", "service-pod"):
        return
    yield from _balanced(trial.at, trial.address, PORT, _TCP)


def _large(trial: Trial) -> Iterator[Cause]:
    if trial.flow != "pod-pod-large":
        return
    for node in (trial.at, trial.to):
        for one in _facts(node, "interfaces"):
            if node is not None and one["address"] == node.address and int(one["mtu"]) < _LARGE:
                yield (
                    f"the MTU of {node.name}'s adapter is {one['mtu']}, smaller than the MTU of its pods",
                    "Give all nodes' adapters and the switches between them one MTU (1500, for overlays 1550 or more).",
                )


def _outside(trial: Trial, outcome: Outcome) -> Iterator[Cause]:
    if trial.flow != "egress" or trial.at is None:
        return
    endpoint = _endpoint(trial.at)
    if endpoint is not None and not endpoint["nat"]:
        yield (
            f"pods on {trial.at.name} have no OutBoundNAT policy: other networks have no route to their addresses",
            "`winboot repair` writes cni-config; start the pods again.",
        )
    if endpoint is not None and any(str(one).endswith("/0") for one in endpoint["exceptions"]):
        yield (
            f"the exceptions of OutBoundNAT on {trial.at.name} also cover outside addresses",
            "`winboot repair` writes cni-config; start the pods again.",
        )
    proxy = trial.at.spec.proxy.https or trial.at.spec.proxy.http
    if outcome.symptom == "other" and proxy:
        yield (
            f"the proxy {proxy} refuses this address",
            "Allow the address on the proxy, or give another address with --egress.",
        )
    if outcome.symptom != "name":
        _, port = _port_of(trial)
        yield from _blocked(trial.at, _client(trial.at), "Out", port, "")
        yield (
            "a firewall blocks outgoing traffic, the address does not answer, or pods must use a proxy",
            "Try the address from the node; give another address with --egress HOST:PORT.",
        )


def _port_of(trial: Trial) -> tuple[str, int]:
    """Host and port of where egress goes, through a proxy or not."""
    host, _, port = trial.target.partition(" ")[0].rpartition(":")
    return host, int(port) if port.isdigit() else 0


def _own_node(trial: Trial) -> Iterator[Cause]:
    if trial.flow == "node-pod" and trial.at is not None:
        yield from _host_side(trial.at)
    if trial.flow != "pod-node" or trial.at is None:
        return
    endpoint, node = _endpoint(trial.at), trial.at
    if not _rule(node, "winboot-kubelet"):
        yield (
            f"the firewall of {node.name} blocks port 10250",
            "`winboot repair` writes the rule winboot-kubelet; a Group Policy may override the rule.",
        )
    routes = endpoint["routes"] if endpoint is not None and not node.overlay else None
    if routes is not None and not any(_within(node.address, str(one)) for one in routes):
        yield (
            f"pods on {node.name} have no HNS route policy for {node.address}",
            "`winboot repair` writes cni-config; start the pods again.",
        )
    yield from _host_side(node)


def _node_port(trial: Trial) -> Iterator[Cause]:
    if trial.flow != "node-port" or trial.to is None:
        return
    node = trial.to
    yield from _balanced(node, "", node.node_port, _TCP)
    if not _rule(node, "winboot-node-ports-tcp"):
        yield (
            f"the firewall of {node.name} blocks NodePorts",
            "Set windows.firewall.node_ports and run `winboot repair`.",
        )
    yield from _blocked(node, _server(node), "In", PORT, "")


def _server(node: NodeScene) -> str:
    return node.server.address if node.server is not None else ""


def _client(node: NodeScene) -> str:
    return node.client.address if node.client is not None else ""


def _listed(trial: Trial) -> Iterator[Cause]:
    """Access lists of the two ends."""
    if trial.flow in ("dns-full", "dns-short", "egress", "pod-node"):
        return
    at, to = trial.at, trial.to
    if at is not None and trial.source.startswith("pod"):
        yield from _blocked(at, _client(at), "Out", PORT, trial.address)
    if to is not None and trial.flow != "pod-service":
        asking = _client(at) if at is not None and trial.source.startswith("pod") else ""
        yield from _blocked(to, _server(to), "In", PORT, asking or (at.address if at is not None else ""))


def _blocked(node: NodeScene, pod: str, way: str, port: int, other: str) -> Iterator[Cause]:
    """Whether the access list of a pod's endpoint drops a TCP connection: the rule of the lowest number that fits decides."""
    endpoint = next((one for one in _facts(node, "endpoints") if one["address"] == pod), None)
    rules = [one for one in (endpoint or {}).get("acls", ()) if one["Direction"] == way]
    for rule in sorted(rules, key=lambda one: int(one["Priority"] or 65500)):
        ports = str(rule["RemotePorts" if way == "Out" else "LocalPorts"]).split(",")
        addresses = [one for one in str(rule["RemoteAddresses"]).split(",") if one]
        fits = str(rule["Protocols"]) in ("", "256", str(_TCP)) and (ports == [""] or str(port) in ports)
        if not fits or (addresses and not any(_within(other, one) for one in addresses)):
            continue
        if rule["Action"] == "Block":
            direction = "comes in" if way == "In" else "goes out"
            yield (
                f"an HNS access list drops what {direction} at {pod} on {node.name}",
                _maker(node),
            )
        return


def _maker(node: NodeScene) -> str:
    """Which component may have made an access list."""
    if not node.policies:
        own = "a policy resource of the network plug-in (for example a Calico policy)"
        return f"The source is {own}, or an ACL policy in the CNI configuration."
    several = f"{', '.join(node.policies[:_NAMED])}{' and others' if len(node.policies) > _NAMED else ''}"
    return f"The source is one of these policies: {several}; or an ACL policy in the CNI configuration."


def _below(trial: Trial, outcome: Outcome, known: Mapping[str, Cause]) -> Iterator[Cause]:
    if trial.flow == "egress" and outcome.symptom != "name":
        return
    for flow in _BELOW.get(trial.flow, ()):
        if flow in known:
            cause, next_ = known[flow]
            yield (cause if cause.startswith("as ") else f"as {flow}: {cause}"), next_


def _network(node: NodeScene | None) -> Facts | None:
    if node is None:
        return None
    name = node.spec.network.network_name.lower()
    return next((one for one in _facts(node, "networks") if str(one["name"]).lower() == name), None)


def _ways(trial: Trial, scene: Scene) -> Iterator[Cause]:
    """Routes and tunnels between the two ends, there and back."""
    if trial.flow in ("exec", "logs", "port-forward", "dns-full", "dns-short", "egress", "node-port"):
        return
    linux = scene.linux.address if scene.linux is not None else ""
    to = trial.to if trial.flow != "pod-service" else _behind(trial, scene)
    other = to.server.address if to is not None and to.server is not None else linux
    for node in (trial.at, to):
        yield from _other_network(node)
    if trial.at is not None:
        yield from _ways_of(trial.at, scene, other, to)
    back = trial.at.client.address if trial.at is not None and trial.at.client is not None else linux
    if to is not None and to is not trial.at:
        yield from _ways_of(to, scene, back, trial.at)


def _behind(trial: Trial, scene: Scene) -> NodeScene | None:
    """The node of the first backend of a service, as the asking node's HNS has it."""
    for one in _facts(trial.at, "balancers"):
        if one["address"] == trial.address and one.get("to"):
            first = str(one["to"][0])
            return next((n for n in scene.nodes if n.server is not None and n.server.address == first), None)
    return None


def _ways_of(node: NodeScene, scene: Scene, address: str, to: NodeScene | None) -> Iterator[Cause]:
    """Why packets of a node's pods would not reach an address that is on another node, `to` where it is a Windows node."""
    network = _network(node)
    if node.look is None or to is node or not address:
        return
    yield from _other_network(node)
    if node.overlay:
        yield from _tunnel(node, network, address, to)
        return
    yield from _host_side(node)
    yield from _route(node, address, to)


def _other_network(node: NodeScene | None) -> Iterator[Cause]:
    """A pod network that is not the Node's: routers and other nodes send its packets elsewhere."""
    network = _network(node)
    if node is None or network is None:
        return
    solution = node.spec.network.solution
    cidrs = solution.pod_networks(node.facts.pod_cidrs, node.facts.annotations) if solution.pod_cidr else ()
    if cidrs and not set(network["subnets"]) & set(cidrs):
        yield (
            f"the pod network of {node.name} is {', '.join(network['subnets'])}; the Node has {', '.join(cidrs)}",
            "The network belongs to an earlier Node: `winboot repair --drain` makes the network again.",
        )


def _host_side(node: NodeScene) -> Iterator[Cause]:
    """The host's own endpoint on a bridge is the gateway of its pods."""
    endpoint = _endpoint(node)
    if endpoint is None or node.overlay or node.spec.network.host_endpoint is None:
        return
    interfaces = {str(one["address"]): one for one in _facts(node, "interfaces")}
    gateway = interfaces.get(str(endpoint["gateway"]))
    if interfaces and gateway is None:
        yield (
            f"{node.name} does not have the address {endpoint['gateway']}, the gateway of its pods",
            "The host's endpoint is missing: run `winboot repair --drain`.",
        )
    for one in (gateway, interfaces.get(node.address)):
        if one is not None and not one["forwarding"]:
            yield f"{node.name} does not forward packets on {one['alias']}", _REPAIR


def _route(node: NodeScene, address: str, to: NodeScene | None) -> Iterator[Cause]:
    if not node.spec.network.routes and node.spec.network.solution.owners.routes not in ("agent", "winboot"):
        return
    routes = [one for one in _facts(node, "routes") if _within(address, str(one["prefix"]))]
    if not routes:
        yield (
            f"{node.name} has no route to {address}",
            "flanneld makes the routes: check that it runs. Without an agent, run `winboot repair`.",
        )
    elif to is not None and to.address and all(one["hop"] != to.address for one in routes):
        yield (
            f"{node.name} sends {address} to {routes[0]['hop']}, but {to.name} is {to.address}",
            "Remove the wrong route; flanneld or `winboot repair` makes the right one.",
        )


def _tunnel(node: NodeScene, network: Facts | None, address: str, to: NodeScene | None) -> Iterator[Cause]:
    endpoint = _endpoint(node)
    providers = str(endpoint["provider"]) if endpoint is not None else ""
    if providers and providers != node.address:
        yield (
            f"the overlay of {node.name} sends from {providers}, but the node has {node.address}",
            "`winboot repair` writes cni-config; start the pods again.",
        )
    if not _rule(node, "winboot-vxlan"):
        yield (
            f"the firewall of {node.name} blocks UDP 4789, which VXLAN uses",
            "`winboot repair` writes the rule winboot-vxlan; a Group Policy may override the rule.",
        )
    remotes: Sequence[Any] = network["remotes"] if network is not None else ()
    cni = node.spec.network.solution.cni
    if cni in ("calico", "none"):
        return  # Calico writes each pod, not subnets; what others write is unknown
    fitting = [one for one in remotes if _within(address, str(one["prefix"]))]
    if not fitting:
        yield (
            f"the overlay of {node.name} has no remote subnet for {address}",
            "flanneld writes remote subnets: check that it runs, and read its log."
            if cni == "flannel"
            else "winboot runs no agent here: look at the program that writes remote subnets (docs/networks.md).",
        )
    elif to is not None and all(one["hop"] != to.address for one in fitting):
        yield (
            f"the overlay of {node.name} sends {address} to {fitting[0]['hop']}, {to.name} is {to.address}",
            "Restart flanneld, or the program that writes remote subnets, so that it writes them again.",
        )


def _usual(trial: Trial, outcome: Outcome, scene: Scene) -> Cause:
    """What this flow usually fails for where the facts say nothing."""
    if scene.policies and outcome.symptom == "silent":
        return (
            f"a NetworkPolicy of the namespace refuses the flow: {', '.join(scene.policies)}",
            "Exempt namespaces with the label winboot.io/verify in the program that makes this policy.",
        )
    if scene.everywhere and outcome.symptom == "silent" and trial.flow in _BETWEEN_PODS:
        return (
            f"a policy for all namespaces ({', '.join(scene.everywhere[:_NAMED])}) or a firewall may refuse the flow",
            "Check the policy's rules for namespaces with the label winboot.io/verify.",
        )
    at = trial.at or trial.to
    if trial.flow in ("pod-node", "node-pod") and at is not None and at.overlay:
        return (
            f"pods on the overlay of {at.name} cannot reach their host: the network has no HostRoute policy",
            "`winboot repair --drain` makes the network again (Windows Server 2019 needs its updates for it).",
        )
    bridged = at is not None and at.spec.network.solution.pods_own_macs
    if trial.flow == "node-port":
        port = trial.to.node_port if trial.to is not None else 0
        return (
            f"a firewall between the machines blocks port {port}",
            "Open 30000-32767 between the machines.",
        )
    if outcome.symptom == "name" and at is not None:
        return (
            f"the cluster's DNS does not answer pods on {at.name}, or does not know the name",
            "Look at CoreDNS's pods, and at the network path to their Linux node.",
        )
    if outcome.symptom == "refused":
        return (
            "the server in the pod does not listen yet, or has ended",
            "Read `kubectl logs` of the pod, and run the command again.",
        )
    if bridged and trial.flow in (
        "pod-pod-remote",
        "pod-linux",
        "linux-pod",
        "linux-service",
        "node-pod-remote",
    ):
        return (
            "the hypervisor (MAC spoofing) or a firewall between the nodes drops the pods' packets",
            "Allow MAC spoofing (forged transmits) for the machines' ports; compare with another pair of nodes.",
        )
    if at is not None and at.overlay:
        return (
            "a firewall blocks UDP 4789 between the nodes, or the two networks have different VNIs",
            "Open UDP 4789 both ways: with `cni: none` winboot opens no port of the network's (docs/networks.md)."
            if at.spec.network.solution.cni == "none"
            else "Open UDP 4789 both ways; `winboot plan` compares the networks.",
        )
    return "a firewall or an access list on the network path", _REPAIR

"""The table of damages: what happens to one node of a healthy pair, the flows that break by it, and the cause that is named.

`flows` is what follows from how Windows networks work, not from what the lab answers; where it is less plain than it looks,
the line has its reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from winboot_lab.cluster.kinds import NODES
from winboot_lab.programs.flanneld import Flanneld

from tests.lab.actions import Hand, all_of, change, endpoint, forwarding_off, network, replace, sc, stop
from tests.lab.site import Site

CONFLIST: Final = r"C:\etc\cni\net.d\10-flannel.conflist"
SUBNET_ENV: Final = r"C:\run\flannel\subnet.env"
VXLAN: Final = "flannel.4096"
KUBELET: Final = r"C:\var\lib\kubelet\config.yaml"
KUBE_PROXY: Final = r"C:\k\kube-proxy.yaml"
# Flows that need a command in a pod of the node; what needs none of it is tried all the same.
API: Final = ("exec", "logs", "port-forward")
NAMES: Final = ("dns-full", "dns-short", "egress")  # the registry is found by its name
OUT: Final = ("pod-pod-remote", "pod-pod-large", "pod-linux")
IN: Final = ("linux-pod", "linux-service")
SERVED: Final = ("pod-service", "service-pod")


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to win-1, the flows and probes that fail by it, and words of the cause that is named for each flow."""

    name: str
    do: Hand
    flows: frozenset[str]
    cause: str
    probes: frozenset[str] = frozenset()
    site: str = "bridge"


def _damage(
    name: str,
    do: Hand,
    *flows: str,
    cause: str,
    probes: tuple[str, ...] = (),
    site: str = "bridge",
) -> Damage:
    return Damage(name, do, frozenset(flows), cause, frozenset(probes), site)


def _hang(site: Site) -> None:
    """flanneld of all nodes does nothing more: otherwise it would put right what is wrong."""
    Flanneld._keep_up = lambda self: None  # type: ignore[method-assign]


def _route(edit: Callable[[Any, Any], None]) -> Hand:
    """Something happens to win-1's route to win-2's pods."""

    def hand(site: Site) -> None:
        _hang(site)
        table = site.machine.network
        route = next(one for one in table.routes if one.next_hop == "10.0.1.12")
        edit(table, route)

    return hand


def _elsewhere(table: Any, route: Any) -> None:
    route.next_hop = "10.0.1.99"


def _policies(edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Hand:
    """Other policies in the CNI configuration, which new pods get."""

    def rewrite(raw: bytes) -> bytes:
        data = json.loads(raw)
        for delegate in _delegates(data):
            delegate["policies"] = edit(delegate["policies"])
        return json.dumps(data, indent=2).encode()

    return change(CONFLIST, rewrite)


def _delegates(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for plugin in data["plugins"]:
        if "delegate" in plugin:
            yield plugin["delegate"]


def _kind(policy: dict[str, Any]) -> str:
    return str(policy["value"]["Type"])


def _exceptions(*prefixes: str) -> Hand:
    def edit(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for one in policies:
            if _kind(one) == "OutBoundNAT":
                settings = one["value"].get("Settings", one["value"])
                settings["Exceptions" if "Exceptions" in settings else "ExceptionList"] = list(prefixes)
        return policies

    return _policies(edit)


def _flannel_env(old: str, new: str) -> Hand:
    """Another word in the file from which flannel's CNI plug-in takes what it adds to the policies."""
    return all_of(_hang, replace(SUBNET_ENV, old, new))


def _without(fits: Callable[[dict[str, Any]], bool]) -> Hand:
    return _policies(lambda policies: [one for one in policies if not fits(one)])


def _leads_to(prefix: str) -> Callable[[dict[str, Any]], bool]:
    return lambda one: one["value"].get("Settings", {}).get("DestinationPrefix") == prefix


def _acl(direction: str, **rest: Any) -> Hand:
    """An access list in the CNI configuration that drops what comes in, or goes out."""
    settings = {"Action": "Block", "Direction": direction, "RuleType": "Switch", "Priority": 100, **rest}
    policy = {"name": "EndpointPolicy", "value": {"Type": "ACL", "Settings": settings}}
    return _policies(lambda policies: [*policies, policy])


def _rule(name: str) -> Hand:
    return lambda site: site.machine.firewall.remove(name)


def _mtu(number: int) -> Hand:
    def hand(site: Site) -> None:
        adapter = site.machine.network.management()
        assert adapter is not None
        adapter.mtu = number

    return hand


def _no_spoofing(site: Site) -> None:
    site.machine.hardware.mac_spoofing = False


def _restarted(service: str) -> Hand:
    """Restart-Service -Force."""
    dependents = {"kubelet": ("kubelet", "kube-proxy")}.get(service, (service,))
    return all_of(stop(service), *(sc("start", each) for each in dependents), lambda site: site.settle(40))


def _another_node_object(site: Site) -> None:
    """Delete the Node; it comes back with another part of the pod network."""
    node = site.node()
    node["spec"] |= {"podCIDR": "10.244.77.0/24", "podCIDRs": ["10.244.77.0/24"]}
    found = next(one for one in site.cluster.objects(NODES) if one["metadata"]["name"] == "win-1")
    found["spec"] = node["spec"]
    site.cluster.store.replace(NODES, found)
    site.settle(90)


def _no_dns_pods(site: Site) -> None:
    """Nothing answers behind the cluster's DNS: CoreDNS has no pod that is ready."""
    path = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns-lab"
    names = [
        one["metadata"]["name"]
        for one in site.admin("GET", path.rpartition("/")[0])["items"]
        if one["metadata"]["labels"]["kubernetes.io/service-name"] == "kube-dns"
    ]
    for name in names:
        site.admin(
            "PATCH",
            f"{path.rpartition('/')[0]}/{name}",
            {"endpoints": []},
            content_type="application/merge-patch+json",
        )
    site.settle(60)


def _no_balancer_for_dns(site: Site) -> None:
    """A load balancer is gone from HNS, and kube-proxy, which does not look, takes it to be there."""
    hns = site.machine.hns
    for one in list(hns.policy_lists.values()):
        if "10.96.0.10" in one["Policies"][0]["VIPs"]:
            del hns.policy_lists[one["ID"]]


def _nobody_outside(site: Site) -> None:
    """The registry takes no connection."""
    site.internet.close("registry.k8s.io", 443)


def _source_vip(site: Site) -> None:
    """kube-proxy was started with an address of the network as it was before the node joined again."""
    text = site.machine.files.text(KUBE_PROXY)
    line = next(one for one in text.splitlines() if "sourceVip" in one)
    replace(KUBE_PROXY, line.strip().rstrip(","), line.strip().rstrip(",").replace("10.244.1.", "10.244.9."))(
        site
    )


def _remotes(edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Hand:
    """Something happens to the overlay's remote subnets, but for that of the Linux node."""

    def damage(found: dict[str, Any]) -> None:
        kept = []
        for one in found["Policies"]:
            remote = one.get("Type") == "RemoteSubnetRoute" and one["DestinationPrefix"] == "10.244.2.0/24"
            new = edit(one) if remote else one
            if new is not None:
                kept.append(new)
        found["Policies"] = kept

    return all_of(_hang, network(damage, VXLAN))


def _vni(found: dict[str, Any]) -> None:
    for one in found["Subnets"][0]["Policies"]:
        if one.get("Type") == "VSID":
            one["VSID"] = 4097


def _provider(address: str) -> Hand:
    def edit(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for one in policies:
            if _kind(one) == "ProviderAddress":
                one["value"]["Settings"]["ProviderAddress"] = address
        return policies

    return _policies(edit)


def _without_host_route(found: dict[str, Any]) -> None:
    found["Policies"] = [one for one in found["Policies"] if one.get("Type") != "HostRoute"]


BRIDGE: Final = (
    _damage(
        "the route to the other node's pods is gone",
        _route(lambda table, route: table.remove_route(route)),
        "pod-pod-remote",
        "pod-pod-large",
        "node-pod-remote",
        *SERVED,
        cause="win-1 has no route to 10.244.2.",
    ),
    _damage(
        "the route leads to a machine that is no more",
        _route(_elsewhere),
        "pod-pod-remote",
        "pod-pod-large",
        "node-pod-remote",
        *SERVED,
        cause="win-1 sends 10.244.2.",
    ),
    _damage(
        "kube-proxy is stopped",
        sc("stop", "kube-proxy"),
        *SERVED,
        "node-port",
        cause="kube-proxy of win-1 is Stopped",
        probes=("node-services", "node-processes", "node-services-in-hns"),
    ),
    _damage(
        "the exceptions lack the pod network",
        all_of(_exceptions("10.96.0.0/12", "10.0.0.0/16"), _flannel_env("10.244.0.0/16", "10.245.0.0/16")),
        "pod-pod-remote",
        "pod-linux",
        cause="the exceptions of OutBoundNAT in the CNI configuration of win-1 lack the pod network",
    ),
    _damage(
        "the exceptions name the outside",
        _exceptions("10.244.0.0/16", "10.96.0.0/12", "10.0.0.0/16", "0.0.0.0/0"),
        "egress",
        cause="the exceptions of OutBoundNAT on win-1 also cover outside addresses",
    ),
    _damage(
        "no OutBoundNAT",
        all_of(
            _without(lambda one: _kind(one) == "OutBoundNAT"),
            _flannel_env("FLANNEL_IPMASQ=true", "FLANNEL_IPMASQ=false"),
        ),
        "egress",
        cause="pods on win-1 have no OutBoundNAT policy",
    ),
    _damage(
        "no route policy for the pod's own node",
        _without(_leads_to("10.0.1.11/32")),
        "pod-node",
        cause="pods on win-1 have no HNS route policy for 10.0.1.11",
    ),
    _damage(
        "direct server return off on one side, and no route policy for services",
        all_of(
            _without(_leads_to("10.96.0.0/12")),
            replace(KUBE_PROXY, '"enableDSR": true', '"enableDSR": false'),
            _restarted("kube-proxy"),
        ),
        *SERVED,
        *NAMES,
        cause="pods on win-1 have no HNS route policy for services",
        probes=("node-services-in-hns",),
    ),
    _damage(
        "the firewall keeps the kubelet's port",
        _rule("winboot-kubelet"),
        *API,
        cause="the firewall of win-1 blocks port 10250",
    ),
    _damage(
        "the firewall blocks NodePorts",
        _rule("winboot-node-ports-tcp"),
        "node-port",
        cause="the firewall of win-1 blocks NodePorts",
    ),
    _damage(
        "the uplink does not forward",
        forwarding_off("10.0.1.11"),
        *OUT,
        *IN,
        *SERVED,
        "node-pod-remote",
        "pod-node",
        *NAMES,
        cause="win-1 does not forward packets on vEthernet (Ethernet)",
    ),
    _damage(
        "the host's endpoint is detached",
        endpoint(lambda hns, found: hns.detach(found)),
        *OUT,
        *IN,
        *SERVED,
        "node-pod",
        "node-pod-remote",
        "pod-node",
        "port-forward",
        *NAMES,
        cause="the gateway of its pods",
        probes=("node-endpoints",),
    ),
    _damage(
        "the hypervisor lets no other MAC address through",
        _no_spoofing,
        *OUT,
        *IN,
        *SERVED,
        "node-pod-remote",
        *NAMES,
        cause="MAC spoofing",
    ),
    _damage(
        "a small MTU",
        _mtu(1400),
        "pod-pod-large",
        cause="the MTU of win-1's adapter is 1400",
    ),
    _damage(
        "the kubelet's clusterDomain is another",
        all_of(
            replace(KUBELET, '"clusterDomain": "cluster.local"', '"clusterDomain": "corp.example"'),
            _restarted("kubelet"),
        ),
        "dns-short",
        cause="the DNS suffix of pods on win-1 is",
    ),
    _damage(
        "the kubelet's clusterDNS is another",
        all_of(replace(KUBELET, "10.96.0.10", "10.96.0.99"), _restarted("kubelet")),
        *NAMES,
        cause="pods on win-1 use the DNS server 10.96.0.99, the cluster's is 10.96.0.10",
    ),
    _damage(
        "HNS has lost the load balancer of the cluster's DNS",
        _no_balancer_for_dns,
        *NAMES,
        cause="HNS of win-1 has no load balancer for 10.96.0.10:53",
        probes=("node-services-in-hns",),
    ),
    _damage(
        "CoreDNS has no pod",
        _no_dns_pods,
        *NAMES,
        cause="10.96.0.10:53",
    ),
    _damage(
        "the Node has another pod CIDR than the network",
        _another_node_object,
        *OUT,
        *IN,
        *SERVED,
        "node-pod-remote",
        *NAMES,
        cause="the pod network of win-1 is 10.244.1.0/24; the Node has 10.244.77.0/24",
        probes=("node-network",),
    ),
    _damage(
        "an access list keeps what comes in",
        _acl("In"),
        "pod-pod-local",
        "pod-pod-remote",
        "pod-pod-large",
        *IN,
        *SERVED,
        "node-pod",
        "node-pod-remote",
        "node-port",
        "port-forward",  # containerd connects to the pod's address
        cause="an HNS access list drops what comes in",
    ),
    _damage(
        "an access list keeps what goes to port 443",
        _acl("Out", Protocols="6", RemotePorts="443"),
        "egress",
        cause="an HNS access list drops what goes out",
    ),
    _damage(
        "no host answers outside",
        _nobody_outside,
        "egress",
        cause="a firewall blocks outgoing traffic, the",
    ),
)
OVERLAY: Final = (
    _damage(
        "the source VIP is of an earlier network",
        all_of(_source_vip, _restarted("kube-proxy")),
        # The other services have a backend on win-1 itself, which is reached from the pod's own address.
        "service-pod",
        *NAMES,
        cause="which is not in its pod network",
        site="overlay",
    ),
    _damage(
        "the firewall keeps VXLAN out",
        _rule("winboot-vxlan"),
        *OUT,
        *IN,
        *SERVED,
        *NAMES,
        cause="the firewall of win-1 blocks UDP 4789",
        site="overlay",
    ),
    _damage(
        "a remote subnet is gone",
        _remotes(lambda one: None),
        "pod-pod-remote",
        "pod-pod-large",
        *SERVED,
        cause="the overlay of win-1 has no remote subnet for 10.244.2.",
        site="overlay",
    ),
    _damage(
        "a remote subnet leads elsewhere",
        _remotes(lambda one: {**one, "ProviderAddress": "10.0.1.99"}),
        "pod-pod-remote",
        "pod-pod-large",
        *SERVED,
        cause="the overlay of win-1 sends 10.244.2.",
        site="overlay",
    ),
    _damage(
        "pods send from an address that the node had once",
        _provider("10.0.1.98"),
        *OUT,
        *IN,
        *SERVED,
        *NAMES,
        cause="the overlay of win-1 sends from 10.0.1.98, but the node has 10.0.1.11",
        site="overlay",
    ),
    _damage(
        "the networks have different VNIs",
        all_of(_hang, network(_vni, VXLAN)),
        *OUT,
        *IN,
        *SERVED,
        *NAMES,
        cause="VNI",
        site="overlay",
    ),
    _damage(
        "the overlay leads nothing to its own host",
        network(_without_host_route, VXLAN),
        "pod-node",
        "node-pod",
        "port-forward",
        cause="cannot reach their host",
        site="overlay",
    ),
    _damage(
        "a small MTU below an overlay",
        _mtu(1400),
        "pod-pod-large",
        cause="the MTU of win-1's adapter is 1400",
        site="overlay",
    ),
)
DAMAGES: Final = (*BRIDGE, *OVERLAY)

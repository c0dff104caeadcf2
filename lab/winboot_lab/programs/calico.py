"""Calico as its operator brings it to a Windows node: a HostProcess pod, and the plug-in it installs."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from winboot_lab.cluster import ApiFailure
from winboot_lab.programs import hcn
from winboot_lab.programs.base import GoError, Run
from winboot_lab.programs.kubeclient import KubeClient, load_kubeconfig
from winboot_lab.programs.outside import Outside
from winboot_lab.programs.plugins import HostLocal, Interface, WinOverlay
from winboot_lab.windows.programs_api import image_bytes

NETWORK: Final = "Calico"
ENDPOINT: Final = "Calico_ep"
# A first network that only makes the switch, so that the real one can come and go without another bounce.
_EXTERNAL: Final = "External"
_EXTERNAL_PREFIX: Final = "192.168.255.0/30"
# The usual pool of the lab, cut into blocks of Calico's usual size.
POOL: Final = ipaddress.IPv4Network("10.244.0.0/16")
_BLOCK_SIZE: Final = 26
_BIN: Final = r"C:\opt\cni\bin"
_CONF: Final = r"C:\etc\cni\net.d\10-calico.conflist"
VERSION: Final = "3.32.0"


def pool_of(outside: Outside) -> ipaddress.IPv4Network:
    """The one pool of the lab's Calico: the cluster's first pod network."""
    (cluster, *_) = outside.clusters.values()
    return ipaddress.IPv4Network(cluster.plan.pod_cidrs[0])


def block_of(node: Mapping[str, Any], pool: ipaddress.IPv4Network = POOL) -> ipaddress.IPv4Network:
    """The addresses that Calico's IPAM takes for a node out of its pool, whatever spec.podCIDR says or not
    (startup_windows.go, ensureNetworkForOS: EnsureBlock). In the lab the node's own address chooses the block."""
    (address,) = [one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"][:1]
    blocks = 2 ** (_BLOCK_SIZE - pool.prefixlen)
    index = int(ipaddress.IPv4Address(address)) % blocks
    first = int(pool.network_address) + index * 2 ** (32 - _BLOCK_SIZE)
    return ipaddress.IPv4Network((first, _BLOCK_SIZE))


def calico_node(run: Run, node: Mapping[str, Any], pool: ipaddress.IPv4Network = POOL) -> None:
    """What calico-node does on the machine, one step a call, until nothing is left; repairs what is missing."""
    if not (node.get("status") or {}).get("addresses"):
        return
    subnet = block_of(node, pool)
    machine = run.machine
    external = hcn.network(machine, _EXTERNAL)
    if external is None:
        _make_overlay(run, _EXTERNAL, ipaddress.IPv4Network(_EXTERNAL_PREFIX), 9999)
        return
    if not external.get("ManagementIP"):
        return
    network = hcn.network(machine, NETWORK)
    if network is None:
        _make_overlay(run, NETWORK, subnet, 4096)
        return
    if network.get("ManagementIP"):
        add_host_route(run, network)
        ensure_endpoint(run, network, str(subnet[2]))
        _install(run)


def add_host_route(run: Run, network: Mapping[str, Any]) -> None:
    """A failure is only logged there (dataplane_windows.go, ensureVxlanNetworkExists)."""
    with suppress(GoError):
        hcn.add_host_route(run.machine, network["ID"])


def ensure_endpoint(run: Run, network: Mapping[str, Any], address: str) -> None:
    """The endpoint of the node itself: a remote one, with the adapter's MAC and the node's address behind
    it, attached to nothing. One of that name, network and address behind it is kept as it is
    (v3.32.0 dataplane_windows.go, createAndAttachVxlanHostEP)."""
    behind = {"Type": "PA", "PA": network["ManagementIP"]}
    found = hcn.endpoint(run.machine, ENDPOINT)
    if found is not None:
        if found["VirtualNetwork"] == network["ID"] and behind in found["Policies"]:
            return
        hcn.call(run.machine, "DELETE", f"/endpoints/{found['ID']}")
    adapter = run.machine.network.holder(network["ManagementIP"])
    request = {
        "Name": ENDPOINT,
        "VirtualNetwork": network["ID"],
        "IPAddress": address,
        "MacAddress": "" if adapter is None else adapter.mac,
        "IsRemoteEndpoint": True,
        "Policies": [behind],
    }
    hcn.call(run.machine, "POST", "/endpoints/", request)


def _make_overlay(run: Run, name: str, subnet: ipaddress.IPv4Network, vsid: int) -> None:
    policies = [{"Type": "VSID", "VSID": vsid}]
    request = {
        "Name": name,
        "Type": "Overlay",
        "Subnets": [{"AddressPrefix": str(subnet), "GatewayAddress": str(subnet[1]), "Policies": policies}],
    }
    hcn.call(run.machine, "POST", "/networks/", request)


def _install(run: Run) -> None:
    """The plug-ins and their configuration, as the pod's install container copies them."""
    for name in ("calico", "calico-ipam"):
        path = rf"{_BIN}\{name}.exe"
        if not run.exists(path):
            run.write(path, image_bytes(name, VERSION))
    if run.exists(_CONF):
        return
    policies = [
        {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.0/12"]},
        {"Type": "SDNROUTE", "DestinationPrefix": "10.96.0.0/12", "NeedEncap": True},
    ]
    plugin = {
        "type": "calico",
        "mode": "vxlan",
        "windows_use_single_network": True,
        "capabilities": {"dns": True},
        "ipam": {"type": "calico-ipam"},
        "policies": [{"Name": "EndpointPolicy", "Value": p} for p in policies],
    }
    conf = {"name": NETWORK, "cniVersion": "1.0.0", "plugins": [plugin]}
    run.write(_CONF, json.dumps(conf, indent=2).encode("utf-8"))


class Calico(WinOverlay):
    """calico.exe: knows namespaces whatever the configuration says, and its network by a fixed name."""

    about = "Calico CNI plugin"

    def __init__(self, outside: Outside) -> None:
        super().__init__()
        self._outside = outside

    def _ask_datastore(self, run: Run, conf: dict[str, Any]) -> None:
        """Calico's resources are read with the kubeconfig that the configuration names. A node's certificate may not
        read them by itself; this stand-in does not judge what a person's file may."""
        path = (conf.get("kubernetes") or {}).get("kubeconfig")
        if path is None or b"kubelet-client" not in run.read(path, "stat"):
            return
        client = KubeClient(run, self._outside, load_kubeconfig(run, path))
        try:
            client.ask("GET", "/apis/crd.projectcalico.org/v1/clusterinformations/default")
        except ApiFailure as e:
            raise GoError(
                f"error getting ClusterInformation: connection is unauthorized: {e.message}"
            ) from None

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """As an overlay plug-in, with an address of the node's own block."""
        self._ask_datastore(run, conf)
        network = hcn.network(run.machine, NETWORK)
        if network is None:
            raise GoError(
                f"error adding host side routes: HNS network {NETWORK} not found, is calico-node running?"
            )
        subnets = network.get("Subnets") or [{}]
        ipam = {**(conf.get("ipam") or {}), "subnet": subnets[0].get("AddressPrefix")}
        return super().add(run, {**conf, "name": NETWORK, "apiVersion": 2, "ipam": ipam})

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """The second version, as for every runtime but dockershim (projectcalico/calico cni-plugin dataplane_windows.go,
        IsDockershimV1)."""
        super().delete(run, {**conf, "name": NETWORK, "apiVersion": 2})

    def policies(self, conf: dict[str, Any], network: Mapping[str, Any], address: Interface) -> list[Any]:
        """Its own exceptions are the pools: pods do not hide from each other (cni-plugin/internal/pkg/utils/network_windows.go,
        SetupRoutes and updateOutboundNATPolicy)."""
        found, pool = super().policies(conf, network, address), str(pool_of(self._outside))
        return [
            {**one, "ExceptionList": [*one["ExceptionList"], pool]} if one.get("ExceptionList") else one
            for one in found
        ]


class CalicoIpam(HostLocal):
    """calico-ipam.exe: addresses of the node's block. In the lab they lie in files, as host-local's do."""

    about = "Calico IPAM"

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """The first three addresses of a block are Windows' own."""
        subnet = ipaddress.IPv4Network(conf["ipam"]["subnet"])
        return super().add(run, {**conf, "ipam": {**conf["ipam"], "rangeStart": str(subnet[3])}})

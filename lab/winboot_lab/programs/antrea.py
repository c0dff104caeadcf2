"""Antrea as its DaemonSet brings it to a Windows node: Open vSwitch, the agent and the plug-in of one HostProcess pod.

Names, files and conditions are those of antrea-io/antrea v2.7.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from winboot_lab.programs import hcn
from winboot_lab.programs.base import GoError, Run
from winboot_lab.programs.plugins import Address, Interface, WinPlugin
from winboot_lab.windows.boot import SYSTEM_START_OPTIONS, TEST_SIGNING
from winboot_lab.windows.hns import NON_PERSISTENT
from winboot_lab.windows.programs_api import image_bytes

REPOSITORY: Final = "antrea/antrea-windows"
VERSION: Final = "2.7.0"
NETWORK: Final = "antrea-hnsnetwork"
# build/yamls/antrea-windows-with-ovs.yml: Run-AntreaOVS.ps1, Install-WindowsCNI.ps1, antrea-cni.conflist.
DATABASE: Final = r"C:\openvswitch\etc\openvswitch\conf.db"
_BIN: Final = r"C:\opt\cni\bin"
_CONF: Final = r"C:\etc\cni\net.d\10-antrea.conflist"
_CONFLIST: Final = {
    "cniVersion": "0.3.0",
    "name": "antrea",
    "plugins": [{"type": "antrea", "ipam": {"type": "host-local"}, "capabilities": {"dns": True}}],
}


def antrea_agent(run: Run, node: Mapping[str, Any]) -> None:
    """What the pod does on the machine; nothing while one of its conditions is missing."""
    if not _has_switch(run):
        return
    network = hcn.network(run.machine, NETWORK)
    if network is None:
        _make(run, node)
        return
    for name in ("antrea", "host-local"):
        path = rf"{_BIN}\{name}.exe"
        if not run.exists(path):
            run.write(path, image_bytes(name, VERSION))
    if not run.exists(_CONF):
        run.write(_CONF, json.dumps(_CONFLIST, indent=4).encode("utf-8"))


def _has_switch(run: Run) -> bool:
    """Whether the driver loads and Hyper-V's commands are there (docs/windows.md, Prerequisites and "Test-only")."""
    machine = run.machine
    options = machine.registry.text(*SYSTEM_START_OPTIONS).split()
    return TEST_SIGNING in options and all(
        machine.features.installed(name) for name in ("Hyper-V", "Hyper-V-PowerShell")
    )


def _make(run: Run, node: Mapping[str, Any]) -> None:
    """Database, switch and HNS network; not above ports of an earlier start (docs/windows.md, Known issues 1), and not on a
    virtual adapter (agent_windows.go, prepareHNSNetworkAndOVSExtension). Unsourced: what it
    does there; here nothing.
    """
    machine, subnet = run.machine, str((node.get("spec") or {}).get("podCIDR") or "")
    addresses = (node.get("status") or {}).get("addresses") or []
    (address,) = [one["address"] for one in addresses if one["type"] == "InternalIP"][:1] or [""]
    adapter = machine.network.holder(address)
    if not subnet or adapter is None or not adapter.physical or run.exists(DATABASE):
        return
    run.write(DATABASE, b"OVSDB JSON\n")
    length = next(one.prefix_length for one in adapter.ipv4 if one.ip == address)
    # net_windows.go, CreateHNSNetwork. "HNS Network is not persistent" (docs/windows.md).
    request = {
        "Name": NETWORK,
        "Type": "Transparent",
        "NetworkAdapterName": adapter.name,
        "Subnets": [{"AddressPrefix": subnet, "GatewayAddress": subnet.rpartition(".")[0] + ".1"}],
        "ManagementIP": f"{address}/{length}",
        "SourceMac": adapter.mac,
        "Flags": NON_PERSISTENT,
    }
    hcn.call(machine, "POST", "/networks/", request)


class Antrea(WinPlugin):
    """antrea.exe: asks the agent, which knows its network by a fixed name and the Node's pod network."""

    about = "Antrea CNI plugin"

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """An address of the node's pod network."""
        network = hcn.network(run.machine, NETWORK)
        if network is None:
            raise GoError("rpc error: code = Unavailable desc = antrea-agent does not answer")
        subnet = network["Subnets"][0]["AddressPrefix"]
        ipam = {**conf["ipam"], "subnet": subnet, "gateway": network["Subnets"][0]["GatewayAddress"]}
        return super().add(run, {**conf, "name": NETWORK, "apiVersion": 2, "ipam": ipam})

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """The second version, as for every runtime but dockershim (projectcalico/calico cni-plugin dataplane_windows.go,
        IsDockershimV1)."""
        super().delete(run, {**conf, "name": NETWORK, "apiVersion": 2})

    def gateway(self, address: Interface, network: Mapping[str, Any]) -> Address:
        """antrea-gw0."""
        return address.network[1]

    def policies(self, conf: dict[str, Any], network: Mapping[str, Any], address: Interface) -> list[Any]:
        """None: Open vSwitch does what policies of HNS do elsewhere."""
        return []

"""Calico's node agent: one call makes the node's network, another stays and keeps what pods need of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from winboot_lab.cluster import ApiFailure
from winboot_lab.programs import hcn
from winboot_lab.programs.base import Daemon, GoError, Run, go_text
from winboot_lab.programs.calico import (
    NETWORK,
    Calico,
    CalicoIpam,
    add_host_route,
    block_of,
    ensure_endpoint,
    pool_of,
)
from winboot_lab.programs.kubeclient import KubeClient, load_kubeconfig
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.session import Computer

STRATEGIC = "application/strategic-merge-patch+json"


class CalicoNodeProgram:
    """calico-node.exe of 3.31 and 3.32 (node/cmd/calico-node/main.go)."""

    felix: tuple[str, ...] = ("-felix",)
    startup: tuple[str, ...] = ("-startup",)
    complete = "-complete-startup"

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """Never: Calico's own scripts run it under NSSM."""
        return False

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> Felix:
        """A running Felix."""
        run = Run(machine, process, argv, env)
        if tuple(argv[1:]) != self.felix:
            raise run.refuse(" ".join(argv[1:]))
        return Felix(run, self._outside)

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """The first part, alone or with what ends it (main.go: both together mark the network as available at once)."""
        run = Run(machine, process, argv, env, stdin)
        if tuple(argv[1:]) not in (self.startup, (*self.startup, self.complete)):
            raise run.refuse(" ".join(argv[1:]))
        try:
            _start_up(run, self._outside)
            if self.complete in argv:
                _mark_available(run, self._outside)
        except GoError as e:
            return Exit(1, b"", go_text(f"[FATAL] startup: {e}", "Calico node failed to start"))
        return Exit(0, go_text("Calico node started successfully"))


class MergedCalico(CalicoNodeProgram):
    """calico.exe from 3.33 on: the plug-ins, too, by its own name and CNI_COMMAND (cmd/calico-windows/main.go, main;
    node/pkg/node, NewFelixCommand and NewCommand)."""

    felix = ("component", "felix")
    startup = ("component", "node", "startup")
    complete = "--complete-startup"

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """What its name, CNI_COMMAND or its first words say, in this order."""
        if argv[0].rpartition("\\")[2] in ("calico-ipam", "calico-ipam.exe"):
            return CalicoIpam().run(machine, process, argv, env, stdin)
        if env.get("CNI_COMMAND"):
            return Calico(self._outside).run(machine, process, argv, env, stdin)
        return super().run(machine, process, argv, env, stdin)


def _start_up(run: Run, outside: Outside) -> None:
    for name in ("KUBECONFIG", "NODENAME", "CALICO_NETWORKING_BACKEND", "VXLAN_VNI", "CALICO_NODENAME_FILE"):
        if not run.env.get(name):
            raise GoError(f"{name} is not set")
    if run.env["CALICO_NETWORKING_BACKEND"] != "vxlan":
        raise run.refuse(f"with the backend {run.env['CALICO_NETWORKING_BACKEND']}")
    node = _node(run, outside)
    run.write(run.env["CALICO_NODENAME_FILE"], run.env["NODENAME"].encode("ascii"))
    block = block_of(node, pool_of(outside))
    _ensure_network(run, block, int(run.env["VXLAN_VNI"]))
    network = _settled_network(run)
    add_host_route(run, network)
    ensure_endpoint(run, network, str(block[2]))


def _settled_network(run: Run) -> dict[str, Any]:
    """The network with its management address; the program waits five seconds for it, then gives up."""
    found: dict[str, Any] = {}

    def settled() -> bool:
        found.update(hcn.network(run.machine, NETWORK) or {})
        return bool(found.get("ManagementIP"))

    if run.machine.wait(5, until=settled):
        return found
    raise GoError(f"timeout, failed to get management IP from HNSNetwork {NETWORK}")


def _mark_available(run: Run, outside: Outside) -> None:
    """The condition NetworkUnavailable, which some clouds set on a new Node, is false from now on."""
    client = KubeClient(run, outside, load_kubeconfig(run, run.env["KUBECONFIG"]))
    condition = {
        "type": "NetworkUnavailable",
        "status": "False",
        "reason": "CalicoIsUp",
        "message": "Calico is running on this node",
    }
    path = f"/api/v1/nodes/{run.env['NODENAME']}/status"
    try:
        client.ask("PATCH", path, {"status": {"conditions": [condition]}}, content_type=STRATEGIC)
    except ApiFailure as e:
        raise GoError(f"failed to set NetworkUnavailable to False: {e.message}") from None


def _node(run: Run, outside: Outside) -> dict[str, Any]:
    client = KubeClient(run, outside, load_kubeconfig(run, run.env["KUBECONFIG"]))
    name = run.env["NODENAME"]
    try:
        found: dict[str, Any] = client.ask("GET", f"/api/v1/nodes/{name}")
    except ApiFailure as e:
        raise GoError(f"Unable to access datastore to query node configuration: {e.message}") from None
    return found


def _ensure_network(run: Run, subnet: ipaddress.IPv4Network, vni: int) -> None:
    """Keep a network that fits; replace one that does not; make one that is missing."""
    wanted = {
        "AddressPrefix": str(subnet),
        "GatewayAddress": str(subnet[1]),
        "Policies": [{"Type": "VSID", "VSID": vni}],
    }
    found = hcn.network(run.machine, NETWORK)
    if found is not None:
        first = (found.get("Subnets") or [{}])[0]
        same = {key: first.get(key) for key in ("AddressPrefix", "GatewayAddress")}
        vnis = [policy.get("VSID") for policy in first.get("Policies") or []]
        if found["Type"] == "Overlay" and same.items() <= wanted.items() and vnis == [vni]:
            return
        hcn.call(run.machine, "DELETE", f"/networks/{found['ID']}")
    request = {"Name": NETWORK, "Type": "Overlay", "Subnets": [wanted]}
    hcn.call(run.machine, "POST", "/networks/", request)


class Felix(Daemon):
    """A running Felix. Without its network it has nothing to do, and says so."""

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run)
        self._outside = outside
        self._told = False

    def on_start(self) -> Died | None:
        """Its name must be that of the Node."""
        if self.run.env.get("FELIX_FELIXHOSTNAME", "") != self.run.env.get("NODENAME"):
            return self.fatal("Felix's host name is not the node's")
        return None

    def on_tick(self) -> Died | None:
        """Look after the network."""
        missing = hcn.network(self.machine, NETWORK) is None
        if missing and not self._told:
            self.klog(f"HNS network {NETWORK} not found", "W")
        self._told = missing
        return None

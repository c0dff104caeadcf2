"""hybrid-overlay-node.exe of OVN-Kubernetes: asks for a certificate of its own, then makes the node's networks.

Names, order and values are those of ovn-kubernetes/ovn-kubernetes 8871cd9c (2026-08-21), go-controller.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.authority import (
    CLIENT_AUTH,
    NotTrusted,
    Subject,
    check_validity,
    key_pem,
    load_certificate,
    new_key,
    request_pem,
)
from winboot_lab.cluster.controllers import OVN_SIGNER, condition
from winboot_lab.cluster.identity import OVN_NODE_PREFIX, OVN_NODES
from winboot_lab.programs import hcn
from winboot_lab.programs.base import Daemon, GoError, Run
from winboot_lab.programs.goflags import Flags, goflags
from winboot_lab.programs.kubeclient import KubeClient, load_kubeconfig
from winboot_lab.programs.kubelet_identity import CSRS, is_old
from winboot_lab.programs.outside import Outside
from winboot_lab.programs.settings import duration
from winboot_lab.windows.hns import NON_PERSISTENT
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.session import Computer

# hybrid-overlay/pkg/controller/ho_node_windows.go and pkg/types/types.go.
NETWORK: Final = "OVNKubernetesHybridOverlayNetwork"
BASE: Final = "BaseOVNKubernetesHybridOverlayNetwork"
VNI: Final = 4097
SUBNET: Final = "k8s.ovn.org/hybrid-overlay-node-subnet"
ROUTER_MAC: Final = "k8s.ovn.org/hybrid-overlay-distributed-router-gateway-mac"
_BASE_SUBNET: Final = ("100.64.0.0/30", "100.64.0.2")
# pkg/util/kube.go, certNamePrefix.
_CERTIFICATE: Final = "ovnkube-client-current.pem"
# pkg/config/config.go, CertDuration.
_LIFETIME_S: Final = 600.0
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_FLAGS: Final = dict.fromkeys(
    ("node", "bootstrap-kubeconfig", "cert-dir", "cert-duration", "k8s-apiserver", "k8s-cacert", "loglevel"),
    "text",
)


class HybridOverlayProgram:
    """The program."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """Only with --windows-service (cmd/hybrid-overlay-node/init_windows.go), which winboot leaves to NSSM."""
        return "--windows-service" in argv

    def serve(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]
    ) -> HybridOverlay:
        """A running agent."""
        return HybridOverlay(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """Nothing but a service."""
        raise Run(machine, process, argv, env, stdin).refuse("in the foreground")


class HybridOverlay(Daemon):
    """A running agent."""

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run)
        self._outside = outside
        self._flags = Flags()
        self._request: tuple[str, str] | None = None
        self._machine_id = ""
        self._based = False

    def on_start(self) -> Died | None:
        """Its flags, and the kubeconfig that it begins with."""
        try:
            self._flags = goflags(self.run.argv[1:], _FLAGS)
            if not self._flags.text("node"):
                raise GoError("missing node name; use the 'node' flag to provide one")
            config = load_kubeconfig(self.run, self._flags.text("bootstrap-kubeconfig"))
            self._bootstrap = KubeClient(self.run, self._outside, config)
        except GoError as e:
            return self.fatal(str(e))
        return None

    def on_tick(self) -> Died | None:
        """One step further: certificate, base network, own network, annotation."""
        try:
            client = self._client()
            # The base network is looked for once, at the start (newNodeController).
            self._based = self._based or (client is not None and self._has_base())
            if client is not None and self._based:
                node = client.ask("GET", f"/api/v1/nodes/{self._flags.text('node')}")
                self._own_network(client, node)
        except (GoError, ApiFailure) as e:
            self._say(e)
        return None

    def _say(self, e: GoError | ApiFailure) -> None:
        self.klog(f"failed: {e.message if isinstance(e, ApiFailure) else e}", "E", "hybrid-overlay.go:1")

    # The certificate (pkg/util/kube.go, StartNodeCertificateManager)

    def _client(self) -> KubeClient | None:
        path = rf"{self._flags.text('cert-dir')}\{_CERTIFICATE}"
        if self.run.exists(path):
            pem = self.run.read(path).decode("ascii")
            try:
                check_validity(load_certificate(pem), self.machine.now())
            except NotTrusted:
                self.machine.files.delete(self.run.path(path))
                return None
            config = replace(self._bootstrap.config, token=None, certificate=pem, key=pem)
            client = KubeClient(self.run, self._outside, config)
            # The agent asks with the certificate that it has, and keeps it where that fails (ClientsetFn).
            if is_old(pem, self.machine.now()):
                try:
                    self._certify(client, path)
                except (GoError, ApiFailure) as e:
                    self._say(e)
            return client
        self._certify(self._bootstrap, path)
        return None

    def _certify(self, client: KubeClient, path: str) -> None:
        """Ask for a certificate, or write the one that is there (client-go util/certificate/csr, RequestCertificate and
        WaitForCertificate)."""
        if self._request is None:
            key = new_key()
            subject = Subject(f"{OVN_NODE_PREFIX}{self._flags.text('node')}", (OVN_NODES,))
            request = base64.b64encode(request_pem(key, subject).encode("ascii")).decode("ascii")
            spec = {
                "request": request,
                "signerName": OVN_SIGNER,
                "usages": ["digital signature", CLIENT_AUTH],
                "expirationSeconds": int(duration(self._flags.text("cert-duration"), _LIFETIME_S)),
            }
            body = {"metadata": {"generateName": "csr-"}, "spec": spec}
            self._request = (str(client.ask("POST", CSRS, body)["metadata"]["name"]), key_pem(key))
            return
        name, key_text = self._request
        found = client.find(f"{CSRS}/{name}")
        if found is None:
            self._request = None
            return
        denied = condition(found, "Denied")
        if denied is not None:
            self._request = None
            raise GoError(
                f"certificate signing request is denied, reason: {denied['reason']}, message: {denied['message']}"
            )
        if certificate := found.get("status", {}).get("certificate"):
            self._request = None
            pem = base64.b64decode(certificate).decode("ascii") + key_text
            self.run.write(path, pem.encode("ascii"))

    # The networks (ho_node_windows.go, ensureBaseNetwork and initSelf)

    def _has_base(self) -> bool:
        network = self._valid(BASE, *_BASE_SUBNET)
        if network is None:
            self.klog(f"Creating the base overlay network '{BASE}' (VXLAN port = 4789).")
            self._make(BASE, *_BASE_SUBNET, VNI + 1, flags=0)
            return False
        return bool(network["ManagementIP"])

    def _own_network(self, client: KubeClient, node: dict[str, Any]) -> None:
        self._machine_id = str(node["status"]["nodeInfo"]["machineID"])
        annotations = node["metadata"].get("annotations") or {}
        if not annotations.get(SUBNET):
            return
        subnet = ipaddress.IPv4Network(annotations[SUBNET])
        network = self._valid(NETWORK, str(subnet), str(subnet[1]))
        if network is None:
            self._make(NETWORK, str(subnet), str(subnet[1]), VNI, flags=NON_PERSISTENT)
            return
        if not network["ManagementIP"]:
            return
        if not any(one.get("Type") == "HostRoute" for one in network["Policies"]):
            hcn.add_host_route(self.machine, network["ID"])
        mac = next(str(one["Address"]) for one in network["Policies"] if one.get("Type") == "DrMacAddress")
        if annotations.get(ROUTER_MAC) != mac:
            path = f"/api/v1/nodes/{node['metadata']['name']}/status"
            patch = {"metadata": {"annotations": {ROUTER_MAC: mac}}}
            client.ask("PATCH", path, patch, content_type=_STRATEGIC)
        self._follow(network, client.ask("GET", "/api/v1/nodes")["items"])

    def _follow(self, network: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
        """A remote subnet for each other node with a subnet, an address and a MAC address (AddNode). The program knows nodes
        by their machine id: one with its own is itself."""
        policies = [one for one in network["Policies"] if one.get("Type") == "RemoteSubnetRoute"]
        known = {one["DestinationPrefix"] for one in policies}
        for node in nodes:
            annotations, status = node["metadata"].get("annotations") or {}, node.get("status") or {}
            subnet, mac = annotations.get(SUBNET), annotations.get(ROUTER_MAC)
            addresses = [
                one["address"] for one in status.get("addresses") or [] if one["type"] == "InternalIP"
            ]
            if not (subnet and mac and addresses) or subnet in known:
                continue
            if status["nodeInfo"]["machineID"] == self._machine_id:
                continue
            settings = {
                "IsolationId": VNI,
                "DistributedRouterMacAddress": mac,
                "ProviderAddress": addresses[0],
                "DestinationPrefix": subnet,
            }
            hcn.modify(
                self.machine, network["ID"], "Add", {"Type": "RemoteSubnetRoute", "Settings": settings}
            )

    def _valid(self, name: str, prefix: str, gateway: str) -> dict[str, Any] | None:
        """The network of that name; one with another subnet or gateway is deleted (EnsureExistingNetworkIsValid)."""
        found = hcn.network(self.machine, name)
        if found is None:
            return None
        first = found["Subnets"][0]
        if (first["AddressPrefix"], first["GatewayAddress"]) == (prefix, gateway):
            return found
        hcn.call(self.machine, "DELETE", f"/networks/{found['ID']}")
        return None

    def _make(self, name: str, prefix: str, gateway: str, vni: int, *, flags: int) -> None:
        subnet = {
            "AddressPrefix": prefix,
            "GatewayAddress": gateway,
            "Policies": [{"Type": "VSID", "VSID": vni}],
        }
        hcn.call(
            self.machine,
            "POST",
            "/networks/",
            {"Name": name, "Type": "Overlay", "Subnets": [subnet], "Flags": flags},
        )

"""What the shipped profiles write and start makes a lab node Ready: data and lab are held against each other.

No PowerShell runs here: the steps' files and service tables are put on the machine directly.
"""

from __future__ import annotations

import io
import ipaddress
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from winboot_lab import mirror
from winboot_lab.cluster import ClusterPlan
from winboot_lab.programs import hcn

from lab_programs.conftest import IP, Node
from tests.steps.builders import managed
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import Artifact, NodeSpec, resolve
from winboot.script.steps import STEPS
from winboot.script.steps.services import service_table

PROFILES = Path(__file__).parents[3] / "profiles"
INVENTORY = """
groups:
  pool:
    profile: ./profile.yaml
    os: "{os}"
    connection: {{user: Administrator, password: {{env: UNUSED}}}}
    hosts: {{win-1: {{address: {ip}}}}}
"""


class Driven(Node):
    """A lab node set up from a resolved spec."""

    def __init__(self, spec: NodeSpec) -> None:
        backend = {"Type": spec.network.solution.mode or ""}
        if spec.network.solution.mode == "vxlan":
            vxlan = spec.network.vxlan
            backend |= {"VNI": vxlan.vni, "Port": vxlan.port}  # type: ignore[dict-item]
        plan = ClusterPlan(
            version=str(spec.kubernetes.version),
            server=spec.cluster.server,
            pod_cidrs=spec.cluster.pod_cidrs,
            service_cidrs=spec.cluster.service_cidrs,
            calico=spec.network.solution.id == "calico-vxlan",
            flannel=backend if spec.network.solution.cni == "flannel" else None,
        )
        super().__init__(plan, version=str(spec.kubernetes.version), release=spec.machine.os)
        self.spec = spec
        self.known = {"node_ip": IP, "node_subnet": "10.0.0.0/24"}

    def fill(self, text: str) -> str:
        """Put in what only the node knows."""
        return re.sub(r"<<(\w+)>>", lambda match: self.known[match[1]], text)

    def place(self, artifact: Artifact) -> None:
        """Unpack a download."""
        content = mirror.content_of(artifact.url)
        assert content is not None, artifact.url
        for member in artifact.members:
            self.file(member.destination, _member(content, artifact.kind, member.path))

    def files(self, step: str) -> None:
        """Write what a step writes."""
        for path, text in next(s for s in STEPS if s.name == step).files(self.spec).items():
            self.file(path, self.fill(text))

    def start(self, name: str) -> None:
        """Create a service as its step does, and start it."""
        # What stands nowhere in the table is the default that Complete-Service fills in.
        table: dict[str, Any] = {"depends": [], "environment": [], "parameters": {}}
        table |= service_table(self.spec, name)
        line, depends = self.fill(str(table["command_line"])), "/".join(table["depends"]) or "/"
        assert self.sc("create", name, "binPath=", line, "start=", "auto", "depend=", depends) == 0
        registry, key = self.machine.registry, self.machine.services.need(name).key
        if table["environment"]:
            registry.set(key, "Environment", "MultiString", table["environment"])
        for parameter, value in table["parameters"].items():
            if value is None:
                continue
            registry.create(key + r"\Parameters")
            if isinstance(value, int):
                registry.set(key + r"\Parameters", parameter, "DWord", value)
            elif isinstance(value, str):
                registry.set(key + r"\Parameters", parameter, "ExpandString", self.fill(value))
            else:
                registry.set(key + r"\Parameters", parameter, "MultiString", [self.fill(v) for v in value])
        assert self.sc("start", name) == 0

    def learn(self) -> None:
        """The Node has its pod network now."""
        spec = self.node()["spec"]
        net = ipaddress.ip_network(spec["podCIDR"])
        self.known |= {"pod_cidr": str(net), "pod_gateway": str(net[1]), "pod_endpoint": str(net[2])}
        self.known |= {"pod_first": str(net[3]), "source_vip": str(net[2])}
        for cidr in spec["podCIDRs"][1:]:
            second = ipaddress.ip_network(cidr)
            self.known |= {"pod_cidr_v6": cidr, "pod_gateway_v6": str(second[1])}
            self.known["pod_endpoint_v6"] = str(second[2])

    def network(self) -> None:
        """The agent makes the HNS network, or winboot does, or the plug-in will."""
        spec = self.spec.network
        if "flanneld" in self.spec.services:
            self.files("flanneld-config")
            self.start("flanneld")
            self.settle(70)
        elif spec.solution.owners.hns_network == "winboot":
            subnet = {"AddressPrefix": self.known["pod_cidr"], "GatewayAddress": self.known["pod_gateway"]}
            request = {"Name": spec.network_name, "Type": spec.solution.hns_type, "Subnets": [subnet]}
            hcn.call(self.machine, "POST", "/networks/", request)
            self.settle(40)

    def join(self) -> None:
        """The whole way."""
        for artifact in self.spec.artifacts:
            self.place(artifact)
        self.machine.files.make_directory("C:\\k")
        self.files("containerd-config")
        self.start("containerd")
        self.files("kubelet-config")
        self.file(self.spec.paths.cluster_ca, self.cluster.authority.pem)
        self.bootstrap()
        self.start("kubelet")
        self.settle(15)
        self.learn()
        for reservation in self.spec.network.reservations:
            address = self.known[reservation.address.name]
            self.file(
                rf"{self.spec.network.ipam_store}\{address.replace(':', '_')}",
                f"{reservation.holder}\r\n{reservation.interface}",
            )
        if self.spec.network.cni_conf is not None:
            self.files("cni-config")
        self.network()
        if "kube-proxy" in self.spec.services:
            self.files("kube-proxy-config")
            self.start("kube-proxy")
        self.settle(60)


def _member(content: bytes, kind: str, path: str) -> bytes:
    if kind == "file":
        return content
    if kind == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(path)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        names = {name.removeprefix("./"): name for name in tar.getnames()}
        file = tar.extractfile(names[path.removeprefix("./")])
        assert file is not None
        return file.read()


def a_spec(folder: Path, profile: str, os: str) -> NodeSpec:
    """A shipped profile, resolved for one machine; `under nssm`: its services run under NSSM."""
    name, _, manager = profile.partition(" under ")
    text = (PROFILES / f"{name}.yaml").read_text(encoding="utf-8")
    if manager:
        text = managed(text, manager)
    # The services of the Azure profile lie where this machine is.
    (folder / "profile.yaml").write_text(
        text.replace("service_cidr: 10.0.0.0/16", "service_cidr: 10.100.0.0/16")
    )
    (folder / "ca.crt").write_text(Node().cluster.authority.pem)
    (folder / "inventory.yaml").write_text(INVENTORY.format(os=os, ip=IP))
    (machine,) = load_inventory(folder / "inventory.yaml").machines
    return resolve(machine.profile, machine)


@pytest.mark.parametrize(
    ("profile", "os"),
    [
        ("minimal", "2022"),
        ("minimal", "2025"),
        ("ltsc-2019", "2019"),
        ("flannel-host-gw", "2022"),
        ("flannel-host-gw under nssm", "2022"),
        ("flannel-vxlan", "2022"),
        ("flannel-vxlan under nssm", "2022"),
        ("win-bridge", "2022"),
        ("win-overlay", "2022"),
        ("azure", "2022"),
        ("calico", "2022"),
    ],
)
def test_a_shipped_profile_makes_a_ready_node(tmp_path: Path, profile: str, os: str) -> None:
    node = Driven(a_spec(tmp_path, profile, os))

    node.join()

    assert node.ready()["message"] == "kubelet is posting ready status"
    assert bool(node.machine.hns.policy_lists) == ("kube-proxy" in node.spec.services)
    assert all(
        s.status == "Running"
        for s in map(node.machine.services.need, (s.name for s in node.spec.services.all))
    )

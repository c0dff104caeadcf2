"""A Windows machine with everything a node needs on it, a cluster it can reach, and the programs between them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from winboot_lab.cluster import ClusterPlan, LabCluster
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.cluster.kubeconfig import kubeconfig
from winboot_lab.mirror import program
from winboot_lab.programs import Outside, install_programs
from winboot_lab.programs.wrappers import join
from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs import Programs
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.sockets import World

TOKEN = "abcdef.0123456789abcdef"
IP = "10.0.0.21"
CONTAINERD_TOML = r"""
version = 3
root = 'C:\ProgramData\containerd\root'
state = 'C:\ProgramData\containerd\state'
[grpc]
address = '\\.\pipe\containerd-containerd'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = 'registry.k8s.io/pause:3.10'
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = 'C:\ProgramData\containerd\certs.d'
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['C:\opt\cni\bin']
conf_dir = 'C:\etc\cni\net.d'
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = 'runhcs-wcow-process'
"""
KUBELET_CONFIG: dict[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"x509": {"clientCAFile": r"C:\etc\kubernetes\pki\ca.crt"}},
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "resolvConf": "",
    "clusterDNS": ["10.96.0.10"],
    "clusterDomain": "cluster.local",
    "containerRuntimeEndpoint": "npipe:////./pipe/containerd-containerd",
    "rotateCertificates": True,
    "serverTLSBootstrap": True,
    "registerWithTaints": [{"key": "os", "value": "windows", "effect": "NoSchedule"}],
}
PROXY_CONFIG: dict[str, Any] = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
    "kind": "KubeProxyConfiguration",
    "mode": "kernelspace",
    "clientConnection": {"kubeconfig": r"C:\k\kubeconfig"},
    "hostnameOverride": "win-1",
    "winkernel": {"networkName": "cbr0", "rootHnsEndpointName": "cbr0_ep"},
}
KUBELET = [
    r"C:\k\kube-log-runner.exe",
    r"-log-file=C:\var\log\kubelet\kubelet.log",
    r"C:\k\kubelet.exe",
    "--windows-service",
    r"--config=C:\var\lib\kubelet\config.yaml",
    r"--bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig",
    r"--kubeconfig=C:\k\kubeconfig",
    r"--cert-dir=C:\var\lib\kubelet\pki",
    "--hostname-override=win-1",
    f"--node-ip={IP}",
    "--node-labels=pool=windows",
]


def conflist(**changes: Any) -> dict[str, Any]:
    """The CNI configuration that works on flannel host-gw."""
    policies = [
        {"Type": "OutBoundNAT", "Settings": {"Exceptions": ["10.244.0.0/16", "10.96.0.0/12", "10.0.0.0/24"]}},
        {"Type": "SDNRoute", "Settings": {"DestinationPrefix": "10.96.0.0/12", "NeedEncap": True}},
    ]
    delegate: dict[str, Any] = {
        "type": "win-bridge",
        "apiVersion": 2,
        "policies": [{"name": "EndpointPolicy", "value": p} for p in policies],
    }
    plugin = {
        "type": "flannel",
        "capabilities": {"portMappings": True, "dns": True},
        "delegate": {**delegate, **changes},
    }
    return {"name": "cbr0", "cniVersion": "1.0.0", "plugins": [plugin]}


class Node:
    """One machine on its way to a node; each method is a thing winboot would do to it."""

    def __init__(
        self, plan: ClusterPlan | None = None, *, version: str = "1.34.2", release: Any = "2022"
    ) -> None:
        self.time = LabTime(scale=0, real=False)
        self.cluster = LabCluster(plan or ClusterPlan(version=version), now=self.time.datetime)
        self.world = World()
        self.outside = Outside(self.world)
        self.outside.attach(self.cluster)
        programs = Programs()
        install_programs(programs, self.outside)
        keeps = release == "2025"
        self.machine = Machine(
            "WIN-1",
            release=release,
            address=IP,
            dhcp=not keeps,
            time=self.time,
            world=self.world,
            programs=programs,
        )
        self.version = version
        with self.machine.lock:
            self.machine.features.install_now("Containers")

    def settle(self, seconds: float) -> None:
        """Let lab time pass."""
        self.machine.settle(seconds)

    def file(self, path: str, content: bytes | str | dict[str, Any]) -> None:
        """Write a file, JSON for a dict."""
        if isinstance(content, dict):
            content = json.dumps(content)
        raw = content.encode("utf-8") if isinstance(content, str) else content
        self.machine.files.make_directory(path.rpartition("\\")[0])
        self.machine.files.write(path, raw)

    def read(self, path: str) -> str:
        """A file's text."""
        return self.machine.files.text(path)

    def run(self, *words: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> Exit:
        """Run a console program to its end."""
        with self.machine.lock:
            process = self.machine.processes.spawn(join(list(words)), environment=env)
            return self.machine.processes.run(process, stdin)

    def sc(self, *words: str) -> int:
        """sc.exe's exit code."""
        return self.run(r"C:\Windows\System32\sc.exe", *words).code

    def admin(self, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        """Ask the cluster as its administrator."""
        return self.cluster.request(ADMIN, method, path, body, **rest).body

    def binaries(self) -> None:
        """Put all programs in their places."""
        for name in ("kubelet", "kube-proxy", "kubectl", "kube-log-runner"):
            self.file(rf"C:\k\{name}.exe", program(name, self.version))
        for name, version in (("crictl", "1.34.0"), ("nssm", "2.24"), ("flanneld", "0.27.4")):
            self.file(rf"C:\k\{name}.exe", program(name, version))
        for name in ("containerd", "ctr", "containerd-shim-runhcs-v1"):
            self.file(rf"C:\Program Files\containerd\bin\{name}.exe", program(name, "2.1.5"))
        for name in ("flannel", "win-bridge", "win-overlay", "host-local"):
            self.file(rf"C:\opt\cni\bin\{name}.exe", program(name, "1.7.1"))

    def configuration(self) -> None:
        """Write every file."""
        self.file(r"C:\Program Files\containerd\config.toml", CONTAINERD_TOML)
        self.file(r"C:\k\crictl.yaml", "runtime-endpoint: npipe:////./pipe/containerd-containerd\n")
        self.file(r"C:\var\lib\kubelet\config.yaml", KUBELET_CONFIG)
        self.file(r"C:\etc\kubernetes\pki\ca.crt", self.cluster.authority.pem)
        self.file(r"C:\k\kube-proxy.yaml", PROXY_CONFIG)
        self.file(r"C:\etc\cni\net.d\10-flannel.conflist", conflist())
        net_conf = {"Network": "10.244.0.0/16", "Backend": {"Type": "host-gw", "Name": "cbr0"}}
        self.file(r"C:\etc\kube-flannel\net-conf.json", net_conf)
        self.file(r"C:\k\flanneld.cmd", "")
        self.bootstrap()

    def bootstrap(self, token: str = TOKEN) -> None:
        """Mint a token and write the bootstrap kubeconfig."""
        token_id, token_secret = token.split(".")
        data = {
            "token-id": token_id,
            "token-secret": token_secret,
            "expiration": f"{self.time.datetime() + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        }
        secret = {
            "metadata": {"name": f"bootstrap-token-{token_id}"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": data,
        }
        self.admin("POST", "/api/v1/namespaces/kube-system/secrets", secret)
        config = kubeconfig(self.cluster.plan.server, self.cluster.authority.pem, {"token": token})
        self.file(r"C:\k\bootstrap-kubeconfig", config)

    def service(self, name: str, *words: str, depends: str = "/") -> int:
        """Create a service and start it; the exit code of the start."""
        assert (
            self.sc("create", name, "binPath=", join(list(words)), "start=", "auto", "depend=", depends) == 0
        )
        return self.sc("start", name)

    def containerd(self) -> int:
        """Start containerd."""
        bin_folder = r"C:\Program Files\containerd\bin"
        return self.service(
            "containerd",
            rf"{bin_folder}\containerd.exe",
            "--run-service",
            "--config",
            r"C:\Program Files\containerd\config.toml",
            "--log-file",
            r"C:\var\log\containerd\containerd.log",
        )

    def kubelet(self, *more: str) -> int:
        """Start the kubelet, with more flags."""
        return self.service("kubelet", *KUBELET, *more, depends="containerd")

    def flanneld(self) -> None:
        """Start flanneld below NSSM."""
        nssm = r"C:\k\nssm.exe"
        flags = [r"--kubeconfig-file=C:\k\kubeconfig", "--kube-subnet-mgr=1", f"--iface={IP}", "--ip-masq=1"]
        assert self.run(nssm, "install", "flanneld", r"C:\k\flanneld.exe", *flags).code == 0
        for name, *values in (
            ("AppDirectory", "C:\\"),
            ("AppEnvironmentExtra", "NODE_NAME=win-1"),
            ("AppStderr", r"C:\var\log\flanneld\flanneld.log"),
            ("AppRestartDelay", "5000"),
        ):
            assert self.run(nssm, "set", "flanneld", name, *values).code == 0
        assert self.sc("start", "flanneld") == 0

    def kube_proxy(self) -> int:
        """Start kube-proxy."""
        return self.service(
            "kube-proxy",
            r"C:\k\kube-log-runner.exe",
            r"-log-file=C:\var\log\kube-proxy\kube-proxy.log",
            r"C:\k\kube-proxy.exe",
            r"--config=C:\k\kube-proxy.yaml",
            "--windows-service",
            depends="containerd",
        )

    def join(self) -> None:
        """All of it, in order."""
        self.binaries()
        self.configuration()
        assert self.containerd() == 0
        assert self.kubelet() == 0
        self.settle(20)
        self.flanneld()
        self.settle(60)
        assert self.kube_proxy() == 0
        self.reserve()
        self.settle(60)

    def reserve(self) -> None:
        """Keep the first two addresses of the node's subnet from pods."""
        for last, what in ((1, "gateway"), (2, "endpoint")):
            self.file(rf"C:\var\lib\cni\networks\cbr0\{self.pod_address(last)}", f"winboot\r\n{what}")

    def pod_address(self, last: int) -> str:
        """An address of the node's pod network."""
        cidr: str = self.node()["spec"]["podCIDR"]
        return cidr.rpartition(".")[0] + f".{last}"

    def pod(self, name: str) -> None:
        """Put a pod on the node."""
        body = {"metadata": {"name": name}, "spec": {"nodeName": "win-1", "containers": []}}
        self.admin("POST", "/api/v1/namespaces/default/pods", body)

    def node(self) -> Any:
        """The Node object."""
        return self.admin("GET", "/api/v1/nodes/win-1")

    def ready(self) -> dict[str, str]:
        """Its Ready condition."""
        conditions = self.node()["status"]["conditions"]
        return next(c for c in conditions if c["type"] == "Ready")

    def log(self, name: str) -> str:
        """A service's log."""
        return self.read(rf"C:\var\log\{name}\{name}.log")

    def approve_all(self) -> None:
        """Approve every pending request as an administrator."""
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        for csr in self.admin("GET", path)["items"]:
            if not csr["status"]:
                csr["status"] = {"conditions": [{"type": "Approved", "status": "True"}]}
                self.admin("PUT", f"{path}/{csr['metadata']['name']}/approval", csr)


def decode(text: str) -> str:
    """Base64 to text."""
    return base64.b64decode(text).decode("ascii")


@pytest.fixture
def node() -> Iterator[Node]:
    yield Node()

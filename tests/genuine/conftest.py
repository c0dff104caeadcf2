"""A genuine control plane: etcd, kube-apiserver and kube-controller-manager of the folder that KUBE names.

`make genuine KUBE=folder`; without it these tests are skipped, and say so. What one test asks of both, the genuine
API and the lab's, takes `either`: the lab's half runs in every `make check`.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from winboot_lab.cluster import ClusterServer, LabCluster
from winboot_lab.cluster.authority import (
    CLIENT_AUTH,
    SERVER_AUTH,
    Authority,
    KeyPair,
    Subject,
    key_pem,
    new_key,
)
from winboot_lab.cluster.kubeconfig import write_kubeconfig

from tests.genuine.kubelets import ADMINS, CLIENT, Kubelets

PROGRAMS = ("kube-apiserver", "kube-controller-manager")
CONTROLLERS = (
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-signing-controller",
    "bootstrap-signer-controller",
    "token-cleaner-controller",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "serviceaccount-controller",
    "endpointslice-controller",
    "namespace-controller",
    "job-controller",
)
RBAC = "rbac.authorization.k8s.io"
NODECLIENT = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
SELFNODECLIENT = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
JOINERS = "system:bootstrappers:kubeadm:default-node-token"
# As kubeadm binds them: https://github.com/kubernetes/kubernetes/blob/v1.36.0/cmd/kubeadm/app/phases/bootstraptoken/node/tlsbootstrap.go
BINDINGS = (
    ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", JOINERS),
    ("kubeadm:node-autoapprove-bootstrap", NODECLIENT, JOINERS),
    ("kubeadm:node-autoapprove-certificate-rotation", SELFNODECLIENT, "system:nodes"),
)


@dataclass
class Genuine:
    """A running control plane, and requests to it as anybody."""

    url: str
    folder: Path
    authority: Authority
    kubelets: Kubelets | None = None

    def kubeconfig(self, name: str, *groups: str) -> Path:
        """A kubeconfig for a user in these groups."""
        path = self.folder / f"{name.replace(':', '-')}.conf"
        write_kubeconfig(path, self.url, self.authority.pem, self._pair(name, *groups))
        return path

    def _pair(self, name: str, *groups: str) -> KeyPair:
        return self.authority.issue(Subject(name, groups), (CLIENT_AUTH,))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        pair: KeyPair | None = None,
        token: str = "",
        kind: str = "application/json",
    ) -> httpx2.Response:
        """One request, as the administrator unless a certificate or a token is given."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        headers = {"Content-Type": kind}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        else:
            pair = pair or self._pair("kubernetes-admin", "system:masters")
            _present(context, pair)
        with httpx2.Client(verify=context, base_url=self.url, timeout=20) as client:
            return client.request(method, path, json=body, headers=headers)

    def apply(self, manifest: str) -> None:
        """Create the objects of a manifest."""
        for thing in filter(None, yaml.safe_load_all(manifest)):
            where = thing["metadata"].get("namespace")
            space = f"/namespaces/{where}" if where else ""
            group = "/api" if "/" not in thing["apiVersion"] else "/apis"
            kind = thing["kind"].lower()
            plural = f"{kind[:-1]}ies" if kind.endswith("cy") else f"{kind}s"
            path = f"{group}/{thing['apiVersion']}{space}/{plural}"
            answer = self.ask("POST", path, thing)
            assert answer.status_code in (201, 409), answer.text

    def bind_joiners(self) -> None:
        """What kubeadm binds for bootstrap tokens and for renewals."""
        for name, role, group in BINDINGS:
            body = {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
            }
            assert self.ask("POST", f"/apis/{RBAC}/v1/clusterrolebindings", body).status_code in (201, 409)


def _present(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Files of this call alone: a LinuxNode's thread asks at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder) / "pair.pem"
        chain.write_text(f"{pair.certificate}\n{pair.key}")
        context.load_cert_chain(chain)


@pytest.fixture(params=["lab", pytest.param("genuine", marks=pytest.mark.genuine)])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Genuine]:
    """The lab's API or the genuine one, behind the same few methods."""
    if request.param == "genuine":
        yield request.getfixturevalue("genuine")
        return
    lab = LabCluster()
    with ClusterServer(lab) as server:
        yield Genuine(server.url, tmp_path, lab.authority)


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Genuine]:
    """One for each file of tests: what another file left in its own is not there, whatever the order."""
    yield from control_plane(tmp_path_factory)


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Genuine]:
    """One of this test's own, with nothing in it that another test left."""
    yield from control_plane(tmp_path_factory)


def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Genuine]:
    """A new one, until the iterator is gone on with."""
    kube = os.environ.get("KUBE", "")
    if not kube:
        pytest.skip("KUBE names no folder with kube-apiserver and kube-controller-manager")
    missing = [name for name in PROGRAMS if not (Path(kube) / name).exists()]
    etcd = shutil.which("etcd") or str(Path(kube) / "etcd")
    if missing or not Path(etcd).exists():
        pytest.skip(f"missing: {', '.join(missing) or 'etcd'}")
    folder = tmp_path_factory.mktemp("genuine")
    ports = [_free_port() for _ in range(4)]
    authority = Authority("kubernetes")
    kubelets = Kubelets(folder, authority)
    running = Genuine(f"https://127.0.0.1:{ports[2]}", folder, authority, kubelets)
    files = _files(running)
    files["egress"] = kubelets.write_config()
    manager = running.kubeconfig("system:kube-controller-manager")
    commands = {
        "etcd": [etcd, *_flags(_etcd(folder, ports))],
        "kube-apiserver": [f"{kube}/kube-apiserver", *_flags(_apiserver(folder, ports, files))],
        "kube-controller-manager": [
            f"{kube}/kube-controller-manager",
            *_flags(_manager(folder, ports[3], files, manager)),
        ],
    }
    with ExitStack() as stack:
        stack.callback(kubelets.close)
        for name, command in commands.items():
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            stack.callback(_end, process)
            if name == "kube-apiserver":
                _wait_ready(running, process, folder)
        yield running


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_ready(running: Genuine, process: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            if running.ask("GET", "/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.5)
    pytest.fail((folder / "kube-apiserver.log").read_text()[-3000:])


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _flags(values: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


def _files(running: Genuine) -> dict[str, Path]:
    pair = running.authority.issue(
        Subject("kube-apiserver", dns_names=("localhost",), addresses=("127.0.0.1",)), (SERVER_AUTH,)
    )
    asks = running.authority.issue(Subject(CLIENT, (ADMINS,)), (CLIENT_AUTH,))
    texts = {
        "kubelet-client.crt": asks.certificate,
        "kubelet-client.key": asks.key,
        "ca.crt": running.authority.pem,
        "ca.key": key_pem(running.authority._key),
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
        "sa.key": key_pem(new_key()),
    }
    for name, text in texts.items():
        (running.folder / name).write_text(text)
    return {name: running.folder / name for name in texts}


def _etcd(folder: Path, ports: list[int]) -> dict[str, object]:
    client, peer = (f"http://127.0.0.1:{port}" for port in ports[:2])
    return {
        "data-dir": folder / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
    }


def _apiserver(folder: Path, ports: list[int], files: Mapping[str, Path]) -> dict[str, object]:
    return {
        "etcd-servers": f"http://127.0.0.1:{ports[0]}",
        "bind-address": "127.0.0.1",
        "secure-port": ports[2],
        "cert-dir": folder / "apiserver",
        "tls-cert-file": files["tls.crt"],
        "tls-private-key-file": files["tls.key"],
        "client-ca-file": files["ca.crt"],
        # As kubeadm: without it a HostProcess pod is refused (kubernetes/kubernetes,
        # cmd/kubeadm/app/phases/controlplane/manifests.go: {Name: "allow-privileged", Value: "true"}).
        "allow-privileged": "true",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "enable-bootstrap-token-auth": "true",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": files["sa.key"],
        "service-account-signing-key-file": files["sa.key"],
        "service-cluster-ip-range": "10.96.0.0/16",
        "endpoint-reconciler-type": "none",
        # As kubeadm has it, but for the tunnel: the server reaches nodes at their addresses, and verifies their certificates.
        "egress-selector-config-file": files["egress"],
        "kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
        "kubelet-certificate-authority": files["ca.crt"],
        "kubelet-client-certificate": files["kubelet-client.crt"],
        "kubelet-client-key": files["kubelet-client.key"],
    }


def _manager(folder: Path, port: int, files: Mapping[str, Path], kubeconfig: Path) -> dict[str, object]:
    return {
        "kubeconfig": kubeconfig,
        "controllers": ",".join(CONTROLLERS),
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "cert-dir": folder / "manager",
        "cluster-signing-cert-file": files["ca.crt"],
        "cluster-signing-key-file": files["ca.key"],
        "allocate-node-cidrs": "true",
        "cluster-cidr": "10.244.0.0/16",
        "leader-elect": "false",
        # As kubeadm runs it: each controller is a user of its own, with its own role.
        "use-service-account-credentials": "true",
        "service-account-private-key-file": files["sa.key"],
    }

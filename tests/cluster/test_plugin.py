"""Kubeconfigs of clouds: programs that give a token, proxies on the way, tokens that end, lists in pages."""

from __future__ import annotations

import json
import socket
import socketserver
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster import ClusterServer, LabCluster
from winboot_lab.cluster.identity import ADMIN, MASTERS
from winboot_lab.cluster.kubeconfig import encode

from tests.cluster.conftest import LabTransport
from winboot.base.errors import ClusterError, ClusterRefused, InvalidInput
from winboot.remote.cluster import connect, plugin
from winboot.remote.cluster import lightkube as client
from winboot.remote.cluster.lightkube import LightkubeCluster

V1 = "client.authentication.k8s.io/v1"


class Cloud:
    """A cluster, and a login program that says what is in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = datetime.now(UTC)
        self.lab = LabCluster(now=lambda: self.now)
        self.server = ClusterServer(self.lab)
        self.asked = folder / "asked"
        self._make_account()
        self.program = folder / "cloud-login"
        self.program.write_text(
            f"#!{sys.executable}\n"
            "import os, sys, pathlib\n"
            f"folder = pathlib.Path({str(folder)!r})\n"
            "with (folder / 'asked').open('a') as log: log.write(os.environ['KUBERNETES_EXEC_INFO'] + chr(10))\n"
            "answer = (folder / 'answer').read_text()\n"
            "if answer.startswith('!'): sys.exit(answer[1:])\n"
            "print(answer)\n"
        )
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def _make_account(self) -> None:
        account = {"metadata": {"name": "me"}}
        self.lab.request(ADMIN, "POST", "/api/v1/namespaces/kube-system/serviceaccounts", account)
        binding = {
            "metadata": {"name": "me"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "me", "namespace": "kube-system"}],
        }
        self.lab.request(ADMIN, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)

    def token(self) -> str:
        path = "/api/v1/namespaces/kube-system/serviceaccounts/me/token"
        return str(
            self.lab.request(ADMIN, "POST", path, {"spec": {"expirationSeconds": 600}}).body["status"][
                "token"
            ]
        )

    def says(self, **status: Any) -> None:
        """What the program answers from now on."""
        credential = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
        (self.folder / "answer").write_text(json.dumps(credential))

    @property
    def runs(self) -> int:
        """How often the program was started."""
        return len(self.asked.read_text().splitlines()) if self.asked.exists() else 0

    def kubeconfig(self, user: dict[str, Any] | None = None, **cluster: Any) -> Path:
        """A kubeconfig of this cloud."""
        entry = {"server": self.server.url, "certificate-authority-data": encode(self.lab.authority.pem)}
        user = user or {"exec": {"apiVersion": V1, "command": str(self.program), "interactiveMode": "Never"}}
        data = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {**entry, **cluster}}],
            "users": [{"name": "u", "user": user}],
        }
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps(data))
        return path


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    made = Cloud(tmp_path)
    yield made
    made.server.close()


def test_a_plugins_token_is_used_until_it_is_over(cloud: Cloud) -> None:
    cloud.says(token=cloud.token())
    with connect(cloud.kubeconfig()) as cluster:
        assert (len(cluster.nodes()), len(cluster.nodes()), cloud.runs) == (1, 1, 1)
        # Expired at the server: one 401, one new token.
        cloud.now += timedelta(minutes=11)
        cloud.says(token=cloud.token())
        assert (len(cluster.nodes()), cloud.runs) == (1, 2)
    (first, _) = map(json.loads, cloud.asked.read_text().splitlines())
    assert (first["apiVersion"], first["kind"], first["spec"]["interactive"]) == (V1, "ExecCredential", False)


def test_a_token_that_says_its_end_is_renewed_before_it_is_refused(cloud: Cloud) -> None:
    cloud.says(token=cloud.token(), expirationTimestamp=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    with connect(cloud.kubeconfig()) as cluster:
        cluster.nodes()
        before = cloud.runs
        cluster.nodes()
    assert cloud.runs > before


def test_a_new_token_that_is_refused_as_well_ends_it(cloud: Cloud) -> None:
    cloud.says(token="not.a.token")
    with connect(cloud.kubeconfig()) as cluster, pytest.raises(ClusterRefused, match="401") as caught:
        cluster.nodes()
    assert "expired" in caught.value.hint
    assert cloud.runs == 2


ANSWERS: dict[str, tuple[str, str, str]] = {
    "it fails": (
        "!An error occurred: the SSO session has expired",
        "exit code 1: An error occurred: the SSO",
        "kubectl",
    ),
    "no JSON": ("Please log in at https://login.example.com", "gave no ExecCredential", "kubectl"),
    "a list": ("[]", "gave no ExecCredential", "kubectl"),
    "no status": ('{"kind": "ExecCredential"}', "gave no ExecCredential", "kubectl"),
    "a certificate": ('{"status": {"clientCertificateData": "x"}}', "gave no token", "kubectl"),
    "an end that is no time": (
        '{"status": {"token": "hunter2", "expirationTimestamp": "soon"}}',
        "ExecCredential",
        "kubectl",
    ),
    "an end without a zone": (
        '{"status": {"token": "hunter2", "expirationTimestamp": "2030-01-01T00:00:00"}}',
        "ExecCredential",
        "kubectl",
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_a_plugin_that_gives_nothing_usable_is_named_with_what_to_do(cloud: Cloud, case: str) -> None:
    answer, problem, hint = ANSWERS[case]
    (cloud.folder / "answer").write_text(answer)

    with connect(cloud.kubeconfig()) as cluster, pytest.raises(ClusterRefused) as caught:
        cluster.nodes()

    assert "exec plug-in cloud-login" in caught.value.problem
    assert problem in caught.value.problem
    assert hint in caught.value.hint
    assert (caught.value.exit_code, "hunter2" in str(caught.value)) == (77, False)


def test_a_plugin_that_is_not_installed_is_named_with_its_own_hint(cloud: Cloud) -> None:
    entry = {
        "apiVersion": V1,
        "command": "no-such-login",
        "installHint": "Get it from https://cloud.example.com.",
    }
    with (
        connect(cloud.kubeconfig({"exec": entry})) as cluster,
        pytest.raises(ClusterRefused, match="exec plug-in no-such-login is not installed") as caught,
    ):
        cluster.version()
    assert caught.value.hint == "Get it from https://cloud.example.com."
    with (
        connect(cloud.kubeconfig({"exec": {**entry, "installHint": None}})) as cluster,
        pytest.raises(ClusterRefused) as bare,
    ):
        cluster.version()
    assert bare.value.hint.startswith("Install no-such-login")


def test_a_plugin_that_waits_for_a_user_times_out(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "PATIENCE_S", 0.2)
    entry = {"apiVersion": V1, "command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]}
    with (
        connect(cloud.kubeconfig({"exec": entry})) as cluster,
        pytest.raises(ClusterRefused, match="has not answered within") as caught,
    ):
        cluster.nodes()
    assert "log in" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "v1alpha1"),
        ({"interactiveMode": "Always"}, "interactiveMode"),
        ({"command": None}, "no command"),
        ({"args": "eks get-token"}, "not well-formed"),
        ({"env": [{"name": "AWS_PROFILE"}]}, "not well-formed"),
        ({"env": {"AWS_PROFILE": "me"}}, "not well-formed"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_before_the_first_call(
    cloud: Cloud, changes: dict[str, Any], problem: str
) -> None:
    entry = {"apiVersion": V1, "command": "aws", **changes}
    with pytest.raises(InvalidInput, match=problem) as caught:
        connect(cloud.kubeconfig({"exec": entry}))
    assert caught.value.hint


def test_a_bearer_token_that_is_over_is_named(cloud: Cloud) -> None:
    token = cloud.token()
    cloud.now += timedelta(hours=1)
    with (
        connect(cloud.kubeconfig({"token": token})) as cluster,
        pytest.raises(ClusterRefused, match=r"does not know this user \(401\)") as caught,
    ):
        cluster.nodes()
    assert "expired" in caught.value.hint
    assert token not in str(caught.value)


def test_a_token_file_is_read_again_when_its_token_is_over(cloud: Cloud) -> None:
    file = cloud.folder / "token"
    file.write_text(cloud.token())
    with connect(cloud.kubeconfig({"tokenFile": str(file)})) as cluster:
        cluster.nodes()
        cloud.now += timedelta(hours=1)
        file.write_text(cloud.token())
        assert len(cluster.nodes()) == 1


class Proxy(socketserver.ThreadingTCPServer):
    """A proxy that knows CONNECT, and keeps the requested targets."""

    daemon_threads = True

    def __init__(self) -> None:
        self.targets: list[str] = []
        super().__init__(("127.0.0.1", 0), _Connect)


class _Connect(socketserver.StreamRequestHandler):
    server: Proxy

    def handle(self) -> None:
        _, target, _ = self.rfile.readline().decode().split()
        while self.rfile.readline().strip():
            pass
        self.server.targets.append(target)
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port))) as far:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pump, args=(far, self.connection), daemon=True)
            back.start()
            _pump(self.connection, far)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # either end may hang up first
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_the_proxy_of_a_kubeconfig_is_used_for_every_request(cloud: Cloud) -> None:
    cloud.says(token=cloud.token())
    with Proxy() as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
        path = cloud.kubeconfig(**{"proxy-url": f"http://127.0.0.1:{proxy.server_address[1]}"})
        with connect(path) as cluster:
            cluster.version()
            cluster.nodes()
        proxy.shutdown()

    assert set(proxy.targets) == {f"127.0.0.1:{cloud.server.port}"}
    assert len(proxy.targets) == 1


@pytest.mark.parametrize("url", ["socks5://me:hunter2@proxy:1080", "proxy:3128", 7])
def test_a_proxy_that_winboot_does_not_speak_to_is_refused(cloud: Cloud, url: Any) -> None:
    with pytest.raises(InvalidInput, match="proxy-url") as caught:
        connect(cloud.kubeconfig(**{"proxy-url": url}))
    assert "hunter2" not in str(caught.value)


def test_a_proxy_that_does_not_answer_is_a_cluster_out_of_reach(cloud: Cloud) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    path = cloud.kubeconfig({"token": "t"}, **{"proxy-url": f"http://127.0.0.1:{port}"})
    patience = client.Patience(first=0.0, later=0.0)
    with (
        LightkubeCluster(path, patience=patience) as cluster,
        pytest.raises(ClusterError, match="does not answer"),
    ):
        cluster.version()


def test_every_list_goes_through_all_of_its_pages(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAGE", 3)
    lab = LabCluster()
    for n in range(7):
        lab.request(ADMIN, "POST", "/api/v1/nodes", {"metadata": {"name": f"win-{n}"}})
    transport = LabTransport(lab)
    with LightkubeCluster(kubeconfig, transport=transport) as cluster:
        names = [one.name for one in cluster.nodes()]

    assert names == ["control-plane", *(f"win-{n}" for n in range(7))]
    assert transport.asked.count("GET /api/v1/nodes") == 3
    assert MASTERS in transport.who.groups

"""How requests reach an API server: its name, the identity, the proxy. Where kubectl is installed, it must do the same."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from winboot_lab.cluster import ClusterServer, LabCluster
from winboot_lab.cluster.authority import CLIENT_AUTH, Subject
from winboot_lab.cluster.kubeconfig import encode

from tests.cluster.test_plugin import Proxy, _pump
from winboot.base.errors import ClusterError, ClusterRefused, ClusterUnreachable, InvalidInput
from winboot.remote.cluster import lightkube as client
from winboot.remote.cluster.kubeconfig import Kubeconfig
from winboot.remote.cluster.lightkube import LightkubeCluster
from winboot.remote.cluster.proxies import from_environment

KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
AT_ONCE = client.Patience(first=0.0, later=0.0)
UNREACHED = "https://192.0.2.1:6443"


class Forwarder(socketserver.ThreadingTCPServer):
    """Another address for a server, as a bastion or a private link is."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int) -> None:
        self.target = ("127.0.0.1", port)
        super().__init__(("127.0.0.9", 0), _Forward)


class _Forward(socketserver.BaseRequestHandler):
    server: Forwarder

    def handle(self) -> None:
        with socket.create_connection(self.server.target) as far:
            back = threading.Thread(target=_pump, args=(far, self.request), daemon=True)
            back.start()
            _pump(self.request, far)
            back.join()


@dataclass
class Recorder:
    """An API server over plain HTTP that knows its version, and keeps the headers of each request."""

    headers: list[list[tuple[str, str]]] = field(default_factory=list)
    url: str = ""

    def identity(self) -> list[tuple[str, str]]:
        """The headers of impersonation of the first request. The case of a name is Go's own."""
        pairs = [(name.lower(), value) for name, value in self.headers[0]]
        return sorted(one for one in pairs if one[0].startswith("impersonate-"))


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.headers.append(list(self.headers.items()))
            body = json.dumps({"gitVersion": "v1.34.0", "major": "1", "minor": "34"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield made
        server.shutdown()


def a_kubeconfig(folder: Path, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Path:
    data = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": dict(cluster)}],
        "users": [{"name": "u", "user": dict(user)}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(data))
    return path


def kubectl(
    path: Path, environment: Mapping[str, str] | None = None, ask: str = "/version"
) -> subprocess.CompletedProcess[str]:
    """What kubectl makes of the same file."""
    assert KUBECTL is not None
    clean = {"PATH": os.environ["PATH"], "HOME": str(path.parent), **(environment or {})}
    return subprocess.run(
        [KUBECTL, "--kubeconfig", str(path), "get", "--raw", ask, "--request-timeout", "5s"],
        env=clean,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


@pytest.fixture
def lab() -> Iterator[ClusterServer]:
    with ClusterServer(LabCluster()) as server:
        yield server


def admin(lab: ClusterServer) -> dict[str, Any]:
    pair = lab.cluster.admin()
    return {"client-certificate-data": encode(pair.certificate), "client-key-data": encode(pair.key)}


NAMED = [
    ("127.0.0.9", "127.0.0.1", True),
    ("127.0.0.9", None, False),
    ("127.0.0.1", "kubernetes.default.svc", True),
    ("127.0.0.1", "other.example", False),
]


@needs_kubectl
@pytest.mark.parametrize(("host", "name", "good"), NAMED)
@pytest.mark.parametrize("proxied", [False, True])
def test_the_servers_certificate_must_have_the_tls_server_name(
    lab: ClusterServer, tmp_path: Path, host: str, name: str | None, good: bool, proxied: bool
) -> None:
    with Forwarder(lab.port) as forwarder, Proxy() as proxy:
        for one in (forwarder, proxy):
            threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True).start()
        port = forwarder.server_address[1] if host == "127.0.0.9" else lab.port
        cluster: dict[str, Any] = {"server": f"https://{host}:{port}"}
        cluster["certificate-authority-data"] = encode(lab.cluster.authority.pem)
        if name:
            cluster["tls-server-name"] = name
        if proxied:
            cluster["proxy-url"] = f"http://127.0.0.1:{proxy.server_address[1]}"
        path = a_kubeconfig(tmp_path, cluster, admin(lab))
        assert (kubectl(path).returncode == 0) is good
        with LightkubeCluster(path, patience=AT_ONCE) as api:
            if good:
                assert str(api.version()).startswith("1.")
            else:
                with pytest.raises(ClusterError, match="is for another name") as caught:
                    api.version()
                assert "tls-server-name" in caught.value.hint
        assert bool(proxy.targets) is proxied
        for one in (forwarder, proxy):
            one.shutdown()


def test_an_address_without_a_scheme_and_a_ca_with_remarks_lead_to_the_server(
    lab: ClusterServer, tmp_path: Path
) -> None:
    """As client-go reads them: with a CA the scheme is https, and text around certificates is ignored."""
    pem = f"# Aussteller: Müller AG\n{lab.cluster.authority.pem}"
    cluster = {"server": lab.url.removeprefix("https://"), "certificate-authority-data": f"{encode(pem)}\n"}

    with LightkubeCluster(a_kubeconfig(tmp_path, cluster, admin(lab)), patience=AT_ONCE) as api:
        assert str(api.version()).startswith("1.")


IDENTITIES: Mapping[str, Mapping[str, Any]] = {
    "nobody else": {},
    "a user": {"as": "system:serviceaccount:x:nobody"},
    "groups": {"as": "ops", "as-groups": ["g", "system:masters"], "as-uid": "7"},
    "extra": {"as": "ops", "as-user-extra": {"example.com/Scope": ["a", "b"], "100%": ["c"]}},
}


@needs_kubectl
@pytest.mark.parametrize("case", IDENTITIES)
def test_a_request_goes_as_the_user_that_kubectl_names(recorder: Recorder, tmp_path: Path, case: str) -> None:
    path = a_kubeconfig(tmp_path, {"server": recorder.url}, {"token": "t", **IDENTITIES[case]})
    assert kubectl(path).returncode == 0
    theirs = recorder.identity()
    recorder.headers.clear()

    with LightkubeCluster(path, patience=AT_ONCE) as api:
        api.version()

    assert recorder.identity() == theirs
    assert bool(theirs) is bool(IDENTITIES[case])


RIGHTS = [
    ({}, True),
    ({"as": "reader"}, False),
    ({"as": "reader", "as-groups": ["system:masters"]}, True),
    ({"as": "system:serviceaccount:kube-system:me"}, False),
]


@needs_kubectl
@pytest.mark.parametrize(("acting", "may"), RIGHTS)
def test_the_rights_are_those_of_the_user_that_is_named(
    lab: ClusterServer, tmp_path: Path, acting: Mapping[str, Any], may: bool
) -> None:
    """Resources and exec alike; kubectl is refused where winboot is."""
    cluster = {"server": lab.url, "certificate-authority-data": encode(lab.cluster.authority.pem)}
    path = a_kubeconfig(tmp_path, cluster, {**admin(lab), **acting})
    assert (kubectl(path, ask="/api/v1/nodes").returncode == 0) is may

    with LightkubeCluster(path, patience=AT_ONCE) as api:
        if may:
            assert len(api.nodes()) == 1
            with pytest.raises(ClusterError, match="not found"):
                api.workbench().execute("default", "p", ["x"], timeout=1)
            return
        for call in (api.nodes, lambda: api.workbench().execute("default", "p", ["x"], timeout=1)):
            with pytest.raises(ClusterRefused, match=f'User "{acting["as"]}" cannot'):
                call()


def test_acting_as_another_needs_the_right_to(lab: ClusterServer, tmp_path: Path) -> None:
    cluster = {"server": lab.url, "certificate-authority-data": encode(lab.cluster.authority.pem)}
    pair = lab.cluster.authority.issue(Subject("ops"), (CLIENT_AUTH,))
    shown = {"client-certificate-data": encode(pair.certificate), "client-key-data": encode(pair.key)}
    path = a_kubeconfig(tmp_path, cluster, {**shown, "as": "reader", "as-groups": ["system:masters"]})

    with (
        LightkubeCluster(path, patience=AT_ONCE) as api,
        pytest.raises(ClusterRefused, match='User "ops" cannot impersonate resource "users"'),
    ):
        api.nodes()


@pytest.mark.parametrize(
    "user",
    [{"as-groups": ["g"]}, {"as-uid": "7"}, {"as-user-extra": {"a": ["b"]}}, {"as": "u", "as-groups": "g"}],
)
def test_an_impersonation_that_names_no_user_is_refused(tmp_path: Path, user: Mapping[str, Any]) -> None:
    path = a_kubeconfig(tmp_path, {"server": UNREACHED}, {"token": "hunter2", **user})

    with pytest.raises(InvalidInput, match="as-") as caught:
        LightkubeCluster(path)

    assert "hunter2" not in str(caught.value)


class Asked(httpx2.BaseTransport):
    """Refuses each request, and keeps its headers."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(401, json={"kind": "Status", "code": 401})


def test_every_kind_of_request_has_the_identity_once(tmp_path: Path) -> None:
    """Resources, the version, leases, and WebSockets of exec and port-forward; a token file is tried twice."""
    (tmp_path / "token").write_text("t")
    user = {"tokenFile": str(tmp_path / "token"), "as": "ops", "as-groups": ["g", "h"]}
    cluster = {"server": UNREACHED, "tls-server-name": "kubernetes"}
    asked = Asked()

    with LightkubeCluster(a_kubeconfig(tmp_path, cluster, user), transport=asked, patience=AT_ONCE) as api:
        bench = api.workbench()
        calls = (
            api.version,
            api.nodes,
            lambda: api.leases("x").read("win-1"),
            lambda: bench.execute("d", "p", ["x"], timeout=1),
            lambda: bench.forward("d", "p", 80, b"", timeout=1),
        )
        for call in calls:
            with pytest.raises(ClusterRefused):
                call()

    assert len(asked.requests) == 2 * len(calls)
    for request in asked.requests:
        assert request.headers.get_list("Impersonate-User") == ["ops"]
        assert request.headers.get_list("Impersonate-Group") == ["g", "h"]
        assert request.extensions["sni_hostname"] == "kubernetes"


def a_program(folder: Path, status: Mapping[str, Any]) -> Path:
    """An exec plug-in that records its input."""
    program = folder / "login"
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": dict(status),
    }
    program.write_text(
        f"#!{sys.executable}\nimport os, pathlib\n"
        f"log = pathlib.Path({str(folder / 'asked')!r}).open('a')\n"
        "log.write(os.environ['KUBERNETES_EXEC_INFO'] + chr(10))\n"
        f"print({json.dumps(answer)!r})\n"
    )
    program.chmod(0o755)
    return program


def an_exec(program: Path, **more: Any) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(program), "interactiveMode": "Never", **more}}


@needs_kubectl
@pytest.mark.parametrize("wanted", [True, False])
def test_a_plugin_gets_the_cluster_data_that_kubectl_sends(
    lab: ClusterServer, tmp_path: Path, wanted: bool
) -> None:
    pair = lab.cluster.admin()
    program = a_program(tmp_path, {"clientCertificateData": pair.certificate, "clientKeyData": pair.key})
    cluster = {
        "server": lab.url,
        "certificate-authority-data": encode(lab.cluster.authority.pem),
        "tls-server-name": "kubernetes",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    }
    path = a_kubeconfig(tmp_path, cluster, an_exec(program, provideClusterInfo=wanted))
    assert kubectl(path).returncode == 0
    with LightkubeCluster(path, patience=AT_ONCE) as api:
        assert len(api.nodes()) == 1

    theirs, ours = (json.loads(line) for line in (tmp_path / "asked").read_text().splitlines() if line)
    assert ours["spec"].get("cluster") == theirs["spec"].get("cluster")
    assert ("cluster" in ours["spec"]) is wanted


def test_a_plugins_new_certificate_takes_the_place_of_the_former(lab: ClusterServer, tmp_path: Path) -> None:
    """An open connection keeps the certificate that it was made with."""

    def gives(cluster: LabCluster) -> Path:
        pair = cluster.admin()
        status = {"clientCertificateData": pair.certificate, "clientKeyData": pair.key}
        return a_program(tmp_path, {**status, "expirationTimestamp": "2000-01-01T00:00:00Z"})

    cluster = {"server": lab.url, "certificate-authority-data": encode(lab.cluster.authority.pem)}
    path = a_kubeconfig(tmp_path, cluster, an_exec(gives(LabCluster())))
    with LightkubeCluster(path, patience=AT_ONCE) as api:
        with pytest.raises(ClusterError):
            api.nodes()
        gives(lab.cluster)
        assert len(api.nodes()) == 1


@pytest.mark.parametrize(
    ("provider", "successor"),
    [("gcp", "gke-gcloud-auth-plugin"), ("azure", "kubelogin"), ("oidc", "kubelogin"), ("x", "exec plug-in")],
)
def test_an_auth_provider_is_named_with_its_successor(tmp_path: Path, provider: str, successor: str) -> None:
    path = a_kubeconfig(tmp_path, {"server": UNREACHED}, {"auth-provider": {"name": provider}})

    with pytest.raises(InvalidInput, match=f"auth-provider {provider}") as caught:
        LightkubeCluster(path)

    assert successor in caught.value.hint


# Environment, host and port, and the proxy; Go's own tests have these rules (golang.org/x/net/http/httpproxy).
GO: list[tuple[dict[str, str], str, str]] = [
    ({"HTTPS_PROXY": "http://p:3128"}, "https://api.corp.example:6443", "p:3128"),
    ({"https_proxy": "p:3128"}, "https://api.corp.example:6443", "p:3128"),
    ({"HTTPS_PROXY": "p", "https_proxy": "q"}, "https://api.corp.example", "p:80"),
    ({"HTTP_PROXY": "http://p:3128"}, "https://api.corp.example", ""),
    ({"HTTP_PROXY": "http://p:3128"}, "http://api.corp.example", "p:3128"),
    ({"ALL_PROXY": "http://p:3128", "all_proxy": "http://p:3128"}, "https://api.corp.example", ""),
    *[
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": entry}, server, "" if direct else "p:3128")
        for entry, server, direct in [
            ("corp.example", "https://api.corp.example", True),
            ("corp.example", "https://corp.example", True),
            (".corp.example", "https://corp.example", False),
            ("*.corp.example", "https://api.corp.example", True),
            ("xcorp.example", "https://api.corp.example", False),
            ("orp.example", "https://api.corp.example", False),
            ("API.CORP.EXAMPLE", "https://api.corp.example", True),
            ("api.corp.example:6443", "https://api.corp.example:6443", True),
            ("api.corp.example:443", "https://api.corp.example", True),
            ("api.corp.example:443", "https://api.corp.example:6443", False),
            ("10.0.0.0/8", "https://10.1.2.3:6443", True),
            ("10.0.0.0/8", "https://11.1.2.3:6443", False),
            ("10.1.2.3:6443", "https://10.1.2.3:6443", True),
            ("fd00::/8", "https://[fd00::1]:6443", True),
            ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
            ("fd00::1", "https://[fd00::1]:6443", True),
            (" , x.example ,  api.corp.example ", "https://api.corp.example", True),
            ("*", "https://api.corp.example", True),
            ("not/a/network,:80", "https://api.corp.example", False),
        ]
    ],
    ({"HTTPS_PROXY": "socks5h://p:1"}, "https://localhost:6443", ""),
    ({"HTTPS_PROXY": "http://[::1"}, "https://127.0.0.1:6443", ""),
    ({"HTTPS_PROXY": "http://p"}, "https://[::1]:6443", ""),
    ({"HTTPS_PROXY": "http://p"}, "https://127.9.9.9:6443", ""),
]


@pytest.mark.parametrize(("environment", "server", "proxy"), GO)
def test_the_environments_proxy_is_the_one_that_go_takes(
    environment: dict[str, str], server: str, proxy: str
) -> None:
    url = httpx2.URL(server)

    found = from_environment(url.scheme, url.host, url.port, environment)

    assert ("" if found is None else str(found).partition(" ")[0]) == proxy


def clear(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@needs_kubectl
@pytest.mark.parametrize(
    "environment",
    [
        {"ALL_PROXY": "socks5h://127.0.0.1:1080"},
        {"ALL_PROXY": "socks5h://127.0.0.1:1080", "NO_PROXY": "127.0.0.1"},
        {"HTTPS_PROXY": "http://127.0.0.1:9"},
        {"HTTP_PROXY": "http://[::1"},
        {"HTTPS_PROXY": "socks5://127.0.0.1:1080"},
    ],
)
def test_the_lab_on_loopback_is_reached_whatever_the_environment_says(
    lab: ClusterServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    cluster = {"server": lab.url, "certificate-authority-data": encode(lab.cluster.authority.pem)}
    path = a_kubeconfig(tmp_path, cluster, admin(lab))
    assert kubectl(path, environment).returncode == 0
    clear(monkeypatch, environment)

    with LightkubeCluster(path, patience=AT_ONCE) as api:
        assert len(api.nodes()) == 1


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy"])
@pytest.mark.parametrize("url", ["socks5://me:hunter2@127.0.0.1:1080", "http://[::1", "http://p:99999"])
def test_a_proxy_that_winboot_does_not_speak_to_is_refused_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, url: str
) -> None:
    clear(monkeypatch, {variable: url})

    with pytest.raises(InvalidInput, match=variable) as caught:
        LightkubeCluster(a_kubeconfig(tmp_path, {"server": UNREACHED}, {"token": "t"}))

    assert "hunter2" not in str(caught.value)


def test_a_proxy_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    clear(monkeypatch, {"HTTPS_PROXY": f"http://me:hunter2@127.0.0.1:{port}"})
    path = a_kubeconfig(tmp_path, {"server": UNREACHED}, {"token": "t"})

    with LightkubeCluster(path, patience=AT_ONCE) as api:
        for call in (api.version, lambda: api.leases("x").read("win-1")):
            with pytest.raises(ClusterUnreachable) as caught:
                call()
            assert f"through the proxy 127.0.0.1:{port} (the variable HTTPS_PROXY)" in caught.value.problem
            assert "hunter2" not in str(caught.value)
            assert "NO_PROXY" in caught.value.hint


def test_the_proxy_of_the_environment_is_used(
    lab: ClusterServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy resolves the name, which no resolver of this computer knows."""
    with Proxy() as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
        clear(monkeypatch, {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.server_address[1]}"})
        monkeypatch.setattr(socket, "create_connection", _to(lab.port, socket.create_connection))
        cluster = {
            "server": f"https://api.invalid:{lab.port}",
            "tls-server-name": "kubernetes",
            "certificate-authority-data": encode(lab.cluster.authority.pem),
        }
        with LightkubeCluster(a_kubeconfig(tmp_path, cluster, admin(lab)), patience=AT_ONCE) as api:
            assert len(api.nodes()) == 1
        proxy.shutdown()

    assert proxy.targets == [f"api.invalid:{lab.port}"]


def _to(port: int, connect: Any) -> Any:
    def connected(address: tuple[str, int], *rest: Any, **more: Any) -> socket.socket:
        made: socket.socket = connect(("127.0.0.1", address[1]), *rest, **more)
        return made

    assert port
    return connected


def test_a_utf_16_kubeconfig_is_read(tmp_path: Path) -> None:
    path = a_kubeconfig(tmp_path, {"server": UNREACHED}, {"token": "t"})
    path.write_bytes(path.read_text().encode("utf-16"))

    assert Kubeconfig.from_file(path).server(None) == UNREACHED


def test_the_checks_of_tls_are_the_same_on_each_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[ssl.SSLContext] = []
    make = httpx2.HTTPTransport

    def kept(**arguments: Any) -> httpx2.HTTPTransport:
        contexts.append(arguments["verify"])
        return make(**arguments)

    monkeypatch.setattr(httpx2, "HTTPTransport", kept)
    with LightkubeCluster(a_kubeconfig(tmp_path, {"server": UNREACHED}, {"token": "t"})):
        pass

    (context,) = contexts
    assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT

"""The kubelets of lab machines for a genuine API server, which is configured to dial all nodes through a tunnel.

`EgressSelectorConfiguration` (https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/): each connection to a
node is a CONNECT to a socket of this test; whether it comes about, the lab's network says. Behind it is TLS with the
kubelet's own serving certificate, and the kubelet demands the server's client certificate.
"""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socket import socket
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml
from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.authority import Authority
from winboot_lab.cluster.streams import EXEC, FORWARD, NodeApi, Stream, accept_key, chosen, serve
from winboot_lab.programs.base import GoError

from tests.genuine import spdy

# A client with full rights on a kubelet: kubeadm's certificate of the API server has this name and group.
# https://github.com/kubernetes/kubernetes/blob/v1.36.0/cmd/kubeadm/app/constants/constants.go
CLIENT: Final = "kube-apiserver-kubelet-client"
ADMINS: Final = "kubeadm:cluster-admins"

# By an address: a node's kubelet, its serving certificate with the key, and the pods that the cluster has.
# Raises ApiFailure where no connection comes about.
Dial = Callable[[str], tuple[NodeApi, str, Callable[[], list[dict[str, Any]]]]]


class Kubelets:
    """The far end of the tunnel. `dial` is the network behind it."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.folder = folder
        self.authority = authority
        self.dial: Dial = _nobody
        # The requests to kubelets: the path, and the upgrade.
        self.asked: list[tuple[str, str]] = []
        self._server = _Tunnel(str(folder / "nodes.sock"), self)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def write_config(self) -> Path:
        """The configuration that sends the API server here."""
        connection = {
            "proxyProtocol": "HTTPConnect",
            "transport": {"uds": {"udsName": self._server.server_address}},
        }
        path = self.folder / "egress.yaml"
        config = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def close(self) -> None:
        """No connection comes about any more."""
        self._server.shutdown()
        self._server.server_close()


def _nobody(address: str) -> Any:
    raise ApiFailure(500, f"dial tcp {address}: no route to host")


class _Tunnel(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: str, kubelets: Kubelets) -> None:
        self.kubelets = kubelets
        super().__init__(path, _Connect)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side reports a client that hangs up or fails the handshake."""


class _Connect(socketserver.BaseRequestHandler):
    """CONNECT, then the kubelet."""

    server: _Tunnel

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            got = self.request.recv(1)
            if not got:
                return
            head += got
        method, target = head.decode("latin-1").split(" ", 2)[:2]
        assert method == "CONNECT", method
        kubelets = self.server.kubelets
        try:
            api, pem, pods = kubelets.dial(target.rpartition(":")[0])
        except ApiFailure as failure:
            text = failure.message.encode()
            self.request.sendall(b"HTTP/1.1 502 %s\r\nContent-Length: 0\r\n\r\n" % text)
            return
        self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with suppress(OSError):
            _speak(self.request, kubelets, api, pem, pods)


def _speak(
    sock: socket, kubelets: Kubelets, api: NodeApi, pem: str, pods: Callable[[], list[dict[str, Any]]]
) -> None:
    file = kubelets.folder / f"serving-{threading.get_ident()}.pem"
    file.write_text(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.load_verify_locations(cadata=kubelets.authority.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    with context.wrap_socket(sock, server_side=True) as secured:
        _Kubelet(secured, kubelets, api, pods)


class _Kubelet(BaseHTTPRequestHandler):
    """The part of a kubelet's API that exec, logs and port-forward need (pkg/kubelet/server/server.go)."""

    protocol_version = "HTTP/1.1"

    def __init__(
        self, sock: ssl.SSLSocket, kubelets: Kubelets, api: NodeApi, pods: Callable[[], list[dict[str, Any]]]
    ) -> None:
        self._kubelets = kubelets
        self._api = api
        self._pods = pods
        super().__init__(sock, ("", 0), None)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        upgrade = self.headers.get("Upgrade") or ""
        parts = urlsplit(self.path)
        self._kubelets.asked.append((parts.path, upgrade))
        subject = dict(pair[0] for pair in self.connection.getpeercert()["subject"])
        if (subject.get("commonName"), subject.get("organizationName")) != (CLIENT, ADMINS):
            self._say(403, f"Forbidden (user={subject.get('commonName')}, verb=get, resource=nodes)")
            return
        what, namespace, name, *_ = [*parts.path.strip("/").split("/"), "", ""]
        pod = next(
            (
                one
                for one in self._pods()
                if (one["metadata"]["namespace"], one["metadata"]["name"]) == (namespace, name)
            ),
            None,
        )
        if pod is None:
            self._say(404, "pod does not exist")
            return
        query = parse_qs(parts.query, keep_blank_values=True)
        try:
            self._serve(what, pod, query, upgrade)
        except ApiFailure as failure:
            self._say(failure.code, failure.message)
        except GoError as error:
            self._say(500, str(error))

    def _serve(self, what: str, pod: dict[str, Any], query: dict[str, list[str]], upgrade: str) -> None:
        api = self._api
        match what, upgrade.lower():
            case "containerLogs", "":
                lines = api.log(pod).splitlines(keepends=True)
                self._say(200, "".join(lines[-int(query.get("tailLines", ["1000"])[0]) :]))
            case "exec", "websocket":
                self._websocket(Stream(EXEC, run=lambda: api.execute(pod, query["command"])))
            case "exec", "spdy/3.1":
                asked = {"stdout": "output", "stderr": "error"}
                kinds = {kind for kind, word in asked.items() if query.get(word) == ["1"]}
                self._spdy(pod, query["command"], frozenset({"error", *kinds}))
            case "portForward", "websocket":
                port = int(query["port"][0])
                self._websocket(
                    Stream(FORWARD, port=port, forward=lambda request: api.forward(pod, port, request))
                )
            case _:
                self._say(400, f"not served here: {what} {upgrade}")

    def _websocket(self, stream: Stream) -> None:
        protocol = chosen(self.headers.get("Sec-WebSocket-Protocol") or "", stream.protocols)
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept_key(self.headers["Sec-WebSocket-Key"]))
        if protocol is not None:
            self.send_header("Sec-WebSocket-Protocol", protocol)
        self.end_headers()
        self.close_connection = True
        serve(self.connection, stream)

    def _spdy(self, pod: dict[str, Any], command: list[str], kinds: frozenset[str]) -> None:
        offered = ", ".join(self.headers.get_all("X-Stream-Protocol-Version") or [])
        protocol = chosen(offered, spdy.PROTOCOLS)
        self.send_response(101)
        self.send_header("Upgrade", "SPDY/3.1")
        self.send_header("Connection", "Upgrade")
        self.send_header("X-Stream-Protocol-Version", str(protocol))
        self.end_headers()
        self.close_connection = True
        spdy.run(self.connection, lambda: self._api.execute(pod, command), kinds)

    def _say(self, code: int, text: str) -> None:
        raw = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(raw)))
        # Otherwise the API server keeps the connection for the next logs, and no longer checks whether the port is open.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)

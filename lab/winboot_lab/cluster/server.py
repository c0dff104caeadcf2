"""The cluster over TLS on loopback, for winboot's own client and for kubectl."""

from __future__ import annotations

import json
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from winboot_lab.cluster import tables
from winboot_lab.cluster.authentication import Credentials
from winboot_lab.cluster.authority import SERVER_AUTH, Subject
from winboot_lab.cluster.cluster import Answer, LabCluster, decode_body
from winboot_lab.cluster.failure import ApiFailure
from winboot_lab.cluster.impersonation import PREFIX
from winboot_lab.cluster.kubeconfig import write_kubeconfig
from winboot_lab.cluster.routes import parse_path
from winboot_lab.cluster.streams import accept_key, chosen, serve

HANDSHAKE_S: Final = 10.0
DNS_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class ClusterServer:
    """Serves one LabCluster until closed. Use it as a context manager."""

    def __init__(self, cluster: LabCluster, *, address: str = "127.0.0.1", port: int = 0) -> None:
        self.cluster = cluster
        self._folder = tempfile.TemporaryDirectory(prefix="winboot-lab-")
        context = self._tls(address)
        self._http = _Server((address, port), cluster, context)
        self.address: Final = address
        self.port: Final[int] = self._http.server_address[1]
        self.url: Final = f"https://{address}:{self.port}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), name="lab-cluster", daemon=True
        )
        self._thread.start()

    def write_admin_kubeconfig(self, path: Path) -> None:
        """A kubeconfig with which lightkube or kubectl administers this cluster."""
        write_kubeconfig(path, self.url, self.cluster.authority.pem, self.cluster.admin())

    def close(self) -> None:
        """Stop serving; open watches end."""
        self._http.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self._folder.cleanup()

    def __enter__(self) -> ClusterServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _tls(self, address: str) -> ssl.SSLContext:
        """Server certificate from the cluster's CA; the server requests client certificates, but does not demand them."""
        subject = Subject("kube-apiserver", dns_names=DNS_NAMES, addresses=(address,))
        pair = self.cluster.authority.issue(subject, (SERVER_AUTH,))
        folder = Path(self._folder.name)
        (folder / "tls.crt").write_text(pair.certificate, encoding="ascii")
        (folder / "tls.key").touch(mode=0o600)
        (folder / "tls.key").write_text(pair.key, encoding="ascii")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        context.load_verify_locations(cadata=self.cluster.authority.pem)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, where: tuple[str, int], cluster: LabCluster, context: ssl.SSLContext) -> None:
        self.cluster = cluster
        self.context = context
        self.stopping = threading.Event()
        super().__init__(where, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or fails the handshake, is no event worth a traceback on the terminal."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        # The handshake belongs to the connection's own thread; in the accepting thread one slow client
        # would stop all.
        self.request.settimeout(HANDSHAKE_S)
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        self.request.settimeout(None)
        super().setup()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a lab's terminal belongs to winboot."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The Date header shows the cluster's time, not this computer's: clients compare clocks by it."""
        return super().date_time_string(
            self.server.cluster.now().timestamp() if timestamp is None else timestamp
        )

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        cluster = self.server.cluster
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if cluster.faults.unreachable:
            self.close_connection = True
            return
        content_type = self.headers.get("Content-Type") or "application/json"
        try:
            if (self.headers.get("Upgrade") or "").lower() == "websocket":
                self._upgrade(parts.path, parse_qsl(parts.query, keep_blank_values=True))
                return
            if query.get("watch") in ("true", "1"):
                self._watch(parts.path, query)
                return
            body = decode_body(raw, content_type)
            answer = cluster.request(
                self._shown(), method, parts.path, body, query=query, content_type=content_type
            )
            self._send(answer.code, self._formed(answer, method, parts.path, query))
        except ApiFailure as e:
            self._send(e.code, e.status())

    def _formed(self, answer: Answer, method: str, path: str, query: Mapping[str, str]) -> Any:
        """The body as the client takes it: `kubectl get` asks for tables."""
        target = parse_path(path) if method == "GET" and answer.code == 200 else None
        if target is None or target.subresource or not tables.asked_for(self.headers.get("Accept") or ""):
            return answer.body
        include = query.get("includeObject") or "Metadata"
        return tables.table(target.kind, answer.body, self.server.cluster.now(), include=include)

    def _shown(self) -> Credentials:
        kind, _, token = (self.headers.get("Authorization") or "").partition(" ")
        der = self.request.getpeercert(binary_form=True)
        pairs = ((name.lower(), value) for name, value in self.headers.items())
        acting = tuple(one for one in pairs if one[0].startswith(PREFIX))
        if der is not None:
            return Credentials(certificate=ssl.DER_cert_to_PEM_cert(der), impersonation=acting)
        return Credentials(token=token.strip() if kind.lower() == "bearer" else None, impersonation=acting)

    def _send(self, code: int, body: Any) -> None:
        plain = isinstance(body, str)
        raw = body.encode("utf-8") if plain else json.dumps(body).encode("utf-8")
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if plain else "application/json")
        self.send_header("Content-Length", str(len(raw)))
        if self.server.cluster.leaps:
            # As a cache marks what it kept (RFC 9111, section 5.1), so that no client sets its own clock by this Date.
            self.send_header("Age", "0")
        if code == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(raw)

    def _upgrade(self, path: str, query: list[tuple[str, str]]) -> None:
        """A WebSocket, from here to its end."""
        stream = self.server.cluster.stream(self._shown(), path, query)
        protocol = chosen(self.headers.get("Sec-WebSocket-Protocol") or "", stream.protocols)
        if protocol is None:
            raise ApiFailure(400, "unable to upgrade: none of the offered subprotocols is known")
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept_key(self.headers.get("Sec-WebSocket-Key") or ""))
        self.send_header("Sec-WebSocket-Protocol", protocol)
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            serve(self.connection, stream)

    def _watch(self, path: str, query: dict[str, str]) -> None:
        cluster, stopping = self.server.cluster, self.server.stopping
        end = float(query.get("timeoutSeconds") or 3600)
        started = cluster.store.stopwatch()

        def over() -> bool:
            return stopping.is_set() or cluster.faults.unreachable or started() > end

        events = self._told(cluster.watch(self._shown(), path, query, over), path, query)
        first = next(events, None)  # a refusal must come before the headers
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(OSError):
            try:
                self._chunk(first)
                for event in events:
                    self._chunk(event)
            except ApiFailure as e:
                self._chunk({"type": "ERROR", "object": e.status()})
            self.wfile.write(b"0\r\n\r\n")

    def _told(
        self, events: Iterator[Any], path: str, query: Mapping[str, str]
    ) -> Iterator[dict[str, Any] | None]:
        """The events; where the client takes tables, each object is one of a row, the first with the columns."""
        target = parse_path(path)
        wanted = target is not None and tables.asked_for(self.headers.get("Accept") or "")
        head = True
        for event in events:
            if event is None or target is None or not wanted or event["type"] == "BOOKMARK":
                yield event
                continue
            include = query.get("includeObject") or "Metadata"
            now = self.server.cluster.now()
            made = tables.table(target.kind, event["object"], now, include=include, head=head)
            head = False
            yield {**event, "object": made}

    def _chunk(self, event: Any) -> None:
        if event is None:
            return
        raw = json.dumps(event).encode("utf-8") + b"\n"
        self.wfile.write(f"{len(raw):x}\r\n".encode("ascii") + raw + b"\r\n")
        self.wfile.flush()

"""What a worker counts, and the server that shows it: /metrics for Prometheus, /healthz and /readyz for the kubelet."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A join takes minutes: 30 s to an hour.
_BUCKETS = (30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)


class Metrics:
    """The counters of one worker, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._messages = Counter(
            "winboot_hook_messages",
            "Messages by what became of them",
            ["kind", "outcome"],
            registry=self.registry,
        )
        self._left = Counter(
            "winboot_hook_left",
            "What was wanted and not done, each time it was tried, by what it was",
            ["what"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "winboot_hook_seconds",
            "From message to answer",
            ["kind"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.held = Gauge("winboot_hook_held", "Machines being worked on", registry=self.registry)

    def done(self, kind: str, outcome: str, seconds: float | None = None) -> None:
        """Count one message; `seconds` where it was worked on to its end."""
        self._messages.labels(kind, outcome).inc()
        if seconds is not None:
            self._seconds.labels(kind).observe(seconds)

    def left(self, what: str) -> None:
        """Count something that was wanted and not done, though no message asks for it."""
        self._left.labels(what).inc()

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)


class MetricsServer:
    """Serves its paths while the context lasts. `healthy` is asked for each /healthz, `ready` for each /readyz."""

    def __init__(
        self,
        metrics: Metrics,
        healthy: Callable[[], bool],
        ready: Callable[[], bool] | None = None,
        *,
        address: str,
        port: int,
    ) -> None:
        asked = {
            "/healthz": (healthy, b"the loop stands still\n"),
            "/readyz": (ready or healthy, b"nothing is received\n"),
        }

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._answer(200, metrics.text(), _TYPE)
                elif self.path in asked:
                    ask, why_not = asked[self.path]
                    good = ask()
                    self._answer(200 if good else 503, b"ok\n" if good else why_not, "text/plain")
                else:
                    self._answer(404, b"/metrics, /healthz or /readyz\n", "text/plain")

            def _answer(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing: a probe every ten seconds is no news."""

        self._server = ThreadingHTTPServer((address, port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Log:
    """One JSON object a line: `time`, `message`, and what it is about. No secret reaches it: it is given words alone."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._lock = threading.Lock()

    def __call__(self, message: str, **about: Any) -> None:
        """Write one line; one that nobody takes (journald restarts) ends no work."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": now, "message": message, **about}, default=str)
        with self._lock, suppress(OSError):
            print(line, file=self._stream, flush=True)

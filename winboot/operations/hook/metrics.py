"""What a worker counts, and the server that shows it: /metrics for Prometheus, /healthz and /readyz for the kubelet."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from winboot.operations.server import Body, Reply, Request, Server

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A join takes minutes: 30 s to an hour.
_BUCKETS = (30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)


class Metrics:
    """The counters of one worker, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._transitions = Counter(
            "winboot_hook_transitions",
            "Transitions of work items, by the states before and after",
            ["kind", "before", "after"],
            registry=self.registry,
        )
        self._messages = Counter(
            "winboot_hook_messages",
            "Messages and work items that have ended, by their outcome",
            ["kind", "outcome"],
            registry=self.registry,
        )
        self._left = Counter(
            "winboot_hook_left",
            "Failed attempts of actions, by action",
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

    def transition(self, kind: str, before: str, after: str) -> None:
        """Count one transition of a work item."""
        self._transitions.labels(kind, before, after).inc()

    def ended(self, kind: str, outcome: str, seconds: float | None = None) -> None:
        """Count one that has ended; `seconds` where it was worked on to its end."""
        self._messages.labels(kind, outcome).inc()
        if seconds is not None:
            self._seconds.labels(kind).observe(seconds)

    def left(self, what: str) -> None:
        """Count something that was wanted and not done, though no message asks for it."""
        self._left.labels(what).inc()

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)


class MetricsServer(Server):
    """Serves its paths while the context lasts. `healthy` is called for each /healthz, `ready` for each /readyz."""

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
            "/healthz": (healthy, b"the hook's loop does not run\n"),
            "/readyz": (ready or healthy, b"the hook receives no messages\n"),
        }

        def answer(path: str) -> Reply:
            if path == "/metrics":
                return _text(200, metrics.text(), _TYPE)
            if path not in asked:
                return _text(404, b"/metrics, /healthz or /readyz\n")
            ask, why_not = asked[path]
            return _text(200, b"ok\n") if ask() else _text(503, why_not)

        def call(request: Request) -> Reply | Body:
            return Body(0, lambda body: answer(request.path)) if request.method == "GET" else Reply(405)

        super().__init__(call, address=address, port=port)


def _text(status: int, body: bytes, kind: str = "text/plain") -> Reply:
    return Reply(status, body, {"Content-Type": kind})


class Log:
    """One JSON object a line: `time`, `message`, and what it is about. No secret reaches it: it is given words alone."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._lock = threading.Lock()

    def __call__(self, message: str, **about: Any) -> None:
        """Write one line; one that no reader takes (journald restarts) ends no work."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": now, "message": message, **about}, default=str)
        with self._lock, suppress(OSError):
            print(line, file=self._stream, flush=True)

"""How long an honest machine waits at first boot while 200 hostile or slow clients hold on, and what they cost."""

from __future__ import annotations

import resource
import socket
import ssl
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import Figure
from winboot.operations.firstboot.endpoint import endpoint_context, endpoint_key
from winboot.operations.server import Body, Reply, Request, Server

CLIENTS: Final = 200
ROUNDS: Final = 5
_OPEN: Final = Path("/proc/self/fd")


def measure() -> Sequence[Figure]:
    """Seconds until an honest machine has its answer, MiB of memory, and descriptors of the endpoint for each client."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        context = endpoint_context(endpoint_key(Path(folder) / "first-boot.key"))
        served = stack.enter_context(Server(_answer, address="127.0.0.1", port=0, context=context))
        quiet = [_honest(served.port) for _ in range(ROUNDS)]
        memory = _resident()
        for number in range(CLIENTS):
            stack.enter_context(_hostile(served.port, number))
        waits = [_honest(served.port) for _ in range(ROUNDS)]
        grown = (_resident() - memory) / (1 << 20)
        # Each client has a descriptor of its own in this process.
        descriptors = len(list(_OPEN.iterdir())) - CLIENTS if _OPEN.exists() else 0
    beside = f"{CLIENTS} clients: a third silent, a third in the head, a third in a body without a session"
    return [
        Figure("endpoint: answer to an honest machine, s", waits, 1.0, f"{beside}; alone {min(quiet):.3f} s"),
        Figure("endpoint: memory of all clients, MiB", [grown], 64.0, beside),
        Figure(
            "endpoint: file descriptors", [float(descriptors)], 300.0, f"{beside}; at most 256 connections"
        ),
    ]


def _answer(request: Request) -> Reply | Body:
    return Body(0, lambda body: Reply(200)) if request.path == "/v1/nonce" else Reply(401)


def _secure(port: int, source: str) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), 30, (source, 0)))


def _hostile(port: int, number: int) -> socket.socket:
    source = f"127.0.1.{number // 10}"
    if number % 3 == 0:
        return socket.create_connection(("127.0.0.1", port), 30, (source, 0))
    wire = _secure(port, source)
    length = b"" if number % 3 == 1 else b"Content-Length: 1000000\r\n\r\n" + bytes(10_000)
    wire.sendall(b"POST /v1/said HTTP/1.1\r\nHost: x\r\n" + length)
    return wire


def _honest(port: int) -> float:
    began = time.monotonic()
    with _secure(port, "127.0.0.1") as wire:
        wire.sendall(b"POST /v1/nonce HTTP/1.1\r\nHost: x\r\n\r\n")
        if not wire.recv(100).startswith(b"HTTP/1.1 200"):
            raise ConnectionError("an honest machine was not served")
    return time.monotonic() - began


def _resident() -> float:
    """Bytes that this process holds; the most that it held where the system has no such count."""
    status = Path("/proc/self/statm")
    if status.exists():
        return float(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0

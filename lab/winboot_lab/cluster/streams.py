"""exec, logs and port-forward as the API server speaks them: WebSockets with channels.

https://github.com/kubernetes/kubernetes/blob/v1.36.0/staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go
(v4, v5: 0 stdin, 1 stdout, 2 stderr, 3 the outcome as a Status, 255 closes one) and
staging/src/k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go (two channels a port, each begins with the port's number).
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import LocalProtocolError

from winboot_lab.cluster.failure import ApiFailure

Object = dict[str, Any]
EXEC: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
FORWARD: Final = ("v4.channel.k8s.io",)
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 4.2.2


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command has ended, with its output."""

    code: int
    output: bytes = b""
    errors: bytes = b""


class NodeApi(Protocol):
    """A kubelet, as far as the API server asks it."""

    def execute(self, pod: Object, command: Sequence[str]) -> Ran:
        """Run a command in the pod's container."""

    def log(self, pod: Object) -> str:
        """What the container has written."""

    def node_log(self, query: Mapping[str, str]) -> str:
        """What `/logs/` answers to a query."""

    def forward(self, pod: Object, port: int, request: bytes) -> bytes:
        """One request to a port of the pod, and its answer."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What a WebSocket was opened for: a command that runs once, or a port that answers requests."""

    protocols: Sequence[str]
    run: Callable[[], Ran] | None = None
    port: int = 0
    forward: Callable[[bytes], bytes] = lambda request: b""


def accept_key(key: str) -> str:
    """The proof that a server has understood the handshake."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()


def chosen(offered: str, known: Sequence[str]) -> str | None:
    """The subprotocol that both know; None where they share no subprotocol."""
    names = [one.strip() for one in offered.split(",")]
    return next((one for one in names if one in known), None)


def status_of(ran: Ran) -> Object:
    """The outcome of a command on the error channel."""
    if ran.code == 0:
        return {"metadata": {}, "status": "Success"}
    message = f"command terminated with non-zero exit code: exit status {ran.code}"
    causes = [{"reason": "ExitCode", "message": str(ran.code)}]
    details = {"causes": causes}
    return {
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "NonZeroExitCode",
        "details": details,
    }


def serve(sock: socket.socket, stream: Stream) -> None:
    """Speak on an open WebSocket until its work is done or the client hangs up."""
    connection = Connection(ConnectionType.SERVER)

    def say(channel: int, data: bytes) -> None:
        sock.sendall(connection.send(BytesMessage(bytes([channel]) + data)))

    if stream.run is not None:
        try:
            ran = stream.run()
            outcome = status_of(ran)
        except ApiFailure as failure:
            ran, outcome = Ran(1), failure.status()
        for channel, data in ((1, ran.output), (2, ran.errors), (3, json.dumps(outcome).encode())):
            if data:
                say(channel, data)
    else:
        number = stream.port.to_bytes(2, "little")
        say(0, number)
        say(1, number)
        _forward(sock, connection, stream, say)
        return
    _close(sock, connection)


def _forward(
    sock: socket.socket, connection: Connection, stream: Stream, say: Callable[[int, bytes], None]
) -> None:
    request = b""
    for data in _received(sock, connection):
        if data[:1] != b"\0":
            continue
        request += data[1:]
        if b"\r\n\r\n" in request:
            try:
                say(0, stream.forward(request))
            except Exception as e:  # noqa: BLE001 - whatever goes wrong is told on the error channel
                say(1, str(e).encode())
            _close(sock, connection)
            return


def _close(sock: socket.socket, connection: Connection) -> None:
    with suppress(OSError):  # a client that has gone needs no more
        sock.sendall(connection.send(CloseConnection(code=1000)))
    for _ in _received(sock, connection):
        continue  # until the client has closed, too


def _received(sock: socket.socket, connection: Connection) -> Iterator[bytes]:
    while True:
        try:
            connection.receive_data(sock.recv(65536) or None)
        except OSError:
            return
        for event in connection.events():
            match event:
                case BytesMessage():
                    yield bytes(event.data)
                case TextMessage():
                    yield event.data.encode()
                case Ping():
                    sock.sendall(connection.send(event.response()))
                case CloseConnection():
                    try:
                        sock.sendall(connection.send(event.response()))
                    except (LocalProtocolError, OSError):
                        return
                    return

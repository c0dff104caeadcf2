"""An HTTP server for callers that have proved nothing yet: the first boot endpoint and the metrics use it.

A connection carries one request. A thread serves it, and each of its costs has a bound: one deadline covers the PROXY
line, the handshake and the request. A head has at most 32 KiB. The application sees the head before the server reads
a body, and names the largest body that it takes. The library h11 parses: it refuses two lengths, a negative one, and
one of more than 20 digits.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self

import h11

# Seconds from the first byte to the last of a request; of a call with a session, which carries output; and of an answer.
REQUEST_S: Final = 15.0
SESSION_S: Final = 60.0
ANSWER_S: Final = 60.0
# Open connections of one address or one session, and of all addresses together.
MOST_OF_ONE: Final = 16
MOST: Final = 256
# h11 measures what it holds after a read: a head may have a piece more.
LARGEST_HEAD: Final = 1 << 14
# The server reads and drops a body that the application refuses, up to so many bytes. If it closed the connection at
# once, the caller's system would discard the answer (RFC 9112, section 9.6).
_MOST_DROPPED: Final = 2 << 20
_PIECE: Final = 1 << 14
_LONGEST_PROXY_LINE: Final = 107
_POLL_S: Final = 0.1
_LOG_S: Final = 60.0

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request. Names of headers are in lower case; `peer` is the caller's address."""

    method: str
    path: str
    headers: Mapping[str, str]
    peer: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status, body and headers."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Body:
    """The application wants the body of a request, at most `largest` bytes, and answers it. A `session` that the application
    knows takes the connection's place from its address: many machines may share one."""

    largest: int
    answer: Callable[[bytes], Reply]
    session: str = ""


App = Callable[[Request], Reply | Body]


class Server:
    """Serves an application while the context lasts. Raises OSError where the address is taken.

    `proxies` are networks of load balancers. Each of their connections begins with a line that names the caller (PROXY
    protocol, version 1: haproxy.org, proxy-protocol.txt). `crowded` receives an address that has too many connections.
    """

    def __init__(
        self,
        app: App,
        *,
        address: str,
        port: int,
        context: ssl.SSLContext | None = None,
        proxies: Sequence[Network] = (),
        crowded: Callable[[str], None] = lambda peer: None,
    ) -> None:
        self._app, self._context, self._proxies, self._crowded = app, context, proxies, crowded
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, port), family=family, backlog=128)
        # On Windows and Linux alike, a close does not end an accept that waits.
        self._listener.settimeout(_POLL_S)
        self._places = _Places()
        self._ended = threading.Event()
        self._told = -_LOG_S
        self._thread = threading.Thread(target=self._accept, name=f"server {self.port}", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._ended.set()
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                plain, source = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                # This process has no descriptor left, or the caller has gone.
                self._ended.wait(_POLL_S)
                continue
            with suppress(OSError):
                self._begin(_Connection(plain, str(source[0]), self._context))

    def _begin(self, connection: _Connection) -> None:
        balanced = any(ipaddress.ip_address(connection.peer) in one for one in self._proxies)
        # A balancer brings everybody's connections.
        if self._place(connection, "" if balanced else connection.peer):
            arguments, name = (connection, balanced), f"{self._thread.name} call"
            threading.Thread(target=self._serve, args=arguments, name=name, daemon=True).start()
        else:
            connection.close()

    def _place(self, connection: _Connection, owner: str) -> bool:
        if self._places.take(connection, owner):
            return True
        now = time.monotonic()
        if now - self._told >= _LOG_S:
            self._told = now
            self._crowded(connection.peer)
        return False

    def _serve(self, connection: _Connection, balanced: bool) -> None:
        try:
            # It went away, was too slow, or speaks no TLS.
            with suppress(OSError, ValueError):
                if balanced:
                    connection.read_proxy_line()
                if not balanced or self._place(connection, connection.peer):
                    connection.shake_hands()
                    connection.send(self._answer(connection))
        finally:
            self._places.leave(connection)
            connection.close()

    def _answer(self, connection: _Connection) -> Reply:
        try:
            given = self._app(connection.request())
            if isinstance(given, Reply):
                connection.body(0)
                return given
            if given.session:
                if not self._places.know(connection, given.session):
                    return Reply(503)
                connection.within(SESSION_S)
            body = connection.body(given.largest)
        except h11.RemoteProtocolError as error:
            return Reply(error.error_status_hint)
        connection.received = True
        return Reply(413) if body is None else given.answer(body)


class _Places:
    """How many connections each address has open. A newcomer takes the place of the address whose request is the
    oldest unfinished one, where all places are taken: callers that only wait cannot keep others out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of = Counter[str]()
        # In the order in which they came.
        self._strangers: dict[_Connection, None] = {}

    def take(self, connection: _Connection, owner: str) -> bool:
        """Count a connection as its owner's; false where that has too many, or all places are taken. "" has no bound."""
        with self._lock:
            if not self._owned(connection, owner):
                return False
            if connection not in self._strangers and len(self._strangers) >= MOST:
                oldest = next((one for one in self._strangers if not one.received), None)
                if oldest is None:
                    return False
                del self._strangers[oldest]
                oldest.cut()
            self._strangers[connection] = None
            return True

    def know(self, connection: _Connection, session: str) -> bool:
        """The connection is a session's from now on; false where that has too many."""
        with self._lock:
            self._strangers.pop(connection, None)
            return self._owned(connection, f"session {session}")

    def leave(self, connection: _Connection) -> None:
        """The connection has ended."""
        with self._lock:
            self._strangers.pop(connection, None)
            self._owned(connection, "")

    def _owned(self, connection: _Connection, owner: str) -> bool:
        if owner and self._of[owner] >= MOST_OF_ONE:
            return False
        if connection.owner:
            self._of[connection.owner] -= 1
            if not self._of[connection.owner]:
                del self._of[connection.owner]
        connection.owner = owner
        if owner:
            self._of[owner] += 1
        return True


class _Connection:
    """One caller's connection: its socket, its deadline and its parser. Reading raises OSError and ValueError."""

    def __init__(self, plain: socket.socket, peer: str, context: ssl.SSLContext | None) -> None:
        self.peer, self.owner, self.received = peer, "", False
        self._socket = plain
        if context is not None:
            self._socket = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD)
        self._head = False
        self.within(REQUEST_S)

    def within(self, seconds: float) -> None:
        """All that comes next has so many seconds, together."""
        self._deadline = time.monotonic() + seconds

    def read_proxy_line(self) -> None:
        """Take the caller's address from the balancer's line, which comes before the handshake."""
        line = b""
        while not line.endswith(b"\r\n"):
            # Of the socket below TLS, and no byte too many.
            byte = socket.socket.recv(self._armed(), 1)
            if not byte or len(line) >= _LONGEST_PROXY_LINE:
                raise ValueError("no line of the PROXY protocol")
            line += byte
        self.peer = _named_by(line)

    def shake_hands(self) -> None:
        """The TLS handshake, where the server speaks TLS."""
        wire = self._armed()
        if isinstance(wire, ssl.SSLSocket):
            wire.do_handshake()

    def request(self) -> Request:
        """The head. Raises h11.RemoteProtocolError."""
        head = self._event()
        if not isinstance(head, h11.Request):
            raise ConnectionAbortedError
        self._head = head.method == b"HEAD"
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        return Request(head.method.decode("ascii"), head.target.decode("ascii"), headers, self.peer)

    def body(self, largest: int) -> bytes | None:
        """The body; None where it is larger. Raises h11.RemoteProtocolError."""
        kept, size = bytearray(), 0
        while size <= max(largest, _MOST_DROPPED) and isinstance(event := self._event(), h11.Data):
            size += len(event.data)
            if size <= largest:
                kept += event.data
            else:
                kept.clear()
        return bytes(kept) if size <= largest else None

    def send(self, reply: Reply) -> None:
        """Send an answer, the only one of this connection."""
        body = b"" if self._head else reply.body
        headers = [*reply.headers.items(), ("Content-Length", str(len(body))), ("Connection", "close")]
        head = self._http.send(h11.Response(status_code=reply.status, headers=headers))
        self.within(ANSWER_S)
        rest = memoryview((head or b"") + body)
        while rest:
            rest = rest[self._armed().send(rest[:_PIECE]) :]

    def cut(self) -> None:
        """End it from another thread: whatever its own thread waits for fails."""
        with suppress(OSError):
            # Not SSLSocket.shutdown, which would let a send that comes next go out in the clear.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(self._armed().recv(_PIECE))
        return event

    def _armed(self) -> socket.socket:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket


def _named_by(line: bytes) -> str:
    words = line.decode("ascii").split()
    if len(words) < 3 or words[:2] not in (["PROXY", "TCP4"], ["PROXY", "TCP6"]):
        raise ValueError("no line of the PROXY protocol")
    return str(ipaddress.ip_address(words[2]))

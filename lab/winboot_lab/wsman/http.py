"""HTTP/1.1 on one connection: bytes to requests, responses to bytes.

Written by hand because everything a WinRM test wants to break is below what HTTP frameworks expose. The
login and the message sealing belong to the connection, and a fault may cut it between any two bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

_LONGEST_HEAD: Final = 64 * 1024
_REASONS: Final = {
    200: "",
    400: "Bad Request",
    401: "",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Request Entity Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class BadRequest(Exception):
    """The peer sent something that is not HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """One answer. `close` ends the connection after it."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    close: bool = False

    def encode(self) -> bytes:
        """The bytes on the wire, in the form of http.sys."""
        lines = [f"HTTP/1.1 {self.status} {_REASONS.get(self.status, '')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += ["Server: Microsoft-HTTPAPI/2.0", f"Content-Length: {len(self.body)}"]
        if self.close:
            lines.append("Connection: close")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body


@dataclass(slots=True)
class Parser:
    """Collects bytes until a whole request is there."""

    largest_body: int
    _buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        """Add what came in."""
        self._buffer += data

    def next(self) -> Request | None:
        """The next whole request, if there is one. Raises BadRequest."""
        if self._buffer and not 0x41 <= self._buffer[0] <= 0x5A:
            raise BadRequest("not a verb")  # a TLS handshake, most likely; http.sys too answers at once
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _LONGEST_HEAD:
                raise BadRequest("the header never ends")
            return None
        method, target, headers = _head(bytes(self._buffer[:end]))
        if headers.get("transfer-encoding", "identity").lower() != "identity":
            raise BadRequest("no WinRM client sends chunked bodies")
        length = _length(headers.get("content-length", "0"), self.largest_body)
        if len(self._buffer) < end + 4 + length:
            return None
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        return Request(method, target, headers, body)


def _head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *rest = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(f"not a request line: {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in rest:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(f"not a header: {line[:80]!r}")
        headers[name.lower()] = value.strip()
    return parts[0], parts[1], headers


def _length(text: str, largest: int) -> int:
    if not text.isascii() or not text.isdigit():
        raise BadRequest(f"not a length: {text[:80]!r}")
    length = int(text)
    if length > largest:
        raise BadRequest(f"{length} bytes are more than the {largest} that this endpoint reads")
    return length


class Connection(asyncio.Protocol):
    """One TCP (or TLS) connection: requests are answered one after the other by `handle`.

    A protocol rather than a stream, so that the end of the connection is known at once and a waiting answer
    ends with it.
    """

    def __init__(
        self,
        handle: Callable[[Request, Connection], Awaitable[None]],
        *,
        opened: Callable[[Connection], None],
        closed: Callable[[Connection], None],
        largest_body: int,
        idle_s: float,
    ) -> None:
        self._handle = handle
        self._opened = opened
        self._closed = closed
        self._parser = Parser(largest_body)
        self._requests: deque[Request] = deque()
        self._idle_s = idle_s
        self._idle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def open(self) -> bool:
        """Whether an answer still has somewhere to go."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def secure(self) -> bool:
        """Whether this is TLS."""
        return self._transport is not None and self._transport.get_extra_info("ssl_object") is not None

    @property
    def peer(self) -> str:
        """The client's address."""
        name = self._transport.get_extra_info("peername") if self._transport else None
        return str(name[0]) if name else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._opened(self)
        self._rest()

    def data_received(self, data: bytes) -> None:
        self._wake()
        self._parser.feed(data)
        try:
            while (request := self._parser.next()) is not None:
                self._requests.append(request)
        except BadRequest as error:
            self.send(Response(400, body=str(error).encode(), close=True))
            return
        if self._requests and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())

    def connection_lost(self, error: Exception | None) -> None:
        self._wake()
        self._transport = None
        if self._task is not None:
            self._task.cancel()
        self._closed(self)

    def send(self, response: Response) -> None:
        """Write a whole answer."""
        self.write(response.encode())
        if response.close and self._transport is not None:
            self._transport.close()

    def write(self, data: bytes) -> None:
        """Write raw bytes, for faults that answer only half."""
        if self._transport is not None:
            self._transport.write(data)

    def cut(self) -> None:
        """End the connection the hard way: what was not sent is lost."""
        if self._transport is not None:
            self._transport.abort()

    async def _serve(self) -> None:
        try:
            while self._requests and self.open:
                await self._handle(self._requests.popleft(), self)
        finally:
            self._task = None
        self._rest()

    def _rest(self) -> None:
        if self.open:
            self._idle = asyncio.get_running_loop().call_later(self._idle_s, self.hang_up)

    def _wake(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def hang_up(self) -> None:
        """End the connection after what was written has been sent."""
        if self._transport is not None:
            self._transport.close()

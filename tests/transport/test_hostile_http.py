"""A peer that redirects, packs, floods or drips instead of answering: named, in bounded time and memory."""

from __future__ import annotations

import socket
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import pytest

from winboot.base.errors import ProtocolError, TransportError
from winboot.base.secret import Secret
from winboot.remote.transport.base import Endpoint, Timeouts
from winboot.remote.transport.psrp import PsrpTransport

QUICK = Timeouts(connect=2, operation=1, read=2, open=0, resume=0, close=1)


class Peer:
    """Answers every request on a loopback port by bytes of the test's choice, and counts connections."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.asked = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.recv(1 << 16)
                self.asked += 1
                self._answer(connection)
        except OSError:
            return

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def peer() -> Iterator[Callable[[Callable[[socket.socket], None]], Peer]]:
    made: list[Peer] = []

    def make(answer: Callable[[socket.socket], None]) -> Peer:
        made.append(Peer(answer))
        return made[-1]

    yield make
    for one in made:
        one.close()


def error_of(port: int, auth: str = "ntlm") -> TransportError:
    """How a run against the peer ends."""
    endpoint = Endpoint("127.0.0.1", port, "u", lambda: Secret("p"), auth=auth, timeouts=QUICK)  # type: ignore[arg-type]
    with PsrpTransport(endpoint, name="n1") as transport, pytest.raises(TransportError) as caught:
        list(transport.run("1", {}, {}))
    return caught.value


@pytest.mark.parametrize("auth", ["ntlm", "basic"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, auth: str, peer: Callable[..., Peer]) -> None:
    """Once a compromised node could send the controller, its login and its secrets to any other machine."""
    other = peer(lambda connection: None)
    first = peer(
        lambda connection: connection.sendall(
            f"HTTP/1.1 {status} X\r\nLocation: http://127.0.0.1:{other.port}/wsman\r\nContent-Length: 0\r\n\r\n".encode()
        )
    )

    error = error_of(first.port, auth)

    assert isinstance(error, ProtocolError)
    assert f"http://127.0.0.1:{other.port}/wsman" in error.problem
    assert other.asked == 0


def test_a_packed_answer_is_refused_before_it_is_unpacked(peer: Callable[..., Peer]) -> None:
    """A megabyte of it took three gigabytes here, before any login."""
    packing = zlib.compressobj(wbits=31)  # gzip
    packed = b"".join(packing.compress(bytes(1_000_000)) for _ in range(50)) + packing.flush()
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    bomb = peer(lambda connection: connection.sendall(head + packed))
    tracemalloc.start()

    error = error_of(bomb.port)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(error, ProtocolError)
    assert "gzip" in error.problem
    assert peak < 20_000_000


def _endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def _promised(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")


def _uncountable(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n")


@pytest.mark.parametrize("answer", [_endless, _promised, _uncountable])
def test_an_answer_without_an_end_is_refused(
    answer: Callable[[socket.socket], None], peer: Callable[..., Peer]
) -> None:
    tracemalloc.start()

    error = error_of(peer(answer).port)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(error, ProtocolError)
    assert "larger than" in error.problem
    assert peak < 30_000_000


def test_an_answer_that_drips_ends_within_its_bound(peer: Callable[..., Peer]) -> None:
    """Each byte came within the read timeout; together they would have taken an hour."""
    done = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not done.wait(0.2):
            connection.sendall(b"x")

    error = error_of(peer(drip).port)
    done.set()

    assert "took longer than" in error.problem

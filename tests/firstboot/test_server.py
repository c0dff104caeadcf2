"""What one hostile or slow client costs the server: real sockets and TLS on loopback, each bound asserted."""

from __future__ import annotations

import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from winboot.operations import server
from winboot.operations.firstboot.endpoint import endpoint_context, endpoint_key
from winboot.operations.server import LARGEST_HEAD, MOST_OF_ONE, Body, Reply, Request, Server

LARGEST = 1 << 16
_PATIENCE_S = 10.0


def answers(request: Request) -> Reply | Body:
    """`/open` takes a body, `/known` one with a session, `/large` has an answer of 16 MiB; anything else is refused."""
    match request.path:
        case "/open":
            return Body(LARGEST, lambda body: Reply(200, str(len(body)).encode()))
        case "/known":
            return Body(LARGEST, lambda body: Reply(200), session="one")
        case "/large":
            return Body(0, lambda body: Reply(200, bytes(16 << 20)))
    return Reply(401)


class Site:
    """A server with TLS, and callers from any address of loopback."""

    def __init__(self, served: Server) -> None:
        self.served = served

    def plain(self, source: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.served.port), _PATIENCE_S, (source, 0))

    def secure(self, source: str = "127.0.0.1") -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(self.plain(source))

    def status(self, head: str, body: bytes = b"", source: str = "127.0.0.1") -> int:
        """The status of an answer; 0 where the connection ends without one."""
        with suppress(OSError), self.secure(source) as wire:
            wire.sendall(f"{head}\r\n\r\n".encode("latin-1") + body)
            answer = wire.recv(64)
            return int(answer.split()[1]) if answer else 0
        return 0

    @property
    def threads(self) -> int:
        """How many connections have a thread."""
        return sum(one.name == f"server {self.served.port} call" for one in threading.enumerate())

    def until(self, what: Callable[[], bool]) -> bool:
        """Whether something becomes so within the patience."""
        deadline, pause = time.monotonic() + _PATIENCE_S, threading.Event()
        while not what():
            if time.monotonic() >= deadline:
                return False
            pause.wait(0.01)
        return True


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    context = endpoint_context(endpoint_key(tmp_path / "keys" / "first-boot.key"))
    with Server(answers, address="127.0.0.1", port=0, context=context) as served:
        yield Site(served)


HEAD = "POST /open HTTP/1.1\r\nHost: x"


@pytest.mark.parametrize(
    ("lengths", "status"),
    [
        (["5"], 200),
        (["5", "5"], 200),
        (["0" * 18 + "1500000000"], 400),
        (["0" * 18 + "5"], 200),
        (["0" * 19 + "5"], 200),
        (["0" * 20 + "5"], 400),
        (["-5"], 400),
        ([""], 400),
        (["5", "6"], 400),
        (["5, 6"], 400),
        (["0x5"], 400),
        (["\xb2"], 400),
        (["9" * 400], 400),
    ],
    ids=str,
)
def test_a_length_is_one_number_within_bounds(lengths: list[str], status: int, site: Site) -> None:
    head = "\r\n".join([HEAD, *(f"Content-Length: {one}" for one in lengths)])

    assert site.status(head, b"hello") == status


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """The most bytes that Python has held meanwhile."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("path", ["/open", "/refused"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_costs_no_more_memory_than_its_bound(path: str, chunked: bool, site: Site) -> None:
    size = 64 << 20
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
    piece = (b"10000\r\n" + b"x" * 65536 + b"\r\n") if chunked else b"x" * 65536
    with traced() as peak:
        with suppress(OSError), site.secure() as wire:
            wire.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode())
            for _ in range(size // 65536):
                wire.sendall(piece)
        assert site.until(lambda: site.threads == 0)
        assert peak() < 1 << 20


def test_a_head_has_a_bound(site: Site) -> None:
    """The connection ends before the head does."""
    with site.secure() as wire:
        wire.sendall(f"{HEAD}\r\nX: {'x' * 2 * LARGEST_HEAD}".encode())
        assert site.until(lambda: site.threads == 0)


def test_an_address_without_a_session_has_sixteen_places_and_others_have_theirs(site: Site) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_OF_ONE):
            stack.enter_context(site.plain())
        assert site.until(lambda: site.threads == MOST_OF_ONE)

        assert site.status(HEAD) == 0
        assert site.status(HEAD, source="127.0.0.2") == 200
        assert site.until(lambda: site.threads == MOST_OF_ONE)
    assert site.until(lambda: site.threads == 0)
    assert site.status(HEAD) == 200, "they are free again"


def test_the_calls_of_a_session_take_no_places_of_its_address(site: Site) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_OF_ONE + 4):
            wire = stack.enter_context(site.secure())
            wire.sendall(b"POST /known HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
        assert site.until(lambda: site.threads == MOST_OF_ONE), "a session has as many of its own"
        assert site.status(HEAD) == 200


def test_the_newest_caller_takes_the_place_of_the_slowest(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST", 4)
    with ExitStack() as stack:
        silent = [stack.enter_context(site.plain(f"127.0.0.{10 + number}")) for number in range(4)]
        assert site.until(lambda: site.threads == 4)

        assert site.status(HEAD) == 200
        assert silent[0].recv(1) == b"", "the first has lost its place"
        assert site.until(lambda: site.threads == 3)


def drip(wire: socket.socket) -> None:
    """A byte now and then, as long as the other side takes it."""
    pause = threading.Event()
    with suppress(OSError):
        for byte in HEAD.encode() * 1000:
            wire.sendall(bytes([byte]))
            pause.wait(0.02)


@pytest.mark.parametrize("tls", [False, True], ids=["in the handshake", "in the head"])
@pytest.mark.parametrize("drips", [False, True], ids=["silent", "slow"])
def test_one_deadline_ends_a_connection_however_slow_its_caller_is(
    tls: bool, drips: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 0.5)
    began = time.monotonic()
    with site.secure() if tls else site.plain() as wire:
        if drips and tls:
            drip(wire)
        elif drips:
            # The record of a ClientHello that does not come.
            wire.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            drip(wire)
        with suppress(OSError):
            wire.recv(1)
        assert time.monotonic() - began < 0.5 + _PATIENCE_S / 2
        assert site.until(lambda: site.threads == 0)


def test_a_caller_that_reads_nothing_holds_its_thread_for_one_deadline(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "ANSWER_S", 0.5)
    with site.secure() as wire:
        wire.sendall(b"POST /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert site.until(lambda: site.threads == 1)
        assert site.until(lambda: site.threads == 0)


def test_a_server_without_tls_has_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 0.5)
    with Server(answers, address="127.0.0.1", port=0) as served, ExitStack() as stack:
        site = Site(served)
        for _ in range(2 * MOST_OF_ONE):
            stack.enter_context(site.plain())
        assert site.until(lambda: 0 < site.threads <= MOST_OF_ONE)
        assert site.until(lambda: site.threads == 0)

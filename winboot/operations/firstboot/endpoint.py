"""The HTTPS endpoint that machines call at their first boot, and its key.

    POST /v1/nonce    → a nonce, good for one hello from the same address within a minute; which proofs are taken; and
                        the client, the part of first boot that user data does not hold
    POST /v1/hello    who the machine is and what proves it → its session, or a refusal by name
    POST /v1/work     "I run nothing" → the next script with its input, or how all ended
    POST /v1/said     output of a script → how much of it was heard

Each may be made again: an answer that was lost is given again. The key stays the same, and its hash stands in the user data;
the certificate around it is made at each start, so that nothing expires.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import secrets
import socket
import ssl
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from winboot.base.clean import clean
from winboot.base.errors import InvalidInput, WinbootError
from winboot.base.private import make_private_folder, open_to_others, replace_privately
from winboot.operations.firstboot.door import Door
from winboot.operations.firstboot.hello import Done, Hello, Refusal
from winboot.operations.firstboot.machines import Machine, Machines
from winboot.operations.firstboot.store import State
from winboot.operations.hook.metrics import Log
from winboot.remote.transport.console import ARGUMENTS
from winboot.script.first_boot import client

NONCE_S: Final = 60.0
_MOST_NONCES: Final = 4096
# From one address within a minute. A machine that is refused asks about every five seconds at first, then less.
MOST_FROM_ONE: Final = 120
_LARGEST_HELLO: Final = 1 << 16
# Far beyond any event of a script; it is read before the caller is known.
_LARGEST_PIECE: Final = 4 << 20
_EXIT_CODE: Final = re.compile(r"-?[0-9]{1,10}")
# A call for work is answered after so many seconds at the latest; a silent caller is left after as many.
_WORK_S: Final = 20.0
_CALL_S: Final = 30.0
_MOST_CALLS: Final = 1024
_LONGEST_PROXY_LINE: Final = 107
_LONGEST_WORD: Final = 500


# ---- the key ---------------------------------------------------------------------------------------------------


def endpoint_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key of this file, made where there is none. Raises InvalidInput where it cannot be read or written."""
    try:
        if not path.exists():
            made = ec.generate_private_key(ec.SECP256R1())
            make_private_folder(path.parent)
            replace_privately(path, _pem(made).decode("ascii"))
        if mode := open_to_others(path):
            raise InvalidInput(f"{path} may be read by others ({mode})", hint=f"chmod 600 {path}")
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"{path} is no key of the endpoint: {error}", hint="Name another file, or move it away."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidInput(f"{path} is no elliptic curve key", hint="Move it away: winboot makes one.")
    return key


def pin_of(key: ec.EllipticCurvePrivateKey) -> str:
    """What user data says of the key: SHA-256, in hex, of what X509Certificate.GetPublicKey() gives on Windows: the key's
    bits without their algorithm, for an elliptic curve the uncompressed point (RFC 5480, section 2.2)."""
    point = key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    return hashlib.sha256(point).hexdigest()


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _context(key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    """TLS 1.2 and newer with a certificate around the key: machines look at the key alone."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "winboot first boot")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A machine's clock may be wrong by years before its first time service.
        .not_valid_before(now - timedelta(days=3650))
        .not_valid_after(now + timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.NamedTemporaryFile("wb", prefix="winboot-", suffix=".pem") as both:
        both.write(_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
        both.flush()
        context.load_cert_chain(both.name)
    return context


# ---- the calls -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status, headers and body."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, told: Mapping[str, object], headers: dict[str, str] | None = None) -> Reply:
        """What is told, as JSON."""
        return cls(200, json.dumps(told).encode("ascii"), headers or {})

    @classmethod
    def refusal(cls, status: int, id_: str, why: str) -> Reply:
        """Why not, for the machine's console."""
        return cls(status, json.dumps({"id": id_, "why": why}).encode("ascii"))


@dataclass(slots=True)
class Calls:
    """What each call answers; the server around it knows HTTP alone."""

    door: Door
    machines: Machines
    log: Log
    _nonces: dict[str, tuple[float, str]] = field(default_factory=dict)
    # How many an address has had since the minute began.
    _had: Counter[str] = field(default_factory=Counter)
    _minute: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, headers: Any, body: bytes, peer: str) -> Reply:
        """Any call. What it asks wrongly is refused; an error on our side is 503, and the machine tries again."""
        match path:
            case "/v1/nonce":
                return self._nonce(peer)
            case "/v1/hello":
                return self._hello(body, peer)
            case "/v1/work":
                return self._with_machine(headers, lambda machine: self._work(machine, headers))
            case "/v1/said":
                return self._with_machine(headers, lambda machine: self._said(machine, headers, body))
        return Reply.refusal(404, "UnknownCall", "there is no such call")

    def _nonce(self, peer: str) -> Reply:
        nonce, now = secrets.token_urlsafe(24), time.monotonic()
        with self._lock:
            self._nonces = {one: given for one, given in self._nonces.items() if now - given[0] < NONCE_S}
            if now - self._minute >= NONCE_S:
                self._minute, self._had = now, Counter()
            self._had[peer] += 1
            if self._had[peer] > MOST_FROM_ONE:
                return Reply.refusal(
                    429, "TooOften", f"{peer} has called {MOST_FROM_ONE} times within a minute"
                )
            if len(self._nonces) >= _MOST_NONCES:
                return Reply.refusal(503, "Busy", "too many machines call at once")
            self._nonces[nonce] = now, peer
        proofs = [] if self.door.proof is None else [self.door.proof.kind]
        return Reply.of({"nonce": nonce, "proofs": proofs, "client": client()})

    def _take(self, nonce: object, peer: str) -> bool:
        with self._lock:
            at, whose = self._nonces.pop(nonce, (0.0, "")) if isinstance(nonce, str) else (0.0, "")
        return whose == peer and time.monotonic() - at < NONCE_S

    def _hello(self, body: bytes, peer: str) -> Reply:
        try:
            said = json.loads(body)
            hello = Hello.read(said, peer)
        except (ValueError, RecursionError) as error:
            return Reply.refusal(400, "NoHello", f"the hello cannot be read: {type(error).__name__}")
        except InvalidInput as error:
            return Reply.refusal(400, "NoHello", error.problem)
        if not self._take(said.get("nonce"), peer):
            why = "its nonce was used, is older than a minute, or was given to another address"
            return self._refused(Refusal("StaleNonce", why), hello, 409)
        if self.machines.ending:
            return Reply.refusal(503, "Ending", "the endpoint ends now; another one takes over")
        try:
            answer = self.door.ask(hello)
        except WinbootError as error:
            self.log("first boot: nobody was let in", problem=error.problem, hint=error.hint)
            return Reply.refusal(503, "EndpointFails", "the endpoint cannot decide now; see its log")
        if isinstance(answer, Refusal):
            return self._refused(answer, hello, 202 if answer.wait else 403)
        if isinstance(answer, Done):
            self.log("first boot: Ready already", node=answer.node, machine=hello.uuid, address=peer)
            return Reply.of({"result": _ended("Ready", answer.word, answer.ready_file)})
        machine = self.machines.admit(answer, hello.uuid, peer)
        told = {"session": machine.session, "node": answer.node.name, "arguments": " ".join(ARGUMENTS)}
        return Reply.of({**told, "result": None})

    def _refused(self, refusal: Refusal, hello: Hello, status: int) -> Reply:
        about = {"address": hello.peer, "machine": hello.uuid}
        self.log("first boot: refused", id=refusal.id, why=refusal.why, **about)
        with suppress(WinbootError):
            self.door.store.refuse(refusal, uuid=hello.uuid, address=hello.peer)
        return Reply.refusal(status, refusal.id, refusal.why)

    def _with_machine(self, headers: Any, act: Any) -> Reply:
        machine = self.machines.of_session(headers.get("Winboot-Session", ""))
        if machine is None:
            return Reply.refusal(401, "NoSession", "its session is not known any more")
        reply: Reply = act(machine)
        return reply

    def _work(self, machine: Machine, headers: Any) -> Reply:
        job = machine.line.work(headers.get("Winboot-Runner", ""), _WORK_S)
        word = {"Winboot-Word": _one_line(machine.word)} if machine.word else {}
        if job is not None:
            return Reply(200, job.payload, {**word, "Winboot-Job": job.id})
        if machine.result is None:
            return Reply(204, headers=word)
        ended = machine.result.word(machine.spec.node.name)
        told = _ended(machine.result.state, ended, machine.spec.boot.ready_file)
        return Reply.of(told, {"Winboot-Result": machine.result.state})

    def _said(self, machine: Machine, headers: Any, body: bytes) -> Reply:
        code, start = headers.get("Winboot-Exit", ""), headers.get("Winboot-Start", "")
        if not start.isdecimal() or (code and not _EXIT_CODE.fullmatch(code)):
            return Reply.refusal(400, "NoNumber", "Winboot-Start and Winboot-Exit are numbers")
        heard = machine.line.hear(
            headers.get("Winboot-Job", ""),
            headers.get("Winboot-Runner", ""),
            int(start[:18]),
            body,
            int(code) if code else None,
        )
        if heard is None:
            return Reply.refusal(410, "NotWanted", "nobody waits for this script any more")
        return Reply(200, str(heard).encode("ascii"))


def _ended(state: State, word: str, ready_file: str) -> dict[str, object]:
    """How it ended, as a machine hears it."""
    return {"state": state, "word": word, "ready_file": ready_file}


def _one_line(word: str) -> str:
    """A sentence as a header takes it."""
    return clean(word).encode("ascii", "replace").decode("ascii").replace("\n", " ")[:_LONGEST_WORD]


# ---- the server ------------------------------------------------------------------------------------------------


class Endpoint:
    """Serves the calls while the context lasts.

    `proxies` are networks of load balancers that say whose connection they pass on, in a line of the PROXY protocol, version
    1 (haproxy.org, proxy-protocol.txt); from any other address such a line is no TLS, and ends the connection.
    """

    def __init__(
        self,
        calls: Calls,
        key: ec.EllipticCurvePrivateKey,
        *,
        address: str,
        port: int,
        proxies: Sequence[str] = (),
    ) -> None:
        context = _context(key)
        networks = [ipaddress.ip_network(one) for one in proxies]
        room = threading.BoundedSemaphore(_MOST_CALLS)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def finish_request(self, request: Any, client_address: Any) -> None:
                if not room.acquire(blocking=False):
                    return
                try:
                    with suppress(OSError, ValueError):
                        _serve(request, str(client_address[0]))
                finally:
                    room.release()

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A machine that goes away in mid-call is no news."""

        def _serve(request: socket.socket, peer: str) -> None:
            request.settimeout(_CALL_S)
            if any(ipaddress.ip_address(peer) in one for one in networks):
                peer = _passed_on(request)
            with context.wrap_socket(request, server_side=True) as secure:
                _Handler(secure, (peer, 0), calls)

        self._server = Server((address, port), BaseHTTPRequestHandler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="first boot", daemon=True
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _passed_on(request: socket.socket) -> str:
    """Whose connection it is, as the load balancer says. Raises ValueError."""
    line = b""
    while not line.endswith(b"\r\n"):
        byte = request.recv(1)
        if not byte or len(line) >= _LONGEST_PROXY_LINE:
            raise ValueError("no line of the PROXY protocol")
        line += byte
    words = line.decode("ascii").split()
    if len(words) < 3 or words[:2] not in (["PROXY", "TCP4"], ["PROXY", "TCP6"]):
        raise ValueError("no line of the PROXY protocol")
    return str(ipaddress.ip_address(words[2]))


class _Handler(BaseHTTPRequestHandler):
    """One call; the connection ends with it."""

    protocol_version = "HTTP/1.1"
    timeout = _CALL_S

    def __init__(self, request: Any, client: Any, calls: Calls) -> None:
        self._calls = calls
        super().__init__(request, client, None)  # type: ignore[arg-type]

    def do_POST(self) -> None:
        """See `Calls.answer`."""
        self.close_connection = True
        largest = _LARGEST_PIECE if self.path == "/v1/said" else _LARGEST_HELLO
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length[:18]) > largest:
            # Some of it is read, or the answer would be lost with the connection.
            self.rfile.read(min(int(length[:18] or 0) if length.isdecimal() else 0, _LARGEST_PIECE))
            self._send(Reply.refusal(413, "TooLarge", f"a body has at most {largest} bytes"))
            return
        body = self.rfile.read(int(length))
        self._send(self._calls.answer(self.path, self.headers, body, str(self.client_address[0])))

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: what matters is in the log of the hook."""

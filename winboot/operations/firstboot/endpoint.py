"""The HTTPS endpoint that machines call at their first boot, and its key.

    POST /v1/nonce    → a nonce, valid for hellos from the same address in this minute and the next; the accepted proofs;
                        the client script, which is not in the user data
    POST /v1/hello    the machine's identity and its proof → its session, or a refusal by name
    POST /v1/work     "I run nothing" → the next script with its input, or how all ended
    POST /v1/said     output of a script → how much of it has arrived

Each may be made again: an answer that was lost is given again. A session is its address's alone: a machine whose address
changed says hello again, and continues its work in a new session. The key stays the same, and its hash is in the user
data; the certificate around it is made at each start, so that nothing expires.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import ssl
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from winboot.base.clean import clean
from winboot.base.errors import InvalidInput, WinbootError
from winboot.base.private import open_to_others, others_say, own_folder, replace_privately
from winboot.operations.firstboot.door import Door
from winboot.operations.firstboot.hello import Done, Hello, Refusal
from winboot.operations.firstboot.machines import Machine, Machines
from winboot.operations.firstboot.store import State
from winboot.operations.hook.metrics import Log
from winboot.operations.server import Body, Network, Reply, Request, Server
from winboot.remote.transport.console import ARGUMENTS
from winboot.script.first_boot import client

MINUTE_S: Final = 60.0
# Calls without a session from one address within a minute: a machine that is refused asks about every five seconds at first,
# then less. And how many addresses are counted.
MOST_FROM_ONE: Final = 120
_MOST_COUNTED: Final = 4096
_LARGEST_HELLO: Final = 1 << 16
# A machine sends at most so many bytes of output in one call (_first_boot_client.ps1).
_LARGEST_PIECE: Final = 1 << 20
_EXIT_CODE: Final = re.compile(r"-?[0-9]{1,10}")
# A call for work is answered after so many seconds at the latest.
_WORK_S: Final = 20.0
_LONGEST_WORD: Final = 500


# ---- the key ---------------------------------------------------------------------------------------------------


def endpoint_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key of this file, made where the file is missing. Raises InvalidInput where it cannot be read or
    written."""
    try:
        if not path.exists():
            made = ec.generate_private_key(ec.SECP256R1())
            own_folder(path.parent)
            replace_privately(path, _pem(made).decode("ascii"))
        if stranger := others_say(path):
            raise InvalidInput(
                f"winboot cannot use {path} as the endpoint's key: {stranger}", hint="Give your own key."
            )
        if mode := open_to_others(path):
            raise InvalidInput(f"other users may read {path} ({mode})", hint=f"chmod 600 {path}")
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"{path} is not the endpoint's key: {error}", hint="Give another file, or move this file away."
        ) from error
    # Machines compare algorithm and curve by name (_first_boot.ps1.j2): they refuse a key of another kind.
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise InvalidInput(
            f"{path} has no ECDSA key of the curve P-256, which machines require",
            hint="Move the file away: winboot makes a new key. Then render user data with the old key's pin again.",
        )
    return key


def pin_of(key: ec.EllipticCurvePrivateKey) -> str:
    """What user data says of the key: SHA-256, in hex, of what X509Certificate.GetPublicKey() gives on Windows. Those
    are the key's bits without their algorithm, for an elliptic curve the uncompressed point (RFC 5480, section
    2.2)."""
    point = key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    return hashlib.sha256(point).hexdigest()


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def endpoint_context(key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
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
    context.options |= ssl.OP_NO_RENEGOTIATION
    with tempfile.NamedTemporaryFile("wb", prefix="winboot-", suffix=".pem") as both:
        both.write(_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
        both.flush()
        context.load_cert_chain(both.name)
    return context


# ---- the calls -------------------------------------------------------------------------------------------------


def _told(about: Mapping[str, object], headers: dict[str, str] | None = None) -> Reply:
    """Facts for the machine, as JSON."""
    return Reply(200, json.dumps(about).encode("ascii"), headers or {})


def _refusal(status: int, id_: str, why: str) -> Reply:
    """Why not, for the machine's console."""
    return Reply(status, json.dumps({"id": id_, "why": why}).encode("ascii"))


class Nonces:
    """Nonces that cost no memory: each is a keyed hash of the caller's address and the minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._key, self._now = secrets.token_bytes(32), now

    def give(self, peer: str) -> str:
        """One for this address, good for this minute and the next."""
        return self._of(peer, int(self._now() // MINUTE_S))

    def good(self, nonce: object, peer: str) -> bool:
        """Whether the address received this nonce a moment ago."""
        minute = int(self._now() // MINUTE_S)
        good = [self._of(peer, one).encode() for one in (minute, minute - 1)]
        given = nonce.encode("utf-8", "replace") if isinstance(nonce, str) else b""
        return any(hmac.compare_digest(one, given) for one in good)

    def _of(self, peer: str, minute: int) -> str:
        return hmac.new(self._key, f"{peer} {minute}".encode(), hashlib.sha256).hexdigest()


@dataclass(slots=True)
class Calls:
    """What each call answers; the server around it knows HTTP alone."""

    door: Door
    machines: Machines
    log: Log
    nonces: Nonces = field(default_factory=Nonces)
    # How many calls without a session an address has made since the minute began.
    _had: Counter[str] = field(default_factory=Counter)
    _minute: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Reply | Body:
        """Any call, by its head. What it asks wrongly is refused; an error on our side is 503, and the machine tries again."""
        if request.method != "POST":
            return _refusal(405, "UnknownCall", "the request must use POST")
        match request.path:
            case "/v1/nonce":
                return self._too_often(request) or Body(0, lambda body: self._nonce(request.peer))
            case "/v1/hello":
                return self._too_often(request) or Body(
                    _LARGEST_HELLO, lambda body: self._hello(body, request.peer)
                )
            case "/v1/work" | "/v1/said":
                return self._with_session(request)
        return _refusal(404, "UnknownCall", "the endpoint has no such path")

    def _too_often(self, request: Request) -> Reply | None:
        minute = int(time.monotonic() // MINUTE_S)
        with self._lock:
            if minute != self._minute or len(self._had) >= _MOST_COUNTED:
                self._minute, self._had = minute, Counter()
            self._had[request.peer] += 1
            if self._had[request.peer] <= MOST_FROM_ONE:
                return None
        return _refusal(
            429,
            "TooOften",
            f"{request.peer} has called {MOST_FROM_ONE} times within a minute; the machine retries",
        )

    def _nonce(self, peer: str) -> Reply:
        proofs = [] if self.door.proof is None else [self.door.proof.kind]
        return _told({"nonce": self.nonces.give(peer), "proofs": proofs, "client": client()})

    def _hello(self, body: bytes, peer: str) -> Reply:
        try:
            said = json.loads(body)
            hello = Hello.read(said, peer)
        except (ValueError, RecursionError) as error:
            return _refusal(400, "NoHello", f"the endpoint cannot read the hello: {type(error).__name__}")
        except InvalidInput as error:
            return _refusal(400, "NoHello", error.problem)
        if not self.nonces.good(said.get("nonce"), peer):
            why = "the machine's nonce is older than two minutes, or belongs to another address"
            return self._refused(Refusal("StaleNonce", why), hello, 409)
        if self.machines.ending:
            return _refusal(503, "Ending", "this endpoint is stopping; another endpoint takes over")
        try:
            answer = self.door.ask(hello)
        except WinbootError as error:
            self.log("first boot: the endpoint cannot decide", problem=error.problem, hint=error.hint)
            return _refusal(503, "EndpointFails", "the endpoint cannot decide now; see its log")
        if isinstance(answer, Refusal):
            return self._refused(answer, hello, 202 if answer.wait else 403)
        if isinstance(answer, Done):
            self.log("first boot: Ready already", node=answer.node, machine=hello.uuid, address=peer)
            return _told({"result": _ended("Ready", answer.word, answer.ready_file)})
        machine = self.machines.admit(answer, hello.uuid, peer)
        told = {"session": machine.session, "node": answer.node.name, "arguments": " ".join(ARGUMENTS)}
        return _told({**told, "result": None})

    def _refused(self, refusal: Refusal, hello: Hello, status: int) -> Reply:
        about = {"address": hello.peer, "machine": hello.uuid}
        self.log("first boot: refused", id=refusal.id, why=refusal.why, **about)
        with suppress(WinbootError):
            self.door.store.refuse(refusal, uuid=hello.uuid, address=hello.peer, node=refusal.node)
        return _refusal(status, refusal.id, refusal.why)

    def _with_session(self, request: Request) -> Reply | Body:
        machine = self.machines.of_session(request.headers.get("winboot-session", ""), request.peer)
        if machine is None:
            return _refusal(401, "NoSession", "the session has ended, or belongs to another address")
        if request.path == "/v1/work":
            return Body(0, lambda body: self._work(machine, request.headers), machine.session)
        return Body(_LARGEST_PIECE, lambda body: self._said(machine, request.headers, body), machine.session)

    def _work(self, machine: Machine, headers: Mapping[str, str]) -> Reply:
        job = machine.line.work(headers.get("winboot-runner", ""), _WORK_S)
        word = {"Winboot-Word": _one_line(machine.word)} if machine.word else {}
        if job is not None:
            return Reply(200, job.payload, {**word, "Winboot-Job": job.id})
        if machine.result is None:
            return Reply(204, headers=word)
        ended = machine.result.word(machine.spec.node.name)
        told = _ended(machine.result.state, ended, machine.spec.boot.ready_file)
        return _told(told, {"Winboot-Result": machine.result.state})

    def _said(self, machine: Machine, headers: Mapping[str, str], body: bytes) -> Reply:
        code, start = headers.get("winboot-exit", ""), headers.get("winboot-start", "")
        if not start.isdecimal() or (code and not _EXIT_CODE.fullmatch(code)):
            return _refusal(400, "NoNumber", "Winboot-Start and Winboot-Exit must be numbers")
        heard = machine.line.hear(
            headers.get("winboot-job", ""),
            headers.get("winboot-runner", ""),
            int(start[:18]),
            body,
            int(code) if code else None,
        )
        if heard is None:
            return _refusal(410, "NotWanted", "the endpoint no longer waits for this script")
        return Reply(200, str(heard).encode("ascii"))


def _ended(state: State, word: str, ready_file: str) -> dict[str, object]:
    """How it ended, as a machine receives it."""
    return {"state": state, "word": word, "ready_file": ready_file}


def _one_line(word: str) -> str:
    """A sentence as a header takes it."""
    return clean(word).encode("ascii", "replace").decode("ascii").replace("\n", " ")[:_LONGEST_WORD].strip()


# ---- the server ------------------------------------------------------------------------------------------------


class Endpoint(Server):
    """Serves the calls while the context lasts. `proxies`: see `Server`."""

    def __init__(
        self,
        calls: Calls,
        key: ec.EllipticCurvePrivateKey,
        *,
        address: str,
        port: int,
        proxies: Sequence[Network] = (),
    ) -> None:
        def crowded(peer: str) -> None:
            why = f"{peer}, or all addresses together, have too many open connections"
            calls.log("first boot: refused", id="TooManyConnections", why=why, address=peer)

        context = endpoint_context(key)
        super().__init__(calls, address=address, port=port, context=context, proxies=proxies, crowded=crowded)

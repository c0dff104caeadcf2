"""The endpoint over real TLS: its key, its four calls, and callers that are no machines."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.firstboot.frames import frames
from tests.steps.builders import a_spec_of
from winboot.base.errors import InvalidInput
from winboot.config.node_spec import NodeSpec
from winboot.operations.firstboot import endpoint
from winboot.operations.firstboot.balancers import balancers
from winboot.operations.firstboot.door import Door
from winboot.operations.firstboot.endpoint import Calls, Endpoint, Nonces, endpoint_key, pin_of
from winboot.operations.firstboot.hello import Done
from winboot.operations.firstboot.machines import Machine, Result
from winboot.operations.firstboot.store import Store

SPEC = a_spec_of("flannel-host-gw", address="127.0.0.1")


class OneMachine:
    """In the place of `Machines`: nothing is joined, and the test gives out the scripts."""

    ending = False

    def __init__(self) -> None:
        self.machine: Machine | None = None

    def admit(self, spec: NodeSpec, uuid: str, address: str) -> Machine:
        self.machine = self.machine or Machine(spec, uuid, address)
        return self.machine

    def of_session(self, session: str, address: str) -> Machine | None:
        known = self.machine
        return known if known and (known.session, known.address) == (session, address) else None


@dataclass(frozen=True)
class Heard:
    status: int
    headers: Any
    body: bytes


class Site:
    """The endpoint, and a caller that speaks to it as a machine does."""

    def __init__(self, folder: Path) -> None:
        self.key = endpoint_key(folder / "keys" / "first-boot.key")
        self.store = Store(folder / "first-boot.json")
        self.machines = OneMachine()
        self.log: list[str] = []
        door = Door(self.store, lambda: [(SPEC, ("windows",))], lambda spec: None)
        calls: Any = Calls(door, self.machines, lambda message, **about: self.log.append(message))  # type: ignore[arg-type]
        self.endpoint = Endpoint(
            calls, self.key, address="127.0.0.1", port=0, proxies=balancers(["127.7.0.1/32"])
        )

    def secure(self, *, source: str = "127.0.0.1", first: bytes = b"") -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", self.endpoint.port), 10, (source, 0))
        plain.sendall(first)
        return context.wrap_socket(plain)

    def call(
        self, path: str, body: bytes = b"", *, first: bytes = b"", source: str = "127.0.0.1", **headers: str
    ) -> Heard:
        with self.secure(source=source, first=first) as wire:
            lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
            lines += [f"Winboot-{name}: {value}" for name, value in headers.items()]
            wire.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            response = HTTPResponse(wire)
            response.begin()
            return Heard(response.status, response.headers, response.read())

    def hello(self, **changed: Any) -> Heard:
        how = {name: changed.pop(name) for name in ("first", "source") if name in changed}
        nonce = json.loads(self.call("/v1/nonce", **how).body)["nonce"]
        said = {
            "nonce": nonce,
            "uuid": "ours",
            "computer_name": "WIN-X",
            "addresses": [],
            "host": "",
            **changed,
        }
        return self.call("/v1/hello", json.dumps(said).encode(), **how)

    def voucher(self) -> str:
        return self.store.voucher("group", "windows").reveal()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with made.endpoint:
        yield made


def test_the_pin_is_the_hash_of_the_key_that_the_certificate_shows(site: Site, tmp_path: Path) -> None:
    with site.secure() as wire:
        certificate = x509.load_der_x509_certificate(wire.getpeercert(binary_form=True) or b"")
    point = certificate.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    assert pin_of(site.key) == hashlib.sha256(point).hexdigest()
    assert pin_of(endpoint_key(tmp_path / "keys" / "first-boot.key")) == pin_of(site.key), "it stays the same"


def test_a_key_that_others_may_read_is_refused(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "keys" / "first-boot.key"
    path.chmod(0o644)

    with pytest.raises(InvalidInput, match="other users may read"):
        endpoint_key(path)


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP256K1()),
        rsa.generate_private_key(65537, 2048),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["P-384", "secp256k1", "RSA", "Ed25519"],
)
def test_a_key_that_machines_refuse_is_refused(key: PrivateKeyTypes, tmp_path: Path) -> None:
    path = tmp_path / "first-boot.key"
    path.touch(0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    with pytest.raises(InvalidInput, match="no ECDSA key of the curve P-256"):
        endpoint_key(path)


def test_a_machine_says_hello_and_works(site: Site) -> None:
    told = json.loads(site.hello(voucher=site.voucher()).body)
    machine = site.machines.machine
    assert machine is not None
    job = machine.line.offer(b"the script")

    given = site.call("/v1/work", Session=told["session"], Runner="one")
    begun = site.call("/v1/said", Session=told["session"], Runner="one", Job=job.id, Start="0")
    ended = site.call(
        "/v1/said", frames("hello"), Session=told["session"], Runner="one", Job=job.id, Start="0", Exit="0"
    )
    machine.result = Result("Ready")
    machine.line.hang_up()
    result = site.call("/v1/work", Session=told["session"], Runner="one")

    assert (told["node"], given.body, given.headers["Winboot-Job"]) == ("win-a1", b"the script", job.id)
    assert (begun.body, ended.body, job.code) == (b"0", str(len(frames("hello"))).encode(), 0)
    assert result.headers["Winboot-Result"] == "Ready"
    assert "Invoke-FirstBoot" in json.loads(site.call("/v1/nonce").body)["client"]


def test_the_same_machine_gets_the_same_session(site: Site) -> None:
    voucher = site.voucher()
    first, second = site.hello(voucher=voucher), site.hello(voucher=voucher)

    assert first.status == 200
    assert first.body == second.body


def test_a_nonce_is_good_for_two_minutes_at_most_and_for_its_address() -> None:
    now = 0.0
    nonces = Nonces(lambda: now)
    nonce, another = nonces.give("10.0.0.1"), Nonces(lambda: now).give("10.0.0.1")
    good = [nonces.good(one, "10.0.0.1") for one in (nonce, nonce, another, "", None, "\ud800", nonce[:-1])]
    elsewhere = nonces.good(nonce, "10.0.0.2")
    now = 60.0
    later = nonces.good(nonce, "10.0.0.1")
    now = 120.0

    assert good == [True, True, False, False, False, False, False]
    assert (elsewhere, later, nonces.good(nonce, "10.0.0.1")) == (False, True, False)


def test_a_nonce_is_good_for_the_address_that_asked_for_it_alone(site: Site) -> None:
    nonce = json.loads(site.call("/v1/nonce", source="127.0.0.2").body)["nonce"]
    said = json.dumps({"nonce": nonce, "uuid": "ours", "voucher": site.voucher()}).encode()

    assert site.call("/v1/hello", said).status == 409


def test_a_refusal_says_its_name_and_is_in_the_log(site: Site) -> None:
    unknown, waiting = site.hello(voucher="0.0"), site.hello()

    assert (unknown.status, json.loads(unknown.body)["id"]) == (403, "UnknownVoucher")
    assert (waiting.status, json.loads(waiting.body)["id"]) == (202, "NotApproved")
    assert site.log == ["first boot: refused"] * 2


def test_an_address_that_calls_without_end_gets_429(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MOST_FROM_ONE", 3)
    monkeypatch.setattr(endpoint, "MINUTE_S", 1e9)

    statuses = [site.call(f"/v1/{call}").status for call in ("nonce", "hello", "nonce", "hello")]

    assert statuses == [200, 400, 200, 429]
    assert site.call("/v1/nonce", source="127.0.0.2").status == 200, "other addresses get answers"


def test_a_ready_machine_gets_the_same_answer_again_and_no_session(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Done("win-a1", "is the Ready node win-a1", r"C:\run\ready")
    monkeypatch.setattr(Door, "ask", lambda self, hello: done)

    told = json.loads(site.hello(voucher=site.voucher()).body)

    assert told == {"result": {"state": "Ready", "word": done.word, "ready_file": done.ready_file}}
    assert site.machines.machine is None


def test_only_a_load_balancer_that_was_named_says_whose_a_connection_is(site: Site) -> None:
    line, voucher = b"PROXY TCP4 10.9.9.9 127.0.0.1 1 2\r\n", site.voucher()

    told = site.hello(voucher=voucher, first=line, source="127.7.0.1")
    assert json.loads(told.body)["id"] == "AnotherAddress"
    assert "10.9.9.9" in json.loads(told.body)["why"]
    with pytest.raises((ssl.SSLError, OSError)):
        site.call("/v1/nonce", first=line)
    with pytest.raises((ssl.SSLError, OSError)):
        site.call("/v1/nonce", source="127.7.0.1")


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/v1/other", b"", {}, 404),
        ("//v1/nonce", b"", {}, 404),
        ("/v1/nonce?a=b", b"", {}, 404),
        ("/v1/nonce", b"x", {}, 413),
        ("/v1/hello", b"no json", {}, 400),
        ("/v1/hello", b"[" * 60_000, {}, 400),
        ("/v1/hello", b"{}", {}, 400),
        ("/v1/hello", b"x" * 70_000, {}, 413),
        ("/v1/work", b"", {"Session": "made up"}, 401),
        ("/v1/said", b"", {"Session": ""}, 401),
        ("/v1/said", b"", {"Session": "\xff"}, 401),
        ("/v1/said", b"x" * 1_500_000, {"Session": "made up"}, 401),
    ],
)
def test_what_is_no_call_of_a_machine_is_refused(
    site: Site, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    assert site.call(path, body, **headers).status == status


@pytest.mark.parametrize(
    ("start", "code"), [("", ""), ("-1", ""), ("x", ""), ("0", "x"), ("0", "--5"), ("0", "-")]
)
def test_numbers_of_output_are_numbers(site: Site, start: str, code: str) -> None:
    session = json.loads(site.hello(voucher=site.voucher()).body)["session"]

    assert site.call("/v1/said", Session=session, Start=start, Exit=code).status == 400


def test_a_session_is_good_from_its_own_address_alone(site: Site) -> None:
    session = json.loads(site.hello(voucher=site.voucher()).body)["session"]

    assert site.call("/v1/said", Session=session, Start="0").status == 410
    assert site.call("/v1/said", Session=session, Start="0", source="127.0.0.2").status == 401


def test_an_answer_does_not_name_the_server(site: Site) -> None:
    assert {name.lower() for name in site.call("/v1/nonce").headers} == {"content-length", "connection"}


def test_a_silent_caller_blocks_no_other_caller(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.endpoint.port)):
        threads = [threading.Thread(target=site.call, args=("/v1/nonce",)) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert site.call("/v1/nonce").status == 200

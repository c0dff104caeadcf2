"""Kerberos over WinRM: a genuine KDC and MIT's library at both ends."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import spnego
from lab_wsman.stage import FAST, Actor, node, says
from spnego.channel_bindings import GssChannelBindings
from winboot_lab.wsman.auth import Accepted, Accounts, Refused
from winboot_lab.wsman.auth import Login as Acceptor
from winboot_lab.wsman.endpoint import Endpoint as Machine
from winboot_lab.wsman.executor import Emit, Ended
from winboot_lab.wsman.farm import Farm

from tests.transport.kdc import REALM, Kdc, needs_kdc, realm
from tests.transport.sshd import CuttingRelay
from winboot.base.errors import LoginRefused, Unreachable
from winboot.base.secret import Secret
from winboot.remote.transport.base import Auth, Endpoint, Tls
from winboot.remote.transport.psrp import PsrpTransport

pytestmark = needs_kdc
OPERATOR = f"operator@{REALM}"
SPN = "HTTP/win-a1.winboot.test"


@pytest.fixture
def kdc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kdc]:
    folder = tmp_path / "realm"
    folder.mkdir()
    with realm(folder) as kdc:
        for name, value in kdc.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
        yield kdc


@pytest.fixture
def operator(kdc: Kdc) -> Path:
    """The keytab of the account that logs in."""
    return kdc.principal("operator", password="correct horse")


@pytest.fixture
def machine(kdc: Kdc, farm: Farm) -> Machine:
    """A machine that is host/localhost in the realm."""
    return node(farm, says("done"), keytab=kdc.principal("host/localhost"), address="localhost")


def way(machine: Machine, **changes: object) -> Endpoint:
    given: dict[str, object] = {
        "address": "localhost",
        "port": machine.http_port,
        "user": "",
        "password": None,
        "auth": "kerberos",
        "timeouts": FAST,
        **changes,
    }
    return Endpoint(**given)  # type: ignore[arg-type]


def said(endpoint: Endpoint) -> list[str]:
    with PsrpTransport(endpoint, name="win-a1") as transport:
        return list(transport.run("anything", {}, {}))


@pytest.mark.parametrize("auth", ["kerberos", "negotiate"])
def test_a_ticket_of_the_cache_logs_in_and_every_message_is_sealed(
    kdc: Kdc, operator: Path, machine: Machine, auth: Auth
) -> None:
    kdc.ticket("operator", operator)

    with CuttingRelay(machine.http_port, lambda number: False) as relay:
        with PsrpTransport(way(machine, auth=auth, port=relay.port), name="win-a1") as transport:
            assert list(transport.run("anything", {}, {})) == ["done"]
            [login] = machine.logins
            assert login.protocol == "kerberos"
        heard = bytes(relay.heard)

    assert heard.count(b"multipart/encrypted") > 5
    for word in ("Envelope", "CreationXml", "anything", "done"):
        assert word.encode("utf-8") not in heard
        assert word.encode("utf-16-le") not in heard


def test_a_client_keytab_needs_no_ticket(
    operator: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MIT's library fetches one itself, and another one when that has expired."""
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(operator))

    assert said(way(machine)) == ["done"]
    assert said(way(machine, user=OPERATOR)) == ["done"]


def test_a_password_fetches_a_ticket(operator: Path, machine: Machine) -> None:
    assert said(way(machine, user=OPERATOR, password=lambda: Secret("correct horse"))) == ["done"]


def test_a_wrong_password_is_refused(operator: Path, machine: Machine) -> None:
    with pytest.raises(LoginRefused, match=r"no Kerberos login 'operator@WINBOOT\.TEST'") as caught:
        said(way(machine, user=OPERATOR, password=lambda: Secret("not it")))

    assert "Check that the password" in caught.value.hint
    assert "not it" not in str(caught.value)


@pytest.mark.parametrize("user", ["", OPERATOR])
def test_without_a_ticket_the_way_to_one_is_named(kdc: Kdc, machine: Machine, user: str) -> None:
    with pytest.raises(LoginRefused, match="no Kerberos login") as caught:
        said(way(machine, user=user))

    assert "kinit" in caught.value.hint
    assert "KRB5_CLIENT_KTNAME" in caught.value.hint


@pytest.mark.parametrize("user", ["a@NOWHERE.TEST", r"CORP\a", f"nobody@{REALM}"])
def test_a_wrong_realm_or_name_is_named_with_the_right_form(kdc: Kdc, machine: Machine, user: str) -> None:
    with pytest.raises(LoginRefused, match="no Kerberos login") as caught:
        said(way(machine, user=user, password=lambda: Secret("x")))

    assert "user: name@REALM" in caught.value.hint


def test_a_kdc_that_does_not_answer_is_out_of_reach(kdc: Kdc, operator: Path, machine: Machine) -> None:
    """That of another realm, and ours when it has stopped."""
    with pytest.raises(Unreachable, match=r"ELSEWHERE\.TEST") as caught:
        said(way(machine, user="a@ELSEWHERE.TEST", password=lambda: Secret("x")))
    assert "port 88" in caught.value.hint
    kdc.ticket("operator", operator)
    kdc.stop()
    with pytest.raises(Unreachable, match="no Kerberos login with the tickets of this host"):
        said(way(machine))


def test_a_service_principal_that_the_realm_does_not_know_is_named(
    kdc: Kdc, operator: Path, machine: Machine
) -> None:
    kdc.ticket("operator", operator)

    with pytest.raises(LoginRefused, match=r"HTTP/win-a1\.winboot\.test@WINBOOT\.TEST not found") as caught:
        said(way(machine, spn=SPN))
    assert "connection.spn" in caught.value.hint


def test_the_service_principal_may_be_another_one_than_the_address(
    kdc: Kdc, operator: Path, farm: Farm
) -> None:
    """The machine answers at 127.0.0.1 and is HTTP/win-a1.winboot.test, over HTTP and over TLS."""
    kdc.ticket("operator", operator)
    machine = node(farm, says("done"), keytab=kdc.principal(SPN))
    secure = {"port": machine.https_port, "tls": Tls(ca_pem=farm.authority.pem.decode())}

    assert said(way(machine, address="127.0.0.1", spn=SPN)) == ["done"]
    assert said(way(machine, address="127.0.0.1", spn=SPN, **secure)) == ["done"]
    with pytest.raises(LoginRefused, match=r"host/127\.0\.0\.1@"):
        said(way(machine, address="127.0.0.1"))


@pytest.mark.parametrize("auth", ["kerberos", "negotiate"])
def test_over_tls_the_login_is_bound_to_the_certificate(
    kdc: Kdc, operator: Path, machine: Machine, farm: Farm, auth: Auth
) -> None:
    kdc.ticket("operator", operator)
    tls = Tls(ca_pem=farm.authority.pem.decode())

    with PsrpTransport(way(machine, port=machine.https_port, tls=tls, auth=auth), name="win-a1") as transport:
        assert list(transport.run("anything", {}, {})) == ["done"]
        [login] = machine.logins
        assert login.protocol == "kerberos"
    # A login without any binding would be accepted here, too, so this one has a binding.
    machine._bindings = GssChannelBindings(application_data=b"tls-server-end-point:another")
    with pytest.raises(LoginRefused):
        said(way(machine, port=machine.https_port, tls=tls, auth=auth))


def test_a_login_that_was_bound_to_another_certificate_is_refused(
    kdc: Kdc, operator: Path, tmp_path: Path
) -> None:
    """The messages that an attacker in between, with another certificate, would pass on."""
    kdc.ticket("operator", operator)
    keytab = kdc.principal("host/localhost")
    right, wrong = (
        GssChannelBindings(application_data=b"tls-server-end-point:" + each) for each in (b"a", b"b")
    )
    accounts = Accounts(tmp_path / "accounts", "WIN-A1", {}, keytab)

    for bindings, verdict in ((right, Accepted), (wrong, Refused)):
        client = spnego.client(hostname="localhost", channel_bindings=bindings, protocol="kerberos")
        token = base64.b64encode(client.step() or b"").decode()
        assert isinstance(Acceptor(accounts, ("Negotiate",), right).step(f"Negotiate {token}"), verdict)


@pytest.mark.parametrize("auth", ["kerberos", "negotiate"])
def test_no_ticket_is_delegated_though_it_could_be(
    kdc: Kdc, operator: Path, machine: Machine, auth: Auth
) -> None:
    """The ticket is forwardable; a machine that was broken into would log in elsewhere with one that it was given."""
    kdc.ticket("operator", operator)

    with PsrpTransport(way(machine, auth=auth), name="win-a1") as transport:
        assert list(transport.run("anything", {}, {})) == ["done"]
        [login] = machine.logins
        assert not login.delegated


def test_the_check_for_delegation_would_see_it(kdc: Kdc, operator: Path, tmp_path: Path) -> None:
    kdc.ticket("operator", operator)
    accounts = Accounts(tmp_path / "accounts", "WIN-A1", {}, kdc.principal("host/localhost"))
    login = Acceptor(accounts, ("Negotiate",))
    asked = spnego.ContextReq.default | spnego.ContextReq.delegate
    client = spnego.client(hostname="localhost", protocol="kerberos", context_req=asked)

    login.step(f"Negotiate {base64.b64encode(client.step() or b'').decode()}")

    assert login.delegated


SHORT_S = 4


def outlived(began: float) -> None:
    """Wait until a ticket of SHORT_S seconds, fetched at `began`, has expired, with the second that clocks may differ."""
    time.sleep(max(0.0, began + SHORT_S + 2 - time.monotonic()))


def test_a_ticket_that_expires_in_mid_run_is_named_with_the_way_to_a_lasting_one(
    kdc: Kdc, operator: Path, farm: Farm
) -> None:
    """A login that is sealed with a ticket ends with it."""
    expired = threading.Event()

    def play(
        script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Callable[[], bool]
    ) -> Ended:
        emit("output", "begun")
        expired.wait(30)
        emit("output", "done")
        return Ended()

    machine = node(farm, Actor(play), keytab=kdc.principal("host/localhost"), address="localhost")
    began = time.monotonic()
    kdc.ticket("operator", operator, lifetime=f"{SHORT_S}s")

    with PsrpTransport(way(machine), name="win-a1") as transport:
        lines = transport.run("anything", {}, {})
        assert next(lines) == "begun"
        outlived(began)
        expired.set()
        with pytest.raises(LoginRefused, match="Ticket expired") as caught:
            list(lines)
    assert "KRB5_CLIENT_KTNAME" in caught.value.hint


def test_with_a_keytab_a_run_continues_past_its_ticket_and_a_lost_connection(
    kdc: Kdc, operator: Path, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = threading.Event()

    def play(
        script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Callable[[], bool]
    ) -> Ended:
        emit("output", "begun")
        expired.wait(30)
        emit("output", "done")
        return Ended()

    machine = node(farm, Actor(play), keytab=kdc.principal("host/localhost"), address="localhost")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(operator))
    began = time.monotonic()
    kdc.ticket("operator", operator, lifetime=f"{SHORT_S}s")

    with PsrpTransport(way(machine), name="win-a1") as transport:
        lines = transport.run("anything", {}, {})
        assert next(lines) == "begun"
        outlived(began)
        farm.cut(machine)
        farm.up(machine)
        expired.set()
        assert list(lines) == ["done"]

"""Machines that refuse, or that are not the expected machine: each has its own error, before winboot sends a secret."""

from __future__ import annotations

import dataclasses
import threading
from datetime import timedelta

import pytest
from lab_wsman.stage import (
    BASIC,
    BASIC_CA,
    FAST,
    NEGOTIATE,
    NEGOTIATE_PINNED,
    NTLM,
    NTLM_CA,
    PASSWORD,
    USER,
    Actor,
    node,
    says,
    transport,
)
from winboot_lab.wsman.certificates import Authority
from winboot_lab.wsman.executor import Ended, ErrorRecord
from winboot_lab.wsman.farm import Farm
from winboot_lab.wsman.faults import Answer, Unsealed

from winboot.base.errors import (
    AccessDenied,
    CertificateNotTrusted,
    LoginRefused,
    ProtocolError,
    RestrictedEndpoint,
    TransportError,
    Unreachable,
    UsageError,
)
from winboot.base.secret import Secret
from winboot.remote.transport import base
from winboot.remote.transport.psrp import PsrpTransport

ONCE = dataclasses.replace(FAST, open=0)


def fails(wire: PsrpTransport, kind: type[TransportError]) -> TransportError:
    """Run anything and give the error, which must be exactly of this kind and name the machine and a next step."""
    with wire, pytest.raises(TransportError) as caught:
        list(wire.run("anything", {}, {}))
    assert type(caught.value) is kind, caught.value
    assert caught.value.node == "win-a1"
    assert str(caught.value).startswith("win-a1: ")
    return caught.value


def test_a_wrong_password_is_a_refused_login(farm, mode):
    """And no script arrives."""
    actor = says()
    error = fails(
        transport(farm, node(farm, actor), mode, password=lambda: Secret("wrong"), timeouts=ONCE),
        LoginRefused,
    )

    assert USER in str(error)
    assert "wrong" not in repr(error)
    assert actor.runs == []


def test_an_unknown_user_is_a_refused_login(farm, mode):
    """The machine does not distinguish the two, so winboot does not either."""
    fails(transport(farm, node(farm, says()), mode, user="unknown", timeouts=ONCE), LoginRefused)


def test_local_accounts_may_be_written_in_three_ways(farm, mode):
    """As on Windows: plain, with a dot, and with the computer's name."""
    machine = node(farm, says("done"))
    for user in ("administrator", rf".\{USER}", rf"win-lab\{USER}"):
        with transport(farm, machine, mode, user=user) as wire:
            assert list(wire.run("anything", {}, {})) == ["done"]


def test_a_password_changed_in_the_middle_refuses_the_next_connection(farm):
    """A lost connection has to log in again, and that is a refusal, not a lost connection."""
    changed = threading.Event()

    def play(script, parameters, emit, cancelled):
        emit("output", "started")
        assert changed.wait(10)
        return Ended()

    machine = node(farm, Actor(play))
    with transport(farm, machine) as wire:
        lines = wire.run("anything", {}, {})
        assert next(lines) == "started"
        machine.accounts.set_password(USER, "another")
        for connection in list(machine._guests):
            farm._loop.call_soon_threadsafe(connection.cut)
        with pytest.raises(LoginRefused):
            next(lines)
        changed.set()


def test_an_account_without_the_right_is_denied(farm, mode):
    """It may log on, but not open a session."""
    machine = node(farm, says(), denied=frozenset({USER}))
    error = fails(transport(farm, machine, mode, timeouts=ONCE), AccessDenied)

    assert "Administrators" in error.hint


def test_a_login_the_machine_does_not_offer_is_refused(farm):
    """The machine offers only Basic, and the inventory demands NTLM."""
    fails(transport(farm, node(farm, says(), negotiate=False), NTLM, timeouts=ONCE), LoginRefused)


@pytest.mark.parametrize("tls", [None, base.Tls(fingerprint="0" * 64)], ids=["http", "https"])
@pytest.mark.parametrize("address", ["10.0.0.5", "win-a1.corp.example", "2001:db8::1"])
def test_basic_leaves_this_host_never(address, tls):
    """It would hand the password over, so it is refused before a packet is sent."""
    endpoint = base.Endpoint(address, 5985, USER, lambda: Secret(PASSWORD), auth="basic", tls=tls)

    with pytest.raises(UsageError, match="Basic sends the password"):
        PsrpTransport(endpoint, name="win-a1")


def test_kerberos_without_its_library_says_what_is_missing(farm):
    """pyspnego finds out late and by an ImportError."""
    pytest.importorskip("spnego")
    try:
        import gssapi  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("the library is there")
    machine = node(farm, says())
    wire = PsrpTransport(dataclasses.replace(NTLM.endpoint(farm, machine), auth="kerberos"), name="win-a1")

    with wire, pytest.raises(UsageError, match="library"):
        list(wire.run("anything", {}, {}))


@pytest.mark.parametrize("envelope_kb", [150, 100, 32])
def test_a_machine_that_takes_small_messages_gets_small_ones(farm, mode, envelope_kb):
    """Once the run ended there; the script arrives whole, and runs once."""
    actor = says("done")
    machine = node(farm, actor, max_envelope_kb=envelope_kb)
    script = "# " + "x" * 400_000
    with transport(farm, machine, mode) as wire:
        assert list(wire.run(script, {}, {"a": Secret("b")})) == ["done"]
        assert list(wire.run(script, {}, {})) == ["done"]

    assert [text for text, _ in actor.runs] == [script, script]
    assert machine.shells == ()


def test_a_message_too_big_for_the_machine_is_named(farm, mode):
    """HTTP 413 has no body; the reason is a setting on the machine."""
    machine = node(farm, says(), max_envelope_kb=16)
    with transport(farm, machine, mode, timeouts=ONCE) as wire, pytest.raises(ProtocolError) as caught:
        list(wire.run("# " + "x" * 200_000, {}, {}))

    assert "MaxEnvelopeSizekb" in caught.value.hint


@pytest.mark.parametrize("action", ["Create", "Command", "Receive"])
@pytest.mark.parametrize("sealed", [NTLM, NEGOTIATE], ids=lambda mode: mode.name)
def test_an_answer_that_is_not_sealed_is_refused(farm, action, sealed):
    """An attacker in between can write one; winboot must not believe it."""
    machine = node(farm, says("forged"))
    machine.faults.on(action, Unsealed())

    error = fails(transport(farm, machine, sealed, timeouts=ONCE), ProtocolError)

    assert "unencrypted answer" in str(error)
    assert machine.shells == ()


@pytest.mark.parametrize("status", [400, 404, 405, 407, 502])
def test_any_other_status_is_named(farm, status):
    """A proxy, or another service on the port."""
    machine = node(farm, says())
    for number in range(1, 9):
        machine.faults.at(number, Answer(status))

    assert str(status) in str(fails(transport(farm, machine, timeouts=ONCE), ProtocolError))


@pytest.mark.parametrize("mode", [NTLM_CA, BASIC_CA], ids=lambda mode: mode.name)
def test_a_certificate_of_another_ca_is_not_trusted(farm, mode):
    """Nothing is sent to such a machine, no login either."""
    machine = node(farm, says())
    tls = base.Tls(ca_pem=Authority().pem.decode())
    fails(transport(farm, machine, mode, tls=tls, timeouts=ONCE), CertificateNotTrusted)

    assert machine.requests == []


def test_the_systems_cas_do_not_know_the_lab(farm, monkeypatch):
    """Without a CA or a fingerprint the system decides; the environment cannot add one."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(farm.ca_file()))
    machine = node(farm, says())
    fails(transport(farm, machine, NTLM_CA, tls=base.Tls(), timeouts=ONCE), CertificateNotTrusted)


def test_a_certificate_for_another_name_is_not_trusted(farm):
    """The certificate must contain the address."""
    machine = node(farm, says())
    farm.down(machine)
    machine._tls = farm.authority.issue(["win-b2", "127.0.0.2"]).context(farm.folder)
    farm.up(machine)

    fails(transport(farm, machine, NTLM_CA, timeouts=ONCE), CertificateNotTrusted)


@pytest.mark.parametrize("fingerprint", ["0" * 64, "f" * 64])
def test_another_fingerprint_is_not_trusted(farm, fingerprint):
    """Not even if the CA would be."""
    machine = node(farm, says())
    tls = base.Tls(fingerprint=fingerprint)
    fails(transport(farm, machine, NEGOTIATE_PINNED, tls=tls, timeouts=ONCE), CertificateNotTrusted)

    assert machine.requests == []


def test_a_fingerprint_is_compared_on_every_new_connection(farm):
    """A machine that changes its certificate between two requests is another machine."""
    machine = node(farm, says("done"), idle_s=0.05)
    with transport(farm, machine, NEGOTIATE_PINNED, timeouts=ONCE) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]
        farm.down(machine)
        machine._tls = farm.authority.issue(["127.0.0.1"]).context(farm.folder)
        farm.up(machine)
        machine.recount()
        with pytest.raises(CertificateNotTrusted):
            list(wire.run("anything", {}, {}))
    assert machine.requests == []


def test_a_fingerprint_may_belong_to_a_certificate_that_has_run_out(farm):
    """Pinning names the certificate itself; its dates and names say nothing more."""
    machine = node(farm, says("done"))
    old = farm.authority.issue(["elsewhere"], valid=timedelta(days=-1))
    farm.down(machine)
    machine._tls = old.context(farm.folder)
    farm.up(machine)

    with transport(farm, machine, NEGOTIATE_PINNED, tls=base.Tls(fingerprint=old.fingerprint)) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]
    fails(transport(farm, machine, NTLM_CA, timeouts=ONCE), CertificateNotTrusted)


def test_tls_on_a_port_of_plain_http_is_named(farm):
    """The usual mistake: 5985 with TLS."""
    machine = node(farm, says())
    error = fails(transport(farm, machine, NTLM_CA, port=machine.http_port, timeouts=ONCE), ProtocolError)

    assert "5985" in error.hint


def test_plain_http_on_a_port_of_tls_is_a_machine_out_of_reach(farm):
    """The machine hangs up without a word; nothing has begun, so running the command again continues nothing."""
    machine = node(farm, says())
    error = fails(transport(farm, machine, NTLM, port=machine.https_port, timeouts=ONCE), Unreachable)

    assert "5986 is HTTPS" in error.hint


def test_a_refused_connection_is_a_machine_out_of_reach(farm, mode):
    """Nothing listens."""
    machine = node(farm, says())
    farm.down(machine)
    error = fails(transport(farm, machine, mode, timeouts=ONCE), Unreachable)

    assert error.worth_retrying


def test_an_unknown_host_name_is_a_machine_out_of_reach(farm):
    """`.invalid` never resolves."""
    machine = node(farm, says())
    fails(transport(farm, machine, address="win-a1.invalid", timeouts=ONCE), Unreachable)


@pytest.mark.parametrize(
    "error_id", ["ScriptsNotAllowed", "MethodInvocationNotSupportedInConstrainedLanguage"]
)
def test_a_restricted_session_is_named(farm, error_id):
    """JEA and Constrained Language look like a failing script; winboot cannot work there at all."""
    error = ErrorRecord("The syntax is not supported by this runspace.", error_id=error_id)
    actor = Actor(lambda script, parameters, emit, cancelled: Ended("failed", error))

    fails(transport(farm, node(farm, actor), timeouts=ONCE), RestrictedEndpoint)


def test_a_bug_in_the_lab_is_an_error_of_the_script_and_kept(farm: Farm):
    """It must not look like a machine that went away."""

    def play(script, parameters, emit, cancelled):
        raise RuntimeError("a bug")

    machine = node(farm, Actor(play))
    with transport(farm, machine) as wire, pytest.raises(Exception, match="a bug"):
        list(wire.run("anything", {}, {}))
    assert [str(crash) for crash in machine.crashes] == ["a bug"]


def test_nothing_of_a_login_goes_to_a_machine_without_sealing(farm):
    """BASIC on loopback is the one mode that shows everything; the machine must have allowed it."""
    machine = node(farm, says(), allow_unencrypted=False)
    fails(transport(farm, machine, BASIC, timeouts=ONCE), LoginRefused)

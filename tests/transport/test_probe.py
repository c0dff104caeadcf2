"""What `winboot ping` learns of a machine: from outside without a login, and by one script inside."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from lab_wsman.stage import BASIC, NEGOTIATE_PINNED, NTLM, Actor, node, says, transport
from winboot_lab.language.check import check_script
from winboot_lab.wsman.executor import Ended, ErrorRecord

from winboot.base.errors import ProtocolError, RestrictedEndpoint, Unreachable
from winboot.base.secret import Secret
from winboot.remote.transport.base import Endpoint, Tls
from winboot.remote.transport.probe import PROBE_SCRIPT, visible_from_outside

ANSWER = {
    "language": "FullLanguage",
    "policy": "RemoteSigned",
    "ps": "5.1.20348.2227",
    "computer": "WIN-A1",
    "administrator": True,
    "filtered": False,
    "domain": "corp.example",
    "build": "20348.2227",
}


def answering(**changes: object) -> Actor:
    """A machine that answers the probe, with its clock five minutes ahead."""

    def play(script, parameters, emit, cancelled):
        now = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
        emit("output", json.dumps({**ANSWER, "now": now, **changes}))
        return Ended()

    return Actor(play)


def test_a_machine_is_described(farm, mode):
    """Logins, language, rights, domain, build and clock."""
    machine = node(farm, answering())
    with transport(farm, machine, mode) as wire:
        probe = wire.probe()

    assert probe.offered_auth == ("Negotiate", "Basic")
    assert (probe.language_mode, probe.execution_policy) == ("FullLanguage", "RemoteSigned")
    assert (probe.administrator, probe.filtered_token) == (True, False)
    assert (probe.computer_name, probe.domain) == ("WIN-A1", "corp.example")
    assert (probe.os_build, probe.ps_version) == ("20348.2227", "5.1.20348.2227")
    assert timedelta(minutes=4) < probe.clock_offset < timedelta(minutes=6)
    assert timedelta(0) < probe.round_trip < timedelta(seconds=10)


def test_the_certificate_is_shown(farm):
    """Also its fingerprint, which may then be pinned."""
    machine = node(farm, answering())
    with transport(farm, machine, NEGOTIATE_PINNED) as wire:
        certificate = wire.probe().certificate

    assert certificate.fingerprint == machine.certificate.fingerprint
    assert certificate.issuer == "CN=winboot lab CA"
    assert certificate.names == ("127.0.0.1", "win-a1")
    assert certificate.not_after > datetime.now(UTC)
    assert certificate.protocol.startswith("TLSv1")


@contextmanager
def _a_server_with(der: bytes, key: ec.EllipticCurvePrivateKey, folder: Path) -> Iterator[int]:
    """TLS with this certificate, on a port of loopback, for one handshake."""
    file = folder / "pair.pem"
    pem = f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(der).decode()}-----END CERTIFICATE-----\n"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    file.write_text(pem + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError), context.wrap_socket(listener.accept()[0], server_side=True) as one:
                one.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def test_a_certificate_that_is_not_well_formed_is_named_with_its_fingerprint(tmp_path):
    """OpenSSL takes a `*` in a PrintableString; it is not a bug of winboot that other readers do not."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "*.corp.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )
    der = made.replace(b"\x0c\x0e*.corp.example", b"\x13\x0e*.corp.example")

    with (
        _a_server_with(der, key, tmp_path) as port,
        pytest.raises(ProtocolError, match=hashlib.sha256(der).hexdigest()),
    ):
        visible_from_outside(Endpoint("127.0.0.1", port, "u", lambda: Secret("p"), tls=Tls()), "win-a1")


def test_plain_http_has_no_certificate(farm):
    """And that is no error."""
    with transport(farm, node(farm, answering()), NTLM) as wire:
        assert wire.probe().certificate is None


def test_a_probe_leaves_the_session_for_the_run(farm):
    """One session serves both."""
    machine = node(farm, answering())
    with transport(farm, machine, BASIC) as wire:
        wire.probe()
        list(wire.run("anything", {}, {}))
    assert [seen.action for seen in machine.requests].count("Create") == 1


def test_a_machine_in_constrained_language_reports_a_few_facts(farm):
    """Its mode is the fact that matters."""
    actor = answering(language="ConstrainedLanguage", administrator=False, domain=None, build="", now=None)
    with transport(farm, node(farm, actor)) as wire:
        probe = wire.probe()

    assert probe.language_mode == "ConstrainedLanguage"
    assert abs(probe.clock_offset) < timedelta(seconds=5)


def test_a_restricted_endpoint_is_named(farm):
    """JEA takes no script at all."""
    refusal = ErrorRecord("The syntax is not supported by this runspace.", error_id="ScriptsNotAllowed")
    actor = Actor(lambda script, parameters, emit, cancelled: Ended("failed", refusal))
    with transport(farm, node(farm, actor)) as wire, pytest.raises(RestrictedEndpoint):
        wire.probe()


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["no json"],
        ["[]"],
        ["[" * 100_000],
        ['{"language": "FullLanguage"}'],
        [json.dumps({**ANSWER, "now": 5})],
        [json.dumps({**ANSWER, "now": "yesterday"})],
        [json.dumps({**ANSWER, "now": "2026-01-01T00:00:00"})],
        [json.dumps({**ANSWER, "now": None, "administrator": "yes"})],
        [json.dumps({**ANSWER, "now": None, "domain": ["corp"]})],
    ],
)
def test_an_answer_that_makes_no_sense_is_named(farm, lines):
    """Whatever the script was replaced by."""
    with transport(farm, node(farm, says(*lines))) as wire, pytest.raises(ProtocolError, match="probe"):
        wire.probe()


def test_a_machine_out_of_reach_cannot_be_probed(farm):
    """The first look from outside says so."""
    machine = node(farm, says())
    farm.down(machine)
    with transport(farm, machine) as wire, pytest.raises(Unreachable):
        wire.probe()


def test_the_probe_is_plain_windows_powershell():
    """It passes the same check as every script that goes to a node."""
    assert check_script(PROBE_SCRIPT, origin="probe") == ()

"""From an inventory to a transport: the endpoint, the login, the trusted certificates, and when secrets are read."""

from __future__ import annotations

import dataclasses
import socket

import pytest
from lab_wsman.stage import PASSWORD, USER, node, says

from winboot.base.errors import Busy, ConnectionLost, InvalidInput, Unreachable, UsageError
from winboot.base.retry import retried
from winboot.config.inventory import Connection, Tls
from winboot.config.profile import Reference
from winboot.config.profile.reference import LoginReference
from winboot.remote.transport.connect import connect


def connection(machine, **changes) -> Connection:
    given = {
        "host": "127.0.0.1",
        "port": machine.http_port,
        "scheme": "http",
        "user": USER,
        "password": LoginReference(env="WINBOOT_TEST_PASSWORD"),
        **changes,
    }
    return Connection(**given)


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("WINBOOT_TEST_PASSWORD", PASSWORD)


@pytest.mark.parametrize("auth", ["negotiate", "ntlm", "basic"])
def test_an_inventory_over_http(farm, auth):
    """Sealed by the login, or Basic on loopback."""
    machine = node(farm, says("done"))
    with connect(connection(machine, auth=auth), name="win-a1") as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]


def test_an_inventory_with_a_ca(farm):
    """The PEM file is read when the transport is made."""
    machine = node(farm, says("done"))
    tls = Tls(ca=Reference(file=farm.ca_file()))
    with connect(
        connection(machine, scheme="https", port=machine.https_port, tls=tls), name="win-a1"
    ) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]


def test_a_ca_file_may_have_words_between_its_certificates(farm, tmp_path):
    """`openssl x509 -text` writes names there, in any language."""
    machine = node(farm, says("done"))
    pem = farm.ca_file().read_text()
    file = tmp_path / "ca.pem"
    file.write_text(f"Aussteller: Zürich\n{pem}\n發行者\n{pem}", encoding="utf-8")
    tls = Tls(ca=Reference(file=file))
    with connect(
        connection(machine, scheme="https", port=machine.https_port, tls=tls), name="win-a1"
    ) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a key", "does not contain a certificate"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "cannot be read"),
    ],
    ids=["no certificate", "a damaged one"],
)
def test_an_invalid_ca_file_is_named(farm, tmp_path, text, problem):
    """It is the file that is wrong, not the machine's port."""
    machine = node(farm, says("done"))
    file = tmp_path / "ca.pem"
    file.write_text(text)
    given = connection(machine, scheme="https", port=machine.https_port, tls=Tls(ca=Reference(file=file)))

    with (
        pytest.raises(InvalidInput, match=r"connection\.tls\.ca") as caught,
        connect(given, name="win-a1") as wire,
    ):
        list(wire.run("anything", {}, {}))

    assert problem in caught.value.problem
    assert machine.requests == []


@pytest.mark.parametrize("form", ["sha256:{}", "{}"])
def test_an_inventory_with_a_fingerprint(farm, form):
    """With or without the name of the hash, in either case."""
    machine = node(farm, says("done"))
    for text in (machine.certificate.fingerprint, machine.certificate.fingerprint.upper()):
        tls = Tls(fingerprint=form.format(text))
        with connect(
            connection(machine, scheme="https", port=machine.https_port, tls=tls), name="win-a1"
        ) as wire:
            assert list(wire.run("anything", {}, {})) == ["done"]


def test_the_password_is_read_when_it_is_needed(farm, monkeypatch):
    """So a missing one is an error of its node, not of the whole fleet."""
    monkeypatch.delenv("WINBOOT_TEST_PASSWORD")
    machine = node(farm, says("done"))
    wire = connect(connection(machine), name="win-a1")

    with wire, pytest.raises(InvalidInput, match="WINBOOT_TEST_PASSWORD"):
        list(wire.run("anything", {}, {}))


@pytest.mark.parametrize(("transport", "kind"), [("ssh", "SshTransport"), ("local", "LocalTransport")])
def test_each_transport_is_the_one_that_its_name_says(farm, transport, kind):
    """Not silently replaced by WinRM; nothing is contacted yet."""
    made = connect(connection(node(farm, says()), transport=transport), name="win-a1")

    assert type(made).__name__ == kind


def test_trying_again_goes_by_the_class_of_the_error():
    """And stops when the time is over, with the error as it was."""
    tries = []

    def attempt(error: Exception, *kinds) -> None:
        def work() -> None:
            tries.append(error)
            raise error

        retried(work, 0.5, *kinds)

    with pytest.raises(Busy):
        attempt(Busy("x"))
    assert len(tries) > 1
    tries.clear()
    with pytest.raises(UsageError):
        attempt(UsageError("x"))
    assert len(tries) == 1
    tries.clear()
    with pytest.raises(ConnectionLost):
        attempt(ConnectionLost("x"), Unreachable)
    assert len(tries) == 1


def test_no_time_to_try_again_is_one_attempt():
    """Zero seconds."""
    tries = []

    def work() -> None:
        tries.append(1)
        raise Unreachable("x")

    with pytest.raises(Unreachable):
        retried(work, 0)
    assert tries == [1]


def test_an_endpoint_is_a_value(farm):
    """It can be compared and changed by copying; no repr shows its password."""
    machine = node(farm, says())
    wire = connect(connection(machine), name="win-a1")
    endpoint = wire._endpoint

    assert dataclasses.replace(endpoint, port=1).port == 1
    assert PASSWORD not in repr(endpoint)


def test_a_port_of_ssh_where_nothing_listens_is_the_one_that_the_hint_names():
    """operator N12: it said port 22 while 2299 was refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        settings = Connection(
            host="127.0.0.1", port=port, transport="ssh", user=USER, host_key=f"SHA256:{'A' * 43}"
        )

        with pytest.raises(Unreachable) as caught, connect(settings, name="win-a1") as wire:
            wire.probe()

    assert f"nothing answers at 127.0.0.1:{port} (" in caught.value.problem
    assert f"TCP port {port}." in caught.value.hint

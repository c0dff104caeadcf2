"""A command as the way to a machine: it is started, waited for, used under the machine's own name, and ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_wsman.stage import PASSWORD, USER, node, says
from winboot_lab.wsman.farm import Farm

from winboot.base.errors import CertificateNotTrusted, Unreachable, UsageError
from winboot.config.inventory import Connection
from winboot.remote.transport.connect import connect
from winboot.remote.transport.tunnel import Tunnel

RELAY = """
import socket, sys, threading
listen, host, port = sys.argv[1:]
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
with socket.create_server(("127.0.0.1", int(listen))) as server:
    while True:
        near, _ = server.accept()
        far = socket.create_connection((host, int(port)))
        threading.Thread(target=pump, args=(near, far), daemon=True).start()
        threading.Thread(target=pump, args=(far, near), daemon=True).start()
"""


@pytest.fixture
def relay(tmp_path: Path) -> Path:
    file = tmp_path / "relay.py"
    file.write_text(RELAY)
    return file


@pytest.fixture
def farm() -> Iterator[Farm]:
    with Farm() as farm:
        yield farm


def settings(port: int, tunnel: str, **more: object) -> Connection:
    return Connection.model_validate(
        {
            "host": "127.0.0.1",
            "port": port,
            "scheme": "http",
            "auth": "ntlm",
            "user": USER,
            "password": {"env": "TEST_TUNNEL_PASSWORD"},
            "tunnel": tunnel,
            "connect_timeout_s": 5,
            **more,
        }
    )


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_TUNNEL_PASSWORD", PASSWORD)


def test_a_script_goes_through_the_tunnel_and_the_command_ends_with_the_session(
    farm: Farm, relay: Path
) -> None:
    machine = node(farm, says("done"))
    way = settings(machine.http_port, f"{sys.executable} {relay} {{local_port}} {{host}} {{port}}")
    transport = connect(way, name="win-a1")

    assert list(transport.run("anything", {}, {})) == ["done"]
    tunnel, _ = transport._open  # type: ignore[attr-defined]
    transport.close()

    assert tunnel.ended


def test_a_tunnel_that_died_is_opened_again(farm: Farm, relay: Path) -> None:
    machine = node(farm, says("done"))
    way = settings(machine.http_port, f"{sys.executable} {relay} {{local_port}} {{host}} {{port}}")
    with connect(way, name="win-a1") as transport:
        assert list(transport.run("anything", {}, {})) == ["done"]
        first, _ = transport._open  # type: ignore[attr-defined]
        first.close()
        assert list(transport.run("anything", {}, {})) == ["done"]


def test_tls_is_checked_under_the_name_of_the_machine(farm: Farm, relay: Path) -> None:
    """Not under 127.0.0.1, where the tunnel's port is."""
    machine = node(farm, says("done"))
    command = f"{sys.executable} {relay} {{local_port}} 127.0.0.1 {{port}}"
    secure = {"scheme": "https", "auth": "ntlm", "tls": {"ca": {"file": str(farm.ca_file())}}}
    right = settings(machine.https_port or 0, command, **secure, host="win-a1")
    wrong = settings(machine.https_port or 0, command, **secure, host="win-b1")

    with connect(right, name="win-a1") as transport:
        assert list(transport.run("anything", {}, {})) == ["done"]
    with connect(wrong, name="win-a1") as transport, pytest.raises(CertificateNotTrusted):
        list(transport.run("anything", {}, {}))


@pytest.mark.parametrize(
    "command, says_",
    [
        ("/no/such/program {local_port}", "cannot be started"),
        (
            f"{sys.executable} -c 'import sys; sys.exit(\"no target {{local_port}}\")'",
            "ended with code 1: no target",
        ),
        (f"{sys.executable} -c 'import time; time.sleep(60)' {{local_port}}", "opened no port within 1 s"),
    ],
)
def test_a_command_that_opens_no_tunnel_is_named(command: str, says_: str) -> None:
    with pytest.raises(Unreachable, match=says_):
        Tunnel(command, host="h", port=1, name="win-a1", wait_s=1)


STRANGER = """
import os, socket, sys, time
if os.geteuid() == 0:
    os.setuid(65534)
address, family = (sys.argv[2], int(sys.argv[1])), getattr(socket, sys.argv[3])
with socket.create_server(address, family=family, dualstack_ipv6=family == socket.AF_INET6):
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a table of the owners of ports")
@pytest.mark.parametrize("address", ["127.0.0.1 AF_INET", "0.0.0.0 AF_INET", ":: AF_INET6"])
def test_a_port_at_which_another_user_listens_is_refused(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "stranger.py"
    program.write_text(STRANGER)
    if os.geteuid() != 0:
        monkeypatch.setattr("os.geteuid", lambda: 65_534)

    with pytest.raises(Unreachable, match=r"win-a1: the user \d+ of this computer listens"):
        Tunnel(
            f"{sys.executable} {program} {{local_port}} {address}", host="h", port=1, name="win-a1", wait_s=20
        )


@pytest.mark.parametrize("command", ["relay without a port", "relay 'open {local_port}"])
def test_a_command_that_cannot_work_is_wrong_use(command: str) -> None:
    with pytest.raises(UsageError, match=r"connection\.tunnel"):
        Tunnel(command, host="h", port=1, name="win-a1", wait_s=1)

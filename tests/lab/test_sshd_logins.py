"""A genuine sshd: certificates, the agent, a restart in the middle of a join, another host key in the second run."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from winboot_lab.console_server import ConsoleServer
from winboot_lab.shell import CONSOLE_VARIABLE
from winboot_lab.up import Lab

from tests.lab.test_sshd import console, joins, lab, said, sshd, staged_over, way
from tests.transport.sshd import KEYGEN, CuttingRelay, Sshd, fingerprint, needs_sshd, new_key, serving
from tests.transport.test_shells import stand_in
from winboot import cli
from winboot.base.errors import HostKeyNotTrusted, LoginRefused
from winboot.config.profile import Reference

pytestmark = [needs_sshd, pytest.mark.check]
__all__ = ["console", "lab", "sshd"]  # fixtures
AGENT = shutil.which("ssh-agent")
ADD = shutil.which("ssh-add")


def certificate(ca: Path, key: Path, principal: str, *, valid: str = "always:forever") -> Path:
    """The certificate that `ca` gives to `key` for this account."""
    assert KEYGEN is not None
    words = [KEYGEN, "-q", "-s", str(ca), "-I", "winboot", "-n", principal, "-V", valid, f"{key}.pub"]
    subprocess.run(words, check=True)
    return key.with_name(f"{key.name}-cert.pub")


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    return new_key(tmp_path / "ca")


@pytest.fixture
def trusting(tmp_path: Path, console: ConsoleServer, ca: Path) -> Iterator[Sshd]:
    """A server that knows no user's key, only the CA that signs them."""
    folder = tmp_path / "trusting"
    folder.mkdir()
    server = Sshd(
        folder,
        stand_in(folder),
        {CONSOLE_VARIABLE: console.address},
        TrustedUserCAKeys=f"{ca}.pub",
        AuthorizedKeysFile="none",
    )
    with serving(server):
        yield server


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_certificate_logs_in_where_its_key_alone_does_not(
    trusting: Sshd, ca: Path, tmp_path: Path, kind: str
) -> None:
    key = new_key(tmp_path / kind, kind=kind)
    signed = certificate(ca, key, trusting.user)

    assert said(way(trusting, key=Reference(file=key), certificate=Reference(file=signed))) == ["hi"]
    with pytest.raises(LoginRefused):
        said(way(trusting, key=Reference(file=key)))


@pytest.mark.parametrize(
    ("principal", "valid"), [("somebody-else", "always:forever"), ("", "20200101:20200102")]
)
def test_a_certificate_for_another_account_or_time_is_refused(
    trusting: Sshd, ca: Path, tmp_path: Path, principal: str, valid: str
) -> None:
    key = new_key(tmp_path / "key")
    signed = certificate(ca, key, principal or trusting.user, valid=valid)

    with pytest.raises(LoginRefused):
        said(way(trusting, key=Reference(file=key), certificate=Reference(file=signed)))


def test_a_server_that_disconnects_after_a_refusal_gets_one_login(
    tmp_path: Path, console: ConsoleServer
) -> None:
    """A connection that breaks in a login is tried again; a goodbye after too many refusals is a refusal."""
    folder = tmp_path / "strict"
    folder.mkdir()
    server = Sshd(folder, stand_in(folder), {CONSOLE_VARIABLE: console.address}, MaxAuthTries=1)
    with serving(server), CuttingRelay(server.port, lambda number: False) as relay:
        stranger = Reference(file=new_key(tmp_path / "stranger"))
        with pytest.raises(LoginRefused):
            said(way(server, port=relay.port, key=stranger))
        assert relay.connections == 1


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An ssh-agent without keys; its socket."""
    if AGENT is None or ADD is None:
        pytest.skip("no ssh-agent: apt-get install --no-install-recommends openssh-client")
    # The path of a socket has 108 bytes.
    socket = Path("/tmp") / f"winboot-agent-{os.getpid()}"
    process = subprocess.Popen([AGENT, "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not socket.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    try:
        yield socket
    finally:
        process.terminate()
        process.wait(10)
        socket.unlink(missing_ok=True)


def test_a_key_of_the_agent_logs_in_when_the_inventory_says_so(agent: Path, sshd: Sshd) -> None:
    """And not before it is there, nor where `agent` is false."""
    with pytest.raises(LoginRefused):
        said(way(sshd, key=None, agent=True))
    assert ADD is not None
    subprocess.run([ADD, "-q", str(sshd.key)], check=True)

    assert said(way(sshd, key=None, agent=True)) == ["hi"]
    with pytest.raises(LoginRefused):
        said(way(sshd, key=None))


def test_another_host_key_in_the_second_run_is_refused_and_nothing_is_sent(
    sshd: Sshd, tmp_path: Path, console: ConsoleServer
) -> None:
    pinned = fingerprint(sshd.host_key)
    assert said(way(sshd, host_key=pinned)) == ["hi"]
    sshd.stop()
    sshd.host_key.unlink()
    sshd.host_key.with_suffix(".pub").unlink()
    new_key(sshd.host_key)
    sshd.start()

    with pytest.raises(HostKeyNotTrusted) as caught:
        said(way(sshd, host_key=pinned))
    assert pinned in str(caught.value) and fingerprint(sshd.host_key) in str(caught.value)
    assert said(way(sshd)) == ["hi"]


def test_a_join_continues_when_sshd_restarts_in_the_middle(
    sshd: Sshd, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart of the service on Windows ends its connections, too; Debian's leaves them, so they are cut here."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    restarted = threading.Event()

    def restart_at_60(number: int) -> bool:
        if number != 60:
            return False
        sshd.stop()
        sshd.start()
        restarted.set()
        return True

    with CuttingRelay(sshd.port, restart_at_60) as relay:
        staged = staged_over(sshd, lab, tmp_path / "files", relay.port)

        assert joins(staged, tmp_path, 2) <= 2
        assert restarted.is_set()
        assert cli.run(["plan", "-i", str(staged.inventory)]) == 0

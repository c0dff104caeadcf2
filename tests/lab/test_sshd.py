"""A genuine sshd (Debian's openssh-server) in front of a lab machine: logins, host keys, faults, a whole join."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from winboot_lab.cli.staging import Staged, stage
from winboot_lab.console_server import ConsoleServer
from winboot_lab.shell import CONSOLE_VARIABLE
from winboot_lab.up import Lab

from tests.transport.sshd import CuttingRelay, Sshd, fingerprint, needs_sshd, new_key, serving
from tests.transport.test_shells import stand_in
from winboot import cli
from winboot.base.errors import Busy, HostKeyNotTrusted, LoginRefused, Unreachable
from winboot.config.inventory import Connection
from winboot.config.profile import Reference
from winboot.config.profile.reference import LoginReference
from winboot.remote.transport.connect import connect, show_host_key

pytestmark = [needs_sshd, pytest.mark.check]


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(nodes=1) as lab:
        yield lab


@pytest.fixture
def console(lab: Lab) -> Iterator[ConsoleServer]:
    with ConsoleServer(lab.nodes["win-1"].machine) as console:
        yield console


@pytest.fixture
def sshd(tmp_path: Path, console: ConsoleServer) -> Iterator[Sshd]:
    folder = tmp_path / "sshd"
    folder.mkdir()
    with serving(Sshd(folder, stand_in(folder), {CONSOLE_VARIABLE: console.address})) as server:
        yield server


def way(sshd: Sshd, **more: object) -> Connection:
    settings: dict[str, object] = {
        "transport": "ssh",
        "host": "127.0.0.1",
        "port": sshd.port,
        "user": sshd.user,
        "key": Reference(file=sshd.key),
        "host_key": fingerprint(sshd.host_key),
        **more,
    }
    return Connection.model_validate({name: value for name, value in settings.items() if value is not None})


def said(connection: Connection, script: str = "'hi'") -> list[str]:
    with closing(connect(connection, name="win-1")) as transport:
        return list(transport.run(script, {}, {}))


def known_hosts(file: Path, sshd: Sshd, key: Path) -> Path:
    kind, blob, *_ = key.with_suffix(".pub").read_text().split()
    file.write_text(f"[127.0.0.1]:{sshd.port} {kind} {blob}\n")
    return file


def test_a_script_runs_with_a_pinned_host_key(sshd: Sshd) -> None:
    assert said(way(sshd)) == ["hi"]


def test_known_hosts_is_enough(sshd: Sshd, tmp_path: Path) -> None:
    file = known_hosts(tmp_path / "known", sshd, sshd.host_key)

    assert said(way(sshd, host_key=None, known_hosts=file)) == ["hi"]


def test_an_unknown_host_key_is_refused_with_what_was_seen(sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(HostKeyNotTrusted) as caught:
        said(way(sshd, host_key=None, known_hosts=tmp_path / "none"))

    assert fingerprint(sshd.host_key) in str(caught.value)
    assert f"host_key: {fingerprint(sshd.host_key)}" in caught.value.hint


def test_a_changed_host_key_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    file = known_hosts(tmp_path / "known", sshd, new_key(tmp_path / "other"))

    with pytest.raises(HostKeyNotTrusted, match="is not the one in"):
        said(way(sshd, host_key=None, known_hosts=file))


def test_a_revoked_host_key_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    file = known_hosts(tmp_path / "known", sshd, sshd.host_key)
    file.write_text(file.read_text() + "@revoked " + file.read_text())

    with pytest.raises(HostKeyNotTrusted):
        said(way(sshd, host_key=None, known_hosts=file))


def test_a_wrong_pin_is_refused_before_any_login(sshd: Sshd) -> None:
    with pytest.raises(HostKeyNotTrusted, match="pins SHA256:AAAA"):
        said(way(sshd, host_key="SHA256:" + "A" * 43))


@pytest.mark.parametrize("passphrase", ["", "open sesame"])
@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_every_type_of_key_logs_in(sshd: Sshd, tmp_path: Path, kind: str, passphrase: str) -> None:
    key = new_key(tmp_path / kind, kind=kind, passphrase=passphrase)
    (tmp_path / "passphrase").write_text(passphrase)
    authorized = tmp_path / "sshd" / "authorized"
    authorized.write_text(authorized.read_text() + key.with_suffix(".pub").read_text())
    secret = Reference(file=tmp_path / "passphrase") if passphrase else None

    assert said(way(sshd, key=Reference(file=key), passphrase=secret)) == ["hi"]


def test_an_encrypted_key_without_its_passphrase_says_so(sshd: Sshd, tmp_path: Path) -> None:
    key = new_key(tmp_path / "locked", passphrase="x")

    with pytest.raises(LoginRefused, match="is encrypted") as caught:
        said(way(sshd, key=Reference(file=key)))
    assert "connection.passphrase" in caught.value.hint


def test_a_key_without_authorization_is_refused_with_the_file_of_administrators(
    sshd: Sshd, tmp_path: Path
) -> None:
    with pytest.raises(LoginRefused) as caught:
        said(way(sshd, key=Reference(file=new_key(tmp_path / "stranger"))))

    assert "administrators_authorized_keys" in caught.value.hint


def test_a_wrong_password_is_refused(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG", "not the password")

    with pytest.raises(LoginRefused):
        said(way(sshd, key=None, password=LoginReference(env="WRONG")))


@contextlib.contextmanager
def held_until_full(server: Sshd) -> Iterator[None]:
    """Connections that never log in, as many as the server takes."""
    with contextlib.ExitStack() as held:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            one = held.enter_context(socket.create_connection(("127.0.0.1", server.port), 5))
            if one.recv(64).startswith(b"SSH-"):
                break
        yield


def test_too_many_logins_at_once_are_busy(tmp_path: Path, console: ConsoleServer) -> None:
    """MaxStartups counts connections that are not logged in yet; one that only opened its socket is enough."""
    folder = tmp_path / "full"
    folder.mkdir()
    server = Sshd(folder, stand_in(folder), {CONSOLE_VARIABLE: console.address}, MaxStartups="1:100:1")
    with (
        serving(server),
        held_until_full(server),
        pytest.raises(Busy, match="before the login"),
    ):
        said(way(server))


def test_an_sshd_without_sessions_is_named(tmp_path: Path, console: ConsoleServer) -> None:
    """MaxSessions 0 (sshd_config(5)) allows logins and no session, as on a host for jumps alone."""
    folder = tmp_path / "jump"
    folder.mkdir()
    server = Sshd(folder, stand_in(folder), {CONSOLE_VARIABLE: console.address}, MaxSessions=0)
    with serving(server), pytest.raises(Unreachable, match="sshd opens no session") as caught:
        said(way(server))

    assert "MaxSessions" in caught.value.hint


def test_a_stopped_sshd_is_out_of_reach_and_one_that_came_back_answers(sshd: Sshd) -> None:
    sshd.stop()
    with pytest.raises(Unreachable):
        said(way(sshd))
    sshd.start()

    assert said(way(sshd)) == ["hi"]


def test_an_open_session_outlives_a_restart_of_sshd(sshd: Sshd) -> None:
    with closing(connect(way(sshd), name="win-1")) as transport:
        assert list(transport.run("'before'", {}, {})) == ["before"]
        sshd.stop()
        sshd.start()
        assert list(transport.run("'after'", {}, {})) == ["after"]


def test_a_jump_host_leads_to_the_machine(sshd: Sshd) -> None:
    jump = {
        "host": "127.0.0.1",
        "port": sshd.port,
        "user": sshd.user,
        "key": Reference(file=sshd.key),
        "host_key": fingerprint(sshd.host_key),
    }

    assert said(way(sshd, proxy_jump=[jump])) == ["hi"]


def test_a_tunnel_leads_to_the_machine(sshd: Sshd) -> None:
    command = f"ssh -N -L {{local_port}}:{{host}}:{{port}} -p {sshd.port} -i {sshd.key}"
    command += f" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null {sshd.user}@127.0.0.1"

    assert said(way(sshd, tunnel=command)) == ["hi"]
    shown = show_host_key(way(sshd, tunnel=command, host_key=None), name="win-1")
    assert shown == f"ssh-ed25519 {fingerprint(sshd.host_key)}"


def staged_over(sshd: Sshd, lab: Lab, folder: Path, port: int) -> Staged:
    staged = stage(lab, folder)
    inventory = yaml.safe_load(staged.inventory.read_text(encoding="utf-8"))
    [group] = inventory["groups"].values()
    group["hosts"]["win-1"]["connection"] = {
        "transport": "ssh",
        "port": port,
        "user": sshd.user,
        "key": {"file": str(sshd.key)},
        "host_key": fingerprint(sshd.host_key),
    }
    staged.inventory.write_text(yaml.safe_dump(inventory), encoding="utf-8")
    return staged


def test_ping_shows_the_host_key_without_a_login_and_its_facts_with_one(
    sshd: Sshd, lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    staged = staged_over(sshd, lab, tmp_path / "files", sshd.port)

    assert cli.run(["ping", "-i", str(staged.inventory), "--show-host-key"]) == 0
    assert capsys.readouterr().out == f"win-1 ssh-ed25519 {fingerprint(sshd.host_key)}\n"
    assert cli.run(["ping", "-v", "-i", str(staged.inventory)]) == 0
    assert f"host key {fingerprint(sshd.host_key)}" in capsys.readouterr().out


def joins(staged: Staged, folder: Path, at_most: int) -> int:
    """How many runs of `winboot join` it took until the node was Ready and a run ended well."""
    for run in range(1, at_most + 1):
        report = folder / f"run-{run}.jsonl"
        code = cli.run(["join", "-i", str(staged.inventory), "--report", str(report)])
        rows = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
        if code == 0 and all(row["ready"] for row in rows if "node" in row):
            return run
    raise AssertionError(f"not Ready after {at_most} runs: {rows}")


def test_a_join_over_the_genuine_sshd(
    sshd: Sshd, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    staged = staged_over(sshd, lab, tmp_path / "files", sshd.port)

    assert joins(staged, tmp_path, 1) == 1
    assert joins(staged, tmp_path, 1) == 1


@pytest.mark.matrix
def test_a_join_whose_connection_breaks_again_and_again_ends_ready(
    sshd: Sshd, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every 50th piece from the server is the last one of its connection."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with CuttingRelay(sshd.port, lambda number: number % 50 == 0) as relay:
        staged = staged_over(sshd, lab, tmp_path / "files", relay.port)

        assert joins(staged, tmp_path, 2) <= 2
        assert relay.cuts


@pytest.mark.nightly
@pytest.mark.parametrize("at", [*range(1, 40, 3), *range(50, 200, 50)])
def test_a_join_with_one_broken_connection_ends_ready(
    sshd: Sshd, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with CuttingRelay(sshd.port, lambda number: number == at) as relay:
        staged = staged_over(sshd, lab, tmp_path / "files", relay.port)

        assert joins(staged, tmp_path, 2) <= 2

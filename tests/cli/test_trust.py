"""A profile from a stranger: what it has this computer run and read is named, and needs the user's yes before."""

from __future__ import annotations

import io
import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_approval import REPORT
from tests.config.certificates import made
from tests.config.scene import GOOD, an_inventory
from winboot.base.errors import Declined, InvalidInput
from winboot.base.private import others_say
from winboot.cli import run
from winboot.cli.approval import ask
from winboot.cli.options import Output
from winboot.cli.targets import Clusters, load_targets
from winboot.cli.trust import settle, settle_files
from winboot.config.demands import demands, files_of
from winboot.remote.cloud.base import CloudHost, NodeIdentity
from winboot.remote.cloud.composing import Member
from winboot.remote.cloud.pool import Pool

HOSTS = "groups: {p: {profile: profile.yaml, os: '2022', hosts: {win-1: {address: 127.0.0.1}}}}\n"
CONTACTING = ("join", "repair", "plan", "preflight", "ping", "render --digest", "csr list")


class Stranger:
    """A folder with an inventory, and a profile that runs a program; `ran` says whether that has run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = folder / "mark"
        (folder / "run").write_text(f"#!/bin/sh\ntouch {self.mark}\ncat {folder}/ca.crt\n", encoding="utf-8")
        (folder / "run").chmod(0o755)
        command = f"{{command: [{folder / 'run'}]}}"
        profile = (
            GOOD.replace("ca: {file: ca.crt}", f"ca: {command}") + f"windows: {{trust_roots: [{command}]}}\n"
        )
        self.inventory = an_inventory(folder, HOSTS, profile)
        (folder / "ca.crt").write_text(made("corp root").pem, encoding="utf-8")

    @property
    def ran(self) -> bool:
        return self.mark.exists()

    def writable_by_all(self) -> None:
        (self.folder / "profile.yaml").chmod(0o666)


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stranger:
    monkeypatch.delenv("WINBOOT_TRUST", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return Stranger(tmp_path)


def at_a_terminal(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winboot.cli.trust.at_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))


def test_check_names_all_of_it_and_runs_nothing(
    stranger: Stranger, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger.writable_by_all()

    assert run(["check", str(stranger.inventory)]) == 0

    told = capsys.readouterr().err
    assert f"profile.yaml:5:17: info: cluster.ca.command: runs {stranger.folder / 'run'}" in told
    assert "info: windows.trust_roots[0].command: runs " in told
    assert not stranger.ran


@pytest.mark.parametrize("command", CONTACTING)
def test_without_a_terminal_a_file_that_others_may_write_ends_the_command(
    command: str, stranger: Stranger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stranger.folder)
    stranger.writable_by_all()

    assert run([*command.split(), "-i", str(stranger.inventory)]) == 64

    told = capsys.readouterr().err
    assert f"everybody may write to {stranger.folder / 'profile.yaml'}" in told
    assert "cluster.ca.command: runs " in told
    assert "--trust" in told and "WINBOOT_TRUST" in told
    assert not stranger.ran


@pytest.mark.parametrize("way", ["flag", "folder", "file"])
def test_the_user_may_say_yes_beforehand(
    way: str, stranger: Stranger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger.writable_by_all()
    named = {"folder": stranger.folder, "file": stranger.folder / "profile.yaml"}
    if way in named:
        monkeypatch.setenv("WINBOOT_TRUST", f"/nowhere{os.pathsep}{named[way]}")

    assert (
        run(["render", "--digest", "-i", str(stranger.inventory), *(["--trust"] if way == "flag" else [])])
        == 0
    )
    assert stranger.ran


def test_a_setting_that_names_another_folder_says_nothing_of_this_one(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.writable_by_all()
    monkeypatch.setenv("WINBOOT_TRUST", "/nowhere")

    assert run(["render", "--digest", "-i", str(stranger.inventory)]) == 64
    assert not stranger.ran


def test_a_file_whose_owner_cannot_be_asked_is_anybodys(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(file: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("winboot.cli.trust.others_say", refuse)

    assert run(["render", "--digest", "-i", str(stranger.inventory)]) == 64
    assert "cannot be read (Permission denied)" in capsys.readouterr().err
    assert not stranger.ran


@pytest.mark.parametrize(("answer", "code", "ran"), [("y\n", 0, True), ("n\n", 2, False), ("", 2, False)])
def test_at_a_terminal_it_is_asked_before_anything_runs(
    answer: str,
    code: int,
    ran: bool,
    stranger: Stranger,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stranger.writable_by_all()
    at_a_terminal(answer, monkeypatch)

    assert run(["render", "--digest", "-i", str(stranger.inventory)]) == code

    assert "cluster.ca.command: runs " in capsys.readouterr().err
    assert stranger.ran is ran


def test_yes_is_no_yes_to_a_strangers_program(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that changes of machines need no question."""
    stranger.writable_by_all()
    at_a_terminal("y\n", monkeypatch)

    assert run(["join", "--yes", "-i", str(stranger.inventory)]) == 64
    assert not stranger.ran


def test_the_users_own_files_are_asked_about_in_the_one_question(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = demands(files_of(stranger.inventory))
    settle(wanted, trust=False, may_ask=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))

    with pytest.raises(Declined):
        ask(REPORT, Output.table, wanted)

    told = capsys.readouterr().err
    assert told.index("cluster.ca.command: runs ") < told.index("Change 1 node?")


def test_a_file_of_another_user_is_his(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = stranger.folder / "profile.yaml"
    if os.geteuid() == 0:
        os.chown(profile, 65_534, -1)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 65_534)

    assert "belongs to the user" in others_say(profile)
    with pytest.raises(InvalidInput, match="belongs to the user"):
        settle(demands(files_of(stranger.inventory)), trust=False, may_ask=False)


def test_a_folder_that_everybody_may_write_makes_its_files_anybodys(stranger: Stranger) -> None:
    """Any user could replace the file. Through a link, the folder that it leads to counts, too."""
    stranger.folder.chmod(0o777)
    try:
        assert "everybody may write into" in others_say(stranger.inventory)
        link = stranger.folder.parent / f"{stranger.folder.name}-link"
        link.symlink_to(stranger.inventory)
        assert "everybody may write into" in others_say(link)
    finally:
        stranger.folder.chmod(0o755)


KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: USER}]
"""


@pytest.mark.parametrize("trust", [False, True])
def test_a_kubeconfig_that_is_another_one_when_it_is_used_runs_nothing(
    trust: bool, stranger: Stranger
) -> None:
    """It named no program when it was looked at: there was nothing to ask, or to say yes to."""
    kubeconfig = stranger.folder / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG.replace("USER", "{token: t}"), encoding="utf-8")
    kubeconfig.chmod(0o666)
    (stranger.folder / "profile.yaml").write_text(GOOD, encoding="utf-8")
    (spec,) = load_targets(stranger.inventory, (), trust=trust)
    with closing(Clusters(lambda _: True)) as clusters:
        assert clusters(spec) is not None
    plugin = f"{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {stranger.folder / 'run'}}}}}"
    kubeconfig.write_text(KUBECONFIG.replace("USER", plugin), encoding="utf-8")

    with closing(Clusters(lambda _: True)) as clusters:
        with pytest.raises(InvalidInput, match="changed after this command started"):
            clusters(spec)
        kubeconfig.chmod(0o600)
        assert clusters(spec) is not None, "the user's own may change: tools write their tokens there"


def test_what_a_worker_reads_again_and_again_is_looked_at_each_time(stranger: Stranger) -> None:
    """`winboot hook serve` asks once when it begins; a file of others' may be another one when a machine comes."""
    profile, pool_file = stranger.folder / "profile.yaml", stranger.folder / "pool.aws.yaml"
    hostile = profile.read_text(encoding="utf-8")
    profile.write_text(GOOD, encoding="utf-8")
    pool_file.write_text("plugin: aws_ec2\nprofile: profile.yaml\n", encoding="utf-8")
    stranger.writable_by_all()
    settle_files(files_of(pool_file))
    pool = Pool.read(pool_file, settle_files)
    assert pool.profile("profile.yaml").name == "profile"

    host = CloudHost("aws", "i-1", "win-1", "running", "r", "r-1", "10.0.0.1", windows=True)
    member = Member(
        "win-1",
        host,
        NodeIdentity("win-1", "aws:///r-1/i-1", "10.0.0.1", "r", "r-1", ""),
        {"os": "2022"},
        ("aws_ec2",),
    )
    assert [one.name for one in pool.inventory([member])] == ["win-1"]

    profile.write_text(hostile, encoding="utf-8")

    for read_again in (lambda: pool.profile("profile.yaml"), lambda: pool.inventory([member])):
        with pytest.raises(InvalidInput, match="everybody may write"):
            read_again()
    pool_file.write_text(f"plugin: aws_ec2\ndefaults: {hostile.splitlines()[-1]}\n", encoding="utf-8")
    pool_file.chmod(0o666)
    with pytest.raises(InvalidInput):
        Pool.read(pool_file, settle_files)
    assert not stranger.ran


def test_what_was_agreed_to_is_not_asked_about_again_and_what_is_new_is(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`repair --by reimage` reads the files twice."""
    stranger.writable_by_all()
    at_a_terminal("y\n", monkeypatch)
    settle(demands(files_of(stranger.inventory)), trust=False, may_ask=True)

    settle(demands(files_of(stranger.inventory)), trust=False, may_ask=False)

    profile = stranger.folder / "profile.yaml"
    profile.write_text(
        profile.read_text().replace("trust_roots: [{command: [", "trust_roots: [{command: [x, ")
    )
    profile.chmod(0o666)
    with pytest.raises(InvalidInput) as caught:
        settle(demands(files_of(stranger.inventory)), trust=False, may_ask=False)
    assert [one.what.split()[0] for one in caught.value.problems] == ["x"]


def test_a_strangers_profile_that_names_nothing_is_anybodys(stranger: Stranger) -> None:
    (stranger.folder / "profile.yaml").write_text(GOOD, encoding="utf-8")
    stranger.writable_by_all()

    assert run(["render", "--digest", "-i", str(stranger.inventory)]) == 0


def test_a_pod_has_no_other_users(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger.writable_by_all()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")

    assert run(["render", "--digest", "-i", str(stranger.inventory)]) == 0


def test_a_private_key_beside_a_certificate_is_not_taken_into_the_script(
    stranger: Stranger, capsys: pytest.CaptureFixture[str]
) -> None:
    """{file: server.pem} of another user without access to winboot's keys, with certificate and key."""
    pem = stranger.folder / "ca.crt"
    (stranger.folder / "profile.yaml").write_text(GOOD, encoding="utf-8")
    begin = "-----BEGIN RSA "
    pem.write_text(f"{pem.read_text()}{begin}PRIVATE KEY-----\nAAAA\n", encoding="utf-8")

    assert run(["render", "-i", str(stranger.inventory)]) == 64
    assert "contains a private key" in capsys.readouterr().err

"""`winboot ping` on machines that keep it out: what they show to anyone is what a person needs to be let in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lab_wsman.stage import PASSWORD, USER, node, says
from winboot_lab.wsman.endpoint import Endpoint
from winboot_lab.wsman.farm import Farm

from tests.config.scene import GOOD, an_inventory
from winboot.cli import run
from winboot.cli.ping import held_against


@pytest.fixture
def farm() -> Iterator[Farm]:
    with Farm() as farm:
        yield farm


def _ping(folder: Path, machine: Endpoint, connection: str) -> int:
    """Ping it over HTTPS; the exit code."""
    host = f"{{address: 127.0.0.1, connection: {{port: {machine.https_port}, scheme: https, {connection}}}}}"
    login = f"{{user: {USER}, password: {{env: WINBOOT_TEST_PASSWORD}}}}"
    text = (
        "groups:\n  pool:\n    profile: profile.yaml\n    os: '2022'\n"
        f"    connection: {login}\n    hosts: {{win-1: {host}}}\n"
    )
    profile = GOOD.replace("  kubeconfig: {file: kubeconfig}\n", "")
    return run(["ping", "-i", str(an_inventory(folder, text, profile))])


def test_a_refused_login_shows_certificate_fingerprint_and_the_logins_that_are_offered(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else "only Basic is offered" and "the password is wrong" read the same."""
    machine = node(farm, says(), basic=True)
    assert machine.certificate is not None
    monkeypatch.setenv("WINBOOT_TEST_PASSWORD", "wrong")

    code = _ping(tmp_path, machine, f"tls: {{fingerprint: 'sha256:{machine.certificate.fingerprint}'}}")

    told = capsys.readouterr().out
    assert code == 77
    assert "LoginRefused" in told
    assert f"fingerprint sha256:{machine.certificate.fingerprint}" in told
    assert "offered: Negotiate, Basic; used: negotiate" in told
    assert "wrong" not in told.replace("wrong password", "")


def test_a_certificate_that_is_not_trusted_is_shown_with_the_fingerprint_to_pin(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hint of every other command sends people here for it."""
    machine = node(farm, says())
    assert machine.certificate is not None
    monkeypatch.setenv("WINBOOT_TEST_PASSWORD", PASSWORD)

    code = _ping(tmp_path, machine, f"tls: {{fingerprint: 'sha256:{'0' * 64}'}}")

    told = capsys.readouterr().out
    assert code == 69
    assert "CertificateNotTrusted" in told
    assert f"fingerprint sha256:{machine.certificate.fingerprint}" in told
    assert "issued by" in told
    assert "valid until" in told


def test_a_pinned_certificate_that_has_expired_is_a_warning_of_its_own(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A join takes it: the pin names the certificate itself. `ping` warns that it has expired."""
    machine = node(farm, says())
    old = farm.authority.issue(["127.0.0.1"], valid=timedelta(days=-1))
    farm.down(machine)
    machine._tls = old.context(farm.folder)
    farm.up(machine)
    monkeypatch.setenv("WINBOOT_TEST_PASSWORD", PASSWORD)

    _ping(tmp_path, machine, f"tls: {{fingerprint: 'sha256:{old.fingerprint}'}}")

    told = capsys.readouterr().out
    assert "the certificate expired on" in told
    assert "its pinned fingerprint makes winboot accept" in told


@pytest.mark.parametrize(
    ("offset", "again", "held"),
    [
        (3, ("the cluster's", 99), ("the cluster's", 0)),
        (30, ("the cluster's", 29), ("the cluster's", 29)),
        (30, ("ours", 0), ("the cluster's", 0)),
    ],
    ids=["agreed", "asked again", "not answered again"],
)
def test_our_own_clock_that_was_set_in_between_is_no_finding_about_a_machine(
    offset: int, again: tuple[str, int], held: tuple[str, int]
) -> None:
    """A lab's first ping warned of three clocks: its time had leapt since the request to the cluster."""
    probe: Any = SimpleNamespace(clock_offset=timedelta(seconds=offset))

    found = held_against(
        probe, ("the cluster's", timedelta()), lambda: (again[0], timedelta(seconds=again[1]))
    )

    assert found == (held[0], timedelta(seconds=held[1]))

"""Secrets are made when a change needs them, speak as one user, and are gone when the change ends, however it ends."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.join.fakes import CUT, FakeCluster, Found, Scene
from winboot.base.errors import ConnectionLost, Interrupted

CREDENTIALS = "kubelet-credentials"


def test_the_token_goes_to_the_change_alone_and_is_deleted_after_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Found(CREDENTIALS))

    scene.join()

    assert scene.machine.secrets == [{}, {"bootstrap-token": "abcdef.0123456789abcdef"}]
    assert scene.cluster.calls.index(("mint_token", "win-1")) < scene.cluster.calls.index(
        ("forget_token", "abcdef")
    )


@pytest.mark.parametrize(
    "error", [ConnectionLost("cut", hint=""), Interrupted("Ctrl-C"), ValueError("a bug")]
)
def test_the_token_is_deleted_when_the_change_fails(error: Exception, tmp_path: Path) -> None:
    def fail() -> None:
        raise error

    scene = Scene(tmp_path, Found(CREDENTIALS), during=fail)

    report = scene.join()

    assert report.failure is not None
    assert ("forget_token", "abcdef") in scene.cluster.calls


def test_a_token_that_is_not_deleted_expires_after_two_hours(tmp_path: Path) -> None:
    """docs/security.md says so."""
    scene = Scene(tmp_path, Found(CREDENTIALS))

    scene.join()

    (lifetime,) = scene.cluster.lifetimes
    assert timedelta(0) < lifetime <= timedelta(hours=2)


def test_no_token_is_made_when_other_steps_differ(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Found("directories"))

    scene.join()

    assert "mint_token" not in scene.cluster.names
    assert scene.machine.secrets == [{}, {}]


def test_a_token_that_cannot_be_deleted_is_a_note_and_hides_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Found(CREDENTIALS), cluster=FakeCluster(fails={"forget_token": CUT}))

    report = scene.join()

    assert report.failure is None
    assert any(
        "the bootstrap token abcdef was not deleted" in note and "12:00 UTC" in note for note in report.notes
    )


def test_only_the_tokens_user_may_request_the_certificate(tmp_path: Path) -> None:
    """bootstrap-tokens: the user is `system:bootstrap:` and the token's id; its secret half is in no name."""
    scene = Scene(tmp_path, Found(CREDENTIALS))

    scene.join()

    assert {one.requestors for one in scene.cluster.expected} == {frozenset({"system:bootstrap:abcdef"})}


def test_without_a_token_no_user_but_the_node_itself_may_ask(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Found("directories"))

    scene.join()

    assert {one.requestors for one in scene.cluster.expected} == {frozenset()}


def test_a_token_of_the_profile_is_read_and_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "ghijkl.0123456789abcdef")
    scene = Scene(tmp_path, Found(CREDENTIALS), profile="cluster: {bootstrap_token: {env: TOKEN}}")

    scene.join()

    assert scene.machine.secrets[1] == {"bootstrap-token": "ghijkl.0123456789abcdef"}
    assert not {"mint_token", "forget_token"} & set(scene.cluster.names)
    assert scene.cluster.expected[0].requestors == {"system:bootstrap:ghijkl"}

"""What a shell offers behind TAB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.scene import an_inventory
from winboot.cli import completion

HOSTS = """
groups:
  pool: {profile: profile.yaml, os: "2022", hosts: {win-1: {address: 10.0.0.11}, win-2: {address: 10.0.0.12}}}
"""


class Typed:
    """What Typer knows of the command line so far."""

    def __init__(self, **params: object) -> None:
        self.params = params


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", ["win-1", "win-2", "pool", "all"]),
        ("w", ["win-1", "win-2"]),
        ("win-1,p", ["win-1,pool"]),
        ("pool:!win-2", ["pool:!win-2"]),
        ("x", []),
    ],
)
def test_hosts_and_groups_are_offered(typed: str, offered: list[str], tmp_path: Path) -> None:
    path = an_inventory(tmp_path, HOSTS)

    assert completion.hosts(Typed(inventory=path), typed) == offered  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["groups: [", "groups: {p: {}}", None])
def test_a_file_that_cannot_be_read_offers_nothing(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    assert completion.hosts(Typed(inventory=path), "") == []  # type: ignore[arg-type]


def test_names_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path))

    assert completion.steps("kubelet,pod-n") == ["kubelet,pod-network"]
    assert "flannel-vxlan" in completion.explained("flannel-v")
    assert "runtime.registries" in completion.explained("runtime.r")
    assert completion.networks("flannel:h") == ["flannel:host-gw"]
    assert completion.manifests("rb") == ["rbac"]
    assert completion.checks("node-name,version") == ["node-name,version-skew"]
    assert completion.runs("l") == ["last"]


@pytest.mark.check
def test_a_shell_gets_them(tmp_path: Path) -> None:
    """By the words that Typer's own completion of bash gives."""
    an_inventory(tmp_path, HOSTS)
    words = {
        "_WINBOOT_COMPLETE": "complete_bash",
        "COMP_WORDS": "winboot plan --limit w",
        "COMP_CWORD": "3",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'winboot'; from winboot.cli import main; main()"],
        env={**os.environ, **words},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == ["win-1", "win-2"]

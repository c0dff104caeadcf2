"""Kubernetes 1.20 to 1.23 with containerd: what a node has between the move from Docker and its upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.scene import a_spec
from winboot.config.compat import Version, check_containerd, load
from winboot.config.compat.platform import default_containerd

FACTS = load()


@pytest.mark.parametrize("minor", ["1.20", "1.21", "1.22", "1.23"])
@pytest.mark.parametrize("line", ["1.6", "1.7"])
def test_containerd_serves_an_old_minor_with_one_warning_that_its_line_ended(minor: str, line: str) -> None:
    newest = Version.parse(FACTS.section("containerd")[line]["latest"])

    (found,) = check_containerd(FACTS, newest, Version.parse(f"{minor}.0"))

    assert (found.level, found.id) == ("warning", "end-of-life")
    assert Version.parse(default_containerd(FACTS, Version.parse(f"{minor}.0"))).minor == "1.7"


@pytest.mark.parametrize(("minor", "remote", "manager"), [("1.23", "remote", "nssm"), ("1.24", None, "sc")])
def test_an_old_kubelet_is_sent_to_containerd_and_keeps_its_log(
    minor: str, remote: str | None, manager: str, tmp_path: Path
) -> None:
    """Its own default is dockershim, and its archive has no kube-log-runner."""
    spec = a_spec(tmp_path, profile=f'kubernetes: {{version: "{minor}.0"}}', os="2019")

    assert spec.kubelet.arguments.get("container-runtime") == remote
    managers = {one.name: one.manager for one in spec.services.all}
    assert (managers["containerd"], managers["kubelet"], managers["kube-proxy"]) == ("sc", manager, manager)

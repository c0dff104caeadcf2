"""Each component that has versions goes from one to the next and back: what runs afterwards is what the profile says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from tests.lab.site import Site, only, problems
from tests.lab.test_every_key import Case, _at, _changed, _found
from tests.matrix import first

OTHERS: Final[Mapping[str, Case]] = {
    # kubelet, kube-proxy, kubectl
    "kubernetes": Case("artifacts", _at("kubernetes.version", "1.34.8")),
    "containerd": Case("artifacts", _at("runtime.containerd", "2.2.9")),
    "nssm": Case("artifacts", _at("artifacts.nssm", "2.24-101"), scene="own credential"),
    "pause image": Case("pause-image", _at("runtime.pause_image", "registry.k8s.io/pause:3.10")),
    "flanneld": Case("artifacts", _at("artifacts.flannel", "0.26.7")),
    "flannel's CNI plug-in": Case("artifacts", _at("artifacts.flannel_cni", "1.6.2-flannel1")),
    "CNI plug-ins": Case("artifacts", _at("artifacts.cni_plugins", "1.6.2")),
    "crictl": Case("artifacts", _at("artifacts.crictl", "1.33.0")),
}


def _runs(site: Site) -> dict[str, Any]:
    """What is installed, by the hash that belongs to the version, and what the Node says."""
    (spec,) = site.specs()
    files = {
        member.destination: sha256(site.machine.files.read(member.destination)).hexdigest()
        for artifact in spec.artifacts
        for member in artifact.members
    }
    assert files == {
        member.destination: member.sha256 or artifact.sha256
        for artifact in spec.artifacts
        for member in artifact.members
    }
    info = site.node()["status"]["nodeInfo"]
    assert info["kubeletVersion"] == f"v{spec.kubernetes.version}"
    assert info["containerRuntimeVersion"] == f"containerd://{spec.runtime.version}"
    return files | {"kubelet": info["kubeletVersion"], "pause": spec.runtime.pause_image}


def _joined(site: Site, *, differs: bool = True) -> dict[str, Any]:
    """Join it as its files say now; afterwards nothing differs, and what runs is what they say."""
    found = _found(site)
    assert any(found.values()) == differs, "the plan shows the other version"
    assert not any(found[name] for name in ("registration", "pod-network", "ipam-reservations")), (
        "nothing else"
    )
    report = site.join(drain=True)
    assert not problems(report), problems(report)
    assert only(report).ready
    site.settle(60)
    assert not any(_found(site).values())
    return _runs(site)


@pytest.mark.parametrize("component", first(0, OTHERS, daily=0))
def test_another_version_is_installed_and_the_former_one_again(
    component: str, joined_site: Callable[[str], Site], tmp_path: Path
) -> None:
    """The review's N1: `kubernetes.version` was changed, the plan said nothing, and the old kubelet ran on."""
    site = joined_site(OTHERS[component].scene)
    before, first = site.files, _runs(site)

    _changed(site, OTHERS[component], tmp_path / "other")
    assert _joined(site) != first

    site.files = replace(before)
    # Nothing but winboot runs crictl, and the former one still lies there.
    assert _joined(site, differs=component != "crictl") == first

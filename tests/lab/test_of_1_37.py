"""A node of Kubernetes 1.37: from 1.36 to it, twice, put right again; and the skew both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster.plan import ClusterPlan

from tests.lab.site import Site, only, problems
from tests.lab.test_every_key import Case, _at, _changed, _found
from tests.steps.builders import a_spec, with_a_mirror
from tests.steps.library import call
from tests.steps.test_artifacts import Site as Mirrored
from winboot.base.errors import PreflightFailed
from winboot.cli import run
from winboot.config.compat import Version, load
from winboot.config.compat.flags import gate_stage
from winboot.node.preflight import Preflight

NEW, OLD = "1.37.1", "1.36.5"
SERVICES = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services"


def of(version: str) -> dict[str, Any]:
    return {"kubernetes": {"version": version}}


def gates_that_end_with_1_37() -> list[str]:
    """Each with the value that 1.36 takes."""
    compat = load()
    return [
        f"{name}={'true' if stage[2] else 'false'}"
        for name, entry in sorted(compat.section("gates").items())
        if entry.get("removed") == "1.37" and (stage := gate_stage(compat, entry, Version.parse(OLD)))
    ]


@pytest.fixture(scope="module", params=["kubelet", "kube-proxy"])
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def refused_by(version: str, program: str) -> list[object]:
    """What the program of this version says to the gates that 1.37 has removed."""
    site = Mirrored()
    site.spec = with_a_mirror(a_spec(**{OLD: version}))
    site.run("directories", "artifacts")
    gates = ", ".join(f"'{one}'" for one in gates_that_end_with_1_37())
    path = rf"C:\k\versions\kubernetes-{version}\{program}.exe"
    return call(site, f"Get-RefusedGate -Path '{path}' -Gates @({gates})").objects


@pytest.mark.check
def test_the_labs_programs_of_1_37_refuse_the_gates_that_it_removed_and_those_of_1_36_take_them(
    program: str,
) -> None:
    assert len(gates_that_end_with_1_37()) >= 20
    assert refused_by(OLD, program) == []
    assert refused_by(NEW, program) == gates_that_end_with_1_37()


def test_the_configuration_that_kubeadm_1_37_shares_names_a_mode_that_no_windows_node_has(
    tmp_path: Path,
) -> None:
    modes = {}
    for version in (OLD, NEW):
        site = Site(tmp_path / version, cluster=ClusterPlan(version=version))
        found = site.admin("GET", "/api/v1/namespaces/kube-system/configmaps/kube-proxy")
        modes[version] = json.loads(found["data"]["config.conf"])["mode"]

    assert modes == {OLD: "", NEW: "iptables"}


def test_a_kubelet_of_1_37_is_kept_from_an_api_server_of_1_36(tmp_path: Path) -> None:
    site = Site(tmp_path, cluster=ClusterPlan(version=OLD), wishes=of(NEW))
    (spec,) = site.specs()

    cluster = site.controller().context.cluster(spec)

    with pytest.raises(PreflightFailed, match=r"version-skew: kubelet 1\.37\.1 with an API server 1\.36\.5"):
        Preflight([spec], lambda spec: cluster).stop_on_error(spec)


@pytest.mark.matrix
def test_a_node_goes_from_1_36_to_1_37_and_stays_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server first, as the skew policy wants; then check, render, join, a second join, and a repair."""
    site = Site(tmp_path, cluster=ClusterPlan(version=NEW), wishes=of(OLD))
    report = site.join()
    assert not problems(report), problems(report)
    assert site.node()["status"]["nodeInfo"]["kubeletVersion"] == f"v{OLD}"

    _changed(site, Case("artifacts", _at("kubernetes.version", NEW)), tmp_path / "new")
    assert run(["check", "-i", str(site.files.inventory)]) == 0
    assert run(["render", "-i", str(site.files.inventory)]) == 0
    assert f"version = '{NEW}'" in capsys.readouterr().out

    report = site.join(drain=True)
    assert not problems(report), problems(report)
    assert only(report).ready
    assert site.node()["status"]["nodeInfo"]["kubeletVersion"] == f"v{NEW}"
    proxy = json.loads(site.machine.files.read(r"C:\k\kube-proxy.yaml"))
    assert proxy["mode"] == "kernelspace", "whatever the ConfigMap of the cluster says"

    site.settle(60)
    assert not any(_found(site).values()), "a second run changes nothing"

    site.machine.registry.set(
        rf"{SERVICES}\kubelet", "ImagePath", "ExpandString", r"C:\k\kubelet.exe --runonce"
    )
    assert any(_found(site).values())
    report = site.join(drain=True)
    assert not problems(report), problems(report)
    site.settle(60)
    assert not any(_found(site).values())

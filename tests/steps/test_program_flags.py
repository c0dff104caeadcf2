"""winboot checks flags with kubelet.exe and kube-proxy.exe themselves before it starts a service with them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.steps.builders import a_spec
from tests.steps.library import call
from tests.steps.test_artifacts import Site
from winboot.config.compat import Compat, load
from winboot.script.steps.programs import _takes

STEP = "artifacts"
KUBELET = r"C:\k\versions\kubernetes-1.36.5\kubelet.exe"
HASHES = r"C:\ProgramData\winboot\hashes.json"
GATES = {"NodeLogQuery": True, "WindowsGracefulNodeShutdown": False}


def knows(tmp_path: Path, text: str) -> Compat:
    """A build that knows other things than the data says of its version."""
    overlay = tmp_path / "built-otherwise.yaml"
    overlay.write_text(text, encoding="utf-8")
    return load(overlay)


def with_gates(site: Site, gates: dict[str, bool]) -> None:
    spec = site.spec
    site.spec = replace(
        spec,
        kubelet=replace(spec.kubelet, config={**spec.kubelet.config, "featureGates": gates}),
        kube_proxy=replace(spec.kube_proxy, config={**spec.kube_proxy.config, "featureGates": gates}),
    )


@pytest.fixture
def site() -> Site:
    return Site()


def test_what_only_the_node_knows_is_asked_without_a_value():
    asked = _takes(a_spec())[KUBELET.lower()]["arguments"]

    assert isinstance(asked, list)
    assert "--node-ip=" in asked
    assert r"--config=C:\var\lib\kubelet\config.yaml" in asked


def test_a_program_that_takes_all_is_asked_once_and_remembered_by_its_hash(site: Site):
    with_gates(site, GATES)
    site.run("directories", STEP)

    remembered = {one["path"]: one["takes"] for one in json.loads(site.file(HASHES) or b"{}")["files"]}

    assert remembered[KUBELET].endswith("NodeLogQuery=true\nWindowsGracefulNodeShutdown=false")
    assert remembered[r"C:\k\versions\kubectl-1.36.5\kubectl.exe"] is None
    assert site.run(STEP).states == {STEP: "ok"}


REFUSED = [
    (
        "kubelet_flags: {node-ip: {removed: '1.36'}}",
        {},
        "FlagRefused",
        'kubelet.exe (Kubernetes v1.36.5) does not take --node-ip= ("command failed" '
        'err="failed to parse kubelet flag: unknown flag: --node-ip")',
    ),
    (
        "kube_proxy_flags: {v: {removed: '1.36'}}",
        {},
        "FlagRefused",
        "kube-proxy.exe (Kubernetes v1.36.5) does not take --v=",
    ),
    (
        "gates: {NodeLogQuery: {removed: '1.36'}}",
        GATES,
        "GateRefused",
        "kubelet.exe (Kubernetes v1.36.5) does not take the feature gates NodeLogQuery=true",
    ),
    (
        "gates: {WindowsGracefulNodeShutdown: {stages: [['1.32', ga, true, true]]}}",
        GATES,
        "GateRefused",
        "does not take the feature gates WindowsGracefulNodeShutdown=false",
    ),
]


@pytest.mark.parametrize(("built", "gates", "problem", "says"), REFUSED, ids=[row[0][:40] for row in REFUSED])
def test_a_build_that_does_not_take_what_the_profile_says_is_named_before_a_program_is_replaced(
    site: Site, tmp_path: Path, built: str, gates: dict[str, bool], problem: str, says: str
):
    with_gates(site, gates)
    site.outside.compat = knows(tmp_path, built)

    told = site.run("directories", STEP)

    assert told.problem(STEP).id == problem
    assert says in told.problem(STEP).message
    assert not site.file(KUBELET)


def test_a_program_that_is_there_is_asked_in_a_look(site: Site, tmp_path: Path):
    site.run("directories", STEP)
    with_gates(site, GATES)
    site.outside.compat = knows(tmp_path, "gates: {NodeLogQuery: {removed: '1.36'}}")

    told = site.look(STEP)

    assert told.problem(STEP).id == "GateRefused"
    assert "NodeLogQuery=true" in told.problem(STEP).message
    assert "WindowsGraceful" not in told.problem(STEP).message


def test_a_program_that_ends_otherwise_without_gates_too_is_not_believed_about_them(site: Site) -> None:
    """Another fault keeps it from writing its configuration, and its own step reports that."""
    site.run("directories", STEP)
    site.outside.compat = Compat({"kube_proxy_flags": {"write-config-to": {"removed": "1.36"}}})

    ask = "Get-RefusedGate -Path 'C:\\k\\versions\\kubernetes-1.36.5\\{}.exe' -Gates @('NodeLogQuery=true', 'NoSuchGate=true')"

    assert call(site, ask.format("kube-proxy")).objects == []
    assert call(site, ask.format("kubelet")).objects == ["NoSuchGate=true"]

"""A node reaches its own pods on an overlay that winboot makes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from winboot_lab.engine.types import hcn, hns

from tests.lab.actions import guard_away
from tests.lab.site import Site
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node
from tests.steps.test_look_costs import listening
from winboot.script.library import templates_root

STEP = "host-route"
SCENE = "own overlay"
WHAT = "HNS network vxlan0: way to its own pods"
PODS = "/api/v1/namespaces/default/pods"


def pod(site: Site, name: str) -> str:
    """The condition Ready of a new pod that the kubelet asks over the network."""
    probed = {"name": "web", "readinessProbe": {"tcpSocket": {"port": 80}}}
    spec = {"nodeName": "win-1", "containers": [probed]}
    site.admin("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    site.settle(30)
    (ready,) = site.admin("GET", f"{PODS}/{name}")["status"]["conditions"]
    return str(ready["status"])


def without(site: Site) -> None:
    """The policy is gone."""
    for network in site.machine.hns.networks.values():
        network["Policies"].clear()


@pytest.mark.parametrize("profile", ["flannel-vxlan", "calico-node", "win-bridge"])
def test_where_an_agent_adds_it_or_a_bridge_needs_none_there_is_no_such_step(profile: str):
    assert STEP not in Bench(spec=a_spec_of(profile)).look(STEP).states


@pytest.mark.parametrize("release", ["2019", "2022", "2025"])
def test_a_bare_machine_lacks_it(release: str):
    found = Bench(spec=a_spec_of("win-overlay", release)).look(STEP)

    assert found.differences(STEP) == {WHAT: (None, "HostRoute")}


@pytest.mark.matrix
def test_without_it_probes_of_local_pods_fail_and_with_it_they_pass(joined: Callable[[str], Node]):
    node = joined(SCENE)
    assert pod(node.site, "before") == "True"
    node.after(guard_away, without)
    assert pod(node.site, "meanwhile") == "False"

    assert node.look(STEP).differences(STEP) == {WHAT: (None, "HostRoute")}
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    assert pod(node.site, "after") == "True"


@pytest.mark.parametrize("call", [pytest.param("QUERY", marks=pytest.mark.check), "MODIFY"])
def test_a_call_that_hangs_has_an_end(call: str, joined: Callable[[str], Node]):
    """Also in the startup task, whose other work waits for it."""
    node = joined(SCENE)
    node.after(without)
    node.machine.hns.hang(call, "/networks/")

    assert node.change(STEP).problem(STEP).id == "HnsHangs"
    assert node.change(STEP).states == {STEP: "changed"}


def test_a_look_that_finds_it_compiles_nothing(
    joined: Callable[[str], Node], monkeypatch: pytest.MonkeyPatch
):
    """Windows PowerShell starts csc.exe for that, and endpoint agents look twice."""
    node = joined(SCENE)
    with listening(monkeypatch) as asked:
        assert node.look(STEP).states == {STEP: "ok"}

    assert not [command for command, _ in asked if command.startswith("hcn.")]


@pytest.mark.check
def test_a_restart_of_the_machine_leaves_it(joined: Callable[[str], Node]):
    node = joined(SCENE)
    node.after(without)

    node.machine.reboot()
    node.site.settle(900)

    assert node.look(STEP).states == {STEP: "ok"}


def test_the_lab_knows_exactly_the_declaration_of_the_library():
    text = (templates_root() / "lib" / "hcn.ps1").read_text(encoding="utf-8")
    declaration = text.split("@'\n")[1].split("\n'@")[0]

    assert hns.digest(declaration) == hcn.DECLARATION
    assert hns.digest(declaration + " ") == hcn.DECLARATION
    assert hns.digest(declaration.replace("HcnCloseNetwork", "HcnLoseNetwork")) != hcn.DECLARATION

"""The service of kube-proxy: it starts when there is a network to serve, and only its health shows that it works."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from winboot_lab.programs.kube_proxy import KubeProxy

from tests.lab.actions import Hand, delete, regedit, remove_network, replace, sc, stop
from tests.lab.site import Site
from tests.steps.bench import Bench
from tests.steps.builders import a_spec, a_spec_of
from tests.steps.nodes import Node
from winboot.script.steps.kube_proxy import KUBE_PROXY

STEP = "kube-proxy"
KEY = r"SYSTEM\CurrentControlSet\Services\kube-proxy"
PARTS = ("command line", "start type", "depends on", "account", "environment", "recovery", "state")


def hang(site: Site) -> None:
    """kube-proxy runs and does nothing any more."""
    for process in site.machine.processes.all():
        if isinstance(process.served, KubeProxy):
            process.served.synced = False
            process.served._next = float("inf")


def unbound(site: Site) -> None:
    """Its user may list nothing in the cluster."""
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    for one in site.admin("GET", bindings)["items"]:
        if "proxier" in one["roleRef"]["name"]:
            site.admin("DELETE", f"{bindings}/{one['metadata']['name']}")


def test_a_bare_machine_has_no_such_service(bench: Bench):
    found = bench.look(STEP).differences(STEP)

    assert set(found) == {f"service kube-proxy: {part}" for part in PARTS}
    assert found["service kube-proxy: depends on"] == (None, "kubelet, flanneld")


def test_a_health_port_that_cannot_be_known_is_not_checked():
    assert KUBE_PROXY.inputs(a_spec())["health"] == "http://127.0.0.1:10256/healthz"
    assert KUBE_PROXY.inputs(a_spec_of("azure"))["health"] == ""


def test_it_is_registered_and_started_once_removed_and_made_again(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.machine.services.find("kube-proxy") is None
    assert set(node.look(STEP).differences(STEP)) == {f"service kube-proxy: {part}" for part in PARTS}
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    node.site.settle(60)
    assert node.differs == []


def test_rules_that_went_with_hns_are_a_difference_and_written_again(node: Node):
    """The guard does it within seconds; here it has come to nothing yet."""
    guard = node.machine.tasks.find("guard", "\\winboot\\")
    assert guard is not None
    guard.enabled = False
    node.machine.tasks.stop(guard)
    services, lists = node.machine.services, len(node.machine.hns.policy_lists)
    services.stop(services.need("hns"))
    services.start(services.need("hns"))

    assert set(node.look(STEP).differences(STEP)) == {"kube-proxy: rules in HNS"}
    assert node.change(STEP).states == {STEP: "changed"}
    node.site.settle(60)
    assert len(node.machine.hns.policy_lists) == lists > 0
    assert node.look(STEP).states == {STEP: "ok"}


@pytest.mark.parametrize(
    ("hand", "what", "is_"),
    [
        (stop("kube-proxy"), "service kube-proxy: state", "Stopped"),
        (sc("config", "kube-proxy", "depend=", "/"), "service kube-proxy: depends on", ""),
        (regedit(KEY, "Environment", "MultiString", ["A=b"]), "service kube-proxy: environment", "A=b"),
        (hang, "kube-proxy: health", "503"),
    ],
    ids=["stopped", "no dependencies", "another environment", "it hangs"],
)
def test_a_difference_is_reported_and_repaired(node: Node, hand: Hand, what: str, is_: str):
    node.after(hand)

    assert {name: found[0] for name, found in node.look(STEP).differences(STEP).items()} == {what: is_}
    assert node.change(STEP).states == {STEP: "changed"}
    node.site.settle(60)
    assert node.differs == []


def test_without_its_network_it_is_not_started_and_the_step_says_whose_that_is(node: Node):
    node.after(stop("flanneld"), remove_network("cbr0"))

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "NoHnsNetwork"
    assert problem.message == "there is no HNS network cbr0, which kube-proxy is to serve"
    assert "network solution" in problem.hint


def test_one_that_runs_and_may_not_read_services_is_reported_with_the_binding(node: Node):
    node.after(unbound, stop("kube-proxy"))

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "KubeProxyUnwell"
    assert problem.message.endswith("http://127.0.0.1:10256/healthz answers 503")
    assert "winboot manifests rbac" in problem.hint


def test_one_that_does_not_start_is_reported_with_what_windows_said(node: Node):
    node.undo(STEP)
    node.after(delete(r"C:\k\versions\kubernetes-1.36.5\kube-proxy.exe"))

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "ServiceState"
    assert problem.message.startswith("service kube-proxy ")


def test_another_configuration_is_in_use_only_after_a_restart(node: Node):
    node.after(replace(r"C:\k\kube-proxy.yaml", "cbr0", "other"))
    node.change("kube-proxy-config")

    assert node.look(STEP).differences(STEP) == {
        "service kube-proxy: configuration in use": ("older", "current")
    }
    assert node.change(STEP).states == {STEP: "changed"}
    node.site.settle(60)
    assert node.differs == []


@pytest.mark.check
def test_a_kube_proxy_under_nssm_has_its_words_there(joined: Callable[[str], Node]):
    node = joined("own credential")
    found = node.registry(KEY + r"\Parameters", "AppParameters")

    assert node.registry(KEY, "ImagePath") == r"C:\k\versions\nssm-2.24\nssm.exe"
    assert r"--config=C:\k\kube-proxy.yaml" in str(found)
    node.after(regedit(KEY + r"\Parameters", "AppParameters", "ExpandString", "--other"))
    assert node.look(STEP).differences(STEP) == {"service kube-proxy: AppParameters": ("--other", found)}
    assert node.change(STEP).states == {STEP: "changed"}
    node.site.settle(60)
    assert node.differs == []

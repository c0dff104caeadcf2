"""A service that gets another manager is migrated: nothing of the former one stays, and its pods live on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cli.staging import stage
from winboot_lab.windows.registry import HKLM

from tests.lab.site import Site, differences, only, problems
from tests.lab.test_networks import BY_NAME, joined, run_pod

SERVICES = ("containerd", "kubelet", "kube-proxy")
# CurrentControlSet is a link to it.
KEY = HKLM + r"\SYSTEM\ControlSet001\Services"


def manage(site: Site, manager: str) -> None:
    """Say another manager in the profile."""
    wishes: dict[str, Any] = {"network": {"cni": "flannel"}, "services": {"manager": manager}, **PROXY}
    site.files = stage(site._as_lab(), site.folder, None, wishes=wishes)


# With something in the environment, so that it has to move.
PROXY = {"proxy": {"https": "http://proxy.corp.example:3128", "no_proxy": [".lab"]}}


def definitions(site: Site) -> dict[str, Any]:
    """What the registry says of our services, without what other steps keep there."""
    tree = site.machine.registry.tree()
    return {name: _below(tree, rf"{KEY}\{name}") for name in SERVICES}


def _below(tree: Any, key: str) -> dict[str, Any]:
    return {
        path: values for path, values in tree.items() if (path + "\\").lower().startswith(key.lower() + "\\")
    }


@pytest.mark.matrix
def test_from_the_control_manager_to_nssm_and_back(tmp_path: Path) -> None:
    site = joined(tmp_path, BY_NAME["flannel-host-gw"], **PROXY)
    site.internet.proxy("proxy.corp.example", 3128)
    run_pod(site, "web")
    native = definitions(site)

    manage(site, "nssm")
    there = site.join(drain=True)
    wrapped = definitions(site)
    manage(site, "sc")
    back = site.join(drain=True)

    assert (problems(there), problems(back)) == ([], [])
    assert only(there).ready and only(back).ready
    for name in SERVICES:
        parameters = wrapped[name][rf"{KEY}\{name}\Parameters"]
        assert "Application" in parameters
        assert ("AppEnvironmentExtra" in parameters) == (name != "kube-proxy")
        assert "Environment" not in wrapped[name][rf"{KEY}\{name}"]
    assert definitions(site) == native
    assert differences(site.plan()) == {}
    assert not site.refusals


@pytest.mark.matrix
def test_a_live_node_is_not_migrated_without_a_drain(tmp_path: Path) -> None:
    site = joined(tmp_path, BY_NAME["flannel-host-gw"], **PROXY)
    before = definitions(site)

    manage(site, "nssm")
    report = site.join()

    blocked = {step.name for step in only(report).steps if step.state == "blocked"}
    assert {"containerd", "kubelet", "kube-proxy"} <= blocked
    assert "NeedsDrain" in " ".join(problems(report))
    assert definitions(site) == before


@pytest.mark.matrix
def test_variables_and_priority_of_the_profile_reach_the_processes(tmp_path: Path) -> None:
    services = {
        "overrides": {"kube-proxy": "nssm"},
        "environment": {"kubelet": {"GODEBUG": "netdns=go"}, "kube-proxy": {"NO_COLOR": "1"}},
        "priority": {"kube-proxy": "HIGH_PRIORITY_CLASS"},
    }
    site = joined(tmp_path, BY_NAME["win-bridge"], services=services)

    processes = {process.path.rpartition("\\")[2]: process for process in site.machine.processes.all()}
    assert processes["kubelet.exe"].environment["GODEBUG"] == "netdns=go"
    assert processes["kube-proxy.exe"].environment["NO_COLOR"] == "1"
    assert processes["kube-proxy.exe"].priority == "High"
    assert differences(site.join()) == {}

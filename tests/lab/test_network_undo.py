"""The script of `remove` on machines where something is in its way; that of every solution: test_networks.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.test_networks import BY_NAME, a_site, joined
from tests.lab.undoing import undo
from tests.matrix import first


@pytest.mark.matrix
def test_remove_leaves_no_route_to_pods_and_no_credential_behind(tmp_path: Path) -> None:
    """flanneld makes its routes to last; they are no part of the machine that is put back."""
    site = a_site(tmp_path, BY_NAME["flannel-host-gw"])
    address = {"type": "InternalIP", "address": "10.0.1.77"}
    spec = {"podCIDR": "10.244.9.0/24", "podCIDRs": ["10.244.9.0/24"]}
    told = {"backend-type": "host-gw", "backend-data": "null", "public-ip": "10.0.1.77"}
    annotations = {f"flannel.alpha.coreos.com/{key}": value for key, value in told.items()}
    other = {"metadata": {"name": "linux-1", "annotations": annotations}, "spec": spec}
    site.admin("POST", "/api/v1/nodes", {**other, "status": {"addresses": [address]}})
    site.join()
    site.settle(60)
    routes = site.machine.network.routes
    assert "10.244.9.0/24" in {route.prefix for route in routes if route.persistent}

    undo(site)

    assert [route for route in site.machine.network.routes if route.prefix.startswith("10.244.")] == []
    assert not site.machine.files.is_directory(r"C:\k")


@pytest.mark.parametrize("name", first(0, ["flannel-host-gw", "win-bridge"], daily=0))
def test_load_balancers_that_block_the_removal_of_a_network_go_before_it(name: str, tmp_path: Path) -> None:
    """17763.1554 "requires the hns policy list to be removed before network if it gets into a bad state"
    (AgentBaker, cleanupnetwork.ps1)."""
    site = joined(tmp_path, BY_NAME[name], release="2019")
    lists = site.machine.hns.policy_lists
    assert lists, "kube-proxy has made some"
    site.machine.hns.blocking_lists = True

    states = undo(site)

    assert {step: state for step, state in states.items() if state not in ("ok", "changed")} == {}
    assert (site.machine.hns.networks, lists) == ({}, {})
    assert site.machine.reachable()

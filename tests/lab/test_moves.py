"""A node moves from flannel to Antrea and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from winboot_lab.cluster import ClusterPlan
from winboot_lab.programs.antrea import NETWORK

from tests.lab.site import NodePlan, Site, differences, only, problems
from tests.lab.test_networks import restaged, run_pod

FLANNEL = {"cni": "flannel", "mode": "host-gw"}
ANTREA = {"cni": "antrea", "mode": None, "antrea": {"testsigning": "accepted"}}
OF_FLANNEL = {"External", "cbr0"}


def names(site: Site) -> set[str]:
    """The machine's HNS networks."""
    return {str(one["Name"]) for one in site.machine.hns.networks.values()}


def joined(site: Site, network: dict[str, object]) -> set[str]:
    """The HNS networks of the node once it is Ready with this network."""
    site.files = restaged(site, network)
    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)
    assert run_pod(site, "web")["phase"] == "Running"
    return names(site)


@pytest.mark.matrix
def test_a_node_moves_from_flannel_to_antrea_and_back(tmp_path: Path) -> None:
    """Each network leaves by `remove` with its own profile: winboot's under the guard, Antrea's by the restart."""
    site = Site(tmp_path, NodePlan("win-1", "2022", "10.0.1.11"), cluster=ClusterPlan(antrea=True))
    assert joined(site, FLANNEL) == OF_FLANNEL

    site.files = restaged(site, ANTREA)
    refused = problems(site.join(drain=True))
    assert [one for one in refused if "NetworkConflict" in one and "cbr0" in one and "flanneld" in one]
    assert names(site) == OF_FLANNEL

    site.files = restaged(site, FLANNEL)
    assert problems(site.controller().remove()) == []
    assert joined(site, ANTREA) == {NETWORK}

    assert problems(site.controller().remove()) == []
    assert joined(site, FLANNEL) == OF_FLANNEL
    assert differences(site.plan()) == {}
    assert not site.refusals

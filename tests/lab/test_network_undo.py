"""The script of `remove` takes the networks away that winboot brought, and leaves the machine reachable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.site import Direct, Site
from tests.lab.test_networks import BY_NAME, SOLUTIONS, Solution, a_site, joined
from winboot.plan import make_plan
from winboot.script import render
from winboot.steps import STEPS

OURS = [one for one in SOLUTIONS if one.somebody is None and not one.cluster().calico]


def undo(site: Site) -> dict[str, str]:
    """Run the script of `remove` to its end; how each step ended last."""
    (spec,) = site.specs()
    text = render(make_plan(spec, STEPS), spec, undo=True).text
    transport = Direct(site.controller(), spec)
    states: dict[str, str] = {}
    for _ in range(8):
        arguments = {"Mode": "Undo", "RunId": "undo", "Facts": {"Holder": "me"}}
        events: list[dict[str, Any]] = [json.loads(line) for line in transport.run(text, arguments, {})]
        states |= {
            e["step"]: f"{e['state']} {e['problem'] or ''}".strip() for e in events if e["event"] == "step"
        }
        match events[-1]["reason"]:
            case "complete":
                return states
            case "reboot":
                site.machine.reboot()
        site.settle(200)
    raise AssertionError(states)


@pytest.mark.parametrize("solution", OURS, ids=lambda one: one.name)
def test_remove_takes_the_network_away_and_keeps_the_machine_reachable(
    solution: Solution, tmp_path: Path
) -> None:
    site = joined(tmp_path, solution)

    states = undo(site)

    assert {step: state for step, state in states.items() if state not in ("ok", "changed")} == {}
    assert site.machine.hns.networks == {}
    assert site.machine.reachable()
    assert [one for one in solution.services if site.machine.services.find(one)] == []
    assert not site.machine.files.is_directory(r"C:\ProgramData\winboot")
    assert not site.refusals


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


@pytest.mark.parametrize("name", ["flannel-host-gw", "win-bridge"])
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

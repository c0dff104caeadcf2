"""What Azure's plugin remembers of pods that a restart has ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.lab.actions import Hand, write
from tests.lab.site import Site
from tests.lab.test_networks import run_pod
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

STEP = "azure-state"
STATE = r"C:\k\azure-vnet.json"
ELSEWHERE = r"C:\Windows\System32\azure-vnet-ipam.json"
DUAL = r"C:\k\azure-vnet-ipamv6.json"


def told(path: str) -> str:
    return f"file {path}: state of pods before the restart"


def old(path: str) -> Hand:
    """A file that was written before the machine started."""

    def hand(site: Site) -> None:
        write(path, "{}")(site)
        site.machine.files.set_times(path, modified=site.machine.now() - timedelta(days=1))

    return hand


def test_a_node_without_azures_plugin_has_no_such_step(bench: Bench):
    assert STEP not in bench.look(STEP).states


def test_a_bare_machine_remembers_nothing():
    assert Bench(spec=a_spec_of("azure")).look(STEP).states == {STEP: "ok"}


@pytest.mark.matrix
def test_state_of_before_the_restart_goes_with_the_plugins_network(joined: Callable[[str], Node]):
    lock = STATE + ".lock"
    node = joined("azure").after(*map(old, (STATE, ELSEWHERE, DUAL)), write(lock, "1"))

    assert node.look(STEP).differences(STEP) == {
        told(one): ("present", None) for one in (STATE, ELSEWHERE, DUAL)
    }
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    assert [node.file(one) for one in (STATE, ELSEWHERE, DUAL)] == [None] * 3
    assert node.file(lock) is None, "a lock without an owner, too"
    assert [node.machine.services.need(one).status for one in ("kubelet", "kube-proxy")] == ["Running"] * 2
    names = {one["Name"] for one in node.machine.hns.networks.values()}
    assert "ext" in names, "the first switch stays: no session breaks"


def test_state_that_the_plugin_has_written_since_is_of_pods_that_live(joined: Callable[[str], Node]):
    node = joined("azure")
    run_pod(node.site, "web")

    assert node.look(STEP).states == {STEP: "ok"}


def test_without_a_record_of_the_start_nothing_is_known_to_be_old(joined: Callable[[str], Node]):
    """An administrator has cleared the event log."""
    node = joined("azure").after(old(STATE))
    node.machine.events._entries.clear()

    assert node.look(STEP).states == {STEP: "ok"}


def test_files_of_other_names_stay(joined: Callable[[str], Node]):
    mine = r"C:\k\azure-vnet.json.bak"
    node = joined("azure").after(old(STATE), old(mine), old(r"C:\k\azure.json"))
    node.change(STEP)

    assert (node.file(mine), node.file(r"C:\k\azure.json")) == (b"{}", b"{}")


def test_an_undo_takes_all_of_it_away(joined: Callable[[str], Node]):
    node = joined("azure")
    run_pod(node.site, "web")
    assert node.undo(STEP).states == {STEP: "ok"}, "there was nothing before"

    assert node.file(STATE) is None
    assert node.machine.services.need("kubelet").status == "Stopped"

"""How a pod gets its network: one configuration, ours, in the folder that containerd reads."""

from __future__ import annotations

import json

import pytest

from tests.lab.actions import Hand, delete, replace, with_bom, write
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

STEP = "cni-config"
FOLDER = r"C:\etc\cni\net.d"
PATH = rf"{FOLDER}\10-flannel.conflist"
WHAT = f"file {PATH}: content"
STRANGER = rf"{FOLDER}\05-other.conf"


def test_a_node_whose_operator_brings_the_configuration_has_no_such_step():
    assert STEP not in Bench(spec=a_spec_of("calico")).look(STEP).states


def test_a_bare_machine_lacks_it(bench: Bench):
    assert set(bench.look(STEP).differences(STEP)) == {WHAT}


def test_without_an_address_of_the_node_it_is_wanted_for_later_and_cannot_be_made(bench: Bench):
    bench.world.close("10.0.0.10", 6443)
    bench.machine.network.routes.clear()

    assert bench.look(STEP).differences(STEP)[WHAT] == (None, "(known after join)")
    assert bench.run(STEP).problem(STEP).id == "NotKnownYet"


def test_it_is_written_once_removed_and_written_again(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.file(PATH) is None
    assert set(node.look(STEP).differences(STEP)) == {WHAT}
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.differs == []


@pytest.mark.parametrize(
    "hand",
    [delete(PATH), replace(PATH, '"apiVersion": 2', '"apiVersion": 1'), with_bom(PATH)],
    ids=["gone", "the plugins' old interface", "a byte order mark"],
)
def test_whatever_happens_to_it_is_seen_and_repaired(node: Node, hand: Hand):
    node.after(hand)

    assert set(node.look(STEP).differences(STEP)) == {WHAT}
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.differs == []


def test_it_names_the_network_and_the_addresses_that_are_not_translated(node: Node):
    conflist = json.loads(node.file(PATH) or b"")
    policies = [one["value"] for one in conflist["plugins"][0]["delegate"]["policies"]]

    assert conflist["name"] == "cbr0"
    assert policies[0]["Settings"]["Exceptions"] == ["10.244.0.0/16", "10.96.0.0/12", "10.0.0.0/16"]


def test_another_configuration_goes_since_containerd_takes_the_first_and_an_undo_brings_it_back(node: Node):
    node.after(write(STRANGER, "{}"))
    told = node.look(STEP)
    assert told.differences(STEP) == {f"file {STRANGER}: another CNI configuration": ("present", None)}
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.file(STRANGER) is None

    node.undo(STEP)

    assert node.file(STRANGER) == b"{}"


def test_files_that_containerd_does_not_read_stay(node: Node):
    node.after(write(rf"{FOLDER}\notes.txt", "mine"), delete(PATH))
    node.change(STEP)

    assert node.file(rf"{FOLDER}\notes.txt") == b"mine"
    node.after(delete(rf"{FOLDER}\notes.txt"))

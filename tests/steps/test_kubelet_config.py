"""The kubelet's configuration file, with the values that Windows needs."""

from __future__ import annotations

import json

import pytest

from tests.lab.actions import delete, replace, with_bom
from tests.lab.actions import write as written
from tests.steps.bench import Bench
from tests.steps.nodes import Node

STEP = "kubelet-config"
PATH = r"C:\var\lib\kubelet\config.yaml"
WHAT = f"file {PATH}: content"


def test_a_bare_machine_lacks_it(bench: Bench):
    assert set(bench.look(STEP).differences(STEP)) == {WHAT}


def test_a_change_writes_the_very_text_of_the_preview_and_a_second_look_is_silent(bench: Bench):
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    assert json.loads(bench.file(PATH) or b"") == bench.spec.kubelet.config


@pytest.mark.parametrize(
    ("key", "value"),
    [("cgroupsPerQOS", False), ("enforceNodeAllocatable", []), ("resolvConf", "")],
)
def test_what_ends_a_kubelet_on_windows_is_turned_off(bench: Bench, key: str, value: object):
    bench.run(STEP)

    assert json.loads(bench.file(PATH) or b"")[key] == value


def test_undo_gives_back_the_file_of_before(bench: Bench):
    bench.write(PATH, b"kind: KubeletConfiguration\n")
    bench.run(STEP)
    assert bench.undo(STEP).states == {STEP: "changed"}

    assert bench.file(PATH) == b"kind: KubeletConfiguration\n"


@pytest.mark.parametrize(
    "hand",
    [
        delete(PATH),
        pytest.param(replace(PATH, "cluster.local", "other.local"), marks=pytest.mark.check),
        pytest.param(with_bom(PATH), marks=pytest.mark.check),
        written(PATH, b"\xff"),
    ],
    ids=["gone", "another domain", "a byte order mark", "no text"],
)
def test_whatever_happens_to_it_is_seen_and_repaired(node: Node, hand):
    node.after(hand)

    assert set(node.look(STEP).differences(STEP)) == {WHAT}
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change("kubelet", "flanneld", "kube-proxy").states["kubelet"] == "changed", (
        "reads its configuration again"
    )
    node.site.settle(60)
    assert node.differs == []


def test_on_a_live_node_it_waits_for_the_drain(node: Node):
    """The kubelet reads it when it starts, and kube-proxy stops with the kubelet."""
    node.after(replace(PATH, "cluster.local", "other.local"))

    problem = node.run(STEP, facts={"NodeIsLive": True}).problem(STEP)

    assert (problem.id, WHAT in problem.message, "--drain" in problem.hint) == ("NeedsDrain", True, True)


def test_what_windows_refuses_is_reported_with_its_message_and_the_place_in_the_script(bench: Bench):
    bench.machine.files.make_directory(PATH)

    told = bench.run(STEP)
    problem = told.problem(STEP)

    assert (problem.id, problem.message) == (
        "ChangeFailed",
        "Cannot create a file when that file already exists.",
    )
    assert set(told.differences(STEP)) == {WHAT}, "so that the file is named"
    assert problem.position.startswith("line ")

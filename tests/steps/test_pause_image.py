"""The pause image is on the node before the first pod asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit

from tests.lab.actions import stop, write
from tests.steps.bench import Bench
from tests.steps.nodes import Node

STEP = "pause-image"
STORE = r"C:\ProgramData\containerd\root\io.containerd.metadata.v1.bolt\meta.db"


@pytest.fixture
def without(node: Node) -> Node:
    """A node whose images an administrator has removed."""
    data = json.loads(node.machine.files.read(STORE))
    return node.after(write(STORE, json.dumps({**data, "images": {}}, sort_keys=True)))


def what(node: Node) -> str:
    return f"image {node.spec.runtime.pause_image}"


def test_a_bare_machine_lacks_it(bench: Bench):
    assert bench.look(STEP).differences(STEP) == {
        f"image {bench.spec.runtime.pause_image}": (None, "present")
    }


def test_it_is_pulled_once(without: Node):
    assert without.look(STEP).differences(STEP) == {what(without): (None, "present")}
    assert without.change(STEP).states == {STEP: "changed"}
    assert without.change(STEP).states == {STEP: "ok"}
    assert without.differs == []


def test_an_undo_leaves_it_where_it_is(node: Node):
    """The image does no harm, and the kubelet's own collection removes it."""
    assert node.undo(STEP).states == {STEP: "ok"}
    assert node.look(STEP).states == {STEP: "ok"}


def test_without_a_running_containerd_nothing_is_known_of_it(node: Node):
    node.after(stop("containerd"))

    assert node.look(STEP).differences(STEP) == {what(node): (None, "present")}


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("missing", "not found"),
        ("build", "no match for platform"),
        ("unreachable", "dial tcp"),
    ],
)
def test_a_pull_that_fails_is_reported_with_what_the_registry_said(without: Node, why: str, reason: str):
    images, image = without.site.outside.images, without.spec.runtime.pause_image
    if why == "missing":
        images.missing.add(image)
    elif why == "build":
        images.builds[image] = (17763,)
    else:
        images.hosts.discard(image.partition("/")[0])

    problem = without.change(STEP).problem(STEP)

    assert problem.id == "ImagePull"
    assert problem.message.startswith(f"{image} cannot be pulled: ")
    assert reason in problem.message
    assert "runtime.registries" in problem.hint


class Stuck:
    """A program that waits for something for longer than anybody should."""

    def run(
        self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        machine.time.advance_to(machine.time.seconds + 700)
        return Exit()


def test_a_program_that_hangs_is_ended_and_named(without: Node):
    without.machine.programs.add("crictl", Stuck())

    problem = without.change(STEP).problem(STEP)

    assert problem.id == "ProgramHangs"
    assert problem.message.startswith(r"C:\k\versions\crictl-1.36.0\crictl.exe did not end within ")
    assert "by hand" in problem.hint


def test_the_images_of_the_profile_are_pulled_with_it(without: Node):
    more = "mcr.microsoft.com/oss/kubernetes/pause:3.9"
    without.spec = replace(
        without.spec, runtime=replace(without.spec.runtime, images=(*without.spec.runtime.images, more))
    )

    assert set(without.look(STEP).differences(STEP)) == {what(without), f"image {more}"}
    assert without.change(STEP).states == {STEP: "changed"}
    assert without.look(STEP).states == {STEP: "ok"}

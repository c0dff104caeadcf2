"""cri-dockerd runs below NSSM between Docker and the kubelet."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.actions import stop
from tests.steps.nodes import Node

STEP = "cri-dockerd"


def test_a_stopped_cri_dockerd_is_started_again_and_answers_crictl(joined: Callable[[str], Node]) -> None:
    node = joined("docker")
    node.after(stop("kubelet"), stop(STEP))

    assert list(node.look(STEP).differences(STEP)) == [f"service {STEP}: state"]
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.spec.services[STEP].manager == "nssm"
    assert node.look("ipam-reservations").differences("ipam-reservations") == {}

"""Keep pods away from the addresses that the gateway, the host and kube-proxy have; give leaked ones back."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step
from winboot.script.steps.texts import text


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    reservations = [
        {"address": text(one.address), "holder": one.holder, "interface": one.interface}
        for one in spec.network.reservations
    ]
    return {"store": spec.network.ipam_store, "reservations": reservations}


def _wanted(spec: NodeSpec) -> bool:
    return bool(spec.network.reservations)


IPAM_RESERVATIONS = Step(
    name="ipam-reservations",
    why="host-local could give a pod the host endpoint's address, and it keeps the addresses of pods lost in a restart",
    inputs=_inputs,
    needs=("registration", "containerd", "docker"),
    wanted=_wanted,
)

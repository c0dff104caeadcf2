"""Keep watch over the machine's own address while someone else makes the network."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.operator_network import network_table
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"network": network_table(spec)}


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.solution.owners.hns_network == "operator"


ADDRESS_GUARD = Step(
    name="address-guard",
    why="when an operator makes a switch on the adapter, the machine can lose its static address and become unreachable",
    inputs=_inputs,
    needs=("postboot-task", "windows-features"),
    wanted=_wanted,
)

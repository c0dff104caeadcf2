"""Take over a node that another tool made, with its identity, and give it back with an undo."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.kubelet_credentials import credential_table
from winboot.script.steps.pod_network import guard_table
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "credential": credential_table(spec),
        "leaves_docker": spec.runtime.name != "docker",
        "root": spec.runtime.folders.root,
        "services": [one.name for one in spec.services.all],
        # The pods' network is another tool's here: nothing is removed where this run fails.
        "guard": {**guard_table(spec), "agent": "", "networks": []},
    }


ADOPTION = Step(
    name="adoption",
    why="a node that another tool made keeps its name and certificate, and an undo starts its former services again",
    inputs=_inputs,
    needs=("directories",),
)

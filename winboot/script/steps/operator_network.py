"""Wait for the pod network that someone else brings, and look at it; nothing of it is winboot's to change."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def network_table(spec: NodeSpec) -> dict[str, object]:
    """What the network's owner is expected to bring, as `lib/operator.ps1` looks for it."""
    network, solution = spec.network, spec.network.solution
    return {
        "name": network.network_name,
        "type": solution.hns_type or "",
        "vni": network.vxlan.vni if solution.hns_type == "Overlay" else 0,
        "endpoint": solution.source_vip_endpoint or "" if spec.kube_proxy.wanted else "",
        # Whose CNI configuration is the owner's: any file there will do.
        "conf_folder": "" if network.cni_conf is not None else spec.paths.cni_conf,
        "plugins": [rf"{spec.paths.cni_bin}\{name}.exe" for name in solution.plugins],
        "who": solution.owner_hint,
    }


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"network": network_table(spec)}


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.solution.owners.hns_network == "operator" and bool(spec.network.network_name)


OPERATOR_NETWORK = Step(
    name="operator-network",
    why="winboot waits for the network that an operator or an administrator makes, checks it, and never changes it",
    inputs=_inputs,
    needs=("registration", "windows-features"),
    wanted=_wanted,
)

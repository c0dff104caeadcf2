"""Make the folders that the later steps write to, with the access rules they need."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.step import Step


def _parent(path: str) -> str:
    return path.rpartition("\\")[0]


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    """Folders by what they are for; an undo removes the contents of `ours` too, of the others only what is empty."""
    paths = spec.paths
    return {
        # Kubeconfigs and the bootstrap token, certificates and keys, registry credentials.
        "private": [paths.bin, paths.kubelet_pki, paths.containerd_certs],
        # Nobody but the services of this node writes there.
        "ours": [
            paths.kubelet_root,
            _parent(paths.containerd_root),
            _parent(paths.ipam_store),
            _parent(paths.subnet_env),
            *(
                rf"{paths.logs}\{name}"
                for name in ("pods", "containers", *(s.name for s in spec.services.all))
            ),
        ],
        "open": [
            _parent(paths.cluster_ca),
            paths.containerd_bin,
            paths.containerd_root,
            paths.containerd_state,
            paths.cni_bin,
            paths.cni_conf,
            paths.ipam_store,
            _parent(paths.net_conf),
        ],
    }


DIRECTORIES = Step(
    name="directories",
    why="a folder made in time has its access rules before the first secret is in it",
    inputs=_inputs,
    needs=("node-preflight",),
)

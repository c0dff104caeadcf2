"""Make the folders that the later steps write to, with the access rules they need."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _parent(path: str) -> str:
    return path.rpartition("\\")[0]


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    """Folders by the rights that users have there; an undo removes the contents of `ours` too, of the others only
    what is empty.

    `watched`: a file is run, or heeded, because it lies there. `opaque`: patterns of what pods and images fill, with owners
    and links of their own.
    """
    paths = spec.paths
    runtime = spec.runtime.folders
    logs = [rf"{paths.logs}\{name}" for name in ("pods", "containers", *(s.name for s in spec.services.all))]
    solution = spec.network.solution
    configuration = [
        _parent(paths.cluster_ca),
        paths.cni_conf,
        *(_parent(solution.paths[name]) for name in solution.configuration),
    ]
    written = [_parent(solution.paths[name]) for name in solution.written]
    store = _parent(paths.ipam_store)
    # The kubelet, which runs as SYSTEM, starts what is there.
    providers = [paths.credential_providers] if spec.kubelet.credentials else []
    # The same is true of FlexVolume drivers.
    drivers = [*dict.fromkeys(map(_parent, spec.storage.drivers)), *spec.storage.drivers]
    # Windows runs the plug-in as the account that asks for it (DllSurrogate without RunAs). Microsoft's installers place it
    # where every account may read it: System32, Program Files (InstallPlugin.ps1 of Azure-Key-Vault-Plugin-gMSA).
    plugin = [_parent(paths.gmsa_plugin)] if spec.gmsa is not None and spec.gmsa.app_id else []
    return {
        # Kubeconfigs and the bootstrap token, certificates and keys, registry credentials, and what the runtime keeps.
        "private": [
            paths.bin,
            paths.versions,
            paths.kubelet_pki,
            *runtime.private,
            *providers,
        ],
        # Pods read what the kubelet mounts into them, and collectors of logs what is in those.
        "readable": [
            paths.kubelet_root,
            paths.cni_bin,
            *runtime.readable,
            *configuration,
            store,
            paths.ipam_store,
            *written,
            *drivers,
            *plugin,
            *logs,
        ],
        # Only the services of this node write there.
        "ours": [paths.kubelet_root, *runtime.ours, store, *written, *logs],
        "opaque": [rf"{paths.kubelet_root}\pods\*\*", *runtime.opaque],
        "watched": [
            paths.bin,
            paths.cni_bin,
            *runtime.watched,
            *configuration,
            *drivers,
            *plugin,
            *providers,
        ],
    }


DIRECTORIES = Step(
    name="directories",
    why="each folder gets its access rules before a program writes the first secret into the folder",
    inputs=_inputs,
    leaves=lambda spec: {
        "folders": [
            path
            for name, paths in _inputs(spec).items()
            if name != "opaque" and isinstance(paths, list)
            for path in paths
        ]
    },
    needs=("node-preflight", "download-sources"),
    identity=False,
)

"""Texts that are rendered here and completed on the node.

What exists only on the node is in a text as `<<name>>` (the names of `winboot.config.networks.base.Known`); the
library function Expand-Known fills it in there. `source` shows that function where to look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from winboot.config.networks.base import Data, Known, Text
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.programs import artifact_tables

_WIDTH: Final = 110


def text(value: Text) -> str:
    """A text as it is in the script: `Known("node_ip", suffix="/32")` is `<<node_ip>>/32`."""
    if isinstance(value, Known):
        return f"{value.prefix}<<{value.name}>>{value.suffix}"
    return value


def json_text(data: Data, *, width: int = _WIDTH) -> str:
    """Data as JSON with LF line ends, its `Known` leaves as `<<name>>`. JSON is YAML, too."""
    return _json(_plain(data), 0, width) + "\n"


def _json(value: object, indent: int, width: int) -> str:
    """Indented JSON in which a table or a list that fits on its line stays there: short to read, short to send."""
    short = json.dumps(value, ensure_ascii=False)
    if len(short) + indent <= width or not isinstance(value, dict | list):
        return short
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(key)}: {_json(item, indent + 2, width)}" for key, item in value.items()]
        opening, closing = "{", "}"
    else:
        rows = [f"{inner}{_json(item, indent + 2, width)}" for item in value]
        opening, closing = "[", "]"
    return opening + "\n" + ",\n".join(rows) + "\n" + " " * indent + closing


def _plain(data: Data) -> object:
    match data:
        case Known():
            return text(data)
        case Mapping():
            return {key: _plain(value) for key, value in data.items()}
        case str() | None | bool() | int() | float():
            return data
        case Sequence():
            return [_plain(item) for item in data]


def source(spec: NodeSpec) -> dict[str, object]:
    """What the library needs to find out addresses, ask for the Node and ask the runtime."""
    solution = spec.network.solution
    found: dict[str, object] = {
        "node": spec.node.name,
        "startup_taint": spec.node.startup_taint.key,
        "node_ip": spec.machine.node_ip or "",
        "server_host": spec.cluster.server_host,
        "server_port": spec.cluster.server_port,
        # Routes inside these networks are the cluster's affair. Where pods take addresses of the nodes' network, none is:
        # the machine's own address and routes are in it.
        "pod_cidrs": [] if solution.pods_in_node_network else list(spec.cluster.pod_cidrs),
        "kubectl": spec.paths.kubectl,
        "kubeconfig": spec.paths.kubeconfig,
        "crictl": spec.paths.crictl,
        "crictl_config": spec.paths.crictl_config,
        "runtime": spec.runtime.answers,
        "artifacts": artifact_tables(spec),
        "keep_versions": spec.kubernetes.keep_versions,
    }
    if solution.pod_cidr_annotation:
        found["subnet_annotation"] = solution.pod_cidr_annotation
    if spec.runtime.name == "docker":
        found["docker"] = spec.paths.docker
    if solution.source_vip_endpoint is not None:
        found.update(vip_by="Get-EndpointVip", vip_place=solution.source_vip_endpoint)
    elif solution.source_vip:
        found.update(vip_by="Get-StoreVip", vip_place=spec.network.ipam_store)
    return found


def kubeconfig_text(spec: NodeSpec, *, user: str, credential: Mapping[str, str]) -> str:
    """A kubeconfig for one user, as JSON; the CA is named by its file, so that there is one copy of it."""
    return json_text(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "cluster",
                    "cluster": {
                        "server": spec.cluster.server,
                        "certificate-authority": spec.paths.cluster_ca,
                    },
                }
            ],
            "users": [{"name": user, "user": credential}],
            "contexts": [{"name": "node", "context": {"cluster": "cluster", "user": user}}],
            "current-context": "node",
        },
        # One line for the cluster, one for the user.
        width=240,
    )


def node_kubeconfig_text(spec: NodeSpec, user: str) -> str:
    """A kubeconfig that uses the kubelet's rotating client certificate: nothing to renew, nothing secret in it."""
    certificate = spec.paths.kubelet_client_certificate
    return kubeconfig_text(
        spec, user=user, credential={"client-certificate": certificate, "client-key": certificate}
    )

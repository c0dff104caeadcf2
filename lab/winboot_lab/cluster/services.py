"""Services and where they lead: addresses and ports for new ones, and the slices of those that select pods."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

from winboot_lab.cluster.failure import ApiFailure
from winboot_lab.cluster.kinds import Object
from winboot_lab.cluster.routes import matches_labels

NODE_PORTS: Final = range(30000, 32768)


def complete_service(new: Object, others: Sequence[Object], cidrs: Sequence[str]) -> None:
    """Give a new service its cluster IP, and its node ports where it is of that type."""
    spec = new.setdefault("spec", {})
    kind = spec.setdefault("type", "ClusterIP")
    if kind == "ExternalName":
        return
    if not spec.get("clusterIP"):
        taken = {one["spec"].get("clusterIP") for one in others}
        network = ipaddress.ip_network(cidrs[0])
        free = (str(network[n]) for n in range(256, network.num_addresses - 1))
        spec["clusterIP"] = next(address for address in free if address not in taken)
    used = {port.get("nodePort") for one in others for port in one["spec"].get("ports") or []}
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        if kind == "ClusterIP":
            continue
        if port.get("nodePort") and port["nodePort"] in used:
            raise ApiFailure(
                422,
                f"spec.ports[0].nodePort: Invalid value: {port['nodePort']}: provided port is already allocated",
            )
        if not port.get("nodePort"):
            port["nodePort"] = next(number for number in NODE_PORTS if number not in used)
        used.add(port["nodePort"])


def slice_of(service: Object, pods: Iterable[Object]) -> Object:
    """The EndpointSlice of a service: the ready pods that it selects."""
    metadata = service["metadata"]
    wanted = ",".join(f"{key}={value}" for key, value in (service["spec"].get("selector") or {}).items())
    endpoints = [
        {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {"ready": True},
            "nodeName": pod["spec"].get("nodeName"),
        }
        for pod in pods
        if matches_labels(pod, wanted) and is_ready(pod)
    ]
    return {
        "metadata": {
            "name": f"{metadata['name']}-lab",
            "namespace": metadata["namespace"],
            "labels": {"kubernetes.io/service-name": metadata["name"]},
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [
            {
                "name": one.get("name", ""),
                "port": one.get("targetPort") or one["port"],
                "protocol": one["protocol"],
            }
            for one in service["spec"].get("ports") or []
        ],
    }


def is_ready(pod: Object) -> bool:
    """Whether a pod takes part in its services."""
    status = pod.get("status", {})
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or []}
    return bool(status.get("podIP")) and conditions.get("Ready") == "True"

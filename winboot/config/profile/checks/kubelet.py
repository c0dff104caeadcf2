"""The kubelet's configuration against the other sections: fields that cannot be meant on a node like this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.owned import unowned
from winboot.config.source import Complaint, PathParts

# What the controller-manager gives to a node is a /24, unless --node-cidr-mask-size-ipv4 says otherwise
# (kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager): 254 addresses, one of them the gateway's.
_PODS_OF_A_NODE: Final = 253


def check(draft: Draft) -> Iterator[Complaint]:
    """What winboot finds without the compatibility data; flags and fields themselves are for `components`."""
    config = unowned("kubelet", draft.kubelet.config, draft.solution) if draft.kubelet else {}
    services = draft.services
    if services is not None and (services.overrides.get("kubelet") or services.manager) == "nssm":
        yield from _grace(draft, config)
    yield from _of_linux(draft, config)


def _grace(draft: Draft, config: Mapping[str, Any]) -> Iterator[Complaint]:
    if config.get("shutdownGracePeriod"):
        wrong = "graceful shutdown works only where the kubelet itself is the service, not under nssm"
        path: PathParts = ("kubelet", "config", "shutdownGracePeriod")
        yield draft.at(path, wrong, "services.manager: sc", key=True, warning=True)


def _of_linux(draft: Draft, config: Mapping[str, Any]) -> Iterator[Complaint]:
    """Fields that are right for the kubelet and cannot be meant on a node like this."""
    pods = config.get("maxPods")
    if isinstance(pods, int) and draft.cluster is not None and draft.cluster.pod_cidr:
        room = max(cidr.num_addresses for cidr in draft.cluster.pod_cidr)
        path: PathParts = ("kubelet", "config", "maxPods")
        if pods > room:
            yield draft.at(path, f"{pods} pods, and cluster.pod_cidr has {room} addresses", f"at most {room}")
        elif pods > _PODS_OF_A_NODE:
            wrong = f"{pods} pods, and the pod CIDR of a node has {_PODS_OF_A_NODE + 1} addresses where it is a /24"
            yield draft.at(path, wrong, "fewer, or a larger --node-cidr-mask-size-ipv4", warning=True)
    manifests = config.get("staticPodPath")
    if isinstance(manifests, str) and manifests.startswith("/"):
        path = ("kubelet", "config", "staticPodPath")
        yield draft.at(
            path,
            f"{manifests} is a path of Linux",
            "a folder of Windows, such as C:\\k\\manifests",
            warning=True,
        )

"""What winboot asks of the Kubernetes cluster, behind one small protocol (`base`).

    with connect(kubeconfig, context=None) as cluster:
        facts = cluster.node("win-a1")

The client library is imported by `connect` alone, so that `winboot render` starts without it.
"""

from __future__ import annotations

from pathlib import Path

from winboot.remote.cluster.base import Cluster, Wait
from winboot.remote.cluster.kubeconfig import Kubeconfig


def connect(
    kubeconfig: Kubeconfig | Path, *, context: str | None = None, wait: Wait | None = None
) -> Cluster:
    """Open the cluster that a kubeconfig (or its file) names; InvalidInput and ClusterError when it is no good.

    `wait` passes the time until winboot calls again an API server that cannot answer, and may end it.
    """
    from winboot.remote.cluster.lightkube import LightkubeCluster  # heavy, and only a join needs it

    if wait is None:
        return LightkubeCluster(kubeconfig, context=context)
    return LightkubeCluster(kubeconfig, context=context, wait=wait)


__all__ = ["Cluster", "Kubeconfig", "connect"]

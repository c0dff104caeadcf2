"""What the checks look at: the cluster, each question asked once however many nodes want the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from winboot.config.compat.version import Version
from winboot.config.networks.cluster import ClusterSettings
from winboot.config.node_spec import NodeSpec
from winboot.remote.cluster.base import Cluster, GmsaState, MissingRight, Need, NodeFacts
from winboot.remote.cluster.rights import JOINERS

# A user as the API server sees a bootstrap token; which token it is makes no difference to its rights.
BOOTSTRAPPER: Final = "system:bootstrap:winbtt"
BOOTSTRAPPERS: Final = ("system:bootstrappers", JOINERS)
NODES: Final = ("system:nodes",)


class ClusterView:
    """One cluster and the nodes of the inventory that belong to it. Used by one thread."""

    def __init__(self, cluster: Cluster, specs: Sequence[NodeSpec], *, drains: bool) -> None:
        self.specs = tuple(specs)
        self.drains = drains
        self._cluster = cluster

    @cached_property
    def version(self) -> Version:
        """The API server's version."""
        return self._cluster.version()

    @cached_property
    def clock_ahead(self) -> timedelta | None:
        """How far the API server's clock is ahead of this computer's; None if its answer does not show it."""
        return self._cluster.clock_ahead()

    @property
    def is_insecure(self) -> bool:
        """Whether the API server's certificate is not judged."""
        return self._cluster.is_insecure

    @cached_property
    def nodes(self) -> tuple[NodeFacts, ...]:
        """All Nodes."""
        return self._cluster.nodes()

    @property
    def settings(self) -> ClusterSettings:
        """What the check of a network solution may ask; winboot asks it once for all nodes."""
        return self._cluster

    @cached_property
    def unselective(self) -> tuple[str, ...]:
        """DaemonSets that would put Linux pods on a Windows node."""
        return self._cluster.unselective_daemon_sets()

    @cached_property
    def windows_kube_proxies(self) -> tuple[str, ...]:
        """DaemonSets that run kube-proxy on Windows."""
        return self._cluster.windows_kube_proxies()

    @cached_property
    def windows_kube_proxy_configs(self) -> tuple[tuple[str, str], ...]:
        """DaemonSets that run kube-proxy on Windows, each with a ConfigMap that it mounts."""
        return self._cluster.windows_kube_proxy_configs()

    @cached_property
    def csi_proxies(self) -> tuple[tuple[str, str], ...]:
        """DaemonSets that run csi-proxy (`runs`), and those whose pods mount a pipe of it (`mounts`)."""
        return self._cluster.csi_proxies()

    @cached_property
    def gmsa(self) -> GmsaState:
        """What the cluster has of windows-gmsa."""
        return self._cluster.gmsa()

    def try_gmsa(self, namespace: str, account: str, spec: str) -> str:
        """Why a pod with this account does not get it; empty if it does."""
        return self._cluster.try_gmsa(namespace, account, spec)

    @property
    def now(self) -> datetime:
        """The API server's clock."""
        return self._cluster.server_time()

    @cached_property
    def has_privileged(self) -> bool:
        """Whether a DaemonSet shows that the API server allows privileged and HostProcess pods."""
        return self._cluster.has_privileged_daemon_sets()

    @property
    def mints(self) -> bool:
        """Whether winboot makes bootstrap tokens for any of the nodes."""
        return any(spec.cluster.bootstrap_token == "mint" for spec in self.specs)

    def own_missing(self, needs: Sequence[Need]) -> tuple[Need, ...]:
        """What the user of the kubeconfig lacks."""
        return self._cluster.own_missing_rights(needs)

    def missing(
        self, needs: Mapping[str, Sequence[Need]], user: str, groups: Sequence[str]
    ) -> tuple[MissingRight, ...]:
        """What another user lacks, by program."""
        return self._cluster.missing_rights(needs, user, groups)

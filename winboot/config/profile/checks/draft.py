"""A profile while it is checked: the sections that are valid by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from winboot.config import networks
from winboot.config.compat import Compat, Finding, Version
from winboot.config.profile import sections
from winboot.config.profile.gmsa import Gmsa
from winboot.config.profile.storage import Storage
from winboot.config.source import Complaint, Level, Node, PathParts, Wrong, dotted, locate


@dataclass(frozen=True, slots=True)
class Draft:
    """The sections that are valid by themselves, with the nodes they were made of."""

    node: Node
    facts: Compat
    version: Version | None
    cluster: sections.Cluster | None
    network: sections.Network | None
    runtime: sections.Runtime | None
    services: sections.Services | None
    kubelet: sections.Kubelet | None
    kube_proxy: sections.KubeProxy | None
    labels_and_taints: sections.Node | None
    boot: sections.Boot | None
    proxy: sections.Proxy | None
    windows: sections.Windows | None
    artifacts: sections.Artifacts | None
    storage: Storage | None
    gmsa: Gmsa | None
    steps: tuple[sections.OwnStep, ...]

    @property
    def solution(self) -> networks.Network | None:
        """The network solution, where the keys name one."""
        if self.network is None:
            return None
        try:
            return self.network.solution(self.artifacts)
        except ValueError:
            return None

    @property
    def dual_stack(self) -> bool:
        return self.cluster is not None and len(self.cluster.pod_cidr) > 1

    def at(
        self,
        path: PathParts,
        wrong: str,
        expected: str = "",
        did_you_mean: str = "",
        *,
        key: bool = False,
        warning: bool = False,
    ) -> Complaint:
        """A complaint about the value (or the key) at a path."""
        place = locate(self.node, path, key=key)
        level: Level = "warning" if warning else "error"
        return Complaint(place, dotted(path), wrong, expected, did_you_mean, level)

    def wrong(self, path: PathParts, error: Wrong, *, key: bool = False) -> Complaint:
        """What a kind of value says about the value (or the key) at a path."""
        return self.at(path, error.wrong, error.expected, error.did_you_mean, key=key)

    def found(
        self, path: PathParts, findings: Iterable[Finding], *, key: bool = False
    ) -> Iterator[Complaint]:
        """The compatibility data's findings as complaints at a path."""
        place = locate(self.node, path, key=key)
        return (finding.complaint(place, dotted(path)) for finding in findings)

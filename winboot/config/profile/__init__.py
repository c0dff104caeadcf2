"""What every node of a pool should be: the profile file as frozen models, and everything that can be wrong
with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import Field

from winboot.base.errors import InvalidInput
from winboot.config import compat
from winboot.config.compat import Compat, Version
from winboot.config.model import Model, build
from winboot.config.networks import Network
from winboot.config.profile import sections
from winboot.config.profile.checks import all_complaints
from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.gmsa import Gmsa
from winboot.config.profile.reference import Reference
from winboot.config.profile.storage import Storage
from winboot.config.source import Complaint, Listing, Scalar, Table, child, dotted, in_order, locate, read

__all__ = [
    "Profile",
    "Reference",
    "check_profile",
    "facts_of",
    "load_profile",
    "profile_from",
    "refuse",
]


class Profile(Model):
    """A profile, section by section. docs/profile.md says what each key does."""

    name: str = Field(default="", description="the name in reports and the script; default: the file's name")
    kubernetes: sections.Kubernetes = Field(description="which Kubernetes")
    cluster: sections.Cluster = Field(description="the cluster to join")
    network: sections.Network = Field(description="the network solution")
    runtime: sections.Runtime = Field(default=sections.Runtime(), description="containerd")
    services: sections.Services = Field(default=sections.Services(), description="settings of the services")
    kubelet: sections.Kubelet = Field(default=sections.Kubelet(), description="the kubelet")
    kube_proxy: sections.KubeProxy = Field(default=sections.KubeProxy(), description="kube-proxy")
    node: sections.Node = Field(default=sections.Node(), description="labels and taints of the Node")
    boot: sections.Boot = Field(
        default=sections.Boot(), description="signals to other tools that wait for a new node"
    )
    proxy: sections.Proxy = Field(default=sections.Proxy(), description="the HTTP proxy of the services")
    windows: sections.Windows = Field(default=sections.Windows(), description="settings of Windows itself")
    artifacts: sections.Artifacts = Field(
        default=sections.Artifacts(), description="the sources of the programs"
    )
    storage: Storage = Field(default=Storage(), description="csi-proxy, SMB, iSCSI and FlexVolume drivers")
    gmsa: Gmsa | None = Field(default=None, description="group managed service accounts of pods")
    steps: tuple[sections.OwnStep, ...] = Field(default=(), description="your own PowerShell steps")

    @property
    def solution(self) -> Network:
        """The network solution as a value."""
        return self.network.solution(self.artifacts)


def load_profile(path: Path, accept: Callable[[Table], None] = lambda node: None) -> Profile:
    """The profile in a file; InvalidInput with every complaint where something is wrong. Warnings pass. `accept` sees what was
    read before anything of it is used."""
    node = read(path)
    accept(node)
    profile, complaints = profile_from(node, path.stem)
    return refuse(profile, complaints, str(path))


def check_profile(path: Path) -> list[Complaint]:
    """Everything that is wrong with a profile or worth knowing, errors and warnings; empty for a good one."""
    try:
        node = read(path)
    except InvalidInput as error:
        return [one for one in error.problems if isinstance(one, Complaint)] or [
            Complaint(None, "", error.problem)
        ]
    return profile_from(node, path.stem)[1]


def profile_from(node: Table, name: str) -> tuple[Profile | None, list[Complaint]]:
    """A profile made of (merged) nodes, and all complaints. None where an error makes it unusable as a whole."""
    profile, complaints = build(Profile, node)
    facts, unreadable = _facts(node)
    complaints = in_order([*complaints, *unreadable, *all_complaints(_draft(node, profile, facts))])
    if profile is not None and not profile.name:
        profile = profile.model_copy(update={"name": name})
    return profile, complaints


def facts_of(profile: Profile) -> Compat:
    """The compatibility facts that hold for a profile: winboot's own, with the profile's overlay."""
    return compat.load(profile.kubernetes.overlay)


def refuse(profile: Profile | None, complaints: list[Complaint], what: str) -> Profile:
    """The profile, unless there is an error among the complaints."""
    errors = [one for one in complaints if one.level == "error"]
    if errors or profile is None:
        count = f"{len(errors)} error{'s' if len(errors) != 1 else ''}"
        raise InvalidInput(f"{what}: {count}", problems=tuple(complaints), hint="Correct each place above.")
    return profile


def _facts(node: Table) -> tuple[Compat, list[Complaint]]:
    """The compatibility facts with the profile's overlay; without it, and a complaint, where it cannot be used."""
    written = child(node, "kubernetes")
    kubernetes = build(sections.Kubernetes, written[1])[0] if written else None
    if kubernetes is None or kubernetes.overlay is None:
        return compat.load(), []
    try:
        return compat.load(kubernetes.overlay), []
    except InvalidInput as error:
        path = ("kubernetes", "overlay")
        own = Complaint(
            locate(node, path), dotted(path), error.problem, expected="a file of compatibility facts"
        )
        return compat.load(), [own, *(one for one in error.problems if isinstance(one, Complaint))]


def _draft(node: Table, profile: Profile | None, facts: Compat) -> Draft:
    """The valid sections of a profile, also where others are wrong."""

    def section(model: type[Any], key: str) -> Any:
        if profile is not None:
            return getattr(profile, key)
        below = node.get(key)
        if below is None:
            info = Profile.model_fields[key]
            return None if info.is_required() else info.default
        return build(model, below)[0]

    kubernetes = section(sections.Kubernetes, "kubernetes")
    return Draft(
        node=node,
        facts=facts,
        version=kubernetes.version if kubernetes else _written_version(node),
        cluster=section(sections.Cluster, "cluster"),
        network=section(sections.Network, "network"),
        runtime=section(sections.Runtime, "runtime"),
        services=section(sections.Services, "services"),
        kubelet=section(sections.Kubelet, "kubelet"),
        kube_proxy=section(sections.KubeProxy, "kube_proxy"),
        labels_and_taints=section(sections.Node, "node"),
        boot=section(sections.Boot, "boot"),
        proxy=section(sections.Proxy, "proxy"),
        windows=section(sections.Windows, "windows"),
        artifacts=section(sections.Artifacts, "artifacts"),
        storage=section(Storage, "storage"),
        gmsa=section(Gmsa, "gmsa"),
        steps=_steps(node, profile),
    )


def _written_version(node: Table) -> Version | None:
    """The version as far as it can be read: 1.34 says enough to judge flags by."""
    written = child(node, "kubernetes")
    version = child(written[1], "version") if written else None
    if version is None or not isinstance(version[1], Scalar):
        return None
    try:
        return Version.parse(version[1].text)
    except ValueError:
        return None


def _steps(node: Table, profile: Profile | None) -> tuple[sections.OwnStep, ...]:
    if profile is not None:
        return profile.steps
    below = node.get("steps")
    items = below.items if isinstance(below, Listing) else ()
    steps = [build(sections.OwnStep, item)[0] for item in items]
    # Their places are counted by index, so one that is wrong hides the others from the cross checks.
    return tuple(step for step in steps if step) if all(steps) else ()

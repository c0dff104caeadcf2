"""The kubelet's configuration against the other sections: fields that cannot be meant on a node like this."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.checks.services import looks_secret
from winboot.config.profile.credential_provider import CredentialProvider
from winboot.config.profile.owned import unowned
from winboot.config.source import Complaint, PathParts

# What the controller-manager gives to a node is a /24, unless --node-cidr-mask-size-ipv4 says otherwise
# (kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager): 254 addresses, one of them the gateway's.
_PODS_OF_A_NODE: Final = 253
# The stem of a program's file. The kubelet refuses `/`, spaces, `.` and `..` (validateCredentialProviderConfig of
# pkg/credentialprovider/plugin/config.go); the rest keeps the path of the program in its folder.
_PROGRAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# A path below one of Linux' folders, alone or behind a flag; `/flag` alone is how some programs of Windows spell flags.
_READABLE: Final = (
    "other accounts could read this credential",
    "the machine's own identity, or a file with the credential",
)
_LINUX_PATH: Final = re.compile(r"(--?[\w-]+=)?/(etc|home|mnt|opt|root|run|srv|tmp|usr|var)/.*")


def check(draft: Draft) -> Iterator[Complaint]:
    """What winboot finds without the compatibility data; flags and fields themselves are for `components`."""
    config = unowned("kubelet", draft.kubelet.config, draft.solution) if draft.kubelet else {}
    services = draft.services
    if services is not None and (services.overrides.get("kubelet") or services.manager) == "nssm":
        yield from _grace(draft, config)
    yield from _of_linux(draft, config)
    for name, provider in (draft.kubelet.credential_providers if draft.kubelet else {}).items():
        if provider is not None:
            yield from _provider(draft, name, provider)


def _provider(draft: Draft, name: str, provider: CredentialProvider) -> Iterator[Complaint]:
    """A program that the kubelet finds and can start; without it the kubelet ends (RegisterCredentialProviderPlugins)."""
    path: PathParts = ("kubelet", "credential_providers", name)
    if draft.version is not None and not draft.version.at_least("1.24"):
        wrong = f"in Kubernetes {draft.version.minor}, credential providers need an alpha feature gate"
        yield draft.at(path, wrong, "Kubernetes 1.24 or later", key=True)
    if not _PROGRAM.fullmatch(name):
        meant = name.removesuffix(".exe")
        wrong = f"{name!r} is not the name of a program"
        yield draft.at(
            path, wrong, "the file name without .exe", meant if _PROGRAM.fullmatch(meant) else "", key=True
        )
    if not provider.file.endswith(".exe"):
        yield draft.at(
            (*path, "url"), f"{provider.file} is not a Windows program", "a file that ends with .exe"
        )
    if not provider.images:
        yield draft.at((*path, "images"), "the provider has no image", "at least one registry host")
    for index, word in enumerate(provider.args):
        flag, _, given = word.lstrip("-").partition("=")
        if looks_secret(flag.replace("-", "_"), given):
            yield draft.at((*path, "args", index), *_READABLE)
        elif _LINUX_PATH.fullmatch(word):
            yield draft.at((*path, "args", index), f"{word} is a Linux path", "a Windows path")
    for variable, value in provider.environment.items():
        below: PathParts = (*path, "environment", variable)
        if value and looks_secret(variable, value):
            yield draft.at(below, *_READABLE, key=True)
        elif value and _LINUX_PATH.fullmatch(value):
            yield draft.at(below, f"{value} is a Linux path", "a Windows path")


def _grace(draft: Draft, config: Mapping[str, Any]) -> Iterator[Complaint]:
    if config.get("shutdownGracePeriod"):
        wrong = "graceful shutdown does not work if NSSM runs the kubelet"
        path: PathParts = ("kubelet", "config", "shutdownGracePeriod")
        yield draft.at(path, wrong, "services.manager: sc", key=True, warning=True)


def _of_linux(draft: Draft, config: Mapping[str, Any]) -> Iterator[Complaint]:
    """Fields that are right for the kubelet and cannot be meant on a node like this."""
    pods = config.get("maxPods")
    if isinstance(pods, int) and draft.cluster is not None and draft.cluster.pod_cidr:
        room = max(cidr.num_addresses for cidr in draft.cluster.pod_cidr)
        path: PathParts = ("kubelet", "config", "maxPods")
        if pods > room:
            yield draft.at(path, f"{pods} pods for {room} addresses of cluster.pod_cidr", f"at most {room}")
        elif pods > _PODS_OF_A_NODE:
            wrong = f"{pods} pods are more than the {_PODS_OF_A_NODE + 1} addresses of a node's usual pod CIDR (/24)"
            yield draft.at(path, wrong, "fewer, or a smaller --node-cidr-mask-size-ipv4", warning=True)
    manifests = config.get("staticPodPath")
    if isinstance(manifests, str) and manifests.startswith("/"):
        path = ("kubelet", "config", "staticPodPath")
        yield draft.at(
            path,
            f"{manifests} is a Linux path",
            "a Windows folder, such as C:\\k\\manifests",
            warning=True,
        )

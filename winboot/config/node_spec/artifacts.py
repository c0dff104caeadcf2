"""What is downloaded to the node: addresses, hashes, and which file goes where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final, Literal

from winboot.config.compat import Compat
from winboot.config.compat.downloads import members as members_of
from winboot.config.node_spec.node import Artifact, Member, Paths
from winboot.config.node_spec.places import Places
from winboot.config.profile import Profile
from winboot.config.profile.storage import CsiProxy
from winboot.config.profile.user_file import UserFile

# How winboot asks a program for its version; those that are not here are known by their hash alone.
#   kubelet, kube-proxy   "Kubernetes v1.36.5": k8s.io/component-base/version/verflag, PrintAndExitIfRequested
#   kubectl               "Client Version: v1.36.5": k8s.io/kubectl/pkg/cmd/version
#   containerd            name, package, version, revision: cmd/containerd/command/main.go, cli.VersionPrinter
#   crictl                "crictl version v1.36.0": App.Version of cmd/crictl/main.go, by urfave/cli's own printer
#   flanneld              its version alone, to the error output: opts.version in main.go
ASKS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubelet": ("--version",),
    "kube-proxy": ("--version",),
    "kubectl": ("version", "--client"),
    "containerd": ("--version",),
    "crictl": ("--version",),
    "flanneld": ("--version",),
}


def artifacts(
    profile: Profile,
    facts: Compat,
    places: Places,
    runtime: Mapping[str, Mapping[str, str]],
    *,
    nssm: bool,
    log_runner: bool,
    kube_proxy: bool,
    flex_volumes: str,
) -> tuple[Artifact, ...]:
    """Every download of a node, in the order of their use; `runtime` has those of the runtime."""
    published = (
        _artifact(profile, facts, name, places.versions[name], members)
        for name, members in _wanted(profile, places, runtime, nssm, log_runner, kube_proxy)
    )
    return (*published, *_of_the_user(profile, places.paths, flex_volumes))


def _of_the_user(profile: Profile, paths: Paths, flex_volumes: str) -> Iterator[Artifact]:
    """What the profile names by address and hash; `flex_volumes` is the folder of the kubelet's FlexVolume drivers."""
    csi_proxy = profile.storage.csi_proxy
    if csi_proxy is not None:
        yield _csi_proxy(csi_proxy, paths.csi_proxy)
    for driver, files in profile.storage.flex_volumes.items():
        for name, file in files.items():
            if file is not None:
                yield _own(f"{driver}-{name}", file, rf"{flex_volumes}\{driver}\{name}")
    plugin = profile.gmsa.plugin if profile.gmsa is not None else None
    if plugin is not None:
        yield _own("gmsa-plugin", plugin, paths.gmsa_plugin)
    if plugin is not None and plugin.events is not None:
        yield _own("gmsa-events", plugin.events, paths.gmsa_events)
    for name, provider in profile.kubelet.credential_providers.items():
        if provider is not None:
            yield _own(name, provider, rf"{paths.credential_providers}\{name}.exe")


def _csi_proxy(file: CsiProxy, destination: str) -> Artifact:
    """The program itself, or an archive with it, of which the hash of the whole is known."""
    own = _own("csi-proxy", file, destination)
    if file.file.endswith(".exe"):
        return own
    kind: Literal["zip", "tar.gz"] = "zip" if file.file.endswith(".zip") else "tar.gz"
    return replace(own, kind=kind, members=(Member(file.member, destination, None),))


def _own(name: str, file: UserFile, destination: str) -> Artifact:
    """A plain file of the user's at its place. Its hash is its version: a rollback brings back none."""
    member = Member(file.file, destination, file.sha256)
    return Artifact(name, "pinned", file.file, file.url, file.sha256, "file", (member,))


def _wanted(
    profile: Profile,
    places: Places,
    runtime: Mapping[str, Mapping[str, str]],
    nssm: bool,
    log_runner: bool,
    kube_proxy: bool,
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Name, and program → destination."""
    paths = places.paths
    programs = {"kubelet": paths.kubelet}
    if kube_proxy:
        programs["kube-proxy"] = paths.kube_proxy
    if log_runner:
        programs["kube-log-runner"] = paths.kube_log_runner
    yield from runtime.items()
    yield "kubernetes", programs
    yield "kubectl", {"kubectl": paths.kubectl}
    yield "crictl", {"crictl": paths.crictl}
    if nssm:
        yield "nssm", {"nssm": paths.nssm}
    yield from _network(profile, places)


def _network(profile: Profile, places: Places) -> Iterator[tuple[str, Mapping[str, str]]]:
    solution = profile.solution
    programs = {one: rf"{places.paths.cni_bin}\{one}.exe" for one in solution.plugins}
    programs |= {program: places.programs[path] for program, path in solution.programs}
    for one in solution.downloads:
        yield one.name, programs


def _artifact(
    profile: Profile, facts: Compat, name: str, version: str, programs: Mapping[str, str]
) -> Artifact:
    entry: dict[str, Any] = facts.section("artifacts")[name]
    named = profile.artifacts.urls.get(name)
    upstream = str(named or entry["url"]).replace("{version}", version)
    source = "upstream" if named else profile.artifacts.source
    file = upstream.rpartition("/")[2]
    hashes = profile.artifacts.sha256
    members = {
        program: path.format(version=version)
        for program, path in members_of(facts, name, version).items()
        if program in programs
    }
    if entry["kind"] == "file":
        # At the user's own address the file may have another name.
        members = dict.fromkeys(members, file)
    artifact = Artifact(
        name=name,
        version=version,
        file=file,
        url=_address(source, upstream, name, version, file),
        sha256=None,
        kind=entry["kind"],
        members=(),
    )
    whole = hashes.get(artifact.key) or entry.get("sha256", {}).get(version)
    return replace(
        artifact,
        sha256=whole,
        members=tuple(
            Member(
                path,
                programs[program],
                hashes.get(artifact.member_key(path)) or _own_hash(entry, whole),
                ASKS.get(program, ()),
            )
            for program, path in members.items()
        ),
    )


def _own_hash(entry: dict[str, Any], archive: str | None) -> str | None:
    """A plain file is its own member, so its hash is known with the download's."""
    return archive if entry["kind"] == "file" else None


def _address(source: str, upstream: str, name: str, version: str, file: str) -> str:
    """Mirrors and folders hold `<name>/<version>/<file>`: several files have no version in their name."""
    if source == "upstream":
        return upstream
    place = PurePosixPath(name, version, file)
    if re.match(r"https?://", source):
        return f"{source.rstrip('/')}/{place}"
    return source.rstrip("\\") + "\\" + str(place).replace("/", "\\")

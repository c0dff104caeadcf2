"""Docker as the runtime: what goes with it, and the keys of daemon.json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from winboot.config.compat import Version
from winboot.config.compat.docker import check_docker, daemon_keys, default_engine, has_dockershim
from winboot.config.profile.checks.components import secrets_in
from winboot.config.profile.checks.draft import Draft
from winboot.config.source import Complaint, PathParts, nearest

# The solutions whose plug-ins take HNS version 1, by which Docker attaches containers (pkg/hns/netconf_windows.go of
# containernetworking/plugins), with no HostProcess pod.
NETWORKS: Final = ("flannel-host-gw", "flannel-vxlan", "win-bridge", "win-overlay")
_AS_DOCKER: Final = {
    "registries": "runtime.config: {registry-mirrors: […]}",
    "root": "runtime.config: {data-root: …}",
}
_CONFIG: Final[PathParts] = ("runtime", "config")


def check(draft: Draft) -> Iterator[Complaint]:
    """Keys of the runtime that the profile does not choose, and what Docker can do."""
    runtime = draft.runtime
    if runtime is None:
        return
    others = ("containerd", "registries", "root") if runtime.name == "docker" else ("docker", "cri_dockerd")
    for key in others:
        if getattr(runtime, key):
            expected = _AS_DOCKER.get(key, "nothing here")
            yield draft.at(("runtime", key), f"runtime.name is {runtime.name}", expected, key=True)
    if runtime.name != "docker":
        return
    if "hypervisor" in runtime.isolation:
        wrong = "Kubernetes has no handler for Hyper-V isolation with Docker"
        yield draft.at(("runtime", "isolation"), wrong, "process, or runtime.name: containerd")
    if draft.version is not None:
        engine = runtime.docker or Version.parse(default_engine(draft.facts, draft.version))
        path: PathParts = ("runtime", "docker" if runtime.docker else "name")
        yield from draft.found(path, check_docker(draft.facts, engine, draft.version))
        yield from _keys(draft, engine)
        if runtime.cri_dockerd and has_dockershim(draft.facts, draft.version):
            wrong = f"the kubelet of {draft.version.minor} uses Docker without cri-dockerd"
            yield draft.at(("runtime", "cri_dockerd"), wrong, "nothing here", key=True)
    yield from _network(draft)


def _keys(draft: Draft, engine: Version) -> Iterator[Complaint]:
    assert draft.runtime is not None
    known = sorted(daemon_keys(draft.facts, engine))
    for key in draft.runtime.config:
        if key not in known:
            wrong = f"Docker {engine} on Windows does not know the key {key!r} and would not start"
            yield draft.at((*_CONFIG, key), wrong, "", nearest(key, known), key=True)
        elif key == "hosts":
            yield draft.at((*_CONFIG, key), "the kubelet needs Docker's own pipe", "nothing here", key=True)
    yield from secrets_in(draft, _CONFIG, draft.runtime.config)


def _network(draft: Draft) -> Iterator[Complaint]:
    solution = draft.solution
    if solution is not None and solution.id not in NETWORKS:
        wrong = f"{solution.id} needs HostProcess pods or HNS version 2, but Docker has neither"
        yield draft.at(("runtime", "name"), wrong, " | ".join(NETWORKS))
    if draft.dual_stack:
        wrong = "with Docker, winboot gives pods only IPv4 addresses"
        yield draft.at(("cluster", "pod_cidr"), wrong, "one IPv4 network")

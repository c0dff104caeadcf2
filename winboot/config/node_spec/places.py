"""Where the programs of a node lie: each version in a folder of its own, so that another is a change of paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from winboot.config.compat import Compat
from winboot.config.node_spec.node import Paths
from winboot.config.profile import Profile

NSSM: Final = "2.24"


@dataclass(frozen=True, slots=True)
class Places:
    """`paths` with versions in those of programs; `programs`: the solution's own programs by the name of their path;
    `versions`: artifact -> version, those of the network last."""

    paths: Paths
    programs: Mapping[str, str]
    versions: Mapping[str, str]


def places(profile: Profile, facts: Compat, runtime: Mapping[str, str]) -> Places:
    """The places of every program that a node with this profile can have; `runtime`: its downloads with versions."""
    own, wanted = Paths(), _versions(profile, runtime)
    folder = {name: rf"{own.versions}\{name}-{version}" for name, version in wanted.items()}
    moved = {"cni_bin": _plugins(profile, facts, wanted, folder) or own.cni_bin}
    moved |= {f"{name}_bin": folder[name] for name in ("containerd", "docker") if name in folder}
    if root := profile.runtime.root:
        # Layers pass through the temporary folder, which would fill C: (containerd/containerd#6241; moby/moby#35988 shows one).
        moved |= {"containerd_root": root, "containerd_temp": f"{root}-temp"}
    for path, artifact in _ARTIFACT_OF.items():
        if artifact in folder:
            moved[path] = _in(folder[artifact], getattr(own, path))
    if profile.storage.csi_proxy is not None:
        version = profile.storage.csi_proxy.version
        moved["csi_proxy"] = _in(rf"{own.versions}\csi-proxy-{version}", own.csi_proxy)
    solution = profile.solution
    programs = {
        path: _in(folder[one.name], solution.paths[path])
        for program, path in solution.programs
        for one in solution.downloads
        if program in _members(facts, one.name)
    }
    return Places(replace(own, **moved), programs, wanted)


def _versions(profile: Profile, runtime: Mapping[str, str]) -> dict[str, str]:
    section, version = profile.artifacts, profile.kubernetes.version
    return {
        **runtime,
        "kubernetes": str(version),
        "kubectl": str(version),
        "crictl": str(section.crictl or f"{version.minor}.0"),
        "nssm": str(section.nssm or NSSM),
        **{one.name: str(getattr(section, one.key) or one.version) for one in profile.solution.downloads},
    }


def _plugins(profile: Profile, facts: Compat, wanted: Mapping[str, str], folder: Mapping[str, str]) -> str:
    """The folder of the CNI plug-ins; empty where others bring them. One folder for all: containerd 1.7 knows one alone
    (`bin_dir`, internal/cri/config and pkg/cri/config), so it is named by each archive that goes there."""
    solution = profile.solution
    archives = [one.name for one in solution.downloads if _members(facts, one.name) & set(solution.plugins)]
    if not archives:
        return ""
    whole = _members(facts, archives[0]) & {program for program, _ in solution.programs}
    if len(archives) == 1:
        # Beside a program of the same archive, they have a folder that is theirs alone.
        return folder[archives[0]] + (r"\cni" if whole else "")
    return "\\".join([Paths().versions, "+".join(f"{name}-{wanted[name]}" for name in archives)])


def _members(facts: Compat, artifact: str) -> set[str]:
    return set(facts.section("artifacts")[artifact]["members"])


def _in(folder: str, path: str) -> str:
    return rf"{folder}\{path.rpartition(chr(92))[2]}"


_ARTIFACT_OF: Final[Mapping[str, str]] = {
    "kubelet": "kubernetes",
    "kube_proxy": "kubernetes",
    "kube_log_runner": "kubernetes",
    "kubectl": "kubectl",
    "crictl": "crictl",
    "nssm": "nssm",
    "containerd": "containerd",
    "ctr": "containerd",
    "docker": "docker",
    "dockerd": "docker",
    "cri_dockerd": "cri-dockerd",
}

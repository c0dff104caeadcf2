"""Docker as the runtime of a node: daemon.json, services, and the flags of the kubelet."""

from __future__ import annotations

import json
from typing import Any, Final

from winboot.config import compat
from winboot.config.compat import Compat, Version
from winboot.config.compat.docker import default_engine, has_dockershim
from winboot.config.compat.downloads import proposed
from winboot.config.node_spec.merged import over
from winboot.config.node_spec.node import Folders, Paths, ProxySpec, RuntimeSpec, ServiceSpec
from winboot.config.profile import Profile
from winboot.config.profile.owned import CRI_DOCKERD, DOCKERSHIM

# Without it the client of dockershim and cri-dockerd names an API version that the engine may refuse (libdocker/client.go,
# getDockerClient).
ENDPOINT: Final = "npipe:////./pipe/docker_engine"
# Layers of servercore are gigabytes: what the guides of that time set (sig-windows-tools v0.1.5, PrepareNode.ps1).
PULL_DEADLINE: Final = "20m"


def docker_versions(profile: Profile, facts: Compat) -> dict[str, str]:
    """The engine's version, and cri-dockerd's where the kubelet needs it."""
    section, version = profile.runtime, profile.kubernetes.version
    found = {"docker": str(section.docker or default_engine(facts, version))}
    if not has_dockershim(facts, version):
        found["cri-dockerd"] = str(section.cri_dockerd or proposed("cri-dockerd"))
    return found


def docker(profile: Profile, facts: Compat, build: int, paths: Paths, proxy: ProxySpec) -> RuntimeSpec:
    """Everything about Docker on a machine of this build."""
    section, version = profile.runtime, profile.kubernetes.version
    versions = docker_versions(profile, facts)
    image = section.pause_image or compat.default_pause_image(facts, version, build)
    shim = "cri-dockerd" not in versions
    driver = str(section.config.get("log-driver") or "json-file")
    config = over(_daemon(profile, driver), section.config)
    programs = {"docker": {"docker": paths.docker, "dockerd": paths.dockerd}}
    if not shim:
        programs["cri-dockerd"] = {"cri-dockerd": paths.cri_dockerd}
    return RuntimeSpec(
        name="docker",
        version=Version.parse(versions["docker"]),
        endpoint=DOCKERSHIM if shim else CRI_DOCKERD,
        service="docker" if shim else "cri-dockerd",
        answers="kubelet" if shim else "cri-dockerd",
        programs=programs,
        services=_services(paths, image, proxy, shim=shim),
        kubelet_flags=_kubelet_flags(version, image, paths, shim=shim),
        cni_form=1,
        folders=_folders(str(config.get("data-root") or paths.docker_root), paths, shim=shim),
        config_text=json.dumps(config, indent=2, sort_keys=True) + "\n",
        host_network=config.get("bridge") != "none",
        pause_image=image,
        images=tuple(dict.fromkeys((image, *section.images))),
        registry_urls={},
        log=section.log,
    )


def _daemon(profile: Profile, driver: str) -> dict[str, Any]:
    """winboot's part of daemon.json. The kubelet rotates logs of containers with containerd alone."""
    log = profile.runtime.log
    options = {"max-file": str(log.max_files), "max-size": f"{log.max_size_mib}m"}
    config: dict[str, Any] = {"exec-opts": ["isolation=process"], "log-driver": "json-file"}
    # Other drivers refuse them, and dockerd ends with `unknown log opt` (moby, daemon/logger/factory.go, ValidateLogOpts).
    return config | ({"log-opts": options} if driver in ("json-file", "local") else {})


def _folders(root: str, paths: Paths, *, shim: bool) -> Folders:
    # What dockershim and cri-dockerd remember of sandboxes: a kubelet takes what is left there for pods.
    state = paths.dockershim_root if shim else paths.cri_dockerd_root
    return Folders(
        private=(root, state),
        readable=(paths.docker_bin, paths.docker_config.rpartition("\\")[0]),
        ours=(root, state),
        opaque=(rf"{root}\windowsfilter\*", rf"{root}\containers\*"),
        watched=(paths.docker_bin, paths.docker_config.rpartition("\\")[0]),
        root=root,
        layers=rf"{root}\windowsfilter",
    )


def _cri_flags(image: str, paths: Paths) -> dict[str, str]:
    """Flags that dockershim's kubelet and cri-dockerd have in common (cmd/cri/options/options.go of cri-dockerd)."""
    return {
        "docker-endpoint": ENDPOINT,
        "network-plugin": "cni",
        "cni-bin-dir": paths.cni_bin,
        "cni-conf-dir": paths.cni_conf,
        "image-pull-progress-deadline": PULL_DEADLINE,
        "pod-infra-container-image": image,
    }


def _kubelet_flags(version: Version, image: str, paths: Paths, *, shim: bool) -> dict[str, str]:
    if shim:
        return {"container-runtime": "docker", **_cri_flags(image, paths)}
    # The kubelet's garbage collection spares this image; it asks the runtime for it from 1.35 on.
    return {} if version.at_least("1.35") else {"pod-infra-container-image": image}


def _services(paths: Paths, image: str, proxy: ProxySpec, *, shim: bool) -> tuple[ServiceSpec, ...]:
    engine = ServiceSpec(
        name="docker",
        display_name="Docker Engine",
        description="Docker Engine. Managed by winboot.",
        manager="sc",
        program=paths.dockerd,
        arguments=("--run-service",),
        # A service of dockerd writes to the event log; what its log file would be stays empty.
        log_file=rf"{paths.logs}\docker\docker.log",
        log_runner=False,
        depends_on=(),
        environment=proxy.environment,
    )
    if shim:
        return (engine,)
    flags = {"container-runtime-endpoint": CRI_DOCKERD, **_cri_flags(image, paths)}
    cri = ServiceSpec(
        name="cri-dockerd",
        display_name="cri-dockerd",
        description="cri-dockerd. Managed by winboot.",
        manager="nssm",
        program=paths.cri_dockerd,
        arguments=tuple(f"--{name}={value}" for name, value in flags.items()),
        log_file=rf"{paths.logs}\cri-dockerd\cri-dockerd.log",
        log_runner=False,
        depends_on=("docker",),
        environment={},
    )
    return (engine, cri)

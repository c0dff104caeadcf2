"""Tell containerd where things are, which pause image it uses, and where registries are mirrored."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec, RegistrySpec
from winboot.config.node_spec.runtime import DISCARD, drop_ins
from winboot.script.steps.step import Step


def runs_containerd(spec: NodeSpec) -> bool:
    """Whether containerd is the runtime."""
    return spec.runtime.name == "containerd"


def hosts_path(spec: NodeSpec, registry: RegistrySpec) -> str:
    """Where the hosts.toml of a registry lies on the node."""
    return rf"{spec.paths.containerd_certs}\{registry.folder}\hosts.toml"


def _files(spec: NodeSpec) -> Mapping[str, str]:
    endpoint = spec.paths.containerd_endpoint
    crictl = f"runtime-endpoint: {endpoint}\nimage-endpoint: {endpoint}\ntimeout: 10\n"
    return {spec.paths.containerd_config: spec.runtime.config_text, spec.paths.crictl_config: crictl}


def _mirrors(spec: NodeSpec) -> dict[str, str]:
    """The hosts.toml files that hold no login, by path."""
    return {hosts_path(spec, one): one.hosts_toml for one in spec.runtime.registries if not one.secret}


def _logins(spec: NodeSpec) -> list[dict[str, object]]:
    return [
        {
            "path": hosts_path(spec, registry),
            "text": registry.hosts_toml,
            "authorize": list(registry.authorize),
            "headers": list(registry.headers),
            "secret": registry.secret,
            "user": registry.user or "",
        }
        for registry in spec.runtime.registries
        if registry.secret
    ]


def _drop_ins(spec: NodeSpec) -> dict[str, object]:
    """The folder of drop-ins, and what they may not change: our settings by the names that all versions of the file have
    for them."""
    pattern = drop_ins(spec.runtime.version)
    if not pattern:
        return {}
    paths, default = spec.paths, spec.runtime.handlers[0].name
    settings = {
        **({"temp": paths.containerd_temp} if paths.containerd_temp else {}),
        "root": paths.containerd_root,
        "state": paths.containerd_state,
        "grpc.address": paths.containerd_pipe,
        "io.containerd.server.v1.grpc.address": paths.containerd_pipe,
        "sandbox_image": spec.runtime.pause_image,
        "pinned_images.sandbox": spec.runtime.pause_image,
        "registry.config_path": paths.containerd_certs,
        "snapshotter": "windows",
        "containerd.snapshotter": "windows",
        "containerd.default_runtime_name": default,
        "cni.bin_dir": paths.cni_bin,
        "cni.bin_dirs": paths.cni_bin,
        "cni.conf_dir": paths.cni_conf,
    }
    return {
        "Folder": pattern.rpartition("\\")[0],
        "Settings": settings,
        "Version": spec.runtime.config_version,
    }


def _named(spec: NodeSpec) -> dict[str, str]:
    """The files that the registries name, each with its registry."""
    return {path: registry.host for registry in spec.runtime.registries for path in registry.files}


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "mirrors": _mirrors(spec),
        "registries": _logins(spec),
        "drop_ins": _drop_ins(spec),
        "named": _named(spec),
        "root": {"Path": spec.paths.containerd_config, "Root": spec.paths.containerd_root},
        "unasked": {"Path": spec.paths.containerd_config, "Line": f"  {DISCARD} = true\n"}
        if spec.runtime.discards_unasked
        else {},
    }


def _secrets(spec: NodeSpec) -> tuple[str, ...]:
    return tuple(registry.secret for registry in spec.runtime.registries if registry.secret)


CONTAINERD_CONFIG = Step(
    name="containerd-config",
    wanted=runs_containerd,
    why="by default containerd reads CNI files from another folder, and the pause image must match this Windows build",
    inputs=_inputs,
    leaves=lambda spec: {
        "files": list(_mirrors(spec)),
        "files with secrets": [str(one["path"]) for one in _logins(spec)],
    },
    needs=("artifacts", "directories"),
    secrets=_secrets,
    files=_files,
    identity=False,
)

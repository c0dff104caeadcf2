"""containerd's own settings: unknown ones, those that winboot writes, and what would break the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from winboot.config import compat
from winboot.config.compat.containerd import check_settings
from winboot.config.profile.checks.components import secrets_in
from winboot.config.profile.checks.draft import Draft
from winboot.config.source import Complaint, PathParts

# What winboot writes into config.toml, by the setting's name without its plug-in, with the key of the profile it comes from.
_OWNED: Final[Mapping[str, str]] = {
    "version": "",
    "imports": "",
    "root": "runtime.root",
    "state": "",
    "temp": "runtime.root",
    "grpc.address": "",
    "sandbox_image": "runtime.pause_image",
    "pinned_images.sandbox": "runtime.pause_image",
    "registry": "runtime.registries",
    "config_path": "runtime.registries",
    "snapshotter": "",
    "containerd.snapshotter": "",
    "containerd.default_runtime_name": "runtime.isolation",
    "cni.bin_dir": "network.cni",
    "cni.bin_dirs": "network.cni",
    "cni.conf_dir": "network.cni",
    "cni.conf_template": "network.cni",
}
_BASE: Final[PathParts] = ("runtime", "config")


def check(draft: Draft) -> Iterator[Complaint]:
    """Whether the containerd of this profile takes the settings, and a node can live with them."""
    if draft.runtime is None or draft.version is None or draft.runtime.name != "containerd":
        return
    containerd = draft.runtime.containerd or compat.Version.parse(
        compat.default_containerd(draft.facts, draft.version)
    )
    config = draft.runtime.config
    owned = list(_owned(config))
    for path, key in owned:
        yield draft.at((*_BASE, *path), "winboot writes this key itself", key or "nothing here", key=True)
    for below, finding in check_settings(draft.facts, config, containerd):
        if not any(below[: len(path)] == path for path, _ in owned):
            yield from draft.found((*_BASE, *below), [finding], key=not finding.expected)
    yield from secrets_in(draft, _BASE, config)
    yield from _without_cri(draft, config)


def _owned(config: Mapping[str, Any]) -> Iterator[tuple[PathParts, str]]:
    plugins = config.get("plugins")
    sections = plugins.items() if isinstance(plugins, Mapping) else ()
    top = {key: value for key, value in config.items() if key != "plugins"}
    yield from _owned_in(top, ())
    for plugin, settings in sections:
        if isinstance(settings, Mapping):
            yield from _owned_in(settings, ("plugins", plugin))


def _owned_in(
    settings: Mapping[str, Any], above: PathParts, prefix: str = ""
) -> Iterator[tuple[PathParts, str]]:
    for key, value in settings.items():
        path, name = (*above, key), f"{prefix}{key}"
        if name in _OWNED:
            yield path, _OWNED[name]
        elif isinstance(value, Mapping):
            yield from _owned_in(value, path, f"{name}.")


def _without_cri(draft: Draft, config: Mapping[str, Any]) -> Iterator[Complaint]:
    disabled = config.get("disabled_plugins")
    for index, one in enumerate(disabled if isinstance(disabled, list) else ()):
        if isinstance(one, str) and (".cri" in one or one.endswith(".snapshotter.v1.windows")):
            path = (*_BASE, "disabled_plugins", index)
            yield draft.at(path, "the kubelet needs this plug-in", "only plug-ins that nodes do not need")

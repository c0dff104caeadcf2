"""containerd's config.toml as each version reads it: which sections count, what is ignored, what ends the plug-in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from winboot.config.compat.version import Version
from winboot_lab.programs.base import GoError

_CRI: Final = "io.containerd.grpc.v1.cri"
_IMAGES: Final = "io.containerd.cri.v1.images"
_RUNTIME: Final = "io.containerd.cri.v1.runtime"
ROOT: Final = r"C:\ProgramData\containerd\root"
STATE: Final = r"C:\ProgramData\containerd\state"
PIPE: Final = r"\\.\pipe\containerd-containerd"
CNI_BIN: Final = r"C:\Program Files\containerd\cni\bin"
CNI_CONF: Final = r"C:\Program Files\containerd\cni\conf"
RUNHCS: Final = "io.containerd.runhcs.v1"


@dataclass(frozen=True, slots=True)
class Config:
    """What this containerd does after reading its file. `broken`: why the CRI plug-in did not load."""

    root: str = ROOT
    state: str = STATE
    pipe: str = PIPE
    sandbox_image: str = ""
    bin_dirs: tuple[str, ...] = (CNI_BIN,)
    conf_dir: str = CNI_CONF
    certs: str = ""
    default_runtime: str = "runhcs-wcow-process"
    runtimes: frozenset[str] = frozenset({"runhcs-wcow-process", "runhcs-wcow-hypervisor"})
    ignored: tuple[str, ...] = ()
    broken: str | None = None


def parse(raw: bytes, path: str, version: Version) -> Config:
    """Read the file as containerd `version` does; GoError when it does not start with it."""
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise GoError(f"containerd: failed to load TOML: {path}: toml: {_toml_problem(raw, e)}") from None
    number = data.get("version", 1)
    _check_version(number, path, version)
    settings = _v3(data, version) if number == 3 else _v2(data, version)
    ignored = tuple(_foreign_sections(data, number, version))
    return _effective(data, settings, version, ignored)


def default(version: Version) -> Config:
    """What containerd does without a file."""
    return Config(sandbox_image=_default_pause(version))


def _toml_problem(raw: bytes, error: Exception) -> str:
    if raw.startswith(b"\xef\xbb\xbf"):
        return "invalid character at start of key: U+FEFF (a byte order mark)"
    return str(error)


def _check_version(number: object, path: str, version: Version) -> None:
    newest = 3 if version.major >= 2 else 2
    if number == 1 and version.major >= 2:
        raise GoError(
            f"containerd: {path}: containerd config version `1` is no longer supported since containerd v2.0, "
            "please switch to version `2` or `3`"
        )
    if not isinstance(number, int) or not 1 <= number <= newest:
        raise GoError(
            f"containerd: {path}: expected containerd config version between `1` and `{newest}`, got `{number}`"
        )


@dataclass(frozen=True, slots=True)
class _Settings:
    """The sections that count, whatever the dialect: images, runtime, and where the registry stands."""

    sandbox: object
    containerd: Mapping[str, Any]
    cni: Mapping[str, Any]
    registry: Mapping[str, Any]


def _table(data: object, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _v2(data: Mapping[str, Any], version: Version) -> _Settings:
    cri = _table(data, "plugins", _CRI)
    return _Settings(
        cri.get("sandbox_image"), _table(cri, "containerd"), _table(cri, "cni"), _table(cri, "registry")
    )


def _v3(data: Mapping[str, Any], version: Version) -> _Settings:
    images, runtime = _table(data, "plugins", _IMAGES), _table(data, "plugins", _RUNTIME)
    sandbox = _table(images, "pinned_images").get("sandbox")
    return _Settings(
        sandbox, _table(runtime, "containerd"), _table(runtime, "cni"), _table(images, "registry")
    )


def _foreign_sections(data: Mapping[str, Any], number: object, version: Version) -> list[str]:
    """Sections of the other dialect: containerd ignores them without a word, and its defaults apply."""
    plugins = _table(data, "plugins")
    if number == 3:
        cri = _table(plugins, _CRI)
        return [f"{_CRI}.{key}" for key in cri if key in ("sandbox_image", "containerd", "cni", "registry")]
    return [name for name in (_IMAGES, _RUNTIME) if name in plugins]


def _effective(
    data: Mapping[str, Any], found: _Settings, version: Version, ignored: tuple[str, ...]
) -> Config:
    configured = _table(found.containerd, "runtimes")
    runtimes = frozenset({"runhcs-wcow-process", "runhcs-wcow-hypervisor", *configured})
    default_runtime = str(found.containerd.get("default_runtime_name", "runhcs-wcow-process"))
    knows_dirs = version.at_least("2.1")
    bin_dirs = found.cni.get("bin_dirs") if knows_dirs else None
    if not isinstance(bin_dirs, list):
        bin_dirs = [found.cni.get("bin_dir", CNI_BIN)]
    return Config(
        root=str(data.get("root", ROOT)),
        state=str(data.get("state", STATE)),
        pipe=str(_table(data, "grpc").get("address", PIPE)),
        sandbox_image=str(found.sandbox or _default_pause(version)),
        bin_dirs=tuple(str(d) for d in bin_dirs),
        conf_dir=str(found.cni.get("conf_dir", CNI_CONF)),
        certs=str(found.registry.get("config_path", "")),
        default_runtime=default_runtime,
        runtimes=runtimes,
        ignored=ignored,
        broken=_broken(found, configured, default_runtime, runtimes, knows_dirs=knows_dirs),
    )


def _broken(
    found: _Settings,
    configured: Mapping[str, Any],
    default_runtime: str,
    runtimes: frozenset[str],
    *,
    knows_dirs: bool,
) -> str | None:
    registry, cni = found.registry, found.cni
    if registry.get("config_path") and registry.get("mirrors"):
        return "invalid plugin config: `mirrors` cannot be set when `config_path` is provided"
    if registry.get("config_path") and registry.get("configs"):
        for name, entry in _table(registry, "configs").items():
            if "tls" in entry:
                return f"invalid plugin config: `configs.tls` cannot be set when `config_path` is provided ({name})"
    if knows_dirs and cni.get("bin_dir") and cni.get("bin_dirs"):
        return "invalid plugin config: `cni.bin_dir` and `cni.bin_dirs` cannot be both set"
    if not default_runtime:
        return "invalid plugin config: `default_runtime_name` is empty"
    if default_runtime not in runtimes:
        return (
            "invalid plugin config: corresponding runtime configured in `containerd.runtimes` for "
            f'`containerd` `default_runtime_name = "{default_runtime}"'
        )
    for name, entry in configured.items():
        if not _table({"x": entry}, "x").get("runtime_type") and name not in (
            "runhcs-wcow-process",
            "runhcs-wcow-hypervisor",
        ):
            return f"invalid plugin config: `runtime_type` is empty for runtime {name}"
    return None


def _default_pause(version: Version) -> str:
    if version.at_least("2.0"):
        return "registry.k8s.io/pause:3.10"
    return "registry.k8s.io/pause:3.8" if version.at_least("1.7") else "registry.k8s.io/pause:3.6"

"""containerd's config.toml as each version reads it: which sections count, what is ignored, what ends the plug-in."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from winboot.config.compat.version import Version
from winboot_lab.programs.base import GoError

_CRI: Final = "io.containerd.grpc.v1.cri"
_IMAGES: Final = "io.containerd.cri.v1.images"
_RUNTIME: Final = "io.containerd.cri.v1.runtime"
_SERVER: Final = "io.containerd.server.v1.grpc"
# The fields of Config in cmd/containerd/server/config/config.go.
_KEYS: Final = {
    *(
        "version",
        "root",
        "state",
        "temp",
        "plugin_dir",
        "grpc",
        "ttrpc",
        "debug",
        "metrics",
        "disabled_plugins",
    ),
    *("required_plugins", "plugins", "oom_score", "cgroup", "proxy_plugins", "timeouts", "imports"),
    "stream_processors",
}
ROOT: Final = r"C:\ProgramData\containerd\root"
STATE: Final = r"C:\ProgramData\containerd\state"
PIPE: Final = r"\\.\pipe\containerd-containerd"
CNI_BIN: Final = r"C:\Program Files\containerd\cni\bin"
CNI_CONF: Final = r"C:\Program Files\containerd\cni\conf"


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
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    broken: str | None = None


# Gives the files that an entry of `imports` names, with their bytes.
Imports = Callable[[str], list[tuple[str, bytes]]]


def parse(raw: bytes, path: str, version: Version, imports: Imports = lambda pattern: []) -> Config:
    """Read the file as containerd `version` does, and what it imports; GoError when it does not start with it.

    Only what a file names in `imports` is read: the default of 2.2 and newer (`conf.d`) is in the file that
    `containerd config default` prints. It counts only there (config.go, LoadConfig: resolveImports of the loaded file).
    """
    data = _loaded(raw, path, version)
    first = int(data.get("version", 1))
    warnings = _warnings(data, version)
    for pattern in data.get("imports") or []:
        for place, content in imports(pattern):
            other = _loaded(content, place, version)
            if version.at_least("2.3") and int(other.get("version", 1)) > first:
                raise GoError(
                    f"containerd: drop-in config version {other['version']} higher than root config version {first}"
                )
            warnings += _warnings(other, version)
            data = _merged(data, other)
    number = int(data.get("version", 1))
    if number > _newest(version):
        raise GoError(f"containerd: failed to load TOML from {path}: {_too_new(number, version)}")
    # A file of version 1 counts as one of the newest version (LoadConfig: MigrateConfigTo).
    newest = number >= 3 or version.at_least("2.3") or (number <= 1 and version.major >= 2)
    settings = _v3(data, version) if newest else _v2(data, version)
    config = _effective(data, settings, version, tuple(_foreign_sections(data, number, version)))
    return replace(config, warnings=tuple(warnings))


def default(version: Version) -> Config:
    """What containerd does without a file."""
    return Config(sandbox_image=_default_pause(version))


def _loaded(raw: bytes, path: str, version: Version) -> dict[str, Any]:
    """One file; from 2.3 on with each section where the newest version has it."""
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise GoError(_toml_problem(raw, path, str(e), version)) from None
    return _migrated(data) if version.at_least("2.3") else data


def _toml_problem(raw: bytes, path: str, problem: str, version: Version) -> str:
    if version.major < 2:
        return f"containerd: failed to load TOML: {path}: {problem}"
    if raw.startswith(b"\xef\xbb\xbf"):
        return "containerd: failed to unmarshal TOML at row 1 column 1: toml: invalid character at start of key: ï"
    return f"containerd: failed to unmarshal TOML: toml: {problem}"


def _newest(version: Version) -> int:
    """version.ConfigVersion of version/version.go."""
    return 4 if version.at_least("2.3") else 3 if version.major >= 2 else 2


def _too_new(number: int, version: Version) -> str:
    if version.major < 2:
        return f"unsupported config version `{number}`"
    return f"expected containerd config version equal to or less than `{_newest(version)}`, got `{number}`"


def _warnings(data: Mapping[str, Any], version: Version) -> list[str]:
    number = int(data.get("version", 1))
    found = [
        f"Ignoring unknown key in TOML key={key}" for key in data if version.major >= 2 and key not in _KEYS
    ]
    if version.at_least("2.3") and number < _newest(version):
        words = "use `containerd config migrate` to avoid migration"
        found.append(f"Configuration migrated from version {number}, {words}")
    return found


def _migrated(data: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of the old CRI plug-in below those that took their place (ConfigMigration of the CRI plug-ins)."""
    plugins = dict(_table(data, "plugins"))
    cri = plugins.pop(_CRI, None)
    if not isinstance(cri, Mapping):
        return dict(data)
    moved: dict[str, Any] = {_IMAGES: {}, _RUNTIME: {}}
    for key, value in cri.items():
        if key == "sandbox_image":
            moved[_IMAGES]["pinned_images"] = {"sandbox": value}
        else:
            moved[_IMAGES if key == "registry" else _RUNTIME][key] = value
    return _merged({**data, "plugins": plugins}, {"plugins": moved})


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged, anything else is replaced (mergeConfig: mergo with override)."""
    found = dict(below)
    for key, value in above.items():
        there = found.get(key)
        both = isinstance(there, Mapping) and isinstance(value, Mapping)
        found[key] = _merged(there, value) if both else value  # type: ignore[arg-type]
    return found


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
    """Sections of the other dialect: containerd before 2.3 ignores them without a word, and its defaults apply."""
    plugins = _table(data, "plugins")
    if version.at_least("2.3"):
        return []
    if number != 2:
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
        pipe=str(
            _table(data, "plugins", _SERVER).get("address") or _table(data, "grpc").get("address", PIPE)
        ),
        sandbox_image=str(found.sandbox or _default_pause(version)),
        bin_dirs=tuple(str(d) for d in bin_dirs),
        conf_dir=str(found.cni.get("conf_dir", CNI_CONF)),
        certs=str(found.registry.get("config_path", "")),
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
    for since, image in (("2.3", "3.10.2"), ("2.2", "3.10.1"), ("2.0", "3.10")):
        if version.at_least(since):
            return f"registry.k8s.io/pause:{image}"
    return "registry.k8s.io/pause:3.8" if version.at_least("1.7") else "registry.k8s.io/pause:3.6"

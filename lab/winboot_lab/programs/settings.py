"""kubelet's and kube-proxy's flags and configuration files, as each version reads them on Windows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import yaml

from winboot.config.compat import Compat, check_gate, check_values
from winboot.config.compat.flags import field_exists, flag_exists, gate_stage, normal, parse_value
from winboot.config.compat.version import Version
from winboot_lab.programs.base import GoError, Run
from winboot_lab.programs.goflags import Flags, pflags
from winboot_lab.programs.kubelet_values import LATER, check_taints, check_types, refuse

Component = Literal["kubelet", "kube-proxy"]
_OBJECTS: Final[Mapping[Component, tuple[str, str]]] = {
    "kubelet": ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"),
    "kube-proxy": ("kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration"),
}


@dataclass(slots=True)
class Settings:
    """Flags as given, and the configuration with flags over it. `warnings` go to the log."""

    flags: Flags
    config: dict[str, Any]
    warnings: list[str] = field(default_factory=list)

    def get(self, path: str, default: Any = None) -> Any:
        """A configuration value by its dotted path."""
        found: Any = self.config
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return default if found is None else found


def answer(run: Run, compat: Compat, component: Component) -> str | None:
    """What the program prints where it only answers a question, in the order of RunE in cmd/kubelet/app/server.go and
    cmd/kube-proxy/app/server.go of kubernetes 1.36. It reads flags, then --help, then --version, and nothing else. None
    where it continues."""
    flags = _flags(run, compat, component)
    if flags.flag("help"):
        return help_text(compat, component, Version.parse(run.version))
    return f"Kubernetes v{run.version}" if flags.flag("version") else None


def set_gates(run: Run, compat: Compat, component: Component) -> None:
    """Set the gates of the flag, which comes before any file is read; GoError where one is not known or locked."""
    given = ",".join(_flags(run, compat, component).list("feature-gates"))
    settings = Settings(Flags(), {"featureGates": parse_value("gates", given)})
    _check_gates(compat, component, settings, Version.parse(run.version))


def _flags(run: Run, compat: Compat, component: Component) -> Flags:
    try:
        flags = _parsed(run, compat, component)
    except GoError as e:
        raise GoError(f"failed to parse kubelet flag: {e}" if component == "kubelet" else str(e)) from None
    if component == "kubelet" and flags.words:
        raise GoError(f"unknown command {flags.words[0]}")
    return flags


def _parsed(run: Run, compat: Compat, component: Component) -> Flags:
    flags = pflags(run.argv[1:], _kinds(compat, component, Version.parse(run.version)))
    table: Mapping[str, Any] = compat.section(f"{component.replace('-', '_')}_flags")
    for name in flags.values:
        # pflag reads each value as the type of its flag.
        try:
            parse_value(str(table.get(name, {}).get("type")), ",".join(flags.values[name]))
        except ValueError as e:
            raise GoError(f'invalid argument "{flags.text(name)}" for "--{name}" flag: {e}') from None
    return flags


# pflag's names of types (Value.Type()); a bool has none in a help.
_TYPES: Mapping[str, str] = {
    "bool": "",
    "float": " float",
    "gates": " mapStringBool",
    "list": " strings",
    "map": " mapStringString",
    "text": " string",
    "thresholds": " mapStringString",
    "taints": " []v1.Taint",
}
_STAGES: Mapping[str, str] = {"alpha": "ALPHA", "beta": "BETA"}


def help_text(compat: Compat, component: Component, version: Version) -> str:
    """`--help`: each flag with its type and default, and the alpha and beta gates, as pflag's FlagUsages and KnownFeatures of
    component-base's feature_gate.go write them. What is GA or deprecated is not among the gates."""
    table: Mapping[str, Any] = compat.section(f"{component.replace('-', '_')}_flags")
    lines = [f"The {component}.", "", "Usage:", f"  {component} [flags]", "", "Flags:"]
    for name in sorted({*table, "help"}):
        if name != "help" and not flag_exists(compat, component, name, version):
            continue
        entry = table.get(name, {"type": "bool"})
        default = entry.get("default")
        shown = "" if default in (None, "", False) else f" (default {_quoted(default)})"
        short = {"help": "-h, ", "v": "-v, "}.get(name, "    ")
        kind = _TYPES.get(entry["type"], f" {entry['type']}")
        lines.append(f"  {short}--{name}{kind}   What {name} says.{shown}")
        if entry["type"] == "gates":
            lines += [f"                {one}" for one in _known_gates(compat, component, version)]
    return "\n".join(lines)


def _quoted(default: object) -> str:
    return f'"{default}"' if isinstance(default, str) and not default[:1].isdigit() else str(default)


def _known_gates(compat: Compat, component: Component, version: Version) -> Iterator[str]:
    for name, entry in compat.section("gates").items():
        stage = gate_stage(compat, entry, version)
        if stage is not None and stage[1] in _STAGES:
            yield f"{name}=true|false ({_STAGES[stage[1]]} - default={str(stage[2]).lower()})"


def load(run: Run, compat: Compat, component: Component, defaults: Mapping[str, Any]) -> Settings:
    """Read flags, then the file they name, then lay the flags over it; GoError ends the program."""
    version = Version.parse(run.version)
    flags = _flags(run, compat, component)
    settings = Settings(flags, {})
    if "config" in flags:
        settings.config = _file(run, compat, component, flags.text("config"), version, settings.warnings)
    _lay_flags_over(compat, component, version, settings)
    _check_values(compat, component, settings, version)
    for key, value in defaults.items():
        settings.config.setdefault(key, value)
    _check_gates(compat, component, settings, version)
    return settings


def _kinds(compat: Compat, component: Component, version: Version) -> Callable[[str], str | None]:
    table: Mapping[str, Any] = compat.section(f"{component.replace('-', '_')}_flags")

    def kind(name: str) -> str | None:
        if name == "help":
            return "bool"
        if not flag_exists(compat, component, name, version):
            return None
        # --version may stand alone, although it takes a value too.
        return "bool" if name == "version" else str(table[normal(name)]["type"])

    return kind


def _file(
    run: Run, compat: Compat, component: Component, path: str, version: Version, warnings: list[str]
) -> dict[str, Any]:
    failed = f"failed to load {component} config file, path: {path}, error: "
    if component == "kubelet":
        failed += f"failed to load Kubelet config file {path}, error "
    try:
        raw = run.read(path)
    except GoError as e:
        raise GoError(f"{failed}failed to read kubelet config file {json.dumps(path)}, error: {e}") from None
    try:
        data = _decoded(raw, component)
        if component == "kubelet":
            check_types(compat, data)
    except GoError as e:
        raise GoError(f"{failed}failed to decode: {e}") from None
    config = {k: v for k, v in data.items() if k not in ("apiVersion", "kind")}
    lenient = '"Using lenient decoding as strict decoding failed" err="strict decoding error: unknown field'
    unknown = sorted(_unknown_fields(compat, component, config, version))
    warnings.extend(rf'{lenient} \"{name}\""' for name in unknown)
    return config


def _decoded(raw: bytes, component: Component) -> dict[str, Any]:
    """A file as the object that it says to be (apimachinery, runtime/serializer)."""
    version, kind = _OBJECTS[component]
    try:
        text = raw.decode("utf-8-sig")
        data = yaml.safe_load(text)
    except UnicodeDecodeError:
        raise GoError("yaml: invalid leading UTF-8 octet") from None
    except yaml.YAMLError as e:
        raise GoError(f"yaml: {' '.join(str(e).split())}") from None
    found = data if isinstance(data, dict) else {}
    for key, named in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not found.get(key):
            raise GoError(f"Object '{named}' is missing in '{text}'")
    if (found["apiVersion"], found["kind"]) != (version, kind):
        raise GoError(
            f'no kind "{found["kind"]}" is registered for version "{found["apiVersion"]}" in scheme'
        )
    return found


def _unknown_fields(
    compat: Compat, component: Component, config: dict[str, Any], version: Version, above: str = ""
) -> Iterator[str]:
    """Fields this version has not; they are dropped from `config`, as the lenient decoder drops them."""
    table: Mapping[str, Any] = compat.section(f"{component.replace('-', '_')}_fields")
    for key in list(config):
        path = f"{above}{key}"
        nested = any(name.startswith(path + ".") for name in table)
        if nested and isinstance(config[key], dict):
            yield from _unknown_fields(compat, component, config[key], version, path + ".")
        elif (
            not nested and not field_exists(compat, component, path, version) and not _open_above(table, path)
        ):
            del config[key]
            yield path


def _open_above(table: Mapping[str, Any], path: str) -> bool:
    """Whether a field further up takes any names (featureGates, options)."""
    parts = path.split(".")
    return any(table.get(".".join(parts[:n]), {}).get("open") for n in range(1, len(parts)))


def _lay_flags_over(compat: Compat, component: Component, version: Version, settings: Settings) -> None:
    table: Mapping[str, Any] = compat.section(f"{component.replace('-', '_')}_flags")
    ignored = component == "kube-proxy" and "config" in settings.flags
    for name in settings.flags.values:
        entry = table.get(name)
        if entry is None or not entry.get("field"):
            continue
        if ignored and name != "hostname-override":
            continue  # with --config kube-proxy takes (nearly) everything from the file
        text = settings.flags.text(name)
        try:
            value = parse_value(entry["type"], ",".join(settings.flags.values[name]))
        except ValueError as e:
            raise GoError(f'invalid argument "{text}" for "--{name}" flag: {e}') from None
        _put(settings.config, entry["field"].split("."), value)


def _put(target: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        below = target.setdefault(part, {})
        if not isinstance(below, dict):
            return
        target = below
    target[path[-1]] = value


def _check_values(compat: Compat, component: Component, settings: Settings, version: Version) -> None:
    """What the validation refuses: the program ends while it starts."""
    if component == "kubelet":
        check_taints(settings.config)
    for path, finding in check_values(compat, component, settings.config, version):
        if component == "kubelet" and path[0] not in LATER:
            refuse(settings.config, path, finding)
        elif component == "kube-proxy":
            expected = f", expected {finding.expected}" if finding.expected else ""
            raise GoError(f"invalid configuration: {'.'.join(map(str, path))}: {finding.reason}{expected}")


class GoPanic(GoError):
    """A panic: the text goes to standard error as it is, and the exit code is 2."""


def _check_gates(compat: Compat, component: Component, settings: Settings, version: Version) -> None:
    failed, error = "failed to set feature gates from initial flags-based config", GoError
    if component == "kubelet" and "config" in settings.flags and version.at_least("1.32"):
        # SetDefaults_KubeletConfiguration of pkg/kubelet/apis/config/v1beta1/defaults.go, since KubeletCrashLoopBackOffMax.
        error = GoPanic
        failed = "failed to merge global and in-flight KubeletConfiguration while setting defaults, error"
    for gate, on in (settings.config.get("featureGates") or {}).items():
        for finding in check_gate(compat, component, gate, bool(on), version):
            if finding.level != "error":
                continue
            if finding.id == "locked":
                is_, must = str(bool(on)).lower(), str(not on).lower()
                raise error(f"{failed}: cannot set feature gate {gate} to {is_}, feature is locked to {must}")
            raise error(f"{failed}: unrecognized feature gate: {gate}")


def duration(value: Any, default: float) -> float:
    """A Go duration (`10s`, `1m30s`) in seconds."""
    if not isinstance(value, str) or not value:
        return default
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    total, number, text = 0.0, "", value
    while text:
        if text[0].isdigit() or text[0] == ".":
            number, text = number + text[0], text[1:]
            continue
        unit = "ms" if text.startswith("ms") else text[0]
        if unit not in units or not number:
            return default
        total, number, text = total + float(number) * units[unit], "", text[len(unit) :]
    return total

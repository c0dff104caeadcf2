"""Flags, configuration fields and feature gates of kubelet and kube-proxy: does this version take them on Windows?"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from winboot.config.compat.facts import Compat, Facts
from winboot.config.compat.finding import Finding
from winboot.config.compat.values import WrongValue, seconds, wrong_values
from winboot.config.compat.version import Version, minor_key
from winboot.config.source import nearest

Component = Literal["kubelet", "kube-proxy"]
FieldPath: TypeAlias = tuple[str | int, ...]

PRIORITY_CLASSES: Final = tuple(
    f"{name}_PRIORITY_CLASS"
    for name in ("IDLE", "BELOW_NORMAL", "NORMAL", "ABOVE_NORMAL", "HIGH", "REALTIME")
)
# Read before the configuration file is, so they stay flags although a field of the same meaning exists. These are log
# levels, and what makes kube-proxy greet the service control manager (with the field alone it ends in error 1053).
STAY_FLAGS: Final = frozenset({"v", "vmodule", "windows-service"})
# From this minor on a program ends when a gate is on and one that it needs is off (component-base/featuregate,
# featureGate.Validate, called in pkg/kubelet/apis/config/validation/validation.go; tried with 1.36.2).
_NEEDS_SINCE: Final = "1.36"
_TAINT: Final = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}


def normal(flag: str) -> str:
    """A flag's name as the tables have it: no leading dashes, dashes for underscores."""
    return flag.strip().lstrip("-").replace("_", "-")


def check_flag(
    compat: Compat, component: Component, flag: str, value: str, version: Version
) -> list[Finding]:
    """What this version of the component says to the flag on Windows. An empty list means: it takes it."""
    name = normal(flag)
    about = f"{component} --{name}"
    known = _flags(compat, component)
    entry = known.get(name)
    if entry is None:
        return [_unknown_flag(compat, name, about, known)]
    gone = _not_in(compat, entry, about, version)
    if gone:
        return [gone]
    findings = list(_windows(compat, entry, about))
    if entry.get("leaving") and _since(entry.get("deprecated"), version):
        why, instead = compat.reason(entry.get("say", ""))
        findings.append(
            Finding(
                "warning",
                "deprecated",
                about,
                why or "a later release removes it",
                instead,
                compat.source("k8s-src"),
            )
        )
    try:
        parsed = parse_value(entry["type"], value)
    except ValueError as error:
        return [*findings, Finding("error", "wrong-value", about, str(error))]
    if entry["type"] == "gates":
        for gate, on in parsed.items():
            findings.extend(check_gate(compat, component, gate, on, version))
        findings.extend(finding for _, finding in _unmet_needs(compat, parsed, version))
    below = _fields(compat, component).get(entry.get("field", ""), {})
    # A flag's text may be another form of what is a list of objects in the file (vmodule).
    if below.get("type") != "list":
        findings.extend(_wrong_value(about, one) for one in wrong_values(below, parsed))
    findings.extend(_value_rules(compat, about, entry.get("field") or name, parsed, version))
    return findings


def check_field(
    compat: Compat, component: Component, config: Mapping[str, Any], version: Version
) -> list[tuple[FieldPath, Finding]]:
    """Every field of a configuration that this version does not take, whose value it refuses, or that does nothing on
    Windows, with its path.

    `config` is nested as in the file. A field whose own fields the data does not list is taken as it is.
    """
    return [*_fields_in(compat, component, config, (), version), *_together(component, config)]


def check_values(
    compat: Compat, component: Component, config: Mapping[str, Any], version: Version
) -> list[tuple[FieldPath, Finding]]:
    """The values alone that the program's decoder or validation refuses; it ends while it starts."""
    gates = config.get("featureGates")
    needs = _unmet_needs(compat, gates, version) if isinstance(gates, Mapping) else ()
    return [
        *_values_in(compat, component, config, ()),
        *_together(component, config),
        *((("featureGates", gate), finding) for gate, finding in needs),
    ]


def _values_in(
    compat: Compat, component: Component, config: Mapping[str, Any], above: FieldPath
) -> Iterator[tuple[FieldPath, Finding]]:
    known = _fields(compat, component)
    for key, value in config.items():
        path = (*above, key)
        dotted = ".".join(map(str, path))
        entry = known.get(dotted, {})
        for one in wrong_values(entry, value):
            yield (*path, *one.below), _wrong_value(f"{component} configuration field {dotted}", one)
        if isinstance(value, Mapping) and not entry.get("open"):
            yield from _values_in(compat, component, value, path)


def check_gate(
    compat: Compat, component: Component, gate: str, value: bool, version: Version
) -> list[Finding]:
    """What this version says to `gate=value`: unknown and removed gates stop the program, so do locked ones
    set wrong."""
    about = f"feature gate {gate}"
    if gate in ("AllAlpha", "AllBeta"):
        return [
            Finding(
                "warning",
                "untested",
                about,
                "it turns on many features that are untested on Windows",
                "the gates you need",
            )
        ]
    known: Mapping[str, Facts] = compat.section("gates")
    entry = known.get(gate)
    source = compat.source("k8s-src")
    if entry is None:
        meant = nearest(gate, known)
        return [
            Finding(
                "error", "unknown", about, f"no {component} has this gate: it would not start", meant, source
            )
        ]
    minor = compat.line(version)
    first = entry["stages"][0][0]
    if minor_key(minor) < minor_key(first) and first != compat.section("about")["oldest"]:
        return [
            Finding(
                "error",
                "not-yet",
                about,
                f"it exists from {first} on; {component} {minor} would not start",
                "",
                source,
            )
        ]
    removed = entry.get("removed")
    if removed and minor_key(minor) >= minor_key(removed):
        reason = f"it was removed in {removed}; {component} {minor} would not start"
        return [Finding("error", "removed", about, reason, "remove it", source)]
    return _gate_stage(compat, entry, about, value, minor)


@dataclass(slots=True)
class Moved:
    """Flags sorted into what the configuration file can say (`fields`, nested) and what stays on the command line."""

    fields: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def move_flags(compat: Compat, component: Component, flags: Mapping[str, str], version: Version) -> Moved:
    """Move each flag into the configuration field this version has for it; flags without one stay as they
    are.

    Flags must have passed `check_flag`: an unknown one, or one with an unreadable value, raises ValueError.
    """
    moved = Moved()
    for flag, value in flags.items():
        name = normal(flag)
        entry = _flags(compat, component).get(name)
        if entry is None:
            raise ValueError(f"{component} has no flag --{name}")
        target = entry.get("field")
        if target is None or name in STAY_FLAGS or not _since(entry["field_since"], version):
            moved.flags[name] = value
            continue
        put(moved.fields, target.split("."), parse_value(entry["type"], value))
        about = f"{component} --{name}"
        moved.findings.append(
            Finding(
                "info",
                "moved",
                about,
                f"winboot writes it as {target} in the configuration file",
                "",
                compat.source("kubelet-api"),
            )
        )
    return moved


def flag_exists(compat: Compat, component: Component, flag: str, version: Version) -> bool:
    """Does this version of the component, on Windows, know the flag?"""
    entry = _flags(compat, component).get(normal(flag))
    if entry is None or entry.get("windows") == "linux_only":
        return False
    return _not_in(compat, entry, "", version) is None


def gate_stage(compat: Compat, entry: Facts, version: Version) -> tuple[str, str, bool, bool] | None:
    """The stage of a gate in this version: since when, which, on or off, locked. None where the version does not know it."""
    minor = compat.line(version)
    if entry.get("removed") and minor_key(minor) >= minor_key(entry["removed"]):
        return None
    stages = [row for row in entry["stages"] if minor_key(row[0]) <= minor_key(minor)]
    if not stages and entry["stages"][0][0] != compat.section("about")["oldest"]:
        return None
    since, stage, default, locked = stages[-1] if stages else entry["stages"][0]
    return since, stage, default, locked


def field_exists(compat: Compat, component: Component, path: str, version: Version) -> bool:
    """Does this version's configuration have the field (`authentication.x509.clientCAFile`)?"""
    entry = _fields(compat, component).get(path)
    return entry is not None and _not_in(compat, entry, "", version) is None


def whole_maps(compat: Compat, component: Component) -> frozenset[str]:
    """The fields whose map replaces winboot's as it replaces the program's default. A flag clears the map before it
    sets its first pair (k8s.io/component-base/cli/flag, MapStringString.Set). A file's map is the default's instead
    where it is not nil (pkg/kubelet/apis/config/v1beta1/defaults.go, `if obj.EvictionHard == nil`). Gates are laid
    over the program's one by one (featureGate.SetFromMap), so they merge here, too."""
    fields = _fields(compat, component).items()
    return frozenset(name for name, entry in fields if entry.get("open") and entry["type"] != "gates")


def network_gates(version: Version, *, overlay: bool, dsr: bool) -> dict[str, bool]:
    """The gates of kube-proxy that a network needs where they are not on by themselves for good. From 1.33 on nothing is
    named: a locked gate must not be, and a removed one stops kube-proxy."""
    if version.at_least("1.33"):
        return {}
    wanted = {"WinDSR": dsr, "WinOverlay": overlay}
    return {gate: True for gate, on in wanted.items() if on}


def put(target: dict[str, Any], path: list[str], value: Any) -> None:
    """Set a value in a nested map, making the maps on the way."""
    for part in path[:-1]:
        target = target.setdefault(part, {})
    target[path[-1]] = value


def parse_value(kind: str, text: str) -> Any:
    """A flag's text as the type it has; ValueError says what is wrong."""
    match kind:
        case "bool":
            if text not in _BOOLEANS:
                raise ValueError(f"{text!r} is neither true nor false")
            return _BOOLEANS[text]
        case "int":
            return _number(text, int, "a whole number")
        case "float":
            return _number(text, float, "a number")
        case "list":
            return [part.strip() for part in text.split(",") if part.strip()]
        case "map" | "thresholds" | "gates":
            return _pairs(kind, text)
        case "taints":
            return [parse_taint(part) for part in text.split(",") if part]
        case "duration":
            if seconds(text) is None:
                raise ValueError(f"{text!r} is not a duration such as 10s or 1h30m")
            return text
        case "ip":
            return str(ipaddress.ip_address(text))
    return text


def _number(text: str, number: type[int] | type[float], expected: str) -> int | float:
    try:
        return number(text)
    except ValueError:
        raise ValueError(f"{text!r} is not {expected}") from None


def _pairs(kind: str, text: str) -> dict[str, Any]:
    separator = "<" if kind == "thresholds" else "="
    pairs: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, found, value = part.partition(separator)
        if not found:
            raise ValueError(f"{part!r} is not of the form name{separator}value")
        pairs[key.strip()] = parse_value("bool", value.strip()) if kind == "gates" else value.strip()
    return pairs


def parse_taint(text: str) -> dict[str, str]:
    """`key=value:Effect` as the file has it; ValueError for another form."""
    match = _TAINT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not of the form key=value:Effect")
    key, value, effect = match.groups()
    return {"key": key, "value": value or "", "effect": effect}


def _flags(compat: Compat, component: Component) -> Mapping[str, Facts]:
    table: Mapping[str, Facts] = compat.section(
        "kubelet_flags" if component == "kubelet" else "kube_proxy_flags"
    )
    return table


def _fields(compat: Compat, component: Component) -> Mapping[str, Facts]:
    table: Mapping[str, Facts] = compat.section(
        "kubelet_fields" if component == "kubelet" else "kube_proxy_fields"
    )
    return table


def _since(minor: str | None, version: Version) -> bool:
    return minor is not None and minor_key(version.minor) >= minor_key(minor)


def _unknown_flag(compat: Compat, name: str, about: str, known: Mapping[str, Facts]) -> Finding:
    source = compat.source("k8s-src")
    right = compat.section("misspelled").get(name)
    if right:
        reason = "some documents spell it this way, but no release has this flag"
        return Finding("error", "misspelled", about, reason, f"--{right}", source)
    meant = nearest(name, known)
    reason = "no release has this flag, and the program exits at once on an unknown flag"
    return Finding("error", "unknown", about, reason, f"--{meant}" if meant else "", source)


def _not_in(compat: Compat, entry: Facts, about: str, version: Version) -> Finding | None:
    """The finding for a flag or field that this minor does not have yet, or no more."""
    minor = compat.line(version)
    why, instead = compat.reason(entry.get("say", ""))
    source = compat.source("k8s-src")
    removed = entry.get("removed")
    if removed and minor_key(minor) >= minor_key(removed):
        reason = f"it was removed in {removed}" + (f": {why}" if why else "")
        return Finding("error", "removed", about, reason, instead or "remove it", source)
    if minor_key(minor) < minor_key(entry["added"]):
        return Finding("error", "not-yet", about, f"it exists from {entry['added']} on", "", source)
    return None


def _windows(compat: Compat, entry: Facts, about: str) -> Iterator[Finding]:
    why, instead = compat.reason(entry.get("say", ""))
    source = compat.source("k8s-src")
    match entry.get("windows"):
        case "linux_only":
            yield Finding("error", "linux-only", about, why, instead, source)
        case "rejected_at_runtime" | "error":
            reason = why or "the program exits on Windows if you set it"
            yield Finding("error", "fails-on-windows", about, reason, instead or "remove it", source)
        case "ignored":
            reason = why or "nothing reads it on Windows"
            yield Finding("warning", "ignored", about, reason, instead or "remove it", source)
        case "gated":
            yield Finding("warning", "no-effect", about, why, instead, source)


def _fields_in(
    compat: Compat,
    component: Component,
    config: Mapping[str, Any],
    above: tuple[str, ...],
    version: Version,
    *,
    told: bool = False,
) -> Iterator[tuple[FieldPath, Finding]]:
    """`told`: the section above has had its warning, so its fields have none of their own."""
    known = _fields(compat, component)
    for key, value in config.items():
        path = (*above, key)
        dotted = ".".join(path)
        if dotted in ("apiVersion", "kind"):
            continue
        about = f"{component} configuration field {dotted}"
        entry = known.get(dotted)
        if entry is None:
            yield path, _unknown_field(compat, path, about, known)
            continue
        gone = _not_in(compat, entry, about, version)
        if gone:
            yield path, gone
            continue
        if value is None:
            continue  # removes what winboot would write
        wrong = list(wrong_values(entry, value))
        for one in wrong:
            yield (*path, *one.below), _wrong_value(about, one)
        if wrong:
            continue
        unheard = (
            [] if _is_default(compat, component, dotted, value) else list(_windows(compat, entry, about))
        )
        for finding in unheard:
            if not (told and finding.level == "warning"):
                yield path, finding
        for finding in _value_rules(compat, about, dotted, value, version):
            yield path, finding
        if dotted == "featureGates" and isinstance(value, Mapping):
            yield from _gates_in(compat, component, value, path, version)
        elif isinstance(value, Mapping) and not entry.get("open"):
            yield from _fields_in(compat, component, value, path, version, told=told or bool(unheard))


def _is_default(compat: Compat, component: Component, dotted: str, value: Any) -> bool:
    """True for a value that the program has without the field: its flag's default, or the zero value that kubeadm writes."""
    if isinstance(value, Mapping):
        return all(_is_default(compat, component, f"{dotted}.{key}", one) for key, one in value.items())
    flags = _flags(compat, component).values()
    default = next((one["default"] for one in flags if one.get("field") == dotted and "default" in one), None)
    return value in (None, "", "0s", []) or value == default or (not default and not value)


def _gates_in(
    compat: Compat, component: Component, gates: Mapping[str, Any], above: tuple[str, ...], version: Version
) -> Iterator[tuple[FieldPath, Finding]]:
    for gate, value in gates.items():
        path = (*above, gate)
        if value is None:
            continue
        if not isinstance(value, bool):
            yield (
                path,
                Finding(
                    "error", "wrong-value", f"feature gate {gate}", f"{value!r} is neither true nor false"
                ),
            )
            continue
        for finding in check_gate(compat, component, gate, value, version):
            yield path, finding
    for gate, finding in _unmet_needs(compat, gates, version):
        yield (*above, gate), finding


def _unmet_needs(compat: Compat, given: Mapping[str, Any], version: Version) -> Iterator[tuple[str, Finding]]:
    """Gates that would be on while one that they need is off, at the gate that is written down."""
    minor = compat.line(version)
    if minor_key(minor) < minor_key(_NEEDS_SINCE) or not given.keys().isdisjoint(("AllAlpha", "AllBeta")):
        return
    known: Mapping[str, Facts] = compat.section("gates")
    source = compat.source("k8s-src")
    for gate, entry in known.items():
        for need in entry.get("needs", ()):
            if _is_gone(known.get(need, {}), minor):
                continue  # a gate that is locked on and removed holds no user back
            written = gate if given.get(gate) is True else need
            if (
                written in given
                and _is_on(known, gate, given, minor)
                and not _is_on(known, need, given, minor)
            ):
                reason = f"{gate} is on, but needs {need}, which is off: the program would not start"
                instead = f"{gate}: false too" if written == need else f"{need}: true too"
                yield written, Finding("error", "needs", f"feature gate {written}", reason, instead, source)


def _is_on(known: Mapping[str, Facts], gate: str, given: Mapping[str, Any], minor: str) -> bool:
    """Is a gate on, as given or by its default? One that this minor does not have is off."""
    entry = known.get(gate)
    if entry is None or _is_gone(entry, minor):
        return False
    stages = [row for row in entry["stages"] if minor_key(row[0]) <= minor_key(minor)]
    if not stages:
        return False
    chosen = given.get(gate)
    return chosen if isinstance(chosen, bool) else bool(stages[-1][2])


def _is_gone(entry: Facts, minor: str) -> bool:
    removed = entry.get("removed")
    return removed is not None and minor_key(minor) >= minor_key(removed)


def _wrong_value(about: str, wrong: WrongValue) -> Finding:
    part = f" of {wrong.below[-1]!r}" if wrong.below else ""
    reason = (
        f"{wrong.wrong}{part} is not valid"
        if not wrong.wrong.startswith(("found", "unknown"))
        else wrong.wrong
    )
    return Finding(
        "error", "wrong-value", about, reason, expected=wrong.expected, did_you_mean=wrong.did_you_mean
    )


def _together(component: Component, config: Mapping[str, Any]) -> Iterator[tuple[FieldPath, Finding]]:
    """Fields that are right by themselves and not together (ValidateKubeletConfiguration)."""
    if component != "kubelet":
        return
    for rule in (_image_collection, _shutdown, _soft_eviction, _pulls, _log_query):
        for field_name, reason, expected in rule(config):
            about = f"kubelet configuration field {field_name}"
            yield (field_name,), Finding("error", "wrong-value", about, reason, expected=expected)


_Together: TypeAlias = Iterator[tuple[str, str, str]]


def _image_collection(config: Mapping[str, Any]) -> _Together:
    low, high = config.get("imageGCLowThresholdPercent"), config.get("imageGCHighThresholdPercent")
    low_or_default, high_or_default = 80 if low is None else low, 85 if high is None else high
    if not (isinstance(low_or_default, int) and isinstance(high_or_default, int)):
        return
    if low_or_default >= high_or_default:
        name = "imageGCLowThresholdPercent" if low is not None else "imageGCHighThresholdPercent"
        wrong = f"image collection would begin at {high_or_default} % and end at {low_or_default} %"
        yield name, wrong, "a low threshold below the high threshold (80 and 85 by default)"


def _shutdown(config: Mapping[str, Any]) -> _Together:
    total, critical = (
        seconds(config.get(name, "0s")) for name in ("shutdownGracePeriod", "shutdownGracePeriodCriticalPods")
    )
    if total is None or critical is None:
        return
    for name, value in (("shutdownGracePeriod", total), ("shutdownGracePeriodCriticalPods", critical)):
        if 0 < value < 1:
            yield name, "shorter than a second", "0s, or 1s or longer"
    if critical > total:
        name = "shutdownGracePeriodCriticalPods"
        yield (
            name,
            f"longer than shutdownGracePeriod ({total.normalize():f} s)",
            "at most shutdownGracePeriod",
        )


def _soft_eviction(config: Mapping[str, Any]) -> _Together:
    """A soft threshold needs its grace period, and the other way round (pkg/kubelet/eviction/helpers.go)."""
    soft, grace = (config.get(name) or {} for name in ("evictionSoft", "evictionSoftGracePeriod"))
    if not (isinstance(soft, Mapping) and isinstance(grace, Mapping)):
        return
    for signal in soft:
        if signal not in grace:
            yield (
                "evictionSoft",
                f"{signal} has no grace period",
                f"evictionSoftGracePeriod: {{{signal}: 1m}}",
            )


def _pulls(config: Mapping[str, Any]) -> _Together:
    most = config.get("maxParallelImagePulls")
    if config.get("serializeImagePulls") is True and isinstance(most, int) and most > 1:
        wrong = f"{most} pulls at a time are not possible: serializeImagePulls is true"
        yield "maxParallelImagePulls", wrong, "1, or serializeImagePulls: false"


def _log_query(config: Mapping[str, Any]) -> _Together:
    if config.get("enableSystemLogQuery") is True and config.get("enableSystemLogHandler") is False:
        yield "enableSystemLogQuery", "it needs enableSystemLogHandler", "enableSystemLogHandler: true"


def _unknown_field(compat: Compat, path: tuple[str, ...], about: str, known: Mapping[str, Facts]) -> Finding:
    above = ".".join(path[:-1])
    siblings = {name.rpartition(".")[2]: name for name in known if name.rpartition(".")[0] == above}
    meant = nearest(path[-1], siblings)
    reason = "the configuration has no such field in any release"
    return Finding("error", "unknown", about, reason, siblings.get(meant, ""), compat.source("kubelet-api"))


def _gate_stage(compat: Compat, entry: Facts, about: str, value: bool, minor: str) -> list[Finding]:
    source = compat.source("k8s-src")
    stage = [row for row in entry["stages"] if minor_key(row[0]) <= minor_key(minor)]
    _, name, default, locked = stage[-1] if stage else entry["stages"][0]
    if locked and value is not default:
        state = "on" if default else "off"
        reason = f"it is locked {state} in {minor}: another value stops the program"
        return [Finding("error", "locked", about, reason, "remove it", source)]
    if entry.get("linux_only"):
        return [Finding("warning", "linux-only", about, entry.get("note", ""), "remove it", source)]
    if locked:
        reason = f"it is locked to this value in {minor}; setting it fails in releases without this gate"
        return [Finding("warning", "no-effect", about, reason, "remove it", source)]
    if name == "deprecated":
        return [
            Finding(
                "warning",
                "deprecated",
                about,
                entry.get("note") or "it has no effect any more",
                "remove it",
                source,
            )
        ]
    if name == "alpha" and value and not default:
        return [
            Finding("info", "untested", about, f"it is alpha in {minor}: it may change or end", "", source)
        ]
    return []


def _value_rules(compat: Compat, about: str, key: str, value: Any, version: Version) -> Iterator[Finding]:
    """Values that a program on Windows refuses although the name is right."""
    source = compat.source("k8s-src")
    strict = not _since("1.31", version)
    if key == "cgroupsPerQOS" and value is True:
        level: Literal["error", "warning"] = "error" if strict else "warning"
        yield Finding(level, "must-be-off", about, compat.reason("cgroups-per-qos")[0], "false", source)
    if key == "enforceNodeAllocatable" and value and (strict or list(value) != ["none"]):
        level = "error" if strict else "warning"
        yield Finding(level, "must-be-off", about, compat.reason("allocatable")[0], "an empty list", source)
    if key == "windows-priorityclass" and value not in PRIORITY_CLASSES:
        meant = nearest(str(value), PRIORITY_CLASSES) or "ABOVE_NORMAL_PRIORITY_CLASS"
        yield Finding("error", "wrong-value", about, f"{value!r} stops the kubelet", meant, source)
    yield from _open_doors(about, key, value, source)
    yield from _without_effect(compat, about, key, value, version)
    if key == "resolvConf" and value:
        yield from _resolv_conf(compat, about, str(value), version)
    if key == "mode" and value != "kernelspace":
        yield Finding(
            "error",
            "wrong-value",
            about,
            f"Windows does not have the mode {value!r} (any more)",
            "kernelspace",
            source,
        )
    if key == "cloud-provider" and value not in ("", "external") and _since("1.31", version):
        yield Finding("error", "removed", about, compat.reason("cloud-provider")[0], "external", source)
    if key == "containerRuntimeEndpoint" and not str(value).startswith("npipe:"):
        reason = "containerd on Windows listens on a named pipe"
        yield Finding("error", "wrong-value", about, reason, "npipe:////./pipe/containerd-containerd", source)


def _open_doors(about: str, key: str, value: Any, source: str) -> Iterator[Finding]:
    """Settings with which a stranger that reaches the node's port can read pods, or run commands in them."""
    if key == "authentication.anonymous.enabled" and value is True:
        reason = "anyone who can connect to port 10250 gets access without a login"
        yield Finding("warning", "unsafe", about, reason, "false", source)
    if key == "authorization.mode" and value == "AlwaysAllow":
        reason = "every authenticated user may run commands in every pod of the node"
        yield Finding("warning", "unsafe", about, reason, "Webhook", source)
    if key == "readOnlyPort" and value:
        reason = "this port shows all pods without a login and without encryption"
        yield Finding("warning", "unsafe", about, reason, "0", source)


def _without_effect(compat: Compat, about: str, key: str, value: Any, version: Version) -> Iterator[Finding]:
    """Values that mean something else than they say."""
    if key == "eventRecordQPS" and value == 0:
        # relnotes-1.37, "Urgent Upgrade Notes" (#117119).
        why, instead = compat.reason("no-event-limit")
        level: Literal["warning", "info"] = "warning" if _since("1.37", version) else "info"
        yield Finding(level, "unsafe", about, why, instead, compat.source("relnotes-1.37"))
    if key in ("evictionHard", "evictionSoft", "evictionMinimumReclaim") and isinstance(value, Mapping):
        why, instead = compat.reason("inode-signal")
        for signal in value:
            if str(signal).endswith(".inodesFree"):
                yield Finding(
                    "info", "no-effect", f"{about}, {signal}", why, instead, compat.source("k8s-src")
                )


def _resolv_conf(compat: Compat, about: str, value: str, version: Version) -> Iterator[Finding]:
    why, source = compat.reason("resolv-conf")[0], compat.source("k8s-src")
    if value == "Host" and _since("1.27", version):
        return
    if value == "Host" or value.startswith("/"):
        yield Finding("error", "wrong-value", about, why, 'resolvConf: ""', source)

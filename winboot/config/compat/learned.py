"""What a node's own kubelet and kube-proxy say they know, as an overlay over the data.

Their `--help` lists each flag that is not hidden, and each alpha and beta gate with its default. It leaves out what
is GA or deprecated (`FlagUsages` of spf13/pflag, `HelpString` and `KnownFeatures` of
component-base/featuregate/feature_gate.go in kubernetes). So winboot asks for what a help does not name, by its name,
before it counts as removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import yaml

from winboot.config.compat.facts import Compat, Facts
from winboot.config.compat.flags import Component, flag_exists, gate_stage
from winboot.config.compat.version import Version, minor_key

_FLAG: Final = re.compile(
    r" {2}(?:-\w, | {4})--(?P<name>[a-z0-9][a-z0-9-]*)(?: (?P<type>[^\s\[]+))?(?:\[=[^\]]*\])?(?: {2,}(?P<usage>.*))?"
)
_DEFAULT: Final = re.compile(r"\(default (\"[^\"]*\"|[^)]*)\)")
_GATE: Final = re.compile(
    r"\s*(?P<name>[A-Za-z0-9]+)=true\|false \((?P<stage>ALPHA|BETA) - default=(?P<default>true|false)\)"
)
# What pflag calls its types (Value.Type of each), and what the data does.
_TYPES: Final[Mapping[str, str]] = {
    "": "bool",
    **dict.fromkeys(("int", "int32", "int64", "uint", "uint32", "Level"), "int"),
    **dict.fromkeys(("float", "float32", "float64"), "float"),
    **dict.fromkeys(("strings", "stringSlice", "stringArray"), "list"),
    "duration": "duration",
    "ip": "ip",
    "mapStringString": "map",
    "mapStringBool": "gates",
}
# A value of each type, to ask for a flag by name.
_VALUES: Final[Mapping[str, str]] = {
    "bool": "true",
    "int": "1",
    "float": "1",
    "duration": "1s",
    "ip": "127.0.0.1",
    "map": "a=b",
    "thresholds": "memory.available<1Mi",
    "taints": "a=b:NoSchedule",
}
_EVERYWHERE: Final = frozenset({"AllAlpha", "AllBeta"})


@dataclass(frozen=True, slots=True)
class Said:
    """What one program says: its version, the type and default of each flag, and (stage, default) of each gate of its help."""

    component: Component
    version: Version
    flags: Mapping[str, tuple[str, str]]
    gates: Mapping[str, tuple[str, bool]]


@dataclass(slots=True)
class Refused:
    """What winboot tried by name and a program does not take: names of flags; gates as `Name=true`."""

    flags: set[str] = field(default_factory=set)
    gates: set[str] = field(default_factory=set)


def said(component: Component, version: str, text: str) -> Said:
    """Read what `--version` and `--help` print. ValueError where one of them has another form."""
    number = re.search(r"v[0-9]+\.[0-9]+\.[0-9]+\S*", version)
    if number is None:
        raise ValueError(f"{component} reports no version: {version[:80]!r}")
    flags, gates = {}, {}
    for line in text.splitlines():
        flag, gate = _FLAG.fullmatch(line.rstrip()), _GATE.match(line)
        if flag is not None:
            default = _DEFAULT.search(flag["usage"] or "")
            flags[flag["name"]] = (flag["type"] or "", default[1].strip('"') if default else "")
        elif gate is not None:
            gates[gate["name"]] = (gate["stage"].lower(), gate["default"] == "true")
    if "feature-gates" not in flags or not gates:
        raise ValueError(
            f"winboot recognizes no flags and feature gates in the help of {component} {number[0]}"
        )
    return Said(component, Version.parse(number[0]), flags, gates)


def flags_to_ask(compat: Compat, one: Said) -> dict[str, str]:
    """Flags that the data knows in this version and the help does not name: name and the argument to ask with."""
    table: Mapping[str, Facts] = compat.section(_section(one.component))
    return {
        name: f"--{name}={_VALUES.get(entry['type'], '')}"
        for name, entry in table.items()
        if name not in one.flags and flag_exists(compat, one.component, name, one.version)
    }


def gates_to_ask(compat: Compat, one: Said) -> list[str]:
    """Gates that the data knows in this version and the help does not name, each with its default: `Name=true`."""
    return [_asked(name, stage[2]) for name, stage in _silent(compat, one)]


def gates_to_turn(compat: Compat, one: Said, refused: Iterable[str]) -> list[str]:
    """Of the gates that it takes and does not name, those that the data does not have locked, each with the other value:
    refused, they are locked by now."""
    gone = {text.partition("=")[0] for text in refused}
    return [
        _asked(name, not stage[2])
        for name, stage in _silent(compat, one)
        if name not in gone and not stage[3]
    ]


def _silent(compat: Compat, one: Said) -> Iterator[tuple[str, tuple[str, str, bool, bool]]]:
    gates: Mapping[str, Facts] = compat.section("gates")
    for name, entry in gates.items():
        stage = gate_stage(compat, entry, one.version)
        if stage is not None and name not in one.gates:
            yield name, stage


def _asked(name: str, on: bool) -> str:
    return f"{name}={'true' if on else 'false'}"


def _section(component: Component) -> str:
    return f"{component.replace('-', '_')}_flags"


def overlay(compat: Compat, programs: Mapping[Component, tuple[Said, Refused]]) -> dict[str, Any]:
    """The sections of an overlay: what these programs know otherwise than the data. Empty where they know the same."""
    kubelet, _ = programs["kubelet"]
    minor = kubelet.version.minor
    found: dict[str, Any] = {}
    if minor_key(minor) > minor_key(compat.newest):
        # What is not asked of the programs (builds, pause image, containerd) stays what the newest known minor has.
        found["minors"] = {minor: {"like": compat.newest}}
    for component, (one, refused) in programs.items():
        flags = dict(_flags(compat, one, refused))
        if flags:
            found[_section(component)] = flags
    gates = dict(_gates(compat, minor, programs))
    if gates:
        found["gates"] = gates
    return found


def _flags(compat: Compat, one: Said, refused: Refused) -> Iterator[tuple[str, dict[str, Any]]]:
    table: Mapping[str, Facts] = compat.section(_section(one.component))
    minor = one.version.minor
    for name, (kind, default) in sorted(one.flags.items()):
        entry = table.get(name)
        if name == "help" or (entry and flag_exists(compat, one.component, name, one.version)):
            continue
        if entry is None:
            new: dict[str, Any] = {"type": _TYPES.get(kind, "text"), "added": minor}
            yield name, new | ({"default": default} if default else {})
            continue
        change: dict[str, Any] = {}
        if entry.get("windows") == "linux_only":
            change["windows"] = None
        if minor_key(entry["added"]) > minor_key(minor):
            change["added"] = minor
        if entry.get("removed"):
            change["removed"] = None
        yield name, change
    for name in sorted(refused.flags):
        yield name, {"removed": minor}


def _gates(
    compat: Compat, minor: str, programs: Mapping[Component, tuple[Said, Refused]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    table: Mapping[str, Facts] = compat.section("gates")
    named = {name: stage for one, _ in programs.values() for name, stage in one.gates.items()}
    for name, (stage, default) in sorted(named.items()):
        if name in _EVERYWHERE:
            continue
        entry = table.get(name, {"stages": []})
        now = gate_stage(compat, entry, Version.parse(minor)) if entry["stages"] else None
        if now is not None and now[1:3] == (stage, default):
            continue
        # gate_stage knows a newer minor as the newest of the data, in which the row is not yet to be read.
        before = [row for row in entry["stages"] if minor_key(row[0]) < minor_key(minor)]
        yield (
            name,
            {"stages": [*before, [minor, stage, default, False]]}
            | ({"removed": None} if entry.get("removed") else {}),
        )
    for text in sorted(set.intersection(*(refused.gates for _, refused in programs.values()))):
        name, _, value = text.partition("=")
        entry = table[name]
        now = gate_stage(compat, entry, Version.parse(minor))
        if name in named or now is None:
            continue
        if now[2] is (value == "true"):
            yield name, {"removed": minor}
        else:
            yield name, {"stages": [*entry["stages"], [minor, "ga", now[2], True]]}


def as_text(sections: Mapping[str, Any], of: str, programs: Iterable[Said], day: date) -> str:
    """The overlay as a file that says where it is from. It has no date of its own: the rest of the data is as old as it is."""
    versions = ", ".join(f"{one.component} {one.version}" for one in programs)
    return (
        f"# Learned on {day.isoformat()} from {of}: {versions}.\n"
        "# Facts that the programs reported and that differ from winboot's data. Fields of configuration files are missing.\n"
        "# Set `kubernetes: {overlay: ./THIS-FILE}` in the profile until winboot's own data has this version.\n"
        + (
            yaml.safe_dump(dict(sections), sort_keys=False, default_flow_style=None, width=120)
            if sections
            else "{}\n"
        )
    )

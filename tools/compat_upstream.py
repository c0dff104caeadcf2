"""`python -m tools.compat_upstream FOLDER` lists where upstream's own files differ from the data.

FOLDER has a folder for each minor (`1.36`, `1.37`) with files of upstream's repositories; their paths end as below. The
command reports each missing file and skips that comparison. It fetches nothing.

| what | file |
| --- | --- |
| fields | `types.go`: of kubelet (`config/v1beta1`), kube-proxy and component-base (`config/v1alpha1`, `logs`, `tracing`) |
| flags | `cmd/kubelet/app/options/*.go`, `cmd/kube-proxy/app/*.go`, `logs/api/v1/options.go` |
| gates | `versioned_feature_list.yaml`, and `*features*/*.go` for those that are not in it (client-go's: `known_features.go`) |
| patches | `CHANGELOG-1.N.md` |
| dates | `schedule.yaml` (kubernetes/website, data/releases) |

A folder `tags` next to the minors has the tags of a repository in each file, as `git ls-remote --tags --refs` prints them:
`kubernetes`, and downloads by their names in the data (`containerd`, `flannel`).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from winboot.config.compat.facts import Compat, Facts, load
from winboot.config.compat.flags import Component, field_exists, flag_exists, gate_stage
from winboot.config.compat.version import Version, minor_key

_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(r"^\t(?P<name>\w+) +(?P<type>[^`\n]+?) +`json:\"(?P<json>[^\"]*)\"[^`]*`")
_EMBEDDED: Final = re.compile(r"^\t(?P<type>[\w.]+) +`json:\"(?:,inline)?\"[^`]*`")
_DEFAULT: Final = re.compile(r"^\t// Default: *(.*)$")
_FLAG: Final = re.compile(
    r"\b\w*(?:fs|FlagSet)\.(?P<how>\w*?)(?:Var|VarP)\((?:[^,()]|\((?:[^()]|\([^()]*\))*\))+, \"(?P<name>[a-z0-9-]+)\""
)
_LEAVING: Final = re.compile(r"\.MarkDeprecated\(\"(?P<name>[a-z0-9-]+)\"")
_GATE_NAME: Final = re.compile(
    r"^\t(?P<variable>\w+)(?: +(?:featuregate\.)?Feature)? += +\"(?P<name>\w+)\"", re.MULTILINE
)
_GATE: Final = re.compile(
    r"^(?P<tabs>\t+)(?:\w+\.)?(?P<variable>\w+): (?:featuregate\.VersionedSpecs)?\{\n"
    r"(?P<rows>(?:(?P=tabs)\t.*\n)+?)(?P=tabs)\}",
    re.MULTILINE,
)
_ROW: Final = re.compile(
    r"\{Version: version\.MustParse\(\"(?P<version>[\d.]+)\"\), Default: (?P<default>true|false)"
    r"(?P<locked>, LockToDefault: true)?[^}]*?PreRelease: (?:featuregate\.)?(?P<stage>\w+)"
    r"(?P<late>[^}]*LockToDefault: true)?[^}]*\}"
)
_PATCH: Final = re.compile(r"^# v(1\.\d+\.\d+)$", re.MULTILINE)
# What a flag's method says of its type.
_KINDS: Final[Mapping[str, str]] = {
    "Bool": "bool", "String": "text", "Duration": "duration", "Int": "int", "Int32": "int", "Int64": "int", "Uint32": "int",
    "Float32": "float", "Float64": "float", "StringSlice": "list", "IP": "ip",
}  # fmt: skip
# What a Go type is in the data, where that is certain.
_TYPES: Final[Mapping[str, str]] = {
    "bool": "bool", "string": "text", "int32": "int32", "int64": "int64", "uint32": "uint32", "float64": "float",
    "metav1.Duration": "duration", "[]string": "texts", "map[string]string": "text-map", "map[string]bool": "gates",
}  # fmt: skip
_STAGES: Final = {"ALPHA": "alpha", "BETA": "beta", "GA": "ga", "DEPRECATED": "deprecated"}
_ELSEWHERE: Final = ("_test.go", "_linux.go", "_other.go", "_others.go", "_unix.go")


# Since when, which, on or off, locked.
Stage: TypeAlias = tuple[str, str, bool, bool]


@dataclass(slots=True)
class Upstream:
    """What the texts of one minor say. `whole`: what is not among these flags and gates does not exist."""

    minor: str
    fields: dict[Component, dict[str, tuple[str, str]]] = field(default_factory=dict)
    flags: dict[Component, dict[str, str]] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    gates: dict[str, list[Stage]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    patch: str = ""
    dates: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Differs:
    """One difference: the section of the data, the entry, both sides in words, and the entry that an overlay would have."""

    section: str
    name: str
    upstream: str
    data: str
    entry: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.section}: {self.name}: upstream {self.upstream}; the data {self.data}"


def read(folder: Path, minor: str) -> Upstream:
    """Read every text of one minor's folder that is known by its name."""
    found = Upstream(minor)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    structs: dict[str, list[tuple[str, str, str]]] = {}
    variables: dict[str, str] = {}
    listed: dict[str, list[Stage]] = {}
    for path in files:
        where, name = path.as_posix(), path.name
        if name == "types.go":
            structs.update(_structs(path.read_text(encoding="utf-8")))
        elif name == "versioned_feature_list.yaml":
            listed = dict(_gate_list(path))
        elif name == f"CHANGELOG-{minor}.md":
            patches = _PATCH.findall(path.read_text(encoding="utf-8"))
            found.patch = max(patches, key=Version.parse, default="")
        elif name == "schedule.yaml":
            found.dates = _dates(path, minor)
        elif name.endswith(".go") and not name.endswith(_ELSEWHERE):
            text = path.read_text(encoding="utf-8")
            _read_flags(found, where, text)
            if "features" in where:
                variables |= {one["variable"]: one["name"] for one in _GATE_NAME.finditer(text)}
                found.gates.update(_gates_of_go(text, variables))
    # The list has the names of Go, which are others for a few gates.
    found.gates.update({variables.get(name, name): stages for name, stages in listed.items()})
    if listed and any(path.as_posix().endswith("client-go/features/known_features.go") for path in files):
        found.whole.add("gates")
    for component, kind in (("kubelet", "KubeletConfiguration"), ("kube-proxy", "KubeProxyConfiguration")):
        if kind in structs:
            found.fields[component] = dict(_paths(structs, kind, ""))  # type: ignore[index]
    return found


def _read_flags(found: Upstream, where: str, text: str) -> None:
    shared = "/logs/api/v1/" in where
    own: dict[Component, bool] = {
        "kubelet": "/kubelet/app/options/" in where,
        "kube-proxy": "/kube-proxy/app/" in where,
    }
    for component, its in own.items():
        if not (its or shared):
            continue
        found.flags.setdefault(component, {}).update(
            {one["name"]: _KINDS.get(one["how"], "") for one in _FLAG.finditer(text)}
        )
        found.leaving |= {one["name"] for one in _LEAVING.finditer(text)}
        if its and where.endswith("/options.go"):
            found.whole.add(component)


def _structs(text: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Each struct: its fields as (JSON name, Go type, default of its comment); an inlined one has no name."""
    for name, body in _STRUCT.findall(text):
        fields, default = [], ""
        for line in body.splitlines():
            said, one = _DEFAULT.match(line), _FIELD.match(line)
            if said:
                default = said[1].strip()
            elif embedded := _EMBEDDED.match(line):
                fields.append(("", embedded["type"], ""))
            elif one:
                json = one["json"].partition(",")[0]
                if json not in ("", "-"):
                    fields.append((json, one["type"].strip(), default))
            if not line.startswith("\t//"):
                default = ""
        yield name, fields


def _paths(
    structs: Mapping[str, list[tuple[str, str, str]]], kind: str, above: str
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Dotted path of each field below a struct: its Go type and default. Lists of structs are not gone into."""
    for name, go, default in structs[kind]:
        inner = go.lstrip("*").rpartition(".")[2]
        if not name:
            if inner in structs:
                yield from _paths(structs, inner, above)
        elif structs.get(inner) and not go.startswith(("[]", "map")):
            yield from _paths(structs, inner, f"{above}{name}.")
        else:
            yield f"{above}{name}", (go.lstrip("*"), default)


def _gate_list(path: Path) -> Iterator[tuple[str, list[Stage]]]:
    for one in yaml.safe_load(path.read_text(encoding="utf-8")):
        yield (
            str(one["name"]),
            [
                (
                    str(row["version"]),
                    _STAGES.get(str(row["preRelease"]).upper(), "alpha"),
                    row["default"],
                    row["lockToDefault"],
                )
                for row in one["versionedSpecs"]
            ],
        )


def _gates_of_go(text: str, variables: Mapping[str, str]) -> Iterator[tuple[str, list[Stage]]]:
    """The gates that a Go file has the stages of."""
    for one in _GATE.finditer(text):
        rows = [
            (
                row["version"],
                _STAGES.get(row["stage"].upper(), "ga"),
                row["default"] == "true",
                bool(row["locked"] or row["late"]),
            )
            for row in _ROW.finditer(one["rows"])
        ]
        if rows and one["variable"] in variables:
            yield variables[one["variable"]], rows


def _dates(path: Path, minor: str) -> dict[str, str]:
    for one in yaml.safe_load(path.read_text(encoding="utf-8")).get("schedules", []):
        if str(one.get("release")) == minor:
            return {
                "released": str(one.get("releaseDate", "")),
                "end_of_life": str(one.get("endOfLifeDate", "")),
            }
    return {}


def differences(compat: Compat, found: Upstream) -> Iterator[Differs]:
    """What the texts of one minor say otherwise than the data."""
    yield from _of_the_minor(compat, found)
    for component in found.fields:
        yield from _of_fields(compat, component, found)
    for component in found.flags:
        yield from _of_flags(compat, component, found)
    yield from _of_gates(compat, found)


def _of_the_minor(compat: Compat, found: Upstream) -> Iterator[Differs]:
    minors: Mapping[str, Facts] = compat.section("minors")
    facts = minors.get(found.minor)
    if facts is None:
        yield Differs("minors", found.minor, "has texts of it", "does not know it")
        return
    known = str(facts.get("last_patch") or facts.get("seen_patch"))
    if found.patch and Version.parse(found.patch) > Version.parse(known):
        yield Differs(
            "minors", found.minor, f"is at {found.patch}", f"at {known}", {"seen_patch": found.patch}
        )
    for name, day in found.dates.items():
        if day and day != facts.get(name):
            yield Differs("minors", found.minor, f"says {name} {day}", str(facts.get(name)), {name: day})


def _of_fields(compat: Compat, component: Component, found: Upstream) -> Iterator[Differs]:
    section = f"{component.replace('-', '_')}_fields"
    table: Mapping[str, Facts] = compat.section(section)
    version, theirs = Version.parse(found.minor), found.fields[component]
    for path, (go, _) in theirs.items():
        if path in table and field_exists(compat, component, path, version):
            continue
        if any(
            table.get(above, {}).get("open") or table.get(above, {}).get("type") == "list"
            for above in _above(path)
        ):
            continue
        entry = {"removed": None} if path in table else {"added": found.minor}
        kind = _TYPES.get(go)
        yield Differs(
            section, path, f"has it ({go})", _state(table.get(path)), entry | ({"type": kind} if kind else {})
        )
    for path in table:
        below = any(one.startswith(f"{path}.") for one in theirs)
        # A struct of a package whose text is not there cannot be judged.
        unread = any(
            above in theirs and theirs[above][0].rpartition(".")[2][:1].isupper() for above in _above(path)
        )
        if field_exists(compat, component, path, version) and path not in theirs and not below and not unread:
            yield Differs(section, path, "does not have it", "has it", {"removed": found.minor})


def _above(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def _state(entry: Facts | None) -> str:
    if entry is None:
        return "does not know it"
    return f"has it from {entry['added']} on" + (
        f", removed in {entry['removed']}" if entry.get("removed") else ""
    )


def _of_flags(compat: Compat, component: Component, found: Upstream) -> Iterator[Differs]:
    section = f"{component.replace('-', '_')}_flags"
    table: Mapping[str, Facts] = compat.section(section)
    version, theirs = Version.parse(found.minor), found.flags[component]
    for name, kind in theirs.items():
        if not flag_exists(compat, component, name, version):
            entry = {"removed": None} if name in table else {"type": kind or "text", "added": found.minor}
            yield Differs(section, name, "has it", _state(table.get(name)), entry)
        elif name in found.leaving and not table[name].get("deprecated"):
            yield Differs(
                section, name, "calls it deprecated", "does not", {"deprecated": found.minor, "leaving": True}
            )
    for name in table if component in found.whole else ():
        # These come from packages of every Kubernetes program (component-base: version, logs, featuregate; cobra: help).
        shared = name in ("version", "help", "v", "vmodule") or name.startswith("log")
        if name not in theirs and not shared and flag_exists(compat, component, name, version):
            yield Differs(section, name, "does not have it", "has it", {"removed": found.minor})


def _of_gates(compat: Compat, found: Upstream) -> Iterator[Differs]:
    table: Mapping[str, Facts] = compat.section("gates")
    version = Version.parse(found.minor)
    for name, rows in found.gates.items():
        now = [row for row in rows if minor_key(row[0]) <= minor_key(found.minor)]
        if not now or name in ("AllAlpha", "AllBeta"):
            continue
        theirs = now[-1][1:]
        ours = gate_stage(compat, table[name], version) if name in table else None
        if ours is None or ours[1:] != theirs:
            stages = [list(row) for row in now if row[0] not in ("0.0", "1.0") or len(now) == 1]
            yield Differs(
                "gates",
                name,
                _stage(theirs),
                _stage(ours[1:] if ours else None),
                {"stages": stages, "removed": None},
            )
    for name, entry in table.items() if "gates" in found.whole else ():
        if name not in found.gates and gate_stage(compat, entry, version) is not None:
            yield Differs("gates", name, "does not have it", "has it", {"removed": found.minor})


def _stage(stage: tuple[str, bool, bool] | None) -> str:
    if stage is None:
        return "does not know it"
    return f"has it {stage[0]}, {'on' if stage[1] else 'off'}{', locked' if stage[2] else ''}"


_TAG: Final = re.compile(r"refs/tags/(v?[0-9]\S*)$", re.MULTILINE)
# flannel's plug-in calls its releases so; other words behind the number are pre-releases.
_RELEASE: Final = re.compile(r"(?:flannel\d+)?")


def newer_tags(compat: Compat, name: str, text: str) -> Iterator[Differs]:
    """Releases in the tags of a repository that the data does not have; KeyError for a name that the data does not have."""
    tags = [tag for tag in map(_version, _TAG.findall(text)) if tag and _RELEASE.fullmatch(tag.pre)]
    entry: Facts = {} if name == "kubernetes" else compat.section("artifacts")[name]
    if "proposed" in entry:
        kept = [tag for tag in tags if entry.get("keeps", tag.minor) == tag.minor]
        yield from _newest(name, str(entry["proposed"]), kept)
        return
    lines = _lines(compat, name)
    for minor, known in lines.items():
        if known:
            yield from _newest(name, known, [tag for tag in tags if tag.minor == minor])
    newest = max(lines, key=minor_key)
    for minor in sorted({tag.minor for tag in tags}, key=minor_key):
        if minor_key(minor) > minor_key(newest):
            yield Differs("tags", name, f"has the minor {minor}", f"ends with {newest}")


def _version(text: str) -> Version | None:
    try:
        return Version.parse(text)
    except ValueError:
        return None


def _newest(name: str, known: str, tags: list[Version]) -> Iterator[Differs]:
    newest = max(tags, default=Version.parse(known))
    if newest > Version.parse(known):
        yield Differs("tags", name, f"has {newest}", f"has {known}")


def _lines(compat: Compat, name: str) -> dict[str, str]:
    """Each minor that the data has, with its newest patch where the data names one."""
    if name == "kubernetes":
        minors: Mapping[str, Facts] = compat.section("minors")
        return {minor: str(one.get("last_patch") or one.get("seen_patch")) for minor, one in minors.items()}
    if name == "containerd":
        series: Mapping[str, Facts] = compat.section("containerd")
        return {line: str(one["latest"]) for line, one in series.items()}
    return dict.fromkeys(compat.section("artifacts")[name]["lines"], "")


def changed_defaults(compat: Compat, before: Upstream, after: Upstream) -> Iterator[Differs]:
    """Defaults of fields that upstream's comments have otherwise in the later of two minors, and the data does not."""
    for component, fields in after.fields.items():
        section = f"{component.replace('-', '_')}_fields"
        table: Mapping[str, Facts] = compat.section(section)
        for path, (_, default) in fields.items():
            _, was = before.fields.get(component, {}).get(path, ("", default))
            known = {row[0] for row in table.get(path, {}).get("defaults", ())}
            if was != default and after.minor not in known:
                yield Differs(
                    section,
                    path,
                    f"has the default {default!r} from {after.minor} on, {was!r} before",
                    "does not say so",
                )


_NOTHING: Final = "  nothing that the data does not have"


def report(compat: Compat, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Lines to print, and the differences as an overlay. ValueError where the folder has no minor."""
    minors = sorted(
        (one.name for one in folder.iterdir() if re.fullmatch(r"1\.\d+", one.name)), key=minor_key
    )
    lists = sorted((folder / "tags").glob("*"))
    if not minors and not lists:
        raise ValueError(f"{folder} has no folder of a minor, such as {compat.newest}")
    lines, sections = [], dict[str, Any]()
    for path in lists:
        told = list(newer_tags(compat, path.name, path.read_text(encoding="utf-8")))
        lines += [f"tags of {path.name}", *([f"  {one}" for one in told] or [_NOTHING])]
    before: Upstream | None = None
    for minor in minors:
        found = read(folder / minor, minor)
        lines.append(f"{minor}: {_read_from(found)}")
        told = list(differences(compat, found))
        told += changed_defaults(compat, before, found) if before else ()
        lines += [f"  {one}" for one in told] or [_NOTHING]
        _collect(sections, told)
        before = found
    return lines, sections


def _collect(sections: dict[str, Any], told: Iterable[Differs]) -> None:
    for one in told:
        if one.entry is not None:
            sections.setdefault(one.section, {}).setdefault(one.name, {}).update(one.entry)


def _read_from(found: Upstream) -> str:
    counts = {f"{len(fields)} fields of {one}": True for one, fields in found.fields.items()}
    counts |= {f"{len(flags)} flags of {one}": one in found.whole for one, flags in found.flags.items()}
    kind = "all" if "gates" in found.whole else "some"
    counts |= {
        f"{len(found.gates)} gates ({kind})": bool(found.gates),
        f"patch {found.patch}": bool(found.patch),
    }
    read_ = [text for text, there in counts.items() if there]
    return "read " + ", ".join(read_) if read_ else "no text that is known here (docs/compat.md lists them)"


def main() -> int:
    """0: nothing differs; 2: something does; 64: no folder of a minor."""
    parser = argparse.ArgumentParser(
        prog="make compat", description="What upstream's texts say otherwise than the data."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--overlay", type=Path, help="write the differences as an overlay, to be read and then baked"
    )
    options = parser.parse_args()
    try:
        lines, sections = report(load(), options.folder)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 64
    sys.stdout.write("\n".join(lines) + "\n")
    if options.overlay is not None:
        options.overlay.write_text(yaml.safe_dump(sections, sort_keys=False, width=120), encoding="utf-8")
    return 2 if sections or any(line.startswith("  ") and line != _NOTHING for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())

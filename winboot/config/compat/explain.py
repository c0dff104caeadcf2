"""Everything the data knows about one name, as text for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from winboot.base.errors import UsageError
from winboot.config.compat.age import judged_on
from winboot.config.compat.facts import Compat, Facts
from winboot.config.compat.flags import STAY_FLAGS, normal
from winboot.config.compat.platform import (
    BUILDS,
    check_kubernetes,
    default_containerd,
    faults_of_the_minor,
    maintained_containerd,
    support,
    unlisted_containerd,
)
from winboot.config.compat.version import Version, minor_key
from winboot.config.source import nearest

KINDS: Final = ("flag", "field", "gate", "build", "version")

_ON_WINDOWS: Final[Mapping[str, str]] = {
    "linux_only": "unknown on Windows: the program does not start with it",
    "rejected_at_runtime": "refused on Windows if you set it",
    "error": "refused on Windows if you set it",
    "ignored": "ignored on Windows",
    "accounting_only": "measured on Windows, but not enforced",
    "partial": "partly effective on Windows",
    "gated": "without effect on Windows unless its feature gate is on",
    "set_explicitly": "must be set on Windows",
    "must_disable": "must be off on Windows",
    "windows_only": "only for Windows",
}


def explain(compat: Compat, kind: str, name: str) -> str:
    """Lines about a flag, field, gate, build or version; UsageError where the name is unknown, with the
    nearest one."""
    match kind:
        case "flag":
            # As it stands on a command line, with its value.
            return _both(compat, "flags", normal(name.partition("=")[0]), "--")
        case "field":
            return _both(compat, "fields", name, "")
        case "gate":
            return _gate(compat, name)
        case "build":
            return _build(compat, name)
        case "version":
            return _version(compat, name)
    raise UsageError(
        f"{kind!r} cannot be explained", hint="One of " + ", ".join((*KINDS, "network", "problem")) + "."
    )


def _both(compat: Compat, what: str, name: str, dashes: str) -> str:
    """The entry of kubelet and of kube-proxy; many names exist in both."""
    texts, names = [], set()
    for component, section in (("kubelet", f"kubelet_{what}"), ("kube-proxy", f"kube_proxy_{what}")):
        table: Mapping[str, Facts] = compat.section(section)
        names |= set(table)
        if name in table:
            texts.append(_entry(compat, f"{component} {dashes}{name}", table[name], stays=name in STAY_FLAGS))
    if not texts:
        right = compat.section("misspelled").get(name)
        raise _unknown(what[:-1], name, names, right)
    return "\n".join(texts)


def _entry(compat: Compat, title: str, entry: Facts, *, stays: bool) -> str:
    lines = [title, f"  in Kubernetes   {_span(compat, entry)}"]
    if "type" in entry:
        lines.append(f"  type            {entry['type']}")
    if "default" in entry:
        lines.append(f"  default         {entry['default']}")
    lines += [
        f"  default         {_shown(value)} (from {since} on)" for since, value in entry.get("defaults", ())
    ]
    if "field" in entry:
        stay = "; stays a flag, because the program reads it before the file" if stays else ""
        lines.append(f"  configuration   {entry['field']} (from {entry['field_since']} on){stay}")
    lines.append(
        f"  on Windows      {_ON_WINDOWS.get(entry.get('windows', ''), 'works, or no difference is known')}"
    )
    why, instead = compat.reason(entry.get("say", ""))
    if why:
        lines.append(f"  why             {why}")
    if instead:
        lines.append(f"  instead         {instead}")
    return "\n".join(lines)


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _span(compat: Compat, entry: Facts) -> str:
    oldest = compat.section("about")["oldest"]
    start = f"{entry['added']} or earlier" if entry["added"] == oldest else f"from {entry['added']} on"
    end = f"; removed in {entry['removed']}" if entry.get("removed") else ""
    leaving = (
        f"; deprecated in {entry['deprecated']}" if entry.get("leaving") and entry.get("deprecated") else ""
    )
    return f"{start}{leaving}{end}"


def _gate(compat: Compat, name: str) -> str:
    gates: Mapping[str, Facts] = compat.section("gates")
    entry = gates.get(name)
    if entry is None:
        raise _unknown("gate", name, gates)
    lines = [f"feature gate {name}"]
    for start, stage, default, locked in entry["stages"]:
        state = "on" if default else "off"
        lines.append(f"  from {start:<6} {stage:<11}{state}{', locked' if locked else ''}")
    if entry.get("removed"):
        lines.append(f"  removed in {entry['removed']}: the program stops if you set it")
    if entry.get("note"):
        lines.append(f"  {entry['note']}")
    return "\n".join(lines)


def _build(compat: Compat, name: str) -> str:
    builds: Mapping[str, Facts] = compat.section("builds")
    number = _build_number(builds, name)
    entry = builds.get(number)
    if entry is None:
        raise _unknown("build", name, [*builds, *BUILDS])
    lines = [
        f"{entry['name']} (10.0.{number})",
        f"  support ends    {entry['end_of_life']}",
        *([f"  mainstream      ends {entry['mainstream']}"] if "mainstream" in entry else ()),
        "  base images     "
        + ", ".join(f"{one}:{entry[one]}" for one in ("servercore", "nanoserver") if entry[one]),
    ]
    lines += [
        f"  Kubernetes {one}  {support(compat, Version.parse(one), int(number))}" for one in compat.minors()
    ]
    for feature in compat.section("features").values():
        able = "yes" if int(number) >= feature["build"] else "no"
        revision = feature.get("revisions", {}).get(number)
        needs = f", from 10.0.{number}.{revision[0]} ({revision[1] or 'update'})" if revision else ""
        lines.append(f"  {feature['name']}: {able}{needs}")
    return "\n".join(lines)


def _build_number(builds: Mapping[str, Facts], name: str) -> str:
    """The build that is meant by 20348, 10.0.20348.2762, 2022, ltsc2022, 1809 or "Windows Server 2022"."""
    for number, entry in builds.items():
        product = str(entry["name"])
        names = (
            product,
            product.rpartition(" ")[2],
            entry.get("os"),
            entry["nanoserver"],
            entry["servercore"],
        )
        if name.lower() in {str(one).lower() for one in names if one}:
            return number
    return name.removeprefix("10.0.").partition(".")[0]


def _version(compat: Compat, name: str) -> str:
    try:
        version = Version.parse(name)
    except ValueError as error:
        raise UsageError(str(error), hint="A version looks like 1.36 or 1.36.5.") from error
    oldest = compat.section("about")["oldest"]
    if minor_key(version.minor) < minor_key(oldest):
        raise UsageError(f"winboot's data lacks Kubernetes {version}", hint=f"The data begins with {oldest}.")
    facts: Mapping[str, Any] = compat.minor(version)
    names: Mapping[str, Facts] = compat.section("builds")
    lines = [f"Kubernetes {version} (data of {compat.as_of})"]
    if minor_key(version.minor) <= minor_key(compat.newest):
        if "like" not in facts:
            urgent = f" (urgent repairs only from {facts['maintenance']})" if "maintenance" in facts else ""
            lines.append(f"  released        {facts['released']}, ends {facts['end_of_life']}{urgent}")
        lines += _listed("Windows", [_lifecycle(compat, names[str(build)]) for build in facts["builds"]])
        lines += _listed("containerd", list(_containerd_lines(compat, facts)))
        if minor_key(version.minor) >= minor_key(compat.floor):
            lines.append(f"  winboot takes   containerd {_taken(compat, version)}")
        lines.append(f"  pause image     {facts['pause']}")
    if "like" not in facts and minor_key(version.minor) <= minor_key(compat.newest):
        patch = facts.get("last_patch") or facts.get("seen_patch")
        until = f", seen up to {compat.section('seen')['patches']}" if "last_patch" not in facts else ""
        lines.append(f"  newest patch    {patch}{until}")
    lines += _coming(compat, version)
    findings = [*check_kubernetes(compat, version), *faults_of_the_minor(compat, version)]
    lines.extend(f"  {finding.level:<15} {finding.reason}" for finding in findings)
    return "\n".join(lines)


def _listed(title: str, rows: list[str]) -> list[str]:
    """One row a line, the title before the first."""
    return [f"  {title if not n else '':<16}{row}" for n, row in enumerate(rows or ["none tested"])]


def _lifecycle(compat: Compat, build: Facts) -> str:
    """The product, and until when Microsoft supports it."""
    return f"{build['name']}: {_support_ends(compat, build)}"


def _support_ends(compat: Compat, build: Facts) -> str:
    end = build["end_of_life"]
    if end <= judged_on(compat):
        return f"ended {end}"
    if "mainstream" not in build:
        return f"until {end}"
    word = "ended" if build["mainstream"] <= judged_on(compat) else "until"
    return f"mainstream support {word} {build['mainstream']}, extended until {end}"


def _containerd_lines(compat: Compat, facts: Facts) -> Iterator[str]:
    """The lines that the minor is tested with, and when each ends; then those that the table does not name yet."""
    series: Mapping[str, Facts] = compat.section("containerd")
    for first in facts["containerd"]:
        line = series[Version.parse(first).minor]
        end = line["end_of_life"]
        state = f"ended {end}" if end <= judged_on(compat) else f"until {end}"
        yield f"{first}+: {state}" + (f"; LTS, {line['narrow']}" if "narrow" in line else "")
    if facts["containerd"] and _maintained(compat, facts):
        yield from (
            f"{line}: unknown; containerd's table does not list it for any Kubernetes minor yet"
            for line in unlisted_containerd(compat)
        )


def _maintained(compat: Compat, facts: Facts) -> bool:
    """Is the minor still maintained on the day that counts?"""
    return str(facts["end_of_life"]) > judged_on(compat)


def _taken(compat: Compat, version: Version) -> str:
    """winboot's own choice, and a maintained line where that of the choice has ended."""
    taken, kept = default_containerd(compat, version), maintained_containerd(compat, version)
    return taken if taken == kept else f"{taken}; its line has ended: {kept}"


def _coming(compat: Compat, version: Version) -> list[str]:
    """What is known of a minor before its sources are there."""
    facts: Facts = compat.section("coming").get(version.minor, {})
    if not facts or minor_key(version.minor) <= minor_key(compat.newest):
        return []
    changes = [f"  coming          {text}" for text, _ in facts["changes"]]
    return [f"  planned         {facts['planned']}", *changes]


def _unknown(kind: str, name: str, names: Iterable[str], right: str | None = None) -> UsageError:
    meant = right or nearest(name, names)
    return UsageError(f"winboot knows no {kind} {name!r}", hint=f"Did you mean {meant!r}?" if meant else "")

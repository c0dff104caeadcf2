"""Versions, Windows builds, containerd, crictl and images: which go together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from winboot.config.compat.age import judged_on
from winboot.config.compat.facts import Compat, Facts
from winboot.config.compat.finding import Finding, Level
from winboot.config.compat.version import Version, minor_key

Support = Literal["supported", "warned", "refused"]

BUILDS: Final[Mapping[str, int]] = {"2019": 17763, "2022": 20348, "2025": 26100}
_PAUSE_2025: Final = "registry.k8s.io/pause:3.10.2"
_UPSTREAM_PAUSE: Final = ("registry.k8s.io/pause", "k8s.gcr.io/pause", "gcr.io/google_containers/pause")
_OLD_PAUSE: Final = re.compile(r"[012]\.\d+(\.\d+)?|3\.0")


@dataclass(frozen=True, slots=True)
class UpdateNeed:
    """A Windows build needs at least this revision (the fourth part of its version) for something the profile wants."""

    build: int
    revision: int
    kb: str
    why: str


@dataclass(frozen=True, slots=True)
class BadUpdate:
    """Revisions of a build between `first` and `fixed` break something."""

    build: int
    first: int
    fixed: int
    kb: str
    fixed_kb: str
    what: str


_NO_PATCH: Final = 100


def check_kubernetes(
    compat: Compat,
    version: Version,
    *,
    traits: frozenset[str] = frozenset(),
    runtime: str = "containerd",
) -> list[Finding]:
    """Is this a version to make nodes of? `traits` (`l2bridge`, `dual-stack`) bring in patches that are bad
    for them."""
    about = f"Kubernetes {version}"
    if version.major != 1 or (version.patch or 0) >= _NO_PATCH:
        # The highest patch of any minor so far is 17 or so (kubernetes.io/releases/patch-releases); 2.0 is not announced.
        reason = "this version does not exist"
        return [Finding("error", "unsupported", about, reason, f"{compat.floor} to {compat.newest}", "")]
    if runtime == "docker":
        first = str(compat.section("docker")["shim"]["first"])
        if minor_key(version.minor) < minor_key(first):
            reason = "its API server has only certificates.k8s.io/v1beta1, but winboot approves by v1"
            source = compat.source("k8s-src")
            return [Finding("error", "unsupported", about, reason, f"{first} or later", source)]
    elif minor_key(version.minor) < minor_key(compat.floor):
        reason = "winboot supports nodes with containerd from Kubernetes " + compat.floor + " on"
        return [
            Finding(
                "error", "unsupported", about, reason, f"{compat.floor} or later", compat.source("k8s-eol")
            )
        ]
    findings = list(_age(compat, version, about))
    if version.patch is None:
        return findings
    for patch in compat.section("bad_patches"):
        if patch["level"] == "info":
            continue  # no patch of the minor is without it: nothing to be done about in a profile
        if not patch.get("builds") and (not patch.get("when") or patch["when"] in traits):
            findings.extend(_bad_patch(compat, patch, version))
    return findings


def faults_of_the_minor(compat: Compat, version: Version) -> list[Finding]:
    """Known faults that every patch of the version's minor has: worth knowing, and repaired in a later minor alone."""
    return [
        finding
        for patch in compat.section("bad_patches")
        if patch["level"] == "info"
        for finding in _bad_patch(compat, patch, version)
    ]


def check_build(compat: Compat, version: Version, build: int) -> list[Finding]:
    """May a machine of this Windows build be a node of this version? Also patches that are bad on this build alone."""
    findings = [finding for finding in [_build_support(compat, version, build)] if finding]
    for patch in compat.section("bad_patches"):
        if build in patch.get("builds", ()):
            findings.extend(_bad_patch(compat, patch, version))
    return findings


def support(compat: Compat, version: Version, build: int) -> Support:
    """`supported`, `warned` or `refused`, for tables."""
    finding = _build_support(compat, version, build)
    return "supported" if finding is None else "refused" if finding.level == "error" else "warned"


def check_skew(kubelet: Version, server: Version, *, component: str = "kubelet") -> list[Finding]:
    """May this kubelet (or kube-proxy) speak to that API server? Never newer; at most 3 minors older, 2
    before 1.28."""
    behind = server.minor_number - kubelet.minor_number
    allowed = 3 if server.at_least("1.28") else 2
    about = f"{component} {kubelet} with an API server {server}"
    source = "https://kubernetes.io/releases/version-skew-policy/"
    if behind < 0 or kubelet.major > server.major:
        reason = f"a {component} must not be newer than the API server"
        return [
            Finding(
                "error",
                "unsupported",
                about,
                reason,
                f"{server.minor} or older, or upgrade the server",
                source,
            )
        ]
    if behind > allowed:
        reason = f"a {component} may be at most {allowed} minors older than the API server"
        oldest = f"{server.major}.{server.minor_number - allowed} or later"
        return [Finding("error", "unsupported", about, reason, oldest, source)]
    return []


def check_containerd(compat: Compat, containerd: Version, version: Version) -> list[Finding]:
    """Does this containerd serve this Kubernetes on Windows?"""
    about = f"containerd {containerd} with Kubernetes {version.minor}"
    source = compat.source("containerd-releases")
    series: Mapping[str, Facts] = compat.section("containerd")
    facts = compat.minor(version)
    tested = [Version.parse(text) for text in facts["containerd"]]
    advice = " or ".join(f"{one} and later" for one in facts["containerd"]) or default_containerd(
        compat, version
    )
    oldest = (
        Version.parse(facts["containerd_minimum"])
        if "containerd_minimum" in facts
        else min(tested, default=containerd)
    )
    own = [one for one in tested if one.minor == containerd.minor]
    entry = series.get(containerd.minor)
    if own and containerd >= own[0]:
        findings: list[Finding] = []
    elif own:
        reason = f"Kubernetes {version.minor} is tested with {own[0]} and later"
        findings = [Finding("warning", "untested", about, reason, advice, source)]
    elif tested and containerd < oldest:
        reason = f"Kubernetes {version.minor} needs at least containerd {oldest}"
        findings = [Finding("error", "unsupported", about, reason, advice, source)]
    elif entry is None:
        reason = f"winboot's data of {compat.as_of} does not know this release line of containerd"
        findings = [Finding("warning", "newer-than-data", about, reason, advice, source)]
    else:
        unlisted = containerd.minor in unlisted_containerd(compat)
        reason = "containerd's table does not list this release line for any minor yet"
        if not unlisted:
            reason = "this pair is not in containerd's table"
        findings = [Finding("warning", "untested", about, reason, advice, source)]
    if entry and str(entry["end_of_life"]) <= judged_on(compat):
        reason = f"support of this release line ended on {entry['end_of_life']}"
        instead = maintained_containerd(compat, version)
        findings.append(Finding("warning", "end-of-life", about, reason, instead, compat.source("eol-date")))
    return findings


def check_crictl(crictl: Version, version: Version) -> list[Finding]:
    """crictl follows the Kubernetes minor."""
    if crictl.minor == version.minor:
        return []
    about = f"crictl {crictl} with Kubernetes {version.minor}"
    source = "https://github.com/kubernetes-sigs/cri-tools"
    return [
        Finding(
            "warning",
            "untested",
            about,
            "crictl must have the minor of Kubernetes",
            f"{version.minor}.0",
            source,
        )
    ]


def check_pause_image(compat: Compat, image: str, build: int, containerd: Version | None) -> list[Finding]:
    """Has the sandbox image a variant for this build? Images of other repositories are not judged. `containerd` is None with
    Docker, which runs no image of an older build."""
    repository, _, tag = image.rpartition(":")
    builds = _builds_of(compat, repository, tag)
    if builds is None or build in builds:
        return []
    about = f"pause image {image} on build {build}"
    source = compat.source("pause-changelog")
    if build > 20348 and 20348 in builds and containerd and has_stable_abi(compat, containerd):
        reason = "it has no variant for this build; its variant for 20348 needs process isolation"
        return [Finding("warning", "no-effect", about, reason, _PAUSE_2025, source)]
    reason = "it has no variant for this build, so pods would never start"
    fitting = [text for text, of in compat.section("pause").items() if build in of]
    instead = f"registry.k8s.io/pause:{fitting[-1]}" if fitting else ""
    return [Finding("error", "unsupported", about, reason, instead, source)]


def _builds_of(compat: Compat, repository: str, tag: str) -> list[int] | None:
    """The Windows builds that a pause image has a variant of; None for one of another repository, or unknown."""
    if not repository.endswith((*_UPSTREAM_PAUSE, "/kubernetes/pause")):
        return None
    known: Mapping[str, list[int]] = compat.section("pause")
    if tag not in known and repository.endswith(_UPSTREAM_PAUSE) and _OLD_PAUSE.fullmatch(tag):
        # Those of before the table were built for Linux alone (the changelog's 3.4 has the first for Windows).
        return []
    return known.get(tag)


def check_feature(compat: Compat, feature: str, version: Version, build: int) -> list[Finding]:
    """Can this build and version do it (`dsr`, `overlay`, `dual-stack`, …)? Needed updates come from `updates_needed`."""
    entry: Facts = compat.section("features")[feature]
    about, source = entry["name"], compat.source(entry["source"])
    added = entry.get("added_by_build", {}).get(str(build), entry["added"])
    if minor_key(version.minor) < minor_key(added):
        return [Finding("error", "not-yet", about, f"it exists from Kubernetes {added} on", "", source)]
    if build < entry["build"]:
        reason = f"build {build} cannot do it, only {entry['build']} and later: {entry['why']}"
        return [Finding("error", "unsupported", about, reason, "", source)]
    return []


def updates_needed(compat: Compat, features: tuple[str, ...], build: int) -> tuple[UpdateNeed, ...]:
    """The revisions a machine of this build must have for these features."""
    table: Mapping[str, Facts] = compat.section("features")
    needs = []
    for feature in features:
        revision = table[feature].get("revisions", {}).get(str(build))
        if revision:
            needs.append(UpdateNeed(build, revision[0], revision[1], table[feature]["why"]))
    return tuple(needs)


def bad_updates(compat: Compat, build: int) -> tuple[BadUpdate, ...]:
    """Revisions of this build that break containers."""
    return tuple(
        BadUpdate(build, one["first"], one["fixed"], one["kb"], one["fixed_kb"], one["what"])
        for one in compat.section("bad_updates")
        if one["build"] == build
    )


def default_containerd(compat: Compat, version: Version) -> str:
    """The newest patch of the newest line that the minor is tested with, of those still maintained if there
    are any. A minor that is too old for any has that of the oldest that has one."""
    series: Mapping[str, Facts] = compat.section("containerd")
    tested = compat.minor(version)["containerd"] or compat.minor(Version.parse(compat.floor))["containerd"]
    lines = sorted({Version.parse(one).minor for one in tested}, key=minor_key)
    kept = [line for line in lines if not _ended(compat, series[line])]
    return str(series[(kept or lines)[-1]]["latest"])


def maintained_containerd(compat: Compat, version: Version) -> str:
    """The default where its line is still maintained, or else the line that is maintained longest.

    Every minor is tested with some lines, and they may all end before it does (1.35). Its maker then says that each
    maintained containerd gets repairs for every Kubernetes (RELEASES.md, "Kubernetes Support").
    """
    series: Mapping[str, Facts] = compat.section("containerd")
    default = default_containerd(compat, version)
    if not _ended(compat, series[Version.parse(default).minor]):
        return default
    longest = max(series.values(), key=lambda entry: str(entry["end_of_life"]))
    return f"{longest['latest']}, whose release line is maintained until {longest['end_of_life']}"


def _ended(compat: Compat, entry: Facts) -> bool:
    """Has its maintainer given this line up by the date of the data?"""
    return str(entry["end_of_life"]) <= compat.as_of


def default_pause_image(compat: Compat, version: Version, build: int) -> str:
    """The sandbox image for this minor that has a variant of this build."""
    image = str(compat.minor(version)["pause"])
    tag = image.rpartition(":")[2]
    return image if build in compat.section("pause").get(tag, ()) else _PAUSE_2025


def missing_defaults(compat: Compat, containerd: Version) -> dict[str, object]:
    """Security settings that newer lines of containerd have by default and this version lacks: key -> value."""
    found = {}
    for row in compat.section("security_defaults"):
        if row["program"] != "containerd" or containerd.minor not in row["brought"]:
            continue  # whether another line knows the key is not known
        first = row["brought"][containerd.minor]
        if first is None or not containerd.at_least(first):
            found[row["setting"]] = row["value"]
    return found


def unlisted_containerd(compat: Compat) -> list[str]:
    """Maintained lines of containerd that its table names for no minor yet."""
    listed = {
        Version.parse(one).minor
        for minor in compat.section("minors").values()
        for one in minor.get("containerd", ())
    }
    series: Mapping[str, Facts] = compat.section("containerd")
    return [line for line, entry in series.items() if line not in listed and not _ended(compat, entry)]


def containerd_config_version(containerd: Version) -> Literal[2, 3]:
    """Which form of config.toml to write."""
    return 3 if containerd.major >= 2 else 2


def has_stable_abi(compat: Compat, containerd: Version) -> bool:
    """Does this containerd run images of an older build from 20348 on?"""
    entry = compat.section("containerd").get(containerd.minor)
    if entry is None:
        return containerd.major >= 2
    return "stable_abi" in entry and containerd.at_least(entry["stable_abi"])


def pull_limit(compat: Compat, containerd: Version) -> str:
    """How long the transfer service of this containerd may wait for the next byte of a Windows image, as a Go duration; empty
    where it does not pull. Upstream's 5 minutes end a pull that unpacks longer (containerd/containerd#13909); an image of
    2.3 GiB took 15 minutes (Azure/AKS#5919)."""
    known: Mapping[str, Facts] = compat.section("containerd")
    entry = known.get(containerd.minor, known[max(known, key=minor_key)])
    return str(entry.get("pull_limit", ""))


def uses_bin_dirs(compat: Compat, containerd: Version) -> bool:
    """Is the CNI program folder a list (`bin_dirs`, from 2.1) rather than `bin_dir`? Both together are an error."""
    entry = compat.section("containerd").get(containerd.minor)
    return containerd.at_least("2.1") if entry is None else bool(entry.get("bin_dirs"))


def _age(compat: Compat, version: Version, about: str) -> Iterator[Finding]:
    if minor_key(version.minor) > minor_key(compat.newest):
        reason = (
            f"it is newer than winboot's data of {compat.as_of}, which ends with {compat.newest}; winboot checks "
            f"flags, fields and gates as for {compat.newest}"
        )
        yield Finding(
            "warning", "newer-than-data", about, reason, "kubernetes.overlay: a file with the new facts"
        )
        return
    facts = compat.minor(version)
    if "like" in facts:
        reason = (
            f"winboot knows {version.minor} only from a node's programs (kubernetes.overlay), and checks builds, "
            f"pause image, containerd and configuration fields as for {facts['like']} (data of {compat.as_of})"
        )
        yield Finding(
            "warning", "newer-than-data", about, reason, "a newer winboot that has data of this minor"
        )
        return
    end = str(facts["end_of_life"])
    if end <= judged_on(compat):
        source = compat.source("k8s-eol")
        yield Finding("warning", "end-of-life", about, f"support of this minor ended on {end}", "", source)


def _bad_patch(compat: Compat, patch: Facts, version: Version) -> Iterator[Finding]:
    for first, fixed in patch["ranges"]:
        if Version.parse(first) <= version < Version.parse(fixed):
            about = f"{patch['component']} {version}"
            reason = f"{patch['what']} ({patch['id']}, fixed in {fixed})"
            level: Level = patch["level"]
            yield Finding(
                level, "known-bad", about, reason, _fixed_in(patch, version), compat.source(patch["source"])
            )
            return


def _fixed_in(patch: Facts, version: Version) -> str:
    """The fix on the version's own line, or the lowest one after it."""
    fixes = [Version.parse(fixed) for _, fixed in patch["ranges"]]
    own = [fix for fix in fixes if fix.minor == version.minor]
    return str(own[0] if own else min(fix for fix in fixes if fix > version))


def _build_support(compat: Compat, version: Version, build: int) -> Finding | None:
    names: Mapping[str, Facts] = compat.section("builds")
    facts = compat.minor(version)
    listed: list[int] = facts["builds"]
    if build in listed:
        return None
    name = names[str(build)]["name"] if str(build) in names else f"Windows build {build}"
    about = f"{name} with Kubernetes {version.minor}"
    source = compat.source(facts["sources"][-1])
    if build == BUILDS["2025"] and version.at_least("1.33"):
        reason = "Kubernetes lists this Windows from 1.35 on; earlier tests found open faults"
        return Finding("warning", "untested", about, reason, "1.35 or later", source)
    if build == BUILDS["2019"] and minor_key(version.minor) > max(
        minor_key(m) for m in _listing(compat, build)
    ):
        last = _listing(compat, build)[-1]
        reason = f"Kubernetes lists this Windows up to {last}; later minors are untested"
        return Finding("warning", "untested", about, reason, "Windows Server 2022 or 2025", source)
    reason = "Kubernetes lists " + ", ".join(names[str(one)]["name"] for one in listed)
    return Finding("error", "unsupported", about, reason, "", source)


def _listing(compat: Compat, build: int) -> list[str]:
    """The minors that list a build, oldest first."""
    minors: Mapping[str, Facts] = compat.section("minors")
    return [
        minor
        for minor in sorted(minors, key=minor_key)
        if build in compat.minor(Version.parse(minor))["builds"]
    ]

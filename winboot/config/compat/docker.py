"""Docker Engine on Windows: which Kubernetes it serves and how, the API of each version, and the keys of daemon.json."""

from __future__ import annotations

from collections.abc import Iterator

from winboot.config.compat.facts import Compat, Facts
from winboot.config.compat.finding import Finding
from winboot.config.compat.version import Version, minor_key


def has_dockershim(compat: Compat, version: Version) -> bool:
    """Whether the kubelet of this version speaks to Docker itself; later ones need cri-dockerd."""
    return minor_key(version.minor) <= minor_key(compat.section("docker")["shim"]["last"])


def default_engine(compat: Compat, version: Version) -> str:
    """The engine for this Kubernetes: the last line that dockershim was tested with, or the last before 29 for cri-dockerd."""
    part = "shim" if has_dockershim(compat, version) else "cri"
    return str(compat.section("docker")[part]["engine"])


def engine_row(compat: Compat, engine: Version) -> Facts:
    """What is known of an engine: the newest API version that it speaks (`api`) and the oldest that it takes (`lowest`)."""
    rows: Facts = compat.section("docker")["engines"]
    known = [first for first in rows if engine.at_least(first)]
    found: Facts = rows[max(known, key=minor_key) if known else min(rows, key=minor_key)]
    return found


def daemon_keys(compat: Compat, engine: Version) -> frozenset[str]:
    """The keys that dockerd takes in daemon.json on Windows; any other one stops it."""
    data: Facts = compat.section("docker")
    later = (key for key, first in data["later_keys"].items() if engine.at_least(first))
    return frozenset((*data["keys"], *later))


def check_docker(compat: Compat, engine: Version, version: Version) -> Iterator[Finding]:
    """Findings about a Docker Engine with this Kubernetes."""
    data: Facts = compat.section("docker")
    about, source = f"Docker {engine} with Kubernetes {version.minor}", compat.source(data["source"])
    oldest = min(data["engines"], key=minor_key)
    if not engine.at_least(oldest):
        reason = "winboot does not know the address and the hash of this version's zip file"
        yield Finding("error", "unsupported", about, reason, f"{oldest} or later", source)
    last = data["cri"]["last"]
    if minor_key(version.minor) > minor_key(last):
        reason = f"cri-dockerd has the libraries of Kubernetes {last}; later minors are untested"
        source = compat.source(data["cri"]["source"])
        yield Finding("warning", "untested", about, reason, f"{last} or older, or containerd", source)


def check_docker_build(compat: Compat, version: Version, build: int) -> Iterator[Finding]:
    """Findings about a Windows build for dockershim, which Kubernetes tested on Windows Server 2019."""
    shim: Facts = compat.section("docker")["shim"]
    if has_dockershim(compat, version) and build not in shim["builds"]:
        names: Facts = compat.section("builds")
        name = names[str(build)]["name"] if str(build) in names else f"Windows build {build}"
        reason = "winboot runs dockershim only on Windows Server 2019"
        about = f"{name} with Docker and Kubernetes {version.minor}"
        yield Finding("error", "unsupported", about, reason, "2019", compat.source("docs-os-1.17-1.20"))

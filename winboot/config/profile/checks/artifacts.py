"""Where programs come from, and their versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult

from winboot.config import compat, networks
from winboot.config.profile import sections
from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.checks.windows_path import check_path
from winboot.config.profile.values import web_address
from winboot.config.source import Complaint, PathParts, Wrong, nearest


def check(draft: Draft) -> Iterator[Complaint]:
    """An address that answers, and the versions that the network needs."""
    artifacts = draft.artifacts
    if artifacts is None:
        return
    yield from _artifact_source(draft, artifacts.source)
    if artifacts.crictl and draft.version:
        yield from draft.found(("artifacts", "crictl"), compat.check_crictl(artifacts.crictl, draft.version))
    for name, url in artifacts.urls.items():
        yield from _own_address(draft, name, url)
    for key, sha256 in artifacts.sha256.items():
        name, version, *_ = (*key.split("/", 2), "")
        findings = compat.check_pin(draft.facts, name, version, sha256 or "")
        yield from draft.found(("artifacts", "sha256", key), findings)
    if draft.solution:
        yield from _network_artifacts(draft, artifacts, draft.solution)


def _network_artifacts(
    draft: Draft, artifacts: sections.Artifacts, solution: networks.Network
) -> Iterator[Complaint]:
    """Versions that the solution needs; and those that would choose another form, which this one is not."""
    for one in solution.downloads:
        if not one.version and one.key not in artifacts.named:
            wrong = f"{one.key} is missing"
            yield draft.at(("artifacts",), wrong, f"{one.key}: the version of {one.title}", key=True)
        version = getattr(artifacts, one.key)
        if isinstance(version, compat.Version):
            findings = compat.check_line(draft.facts, one.name, one.title, version)
            yield from draft.found(("artifacts", one.key), findings)
    for one in solution.downloads:
        entry = draft.facts.section("artifacts")[one.name]
        if entry.get("unpublished") and artifacts.source == "upstream" and one.name not in artifacts.urls:
            wrong = f"no project publishes {one.title} for Windows"
            expected = f"urls: {{{one.name}: https://…}}, the address of your build, or a mirror as source"
            yield draft.at(("artifacts",), wrong, expected, key=True)
    for form in networks.NETWORKS:
        if form.chosen_by not in artifacts.named or form is solution:
            continue
        path: PathParts = ("artifacts", form.chosen_by)
        if form.cni != solution.cni:
            yield draft.at(path, f"the network is {solution.cni}", "no such key", key=True)
        else:
            wrong = f"the {solution.owners.binaries} installs the network's programs itself"
            yield draft.at(path, wrong, f"network.managed_by: {form.managed_by}, or no such key", key=True)


def _own_address(draft: Draft, name: str, url: str) -> Iterator[Complaint]:
    path: PathParts = ("artifacts", "urls", name)
    known = list(draft.facts.section("artifacts"))
    if name not in known:
        yield draft.at(path, repr(name), " | ".join(known), nearest(name, known), key=True)
    try:
        address = web_address(url.replace("{version}", "1.0.0"), "an https:// address")
    except Wrong as error:
        yield draft.at(path, error.wrong, error.expected, error.did_you_mean)
        return
    if address.path.endswith("/") or not address.path:
        yield draft.at(path, f"{url} is not the address of a file", "the address of the file itself")
    yield from _answering(draft, path, address)


def _artifact_source(draft: Draft, source: str) -> Iterator[Complaint]:
    path: PathParts = ("artifacts", "source")
    if source == "upstream":
        return
    if source.startswith("\\\\") or re.match(r"[A-Za-z]:\\", source):
        yield from check_path(draft, path, source)
        return
    try:
        url = web_address(source, "upstream, an https:// address or a folder that the node reads")
    except Wrong as error:
        meant = nearest(source, ["upstream"])
        yield draft.at(path, error.wrong, error.expected, meant or error.did_you_mean)
        return
    yield from _answering(draft, path, url)


def _answering(draft: Draft, path: PathParts, url: SplitResult) -> Iterator[Complaint]:
    """Hosts that are gone, and addresses without encryption."""
    dead = draft.facts.section("dead_hosts")
    name = url.hostname or ""
    if any(name == host or name.endswith(f".{host}") for host in dead["hosts"]):
        yield draft.at(
            path, f"{url.hostname} no longer answers: {dead['why']}", "upstream, or your own mirror"
        )
    if url.scheme == "http":
        yield draft.at(
            path, "downloads are not encrypted; only the pinned hashes protect them", "https://", warning=True
        )

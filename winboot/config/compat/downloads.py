"""Downloads that differ by version: members of an archive, and how its programs are called.

An entry of `artifacts` with `lines` has a row for each minor that winboot knows how to run. A row may have `members` of
its own, `calls` (part of a command -> words), and `assumed` where its archive was not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from winboot.config.compat.facts import Compat, Facts, shipped_file
from winboot.config.compat.finding import Finding
from winboot.config.compat.version import Version, minor_key

NO_LINE: Final[Facts] = {}


def proposed(name: str) -> str:
    """The version that winboot takes, or `winboot init` writes, where a profile names none."""
    return str(shipped_file("artifacts")["artifacts"][name]["proposed"])


def line_of(compat: Compat, name: str, version: str) -> Facts:
    """The row of a version's minor; empty for a download without lines, or a minor that has none."""
    lines: Mapping[str, Facts] = compat.section("artifacts")[name].get("lines", NO_LINE)
    return lines.get(Version.parse(version).minor, NO_LINE) if lines else NO_LINE


def members(compat: Compat, name: str, version: str) -> Mapping[str, str]:
    """Program -> path inside the archive of this version."""
    entry: Facts = compat.section("artifacts")[name]
    found: Mapping[str, str] = line_of(compat, name, version).get("members", entry["members"])
    return found


def check_line(compat: Compat, name: str, title: str, version: Version) -> list[Finding]:
    """Does winboot know how to run this version of a download that has lines?"""
    lines: Mapping[str, Facts] = compat.section("artifacts")[name].get("lines", NO_LINE)
    if not lines:
        return []
    about = f"{title} {version}"
    known = sorted(lines, key=minor_key)
    line = lines.get(version.minor)
    if line is None:
        reason = f"winboot can use {title} {known[0]} to {known[-1]}; others have other programs or flags"
        source = compat.source(lines[known[0]]["source"])
        return [Finding("error", "unsupported", about, reason, f"{known[0]} to {known[-1]}", source)]
    if "assumed" in line:
        reason = f"winboot assumes the programs of this version: {line['assumed']}"
        return [Finding("warning", "untested", about, reason, "", compat.source(line["source"]))]
    return []


def check_pin(compat: Compat, name: str, version: str, sha256: str) -> Iterator[Finding]:
    """A warning where the pinned hash is of a file that its publisher replaced after the release."""
    entry: Facts = compat.section("artifacts").get(name, NO_LINE)
    change = entry.get("replaced", NO_LINE).get(version, NO_LINE)
    # Of some files only the beginnings of both hashes are recorded.
    if change and sha256.startswith(change["before"]):
        reason = (
            f"the publisher replaced this file on {change['replaced']}: its hash was {sha256} from "
            f"{change['released']} on, and is {change['after']} now"
        )
        instead = "compare both files, then run `winboot init --renew`"
        yield Finding(
            "warning", "known-bad", f"{name} {version}", reason, instead, compat.source(change["source"])
        )

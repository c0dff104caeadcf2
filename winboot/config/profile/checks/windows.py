"""What is set in Windows itself: features, names, ports, fixes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from winboot.config.profile import sections
from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.checks.windows_path import check_path
from winboot.config.profile.values import host_name
from winboot.config.source import Complaint, PathParts, Wrong, nearest

_NODE_PORTS: Final = range(30000, 32768)

# A time server as w32time takes it: a host and perhaps flags (0x8: client mode).
_TIME_FLAGS: Final = re.compile(r"0x[0-9A-Fa-f]{1,2}")


def check(draft: Draft) -> Iterator[Complaint]:
    """Features, names of hosts, ports and fixes that Windows takes."""
    windows = draft.windows
    if windows is None:
        return
    if "Containers" not in windows.features:
        yield draft.at(("windows", "features"), "no container starts without Containers", "add Containers")
    for index, feature in enumerate(windows.features):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", feature):
            yield draft.at(
                ("windows", "features", index), repr(feature), "a name that Get-WindowsFeature prints"
            )
    yield from _names_of_hosts(draft, windows)
    if windows.features_source is not None:
        yield from check_path(draft, ("windows", "features_source"), windows.features_source)
    ports = windows.dynamic_ports
    if ports is not None:
        yield from _dynamic_ports(draft, ports, windows.excluded_ports)
    yield from _excluded_ports(draft, windows.excluded_ports)
    fixes = draft.facts.section("fixes")
    for index, fix in enumerate(windows.known_fixes):
        if fix not in fixes:
            yield draft.at(
                ("windows", "known_fixes", index), repr(fix), " | ".join(fixes), nearest(fix, fixes)
            )
        elif fix == "tcp-keepalive" and windows.keepalive is not None:
            wrong = f"{fix} sets the same values as windows.keepalive"
            yield draft.at(("windows", "known_fixes", index), wrong, "only one of the two keys")


def _names_of_hosts(draft: Draft, windows: sections.Windows) -> Iterator[Complaint]:
    for index, server in enumerate(windows.time_servers):
        name, comma, flags = server.partition(",")
        path: PathParts = ("windows", "time_servers", index)
        try:
            host_name(name)
        except Wrong as error:
            yield draft.wrong(path, error)
            continue
        if comma and not _TIME_FLAGS.fullmatch(flags):
            yield draft.at(path, f"{server!r} has unknown flags", "a host, or a host with flags such as ,0x8")
    for index, suffix in enumerate(windows.dns_suffixes):
        try:
            host_name(suffix)
        except Wrong as error:
            yield draft.wrong(("windows", "dns_suffixes", index), error)


def _dynamic_ports(
    draft: Draft, ports: sections.DynamicPorts, excluded: tuple[sections.ExcludedPorts, ...]
) -> Iterator[Complaint]:
    path: PathParts = ("windows", "dynamic_ports")
    last = ports.start + ports.count - 1
    if last > 65535:
        yield draft.at(
            (*path, "count"), f"{ports.start} and {ports.count} ports end at {last}", "at most 65535"
        )
    # A range that reaches below them is large, and harmless where clients get none of them.
    if ports.start < _NODE_PORTS.stop and last >= _NODE_PORTS.start and not _keeps_node_ports(excluded):
        wrong = f"{ports.start}-{last} overlaps the NodePorts 30000-32767"
        expected = "a range from 32768 on, such as 33000, or {start: 30000, count: 2768} in excluded_ports"
        yield draft.at((*path, "start"), wrong, expected)


def _keeps_node_ports(excluded: tuple[sections.ExcludedPorts, ...]) -> bool:
    covered = {
        protocol
        for one in excluded
        if one.start <= _NODE_PORTS.start and one.start + one.count >= _NODE_PORTS.stop
        for protocol in _protocols(one)
    }
    return covered == {"tcp", "udp"}


def _protocols(ports: sections.ExcludedPorts) -> tuple[str, ...]:
    return ("tcp", "udp") if ports.protocol is None else (ports.protocol,)


def _excluded_ports(draft: Draft, excluded: tuple[sections.ExcludedPorts, ...]) -> Iterator[Complaint]:
    seen: list[tuple[str, range]] = []
    for index, one in enumerate(excluded):
        path: PathParts = ("windows", "excluded_ports", index)
        ports = range(one.start, one.start + one.count)
        if ports.stop > 65536:
            wrong = f"{one.start} and {one.count} ports end at {ports.stop - 1}"
            yield draft.at((*path, "count"), wrong, "at most 65535")
        # Windows takes no range that shares a port with another one.
        for protocol in _protocols(one):
            if any(known == protocol and ports.start < b.stop and b.start < ports.stop for known, b in seen):
                wrong = f"{protocol} {ports.start}-{ports.stop - 1} overlaps another range of this list"
                yield draft.at((*path, "start"), wrong, "ranges that share no port")
            seen.append((protocol, ports))

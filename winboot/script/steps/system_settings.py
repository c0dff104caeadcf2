"""Settings of Windows that a node wants: page file, long paths, crash dumps, power, time, updates, known fixes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step

_CRASH_DUMPS: Final = {"complete": 1, "kernel": 2, "small": 3, "automatic": 7}
_POWER_PLANS: Final = {"high-performance": "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"}


def _setting(
    path: str, name: str, value: int | str, reason: str, *, kind: str = "DWord", reboot: bool = False
) -> dict[str, object]:
    return {"path": path, "name": name, "value": value, "kind": kind, "reboot": reboot, "reason": reason}


def _settings(spec: NodeSpec) -> Iterator[dict[str, object]]:
    windows = spec.windows
    if windows.long_paths is not None:
        yield _setting(
            r"SYSTEM\CurrentControlSet\Control\FileSystem",
            "LongPathsEnabled",
            int(windows.long_paths),
            "paths in image layers and volume mounts can be longer than 260 characters",
        )
    if windows.crash_dump is not None:
        crash_control = r"SYSTEM\CurrentControlSet\Control\CrashControl"
        dump = _CRASH_DUMPS[windows.crash_dump]
        yield _setting(
            crash_control, "CrashDumpEnabled", dump, "Windows dumps memory at a stop error", reboot=True
        )
        yield _setting(crash_control, "AutoReboot", 1, "a node restarts by itself after a stop error")
    if windows.keepalive is not None:
        parameters = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters"
        yield _setting(
            parameters,
            "KeepAliveTime",
            windows.keepalive.time_ms,
            "load balancers drop idle connections long before Windows' default of two hours",
            reboot=True,
        )
        yield _setting(
            parameters,
            "KeepAliveInterval",
            windows.keepalive.interval_ms,
            "Windows detects a lost peer within seconds",
            reboot=True,
        )
    if windows.dns_suffixes:
        yield _setting(
            r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters",
            "SearchList",
            ",".join(windows.dns_suffixes),
            "Windows appends these DNS suffixes to short names",
            kind="String",
        )
    if windows.update_hold:
        yield _setting(
            r"SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU",
            "NoAutoUpdate",
            1,
            "Windows Update restarts the node without a drain, at a time of its own",
        )
    for fix in spec.fixes:
        yield _setting(
            fix.key.removeprefix("HKLM\\"),
            fix.name,
            fix.value,
            f"{fix.pack}: {fix.reason} ({fix.source})",
            kind=fix.kind,
            reboot=fix.reboot,
        )


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    plan = spec.windows.power_plan
    return {
        "settings": list(_settings(spec)),
        "page_file_mib": spec.windows.page_file_mib,
        "power_plan": None if plan is None else _POWER_PLANS[plan],
        "time_servers": list(spec.windows.time_servers),
    }


def _leaves(spec: NodeSpec) -> Mapping[str, Sequence[str]]:
    windows = spec.windows
    values = [rf"HKLM\{one['path']}\{one['name']} = {one['value']}" for one in _settings(spec)]
    if windows.page_file_mib == "system":
        page_file = "managed by Windows, if the machine has no page file"
    else:
        page_file = rf"C:\pagefile.sys, {windows.page_file_mib} MiB"
    time = [*windows.time_servers, "service w32time automatic"] if windows.time_servers else []
    return {
        "registry values": values,
        "page file": [page_file],
        "power plan": [] if windows.power_plan is None else [windows.power_plan],
        "time from": time,
    }


SYSTEM_SETTINGS = Step(
    name="system-settings",
    why="wrong time, no page file or surprise updates make a node fail in ways that are hard to trace",
    inputs=_inputs,
    leaves=_leaves,
    needs=("node-preflight", "download-sources"),
    identity=False,
)

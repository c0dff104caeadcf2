"""Settings of Windows that a node wants: page file, long paths, crash dumps, power, time, updates, known fixes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.steps.bench import Bench
from tests.steps.builders import a_spec, a_spec_of
from winboot.config.compat import load
from winboot.config.compat.platform import BUILDS
from winboot.config.node_spec import NodeSpec, RegistryFix
from winboot.script.steps.system_settings import SYSTEM_SETTINGS


def settings(**windows: str) -> dict[str, dict]:
    spec = a_spec(**{"update_hold: false": "\n  ".join(f"{key}: {value}" for key, value in windows.items())})
    return {one["name"]: one for one in SYSTEM_SETTINGS.inputs(spec)["settings"]}


def test_every_registry_value_stands_beside_its_reason():
    found = settings(
        update_hold="true", long_paths="true", crash_dump="kernel", dns_suffixes="[corp.example]"
    )

    assert all(one["reason"] for one in found.values())
    assert found["LongPathsEnabled"]["value"] == 1
    assert found["NoAutoUpdate"]["path"].startswith("SOFTWARE\\Policies")
    assert found["SearchList"] | {"reason": ""} == {
        "path": r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters",
        "name": "SearchList",
        "value": "corp.example",
        "kind": "String",
        "reboot": False,
        "reason": "",
    }


def test_a_crash_dump_setting_takes_a_restart():
    found = settings(crash_dump="kernel")

    assert found["CrashDumpEnabled"]["value"] == 2
    assert found["CrashDumpEnabled"]["reboot"] is True


def test_keepalive_is_said_in_milliseconds_and_takes_a_restart():
    found = settings(keepalive="{interval_ms: 2000}")

    values = {name: (found[name]["value"], found[name]["reboot"]) for name in found}
    assert values == {"KeepAliveTime": (60000, True), "KeepAliveInterval": (2000, True)}


def test_a_profile_that_says_nothing_of_them_sets_no_registry_value():
    assert SYSTEM_SETTINGS.inputs(a_spec())["settings"] == []


STEP = "system-settings"


def a_bench(**windows: str) -> Bench:
    return Bench(
        spec=a_spec(
            **{"update_hold: false": "\n  ".join(f"{key}: {value}" for key, value in windows.items())}
        )
    )


def test_a_profile_that_asks_for_nothing_finds_nothing_on_a_fresh_machine(bench: Bench):
    assert bench.run(STEP).states == {STEP: "ok"}


def test_settings_without_a_restart_are_changed_at_once_and_undone():
    bench = a_bench(update_hold="true", long_paths="true", power_plan="high-performance")

    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    bench.undo(STEP)
    assert len(bench.look(STEP).differences(STEP)) == 3


def test_a_page_file_of_a_fixed_size_takes_a_restart():
    bench = Bench(spec=a_spec(**{"page_file_mib: system": "page_file_mib: 8192"}))

    assert bench.run(STEP).ended == "reboot"
    bench.reboot()
    assert bench.run(STEP).states == {STEP: "ok"}


def test_time_servers_are_set_and_the_service_runs():
    bench = a_bench(time_servers="[time.corp.example]")

    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    parameters = r"SYSTEM\CurrentControlSet\Services\W32Time\Parameters"
    assert bench.registry(parameters, "NtpServer") == "time.corp.example,0x8"


def test_keepalive_is_set_with_a_restart_and_put_back_by_undo():
    bench = a_bench(keepalive="{}")
    parameters = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters"

    assert bench.run(STEP).ended == "reboot"
    bench.reboot()
    assert bench.run(STEP).states == {STEP: "ok"}
    assert (bench.registry(parameters, "KeepAliveTime"), bench.registry(parameters, "KeepAliveInterval")) == (
        60000,
        1000,
    )
    bench.undo(STEP)
    assert bench.registry(parameters, "KeepAliveTime") is None


def test_a_domain_member_keeps_the_time_source_of_its_domain():
    bench = a_bench(time_servers="[time.corp.example]")
    bench.machine.power.join_domain("corp.example", netbios="CORP")

    assert bench.run(STEP).states == {STEP: "ok"}


def test_what_a_group_policy_may_hold_is_reported_on_a_domain_member_and_left_alone():
    bench = a_bench(update_hold="true")
    bench.machine.power.join_domain("corp.example", netbios="CORP")

    told = bench.run(STEP)

    (difference,) = told.step(STEP)["differences"]
    assert (told.states, difference["policy"]) == ({STEP: "ok"}, True)
    assert bench.registry(r"SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU", "NoAutoUpdate") is None


def with_all_fixes(release: Any) -> NodeSpec:
    """A node that opts in to every pack for its build."""
    spec, packs = a_spec_of("minimal", release), load().section("fixes")
    fixes = [
        RegistryFix(pack=name, source=pack["source"], **value)
        for name, pack in packs.items()
        if BUILDS[release] in pack["builds"]
        for value in pack["values"]
    ]
    return replace(spec, fixes=tuple(fixes))


RELEASES: tuple[Any, ...] = ("2019", "2022", "2025")


@pytest.mark.parametrize("release", RELEASES)
def test_every_known_fix_of_a_build_is_set_and_undone_on_it(release: Any):
    spec = with_all_fixes(release)
    bench = Bench(release=release, spec=spec)
    before = {(one["path"], one["name"]): bench.registry(one["path"], one["name"]) for one in wanted(spec)}

    told = bench.run(STEP)
    if told.ended == "reboot":
        bench.reboot()
    again = bench.run(STEP)

    assert again.states == {STEP: "ok"}
    for one in wanted(spec):
        assert bench.registry(one["path"], one["name"]) == one["value"], one["reason"]
    bench.undo(STEP)
    assert {key: bench.registry(*key) for key in before} == before


def wanted(spec: NodeSpec) -> list[dict[str, Any]]:
    return list(SYSTEM_SETTINGS.inputs(spec)["settings"])


def test_crash_dumps_and_the_suffix_list_are_set_with_one_restart_and_undone():
    bench = a_bench(crash_dump="kernel", dns_suffixes="[corp.example, lab.example]")

    assert bench.run(STEP).ended == "reboot"
    bench.reboot()
    assert bench.run(STEP).states == {STEP: "ok"}
    assert bench.registry(r"SYSTEM\CurrentControlSet\Control\CrashControl", "CrashDumpEnabled") == 2
    assert (
        bench.registry(r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters", "SearchList")
        == "corp.example,lab.example"
    )
    bench.undo(STEP)
    assert len(bench.look(STEP).differences(STEP)) == 2


@pytest.mark.parametrize(
    ("kind", "data"),
    [("String", "1"), ("QWord", 1), ("MultiString", ["1"]), ("ExpandString", "1")],
)
def test_a_value_of_the_wrong_kind_is_a_difference_and_gets_the_right_one(kind: str, data: Any):
    """`reg add` writes a text by default, and Windows reads no DWord there."""
    bench = a_bench(long_paths="true")
    key = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\FileSystem"
    bench.machine.registry.set(key, "LongPathsEnabled", kind, data)

    (found,) = bench.look(STEP).differences(STEP).values()

    assert found == (f"1 (as {kind}, not DWord)", "1")
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    bench.undo(STEP)
    assert bench.registry(r"SYSTEM\CurrentControlSet\Control\FileSystem", "LongPathsEnabled") == data

"""Flags, fields and gates: what each version says to them on Windows."""

from __future__ import annotations

import pytest

from tests.every import assert_none_wrong, untrue
from winboot.config.compat import Version, check_field, check_flag, check_gate, load, move_flags
from winboot.config.compat.flags import Component, field_exists, flag_exists, parse_value
from winboot.config.compat.version import minor_key

FACTS = load()
MINORS = FACTS.minors()
# A value each type takes, so that only the name is judged.
VALUES = {
    "bool": "true",
    "int": "1",
    "float": "1",
    "list": "",
    "map": "a=b",
    "thresholds": "memory.available<1Gi",
    "gates": "",
    "taints": "os=windows:NoSchedule",
    "duration": "10s",
    "ip": "10.0.0.1",
    "text": "",
}


def _all_flags() -> list[tuple[Component, str]]:
    return [("kubelet", name) for name in FACTS.section("kubelet_flags")] + [
        ("kube-proxy", name) for name in FACTS.section("kube_proxy_flags")
    ]


def _entry(component: Component, flag: str) -> dict[str, str]:
    section = "kubelet_flags" if component == "kubelet" else "kube_proxy_flags"
    return dict(FACTS.section(section)[flag])


def test_the_data_knows_all_flags_fields_and_gates_of_the_sources() -> None:
    """As many as were counted in the sources of Kubernetes 1.14 to 1.37; ten gates are those of client-go, which each
    component takes too (pkg/features/client_adapter.go).
    """
    assert len(FACTS.section("kubelet_flags")) == 204
    assert len(FACTS.section("kube_proxy_flags")) == 79
    assert len(FACTS.section("gates")) == 503
    assert len(FACTS.section("kubelet_fields")) == 153
    assert MINORS[0] == "1.20"
    assert MINORS[-1] == "1.37"


def test_every_flag_gets_one_verdict_that_agrees_with_its_life() -> None:
    """Gone and future flags are errors, Linux ones too; the others are taken, perhaps with a warning."""
    assert_none_wrong(
        {
            f"{component} --{flag} in {minor}": _verdict_against_life(component, flag, minor)
            for minor in MINORS
            for component, flag in _all_flags()
        }
    )


def _verdict_against_life(component: Component, flag: str, minor: str) -> list[str]:
    version, entry = Version.parse(minor), _entry(component, flag)
    gone = bool(entry.get("removed")) and minor_key(entry["removed"]) <= minor_key(minor)
    future = minor_key(entry["added"]) > minor_key(minor)
    found = check_flag(FACTS, component, flag, VALUES[entry["type"]], version)
    ids = {one.id for one in found if one.level == "error"}
    exists = not gone and not future and entry.get("windows") != "linux_only"
    return untrue(
        gone=("removed" in ids) == gone,
        future=("not-yet" in ids) == (future and not gone),
        exists=flag_exists(FACTS, component, flag, version) == exists,
        explained=all(one.reason and one.about for one in found),
    )


def test_a_moved_flag_lands_in_a_field_that_the_version_has() -> None:
    """Whatever flag exists either stays a flag or becomes an existing field."""
    assert_none_wrong(
        {
            f"{component} --{flag} in {version}": _lost(component, flag, version)
            for version in map(Version.parse, MINORS)
            for component, flag in _all_flags()
            if flag_exists(FACTS, component, flag, version)
        }
    )


def _lost(component: Component, flag: str, version: Version) -> list[str]:
    entry = _entry(component, flag)
    moved = move_flags(FACTS, component, {flag: VALUES[entry["type"]]}, version)
    if flag in moved.flags:
        return untrue(no_field=moved.fields == {})
    top = entry["field"].partition(".")[0]
    return untrue(field_exists=field_exists(FACTS, component, top, version), field=top in moved.fields)


def test_values_take_the_type_their_flag_has() -> None:
    """Text of a command line becomes what a configuration file holds."""
    assert parse_value("list", "10.96.0.10, 10.96.0.11") == ["10.96.0.10", "10.96.0.11"]
    assert parse_value("thresholds", "memory.available<500Mi,nodefs.available<10%") == {
        "memory.available": "500Mi",
        "nodefs.available": "10%",
    }
    assert parse_value("taints", "os=windows:NoSchedule,x:NoExecute") == [
        {"key": "os", "value": "windows", "effect": "NoSchedule"},
        {"key": "x", "value": "", "effect": "NoExecute"},
    ]
    assert parse_value("gates", "A=true,B=false") == {"A": True, "B": False}


@pytest.mark.parametrize("name", ["pod_infra_container_image", "--pod-infra-container-image"])
def test_a_flag_is_found_with_underscores_and_with_dashes(name: str) -> None:
    """The programs take both, so do we."""
    (found,) = check_flag(FACTS, "kubelet", name, "x", Version.parse("1.35.0"))

    assert found.id == "removed"
    assert found.instead == "runtime.pause_image"


@pytest.mark.parametrize(
    ("gate", "value", "minor", "expected"),
    [
        ("WinDSR", True, "1.32", "info"),
        ("WinDSR", True, "1.33", None),
        ("WinDSR", False, "1.34", "error"),
        ("WinDSR", True, "1.34", "warning"),
        ("IPv6DualStack", True, "1.24", "warning"),
        ("IPv6DualStack", True, "1.25", "error"),
        ("WindowsHostProcessContainers", True, "1.27", "warning"),
        ("WindowsHostProcessContainers", True, "1.28", "error"),
        ("WindowsGracefulNodeShutdown", True, "1.31", "error"),
        ("WindowsGracefulNodeShutdown", True, "1.34", None),
        ("NodeLogQuery", True, "1.30", None),
        ("WindowsHostNetwork", True, "1.33", "warning"),
        ("NoSuchGate", True, "1.36", "error"),
    ],
)
def test_a_gate_is_judged_by_its_stage(gate: str, value: bool, minor: str, expected: str | None) -> None:
    """Unknown, removed and contradicted gates stop a program; the rest gets a warning or passes."""
    found = check_gate(FACTS, "kube-proxy", gate, value, Version.parse(minor))

    assert [one.level for one in found] == ([expected] if expected else [])


# pkg/features/client_adapter.go adds those of client-go to the registry of every component (seen in a real 1.36.2).
CLIENT_GATES = (
    "AtomicFIFO",
    "ClientsAllowCARotation",
    "ClientsAllowCBOR",
    "ClientsAllowTLSCacheGC",
    "ClientsPreferCBOR",
    "InOrderInformers",
    "InOrderInformersBatchProcess",
    "InformerResourceVersion",
    "UnlockWhileProcessingFIFO",
    "WatchListClient",
)


@pytest.mark.parametrize("component", ["kubelet", "kube-proxy"])
def test_a_gate_of_the_client_library_is_known(component: Component) -> None:
    """They were refused as "no kubelet knows it"."""
    found = {gate: check_gate(FACTS, component, gate, True, Version.parse("1.36.2")) for gate in CLIENT_GATES}

    assert_none_wrong({gate: [one for one in own if one.level == "error"] for gate, own in found.items()})


def test_a_null_in_a_configuration_is_not_judged_as_a_value() -> None:
    """It removes one of winboot's fields; only the name must exist."""
    version = Version.parse("1.30.0")

    assert check_field(FACTS, "kubelet", {"cgroupsPerQOS": None}, version) == []
    assert check_field(FACTS, "kubelet", {"cgroupPerQOS": None}, version) != []

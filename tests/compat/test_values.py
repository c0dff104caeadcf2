"""Values of configuration fields: what the decoder and the validation of kubelet and kube-proxy take, and what not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winboot.config.compat import Version, check_field, check_flag, check_values, load
from winboot.config.compat.flags import Component
from winboot.config.compat.values import seconds, wrong_values

FACTS = load()
VERSION = Version.parse("1.36.2")

# Field, a value it takes, a value it does not take, and what the complaint says of the second.
ROWS: list[tuple[str, Any, Any, str]] = [
    ("maxPods", 60, "sixty", "a whole number of at least 0"),
    ("maxPods", 0, -1, "a whole number of at least 0"),
    ("maxPods", 1, True, "a whole number"),
    ("maxPods", 1, 2**31, "a whole number"),
    ("maxPods", 1, "110", "did you mean 110"),
    ("port", 10250, 65536, "from 0 to 65535"),
    ("imageGCHighThresholdPercent", 100, 101, "from 0 to 100"),
    ("containerLogMaxFiles", 2, 1, "of at least 2"),
    ("memoryThrottlingFactor", 0.9, 1.5, "a number from 0 to 1"),
    ("serializeImagePulls", False, "no", "did you mean false"),
    ("syncFrequency", "1m", "1 minute", "did you mean 1m"),
    ("syncFrequency", "1h30m0.5s", 60, "did you mean 60s"),
    ("syncFrequency", "0s", "10", "a duration"),
    ("syncFrequency", "1ms", "9999999999h", "a duration"),
    ("containerLogMonitorInterval", "3s", "1s", "at least 3s"),
    (
        "crashLoopBackOff",
        {"maxContainerRestartPeriod": "300s"},
        {"maxContainerRestartPeriod": "10m"},
        "to 300s",
    ),
    ("systemReserved", {"memory": "2Gi"}, {"memory": "2 GB"}, "did you mean 2G"),
    ("systemReserved", {"cpu": "500m", "pid": "100"}, {"cpu": 1}, 'in quotes: "1"'),
    ("kubeReserved", {"ephemeral-storage": "1e9"}, {"storage": "1Gi"}, "cpu | memory"),
    ("systemReserved", {"cpu": "0"}, {"cpu": "-1"}, "not negative"),
    ("evictionHard", {"memory.available": "10%"}, {"memory.available": "110%"}, "a percentage up to 100%"),
    ("evictionHard", {"nodefs.available": "0%"}, {"nodefs.available": "0"}, "0% turns it off"),
    ("evictionHard", {"imagefs.available": "15.5%"}, {"memory": "1Gi"}, "unknown name 'memory'"),
    ("evictionMinimumReclaim", {"memory.available": "0"}, {"memory.available": "0%"}, "above 0%"),
    ("evictionSoftGracePeriod", {"memory.available": "1m"}, {"memory.available": "-1m"}, "at least 0s"),
    ("containerLogMaxSize", "50Mi", "50MB", "did you mean 50M"),
    ("topologyManagerPolicy", "none", "best_effort", "did you mean best-effort"),
    ("authorization", {"mode": "Webhook"}, {"mode": "RBAC"}, "Webhook | AlwaysAllow"),
    ("tlsMinVersion", "VersionTLS12", "1.2", "VersionTLS12"),
    ("address", "0.0.0.0", "localhost", "an IP address"),
    ("enforceNodeAllocatable", ["none"], "none", "a list"),
    ("tlsCurvePreferences", [29], ["x25519"], "a whole number"),
    ("staticPodURLHeader", {"a": ["b"]}, {"a": "b"}, "a list"),
    ("shutdownGracePeriodByPodPriority", [{"priority": 1}], [{"priorty": 1}], "did you mean priority"),
    ("logging", {"format": "json", "verbosity": 4}, {"formt": "json"}, "has no such field"),
    ("logging", {"flushFrequency": 5_000_000_000}, {"verbosity": -1}, "of at least 0"),
    (
        "logging",
        {"options": {"json": {"infoBufferSize": "0"}}},
        {"options": {"json": {"infoBufferSize": "x"}}},
        "a quantity",
    ),
    ("logging", {"vmodule": [{"filePattern": "a", "verbosity": 1}]}, {"vmodule": ["a=1"]}, "a mapping"),
    ("tracing", {"samplingRatePerMillion": 1}, {"samplingRatePerMillion": 2_000_000}, "to 1000000"),
    ("tracing", {"endpoint": "localhost:4317"}, {"endpont": "x"}, "has no such field"),
    ("authentication", {"webhook": {"enabled": True}}, {"webhook": True}, "a mapping"),
]
PROXY_ROWS: list[tuple[str, Any, Any, str]] = [
    ("healthzBindAddress", "0.0.0.0:10256", "10256", "an IP address and a port"),
    ("metricsBindAddress", "[::1]:10249", "localhost:10249", "an IP address and a port"),
    ("configSyncPeriod", "15m", 15, "a duration"),
    ("clientConnection", {"qps": 5.5, "burst": 10}, {"burst": -1}, "of at least 0"),
    ("bindAddressHardFail", True, "on", "did you mean true"),
    ("nodePortAddresses", ["10.0.0.0/8", "primary"], "10.0.0.0/8", "a list"),
    ("winkernel", {"forwardHealthCheckVip": True}, {"forwardHealthCheckVip": "true"}, "true or false"),
    ("portRange", "1000-2000", 1000, "text, in quotes"),
    ("detectLocal", {"bridgeInterface": "a"}, {"clusterCIDRs": ["10.0.0.0/8"]}, "has no such field"),
]
ALL: list[tuple[Component, str, Any, Any, str]] = [
    *(("kubelet", *row) for row in ROWS),
    *(("kube-proxy", *row) for row in PROXY_ROWS),
]


def _errors(component: Component, config: dict[str, Any]) -> list[str]:
    """What is wrong, without what Windows does not heed."""
    found = [one for _, one in check_field(FACTS, component, config, VERSION) if one.level == "error"]
    return [f"{one}; did you mean {one.did_you_mean}" for one in found]


@pytest.mark.parametrize(("component", "field", "right", "wrong", "says"), ALL)
def test_a_field_takes_its_kind_of_value_and_no_other(
    component: Component, field: str, right: Any, wrong: Any, says: str
) -> None:
    """By type, range, unit and choice, as the program itself decides when it starts."""
    assert _errors(component, {field: right}) == []
    assert any(says in one for one in _errors(component, {field: wrong})), _errors(component, {field: wrong})


@pytest.mark.parametrize("component", ["kubelet", "kube-proxy"])
def test_every_field_of_the_newest_minor_has_a_type(component: Component) -> None:
    """Or it was removed before winboot's oldest minor."""
    table = FACTS.section("kubelet_fields" if component == "kubelet" else "kube_proxy_fields")

    assert [name for name, entry in table.items() if "type" not in entry and not entry.get("removed")] == []


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"imageGCLowThresholdPercent": 90}, "begin at 85 % and end at 90 %"),
        ({"imageGCHighThresholdPercent": 70}, "begin at 70 % and end at 80 %"),
        ({"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "40s"}, "longer than"),
        ({"shutdownGracePeriod": "500ms"}, "shorter than a second"),
        ({"evictionSoft": {"memory.available": "1Gi"}}, "no grace period"),
        ({"serializeImagePulls": True, "maxParallelImagePulls": 3}, "3 pulls at a time"),
        ({"enableSystemLogQuery": True, "enableSystemLogHandler": False}, "needs enableSystemLogHandler"),
    ],
)
def test_fields_that_exclude_each_other_are_refused(config: dict[str, Any], says: str) -> None:
    """As ValidateKubeletConfiguration does."""
    assert any(says in one for one in _errors("kubelet", config))


# Each of these ends a real kubelet 1.36.2 (a probe with its own codec and gate registry), and nothing else does.
ENDS = [
    "GracefulNodeShutdown=false",
    "PodLevelResources=false",
    "NodeDeclaredFeatures=false",
    "ContainerRestartRules=false",
    "ResourceHealthStatus=false",
    "DRAResourceClaimDeviceStatus=false",
    "MatchLabelKeysInPodTopologySpread=false",
    "APIServerIdentity=false",
    "ClusterTrustBundleProjection=true",
    "DRAWorkloadResourceClaims=true",
    "GangScheduling=true",
    "TopologyAwareWorkloadScheduling=true",
    "WorkloadAwarePreemption=true",
    "WorkloadWithJob=true",
    "AtomicFIFO=false",
]


def test_gates_that_need_another_one_are_refused_alone() -> None:
    """Gates that a real kubelet refuses, in addition to locked, unknown and removed ones."""
    refused = []
    for gate in FACTS.section("gates"):
        for value in (True, False):
            found = check_field(FACTS, "kubelet", {"featureGates": {gate: value}}, VERSION)
            ids = {one.id for _, one in found if one.level == "error"}
            if ids == {"needs"}:
                refused.append(f"{gate}={str(value).lower()}")

    assert sorted(refused) == sorted(ENDS)


def test_a_gate_with_what_it_needs_is_taken() -> None:
    """Both on, or both off; also as a flag. An older minor did not look."""
    assert _errors("kubelet", {"featureGates": {"GangScheduling": True, "GenericWorkload": True}}) == []
    both = {"GracefulNodeShutdown": False, "WindowsGracefulNodeShutdown": False}
    off = {**both, "GracefulNodeShutdownBasedOnPodPriority": False}
    assert _errors("kubelet", {"featureGates": off}) == []
    flag = check_flag(FACTS, "kubelet", "feature-gates", "GangScheduling=true", VERSION)
    assert [one.id for one in flag if one.level == "error"] == ["needs"]
    old = check_field(
        FACTS, "kubelet", {"featureGates": {"PodLevelResources": False}}, Version.parse("1.35.1")
    )
    assert [one for _, one in old if one.level == "error"] == []


@pytest.mark.parametrize(
    ("flag", "value", "says"),
    [
        ("max-pods", "-1", "of at least 0"),
        ("system-reserved", "memory=2 GB", "a quantity"),
        ("eviction-hard", "memory.available<110%", "a percentage"),
        ("sync-frequency", "1 minute", "a duration"),
        ("v", "-1", "of at least 0"),
    ],
)
def test_a_flag_takes_what_its_field_takes(flag: str, value: str, says: str) -> None:
    """Where it has one."""
    found = check_flag(FACTS, "kubelet", flag, value, VERSION)

    assert any(says in str(one) for one in found if one.level == "error"), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h30m", 5400),
        ("1.5s", 1.5),
        ("100ms", 0.1),
        ("-2s", -2),
        ("0", 0),
        (".5m", 30),
        ("", None),
        ("1", None),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, expected: float | None) -> None:
    """time.ParseDuration: units are needed, but for 0."""
    found = seconds(text)

    assert (None if found is None else float(found)) == expected


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(st.sampled_from([e["type"] for e in FACTS.section("kubelet_fields").values() if "type" in e]), ANY)
def test_any_value_of_any_type_is_judged(kind: str, value: object) -> None:
    """Never a crash, and each complaint says what was expected."""
    assert all(one.wrong and one.expected for one in wrong_values({"type": kind}, value))


@given(st.dictionaries(st.sampled_from(sorted(FACTS.section("kubelet_fields"))), ANY, max_size=4))
def test_any_configuration_is_judged(config: dict[str, Any]) -> None:
    """Whole files too, as the lab's kubelet does."""
    check_field(FACTS, "kubelet", config, VERSION)
    check_values(FACTS, "kubelet", config, VERSION)

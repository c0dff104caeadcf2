"""What Kubernetes 1.37 added, removed and changed, each held against 1.36 as well.

Made from the release notes (kubernetes/sig-release#3083), the types of kubernetes/kubelet and kubernetes/kube-proxy at the
code freeze, and the pages of the feature gates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.every import assert_none_wrong, differs
from winboot.config.compat import (
    Version,
    check_build,
    check_containerd,
    check_field,
    check_flag,
    check_gate,
    check_kubernetes,
    check_pause_image,
    check_skew,
    default_containerd,
    default_pause_image,
    explain,
    load,
)
from winboot.config.compat.flags import Component

FACTS = load()
BEFORE, AFTER = Version.parse("1.36.5"), Version.parse("1.37.1")

# The kubelet of 1.37 does not know them any more, on any system (kubernetes/kubernetes#139870).
REMOVED_FLAGS = [
    "application-metrics-count-limit",
    "boot-id-file",
    "container-hints",
    "containerd",
    "containerd-namespace",
    "enable-load-reader",
    "event-storage-age-limit",
    "event-storage-event-limit",
    "global-housekeeping-interval",
    "log-cadvisor-usage",
    "machine-id-file",
    "storage-driver-user",
    "storage-driver-password",
    "storage-driver-host",
    "storage-driver-db",
    "storage-driver-table",
    "storage-driver-secure",
    "storage-driver-buffer-duration",
]

REMOVED_GATES = [
    "SidecarContainers",
    "PreventStaticPodAPIReferences",
    "RelaxedDNSSearchValidation",
    "PodLifecycleSleepAction",
    "PodLifecycleSleepActionAllowZero",
    "AnyVolumeDataSource",
    "AnonymousAuthConfigurableEndpoints",
    "APIServerTracing",
    "AuthorizeNodeWithSelectors",
    "AuthorizeWithSelectors",
    "BtreeWatchCache",
    "ConsistentListFromCache",
    "GangScheduling",
    "JobBackoffLimitPerIndex",
    "JobPodReplacementPolicy",
    "JobSuccessPolicy",
    "LogarithmicScaleDown",
    "OrderedNamespaceDeletion",
    "ResilientWatchCacheInitialization",
    "RetryGenerateName",
    "SchedulerQueueingHints",
    "StreamingCollectionEncodingToJSON",
    "StreamingCollectionEncodingToProtobuf",
    "StructuredAuthenticationConfiguration",
    "WorkloadAwarePreemption",
]

# Default in 1.36 and in 1.37, and whether 1.37 locks it.
CHANGED_GATES = {
    "PLEGOnDemandRelist": (True, True, True),
    "NodeDeclaredFeatures": (True, True, True),
    "HostnameOverride": (True, True, True),
    "InPlacePodVerticalScalingInitContainers": (True, True, True),
    "PodReadyToStartContainersCondition": (True, True, True),
    "DisableCPUQuotaWithExclusiveCPUs": (True, True, True),
    "MemoryQoS": (False, True, False),
    "KubeletInUserNamespace": (False, True, False),
    "PodLevelResourceManagers": (False, False, False),
    "PodAndContainerStatsFromCRI": (False, False, False),
    "ClusterTrustBundle": (False, True, False),
    "ClusterTrustBundleProjection": (False, True, False),
    "PodCertificateRequest": (False, True, False),
    "SELinuxMount": (False, True, False),
    "DRAPrioritizedList": (True, True, True),
    "DRAResourceClaimDeviceStatus": (True, True, True),
    "DRAExtendedResource": (True, True, True),
    "DRADeviceTaints": (True, True, False),
    "DRAWorkloadResourceClaims": (False, False, False),
    "RelaxedServiceNameValidation": (True, True, True),
    "WatchCacheInitializationPostStartHook": (True, True, True),
    "HPAConfigurableTolerance": (True, True, True),
    "HPAScaleToZero": (False, True, False),
    "StorageVersionMigrator": (False, True, False),
    "DeclarativeValidationTakeover": (False, False, True),
    "ConcurrentWatchObjectDecode": (False, True, False),
    "AllowUnsafeMalformedObjectDeletion": (False, True, False),
    "MaxUnavailableStatefulSet": (False, True, False),
    "PersistentVolumeClaimUnusedSinceTime": (False, True, False),
    "VolumeLimitScaling": (False, True, False),
    "ManifestBasedAdmissionControlConfig": (False, True, False),
    "GenericWorkload": (False, False, False),
    "NativeHistograms": (False, True, False),
}

# New in 1.37, with the default.
NEW_GATES = {
    "DefaultPodSysctls": False,
    "KubeletAllocatedPodsEndpoint": False,
    "H2CContainerProbe": False,
    "GRPCContainerProbeTLS": False,
    "AtomicWriteVolumeUserFields": False,
    "VolumeBindMountOptions": False,
    "InPlacePodVerticalScalingMemoryBackedVolumes": False,
    "InPlacePodVerticalScalingSchedulerPreemption": False,
    "HugepageAwareEviction": True,
    "EvictionRequestAPI": False,
    "DRADeviceCompatibilityGroups": False,
    "KubeProxyIPVS": True,
    "NFTablesNetlink": True,
    "KubeProxyNFTablesLocalhostNodePorts": False,
    "NodeControllerLeaseCircuitBreaker": True,
    "StaleControllerConsistencyHPA": True,
    "HPAOptimizedSelectorStore": True,
    "WatchListCompression": True,
    "EtcdRangeStream": True,
    "WebhookRoundTripLoadBalancing": True,
    "ExcludeAdmissionWebhookVirtualResources": True,
    "ConsistentListFromCacheSkipTimeoutFallback": False,
    "APIServerWebhookAuthenticationToken": False,
    "CompositePodGroup": False,
    "SchedulerPreQueueingHints": False,
    "InterPodAffinityHostnameFastPath": False,
    "StatefulSetRecreateStrategy": False,
    "PodGroupPreemptionPolicy": False,
}


def test_a_flag_of_cadvisor_is_linux_only_in_1_36_and_gone_in_1_37() -> None:
    """Eighteen; kubelet.exe never took one, and from 1.37 on no kubelet does."""
    assert_none_wrong({flag: differs(*_judged(flag)) for flag in REMOVED_FLAGS})


def _judged(flag: str) -> tuple[object, object]:
    before = check_flag(FACTS, "kubelet", flag, "x", BEFORE)
    after = check_flag(FACTS, "kubelet", flag, "x", AFTER)
    found = (
        [one.id for one in before],
        [(one.level, one.id, "removed in 1.37" in one.reason) for one in after],
    )
    return found, (["linux-only"], [("error", "removed", True)])


def test_the_flag_of_cadvisor_that_stays_is_still_linux_only() -> None:
    for version in (BEFORE, AFTER):
        assert [one.id for one in check_flag(FACTS, "kubelet", "housekeeping-interval", "10s", version)] == [
            "linux-only"
        ]


def _gate_errors(gate: str, value: bool, version: Version) -> list[str]:
    return [one.id for one in check_gate(FACTS, "kubelet", gate, value, version) if one.level == "error"]


@pytest.mark.parametrize("component", ["kubelet", "kube-proxy"])
def test_a_removed_gate_is_known_in_1_36_and_stops_1_37(component: Component) -> None:
    """Twenty-five, each locked to its default before it went, or in alpha still."""
    found = {
        gate: [check_gate(FACTS, component, gate, _default(gate, "1.37"), one) for one in (BEFORE, AFTER)]
        for gate in REMOVED_GATES
    }

    assert_none_wrong(
        {
            gate: [one for one in before if one.level == "error"]
            or differs(
                [(one.level, one.id, one.instead) for one in after], [("error", "removed", "remove it")]
            )
            for gate, (before, after) in found.items()
        }
    )


def test_a_changed_gate_has_its_default_of_each_minor_and_is_locked_from_1_37_on() -> None:
    assert_none_wrong(
        {
            gate: differs(
                (
                    (
                        _default(gate, "1.36"),
                        _default(gate, "1.37"),
                    ),
                    _gate_errors(gate, not after, BEFORE),
                    _gate_errors(gate, not after, AFTER),
                ),
                ((before, after), [], ["locked"] if locked else []),
            )
            for gate, (before, after, locked) in CHANGED_GATES.items()
        }
    )


def test_a_new_gate_does_not_exist_in_1_36() -> None:
    assert_none_wrong(
        {
            gate: differs(
                (
                    _default(gate, "1.37"),
                    [one.id for one in check_gate(FACTS, "kubelet", gate, True, BEFORE)],
                    _gate_errors(gate, default, AFTER),
                ),
                (default, ["not-yet"], []),
            )
            for gate, default in NEW_GATES.items()
        }
    )


def _default(gate: str, minor: str) -> bool:
    stages = FACTS.section("gates")[gate]["stages"]
    return bool([row for row in stages if float(row[0][2:]) <= float(minor[2:])][-1][2])


def test_a_gate_needs_none_that_1_37_has_removed() -> None:
    """PodCertificateRequest needed AuthorizeNodeWithSelectors; that one is always on now, and gone as a name."""
    on: Mapping[str, Any] = {"featureGates": {"PodCertificateRequest": True}}
    for version in (BEFORE, AFTER):
        assert _errors(on, version) == []
    off = {"featureGates": {"PodCertificateRequest": True, "AuthorizeNodeWithSelectors": False}}
    assert _errors(off, AFTER) == ["removed"]


# Field, value, findings in 1.36 and in 1.37.
FIELDS: list[tuple[str, Any, list[str], list[str]]] = [
    ("defaultPodSysctls", {"net.core.somaxconn": "1024"}, ["not-yet"], ["fails-on-windows"]),
    ("eventRecordQPS", 0, [], []),
    ("memoryThrottlingFactor", 0.9, [], []),
]


@pytest.mark.parametrize(("field", "value", "before", "after"), FIELDS)
def test_a_field_of_the_kubelet_is_judged_by_its_minor(
    field: str, value: Any, before: list[str], after: list[str]
) -> None:
    config = {field: value}
    assert (_errors(config, BEFORE), _errors(config, AFTER)) == (before, after)


def _errors(config: Mapping[str, Any], version: Version) -> list[str]:
    found = check_field(FACTS, "kubelet", config, version)
    return [one.id for _, one in found if one.level == "error"]


def test_a_zero_event_rate_means_no_limit_from_1_37_on() -> None:
    """ACTION REQUIRED in the release notes: up to 1.36 it was read as the default of 50."""
    levels = [
        [one.level for _, one in check_field(FACTS, "kubelet", {"eventRecordQPS": 0}, version)]
        for version in (BEFORE, AFTER)
    ]
    assert levels == [["info"], ["warning"]]
    assert check_field(FACTS, "kubelet", {"eventRecordQPS": 50}, AFTER) == []


def test_a_default_that_changed_is_reported_with_its_minor() -> None:
    told = explain(FACTS, "field", "memoryThrottlingFactor")
    assert "0.9 (from 1.27 on)" in told and "none (from 1.37 on)" in told


@pytest.mark.parametrize("version", [BEFORE, AFTER])
def test_an_inode_signal_never_comes_on_windows(version: Version) -> None:
    """Accepted and without effect, in 1.37 too (kubernetes/kubernetes#141847 is open)."""
    config = {"evictionHard": {"nodefs.inodesFree": "5%", "memory.available": "500Mi"}}
    (found,) = [one for _, one in check_field(FACTS, "kubelet", config, version)]
    assert (found.level, found.id) == ("info", "no-effect")
    assert "nodefs.inodesFree" in found.about


@pytest.mark.parametrize("mode", ["iptables", "nftables", "ipvs", ""])
@pytest.mark.parametrize("version", [BEFORE, AFTER])
def test_a_mode_of_linux_is_refused(mode: str, version: Version) -> None:
    """kubeadm 1.37 writes `mode: iptables` where it left it blank before (kubernetes/kubernetes#139777)."""
    found = [one for _, one in check_field(FACTS, "kube-proxy", {"mode": mode}, version)]
    assert [(one.level, one.instead) for one in found] == [("error", "kernelspace")]


@pytest.mark.parametrize(("build", "levels"), [(20348, []), (26100, []), (17763, ["warning"])])
def test_1_37_lists_the_windows_versions_of_1_36(build: int, levels: list[str]) -> None:
    for version in (BEFORE, AFTER):
        assert [one.level for one in check_build(FACTS, version, build)] == levels
        image = default_pause_image(FACTS, version, build)
        assert image == "registry.k8s.io/pause:3.10.2"
        assert check_pause_image(FACTS, image, build, Version.parse("2.3.6")) == []


@pytest.mark.parametrize(
    ("version", "findings"),
    [
        ("1.34.12", ["end-of-life"]),
        ("1.35.9", []),
        ("1.36.2", ["known-bad", "known-bad"]),
        ("1.36.4", ["known-bad"]),
        ("1.36.5", []),
        ("1.37.0", ["known-bad"]),
        ("1.37.1", []),
        ("1.38.0", ["newer-than-data"]),
    ],
)
def test_each_patch_is_judged_as_of_today(version: str, findings: list[str]) -> None:
    assert [one.id for one in check_kubernetes(FACTS, Version.parse(version))] == findings


def test_the_end_of_1_34_is_reported_with_its_date() -> None:
    (found,) = check_kubernetes(FACTS, Version.parse("1.34.12"))
    assert found.reason == "support of this minor ended on 2026-10-27"


@pytest.mark.parametrize(
    ("containerd", "version", "findings"),
    [
        ("2.3.6", "1.36.5", []),
        ("2.3.6", "1.37.1", []),
        ("2.2.9", "1.36.5", ["end-of-life"]),
        ("2.2.9", "1.37.1", ["untested", "end-of-life"]),
        ("2.4.1", "1.37.1", ["untested"]),
        ("1.7.36", "1.37.1", ["untested", "end-of-life"]),
        ("1.6.39", "1.37.1", ["unsupported", "end-of-life"]),
    ],
)
def test_containerd_of_each_line(containerd: str, version: str, findings: list[str]) -> None:
    """2.2 ended on 6 November 2026; 1.7 is still taken by the kubelet of 1.37 (kubernetes/kubernetes#139121)."""
    found = check_containerd(FACTS, Version.parse(containerd), Version.parse(version))
    assert [one.id for one in found] == findings


def test_the_default_containerd_is_of_a_maintained_line() -> None:
    assert {default_containerd(FACTS, version) for version in (BEFORE, AFTER)} == {"2.3.6"}


def test_an_ended_containerd_is_answered_with_one_that_is_maintained() -> None:
    """All lines that 1.35 is tested with have ended before it does."""
    found = check_containerd(FACTS, Version.parse("2.2.9"), Version.parse("1.35.9"))
    assert [one.instead for one in found] == ["2.3.6, whose release line is maintained until 2028-04-30"]


@pytest.mark.parametrize(
    ("kubelet", "server", "fits"),
    [("1.36.5", "1.37.1", True), ("1.37.1", "1.37.1", True), ("1.37.1", "1.36.5", False)],
)
def test_the_skew_of_1_36_and_1_37(kubelet: str, server: str, fits: bool) -> None:
    assert (check_skew(Version.parse(kubelet), Version.parse(server)) == []) is fits


def test_the_version_is_explained() -> None:
    told = explain(FACTS, "version", "1.37")
    assert "released        2026-08-26, ends 2027-10-28" in told
    assert "newest patch    1.37.1, seen up to 2026-10-10" in told
    assert "winboot takes   containerd 2.3.6" in told
    assert "subPath" in explain(FACTS, "version", "1.36")

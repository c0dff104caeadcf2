"""kubeadm's own ConfigMaps, kubelet-config and kube-proxy, pasted under `kubelet.config` and `kube_proxy.config`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.config.scene import a_spec, complaints

# What kubeadm 1.33 to 1.37 makes of an empty KubeletConfiguration (cmd/kubeadm/app/componentconfigs/kubelet.go, Default), with
# the zero values of fields without omitempty (k8s.io/kubelet/config/v1beta1/types.go).
KUBELET = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization:
  mode: Webhook
  webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging:
  flushFrequency: 0
  options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
"""
# The same of an empty KubeProxyConfiguration (kubeproxy.go next to it; k8s.io/kube-proxy/config/v1alpha1/types.go).
KUBE_PROXY = """
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  {acceptContentTypes: "", burst: 0, contentType: "", kubeconfig: /var/lib/kube-proxy/kubeconfig.conf, qps: 0}
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack: {maxPerCore: null, min: null, tcpBeLiberal: false, tcpCloseWaitTimeout: null, udpStreamTimeout: 0s, udpTimeout: 0s}
detectLocal: {bridgeInterface: "", interfaceNamePrefix: ""}
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, syncPeriod: 0s}
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: "", strictARP: false, syncPeriod: 0s, tcpTimeout: 0s, udpTimeout: 0s}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
metricsBindAddress: ""
mode: MODE
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: null
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
winkernel: {enableDSR: false, forwardHealthCheckVip: false, networkName: "", rootHnsEndpointName: "", sourceVip: ""}
"""


def _under(section: str, text: str) -> str:
    return f"{section}:\n  config:\n{textwrap.indent(text, '    ')}"


def _pasted(mode: str = '""') -> str:
    return _under("kubelet", KUBELET) + _under("kube_proxy", KUBE_PROXY.replace("MODE", mode))


@pytest.mark.parametrize("mode", ['""', "iptables"])
def test_kubeadms_files_are_no_error_and_no_warning(mode: str) -> None:
    """One notice for each file names the values that are Linux's."""
    found = [(one.level, one.path, one.wrong.partition(": ")[2]) for one in complaints(_pasted(mode))]

    kubelet, proxy = found
    assert kubelet[:2] == ("info", "kubelet.config")
    assert proxy[:2] == ("info", "kube_proxy.config")
    assert kubelet[2] == "authentication.x509.clientCAFile, cgroupDriver, resolvConf, staticPodPath"
    assert proxy[2].startswith("clientConnection.kubeconfig, ") and proxy[2].endswith("winkernel.enableDSR")


def _leaves(data: object, above: str = "") -> dict[str, object]:
    if not isinstance(data, Mapping):
        return {above: data}
    return {
        path: one for key, value in data.items() for path, one in _leaves(value, f"{above}.{key}").items()
    }


def test_kubeadms_files_change_nothing_of_winboots(tmp_path: Path) -> None:
    """What they leave to defaults stays winboot's, and no value of Linux reaches the node."""
    plain, pasted = a_spec(tmp_path), a_spec(tmp_path, profile=_pasted("iptables"))

    for mine, theirs in (
        (_leaves(plain.kubelet.config), _leaves(pasted.kubelet.config)),
        (_leaves(plain.kube_proxy.config), _leaves(pasted.kube_proxy.config)),
    ):
        assert {**theirs, **mine} == theirs
        assert not [path for path, value in theirs.items() if str(value).startswith("/")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "kubelet: {config: {clusterDNS: [10.96.0.11]}}",
            "['10.96.0.11'], and winboot writes ['10.96.0.10']",
        ),
        (
            "kubelet: {config: {clusterDomain: corp.example}}",
            "'corp.example', and winboot writes 'cluster.local'",
        ),
        (
            "kube_proxy: {config: {clusterCIDR: 10.0.0.0/8}}",
            "'10.0.0.0/8', and winboot writes '10.244.0.0/16'",
        ),
        ("kube_proxy: {config: {mode: ipvs}}", "'ipvs', and winboot writes 'kernelspace'"),
        ("kube_proxy: {config: {winkernel: {enableDSR: true}}}", "winboot writes it itself"),
        ("kube_proxy: {config: {winkernel: {networkName: other}}}", "'other', and winboot writes 'cbr0'"),
        ("kube_proxy: {config: {hostnameOverride: n1}}", "winboot writes it itself"),
        (
            "kubelet: {config: {authentication: {x509: {clientCAFile: /etc/ca.crt}}}}",
            "'/etc/ca.crt', and winboot",
        ),
    ],
)
def test_another_value_names_both(text: str, says: str) -> None:
    (found,) = complaints(text)

    assert found.level == "error" and says in found.wrong


@pytest.mark.parametrize(
    "text",
    [
        "kubelet: {config: {registerWithTaints: [{key: os, value: windows, effect: NoSchedule}]}}",
        "kubelet: {config: {containerRuntimeEndpoint: 'npipe:////./pipe/containerd-containerd'}}",
        "kubelet: {config: {authentication: {x509: {clientCAFile: 'C:\\etc\\kubernetes\\pki\\ca.crt'}}}}",
        "kube_proxy: {config: {mode: kernelspace, windowsRunAsService: true, bindAddress: ''}}",
        "kube_proxy: {dsr: 'on', config: {winkernel: {enableDSR: true, networkName: cbr0}}}",
        "kube_proxy: {dsr: 'off', config: {winkernel: {enableDSR: false}}}",
        "kubelet: {config: {cpuManagerPolicy: none, hairpinMode: promiscuous-bridge}}",
    ],
)
def test_an_equal_value_or_a_default_says_nothing(text: str) -> None:
    assert complaints(text) == []


def test_a_section_of_linux_has_one_warning() -> None:
    """Not one for itself and one for each of its fields."""
    (found,) = complaints("kube_proxy: {config: {ipvs: {scheduler: rr, strictARP: true, syncPeriod: 30s}}}")

    assert (found.level, found.path) == ("warning", "kube_proxy.config.ipvs")

"""Each check by itself, on a cluster that answers from fields; then the preflight of a run."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster.authority import SERVER_AUTH, Authority, Subject

from tests.config.scene import a_spec
from tests.config.test_gmsa import a_profile
from tests.join.fakes import FakeCluster, a_node
from winboot.base.errors import ClusterRefused, ClusterUnreachable, PreflightFailed, UsageError
from winboot.config.node_spec import NodeSpec
from winboot.node.preflight import CHECKS, Finding, Preflight
from winboot.remote.cluster import rights
from winboot.remote.cluster.base import GmsaState, NodeFacts


def ca_until(days: int) -> str:
    """A CA certificate that ends so many days from now."""
    now = datetime.now(UTC)
    pair = Authority("a webhook").issue(
        Subject("gmsa"), (SERVER_AUTH,), (now - timedelta(days=30), now + timedelta(days=days))
    )
    return pair.certificate


GMSA = a_profile()
VXLAN = "network: {cni: flannel, mode: vxlan}"
CALICO = "network: {cni: calico}"
OVN = "network: {cni: ovn-hybrid}\nartifacts: {hybrid_overlay: 1.3.0, source: https://mirror.corp.example}"
ANTREA = "network: {cni: antrea, antrea: {testsigning: accepted}}"


def antrea(conf: str) -> dict[str, dict[str, str]]:
    """The ConfigMaps of a cluster with Antrea's manifests for Windows."""
    return {"antrea-windows-config": {"antrea-agent.conf": conf}}


def flannel(network: str = "10.244.0.0/16", **changes: object) -> dict[str, object]:
    """A cluster whose flannel has a VXLAN backend that Windows supports, with these changes; None leaves a key out."""
    backend = {"Type": "vxlan", "VNI": 4096, "Port": 4789, **changes}
    kept = {key: value for key, value in backend.items() if value is not None}
    return {"net_conf": {"Network": network, "Backend": kept}}


def calico(*, ipip: str = "Never", affinity: bool | None = True, vni: int = 4096) -> dict[str, object]:
    """A cluster with Calico's resources."""
    return {
        "specs": {
            "IPPool": [{"name": "pool-1", "ipipMode": ipip}],
            "IPAMConfig": [] if affinity is None else [{"name": "default", "strictAffinity": affinity}],
            "FelixConfiguration": [{"name": "default", "vxlanVNI": vni, "vxlanPort": 4789}],
        }
    }


def found(cluster: FakeCluster, *specs: NodeSpec, drains: bool = False) -> tuple[Finding, ...]:
    preflight = Preflight(specs, lambda spec: cluster, drains=drains)
    for spec in specs:
        preflight.findings(spec)
    return preflight.so_far()


def test_a_cluster_that_is_as_the_profile_says_has_no_findings(tmp_path: Path) -> None:
    assert found(FakeCluster(all_nodes=(a_node(),)), a_spec(tmp_path)) == ()


# What is wrong with the cluster; the profile; the finding's id and level; a word of its reason, one of its fix.
CASES: dict[str, tuple[dict[str, Any], str, str, str, str, str]] = {
    "kubelet must not be newer than": (
        {"server": "1.35.9"},
        "",
        "version-skew",
        "error",
        "newer",
        "kubernetes.version",
    ),
    "kubelet too old": ({"server": "1.40.0"}, "", "version-skew", "error", "older", "kubernetes.version"),
    "a kubeconfig that judges no certificate": (
        {"is_insecure": True},
        "",
        "api-certificate",
        "warning",
        "insecure-skip-tls-verify",
        "certificate-authority-data",
    ),
    "no right to approve": (
        {"own_lacks": ("approve signers.certificates.k8s.io kubernetes.io/kubelet-serving",)},
        "",
        "permissions",
        "error",
        "approve signers",
        "manifests operator",
    ),
    "no right to mint": (
        {"own_lacks": ("create secrets in kube-system",)},
        "",
        "permissions",
        "error",
        "secrets",
        "operator",
    ),
    "tokens may not ask": (
        {"lacks": ("create certificatesigningrequests.certificates.k8s.io",)},
        "",
        "bootstrap-bindings",
        "error",
        "bootstrap token may not create",
        "system:node-bootstrapper",
    ),
    "nobody approves": (
        {"lacks": ("create certificatesigningrequests/nodeclient.certificates.k8s.io",)},
        "",
        "bootstrap-bindings",
        "error",
        "nodeclient",
        "client certificate",
    ),
    "renewal": (
        {"lacks": ("create certificatesigningrequests/selfnodeclient.certificates.k8s.io",)},
        "",
        "bootstrap-bindings",
        "warning",
        "selfnodeclient",
        "and expire",
    ),
    "no node CIDRs": (
        {"all_nodes": (a_node(name="linux-1", pod_cidrs=(), operating_system="linux"),)},
        "",
        "node-cidrs",
        "error",
        "none of the 1 Ready Nodes",
        "--allocate-node-cidrs",
    ),
    "no flannel": (
        {"net_conf": None},
        "",
        "flannel-config",
        "error",
        "no ConfigMap",
        "manifests flannel",
    ),
    "another backend": (
        flannel(),
        "",
        "flannel-config",
        "error",
        "'vxlan' in the cluster",
        "profile equal",
    ),
    "another network": (
        flannel("10.99.0.0/16"),
        VXLAN,
        "flannel-config",
        "error",
        "10.99.0.0/16",
        "profile equal",
    ),
    "flannel's own VNI": (
        flannel(VNI=None),
        VXLAN,
        "flannel-config",
        "error",
        "VNI is 1 in the cluster",
        "restart",
    ),
    "flannel's own port": (
        flannel(Port=None),
        VXLAN,
        "flannel-config",
        "error",
        "port is 8472",
        "restart",
    ),
    "direct routing": (
        flannel(DirectRouting=True),
        VXLAN,
        "flannel-config",
        "error",
        "DirectRouting",
        "profile equal",
    ),
    "no Calico": ({}, CALICO, "calico-config", "warning", "no Calico resources", "Install"),
    "IP-in-IP": (
        calico(ipip="Always"),
        CALICO,
        "calico-config",
        "error",
        "pool-1",
        "vxlanMode",
    ),
    "borrowing": (
        calico(affinity=None),
        CALICO,
        "calico-config",
        "error",
        "borrow",
        "strictaffinity",
    ),
    "Calico's VNI": (
        calico(vni=4097),
        CALICO,
        "calico-config",
        "error",
        "4097",
        "4096",
    ),
    "Linux DaemonSet": (
        {"unselective": ("kube-system/agent",)},
        "",
        "daemonset-selectors",
        "warning",
        "kube-system/agent",
        "kubectl -n kube-system patch daemonset agent",
    ),
    "second csi-proxy": (
        {"proxies": (("kube-system/csi-proxy", "runs"),)},
        f"storage: {{csi_proxy: {{url: 'https://x.example/csi-proxy.exe', sha256: {'a' * 64}, version: 1.3.0}}}}",
        "csi-proxy",
        "error",
        "kube-system/csi-proxy",
        "delete the DaemonSet",
    ),
    "no csi-proxy for a driver": (
        {"proxies": (("kube-system/ebs-csi-node-windows", "mounts"),)},
        "",
        "csi-proxy",
        "warning",
        "ebs-csi-node-windows",
        "storage.csi_proxy",
    ),
    "no CRD of windows-gmsa": ({}, GMSA, "gmsa", "warning", "no CRD", "by its chart"),
    "no webhook of windows-gmsa": (
        {"gmsa_state": GmsaState(frozenset({"webapp"}), {})},
        GMSA,
        "gmsa",
        "warning",
        "no webhook",
        "gmsa-webhook",
    ),
    "a webhook whose CA has expired": (
        {"gmsa_state": GmsaState(frozenset({"webapp"}), {"MutatingWebhookConfiguration gmsa": ca_until(-1)})},
        GMSA,
        "gmsa",
        "warning",
        "has expired",
        "Renew",
    ),
    "a webhook without a CA": (
        {"gmsa_state": GmsaState(frozenset({"webapp"}), {"MutatingWebhookConfiguration gmsa": ""})},
        GMSA,
        "gmsa",
        "warning",
        "no certificate",
        "Renew",
    ),
    "no CredentialSpec": (
        {"gmsa_state": GmsaState(frozenset(), {"MutatingWebhookConfiguration gmsa": ca_until(9)})},
        GMSA,
        "gmsa",
        "warning",
        "no GMSACredentialSpec webapp",
        "winboot manifests gmsa",
    ),
    "an account that a pod does not get": (
        {
            "gmsa_state": GmsaState(
                frozenset({"webapp"}), {"MutatingWebhookConfiguration gmsa": ca_until(9)}
            ),
            "gmsa_refusal": "service account web is not authorized to use webapp",
        },
        GMSA,
        "gmsa",
        "warning",
        "shop/web does not get webapp: service account web is not authorized",
        "winboot manifests gmsa",
    ),
    "a user that may not try a pod": (
        {
            "gmsa_state": GmsaState(
                frozenset({"webapp"}), {"MutatingWebhookConfiguration gmsa": ca_until(9)}
            ),
            "gmsa_refusal": "pods is forbidden",
            "own_lacks": {"create pods in shop"},
        },
        GMSA,
        "gmsa",
        "warning",
        "unchecked whether a pod of service account shop/web gets webapp",
        "give the user that right",
    ),
    "second kube-proxy": (
        {"kube_proxies": ("kube-system/kube-proxy-windows",)},
        "",
        "kube-proxy-daemonset",
        "error",
        "kube-proxy-windows",
        "delete",
    ),
    "the mode of the Linux nodes": (
        {
            "proxy_configs": (("kube-system/kube-proxy-windows", "kube-system/kube-proxy"),),
            "proxy_config": "kind: KubeProxyConfiguration\nmode: iptables\n",
        },
        "",
        "kube-proxy-mode",
        "warning",
        "mode: iptables",
        "its own ConfigMap with mode: kernelspace",
    ),
    "no Antrea": (
        {},
        ANTREA,
        "antrea-config",
        "error",
        "no ConfigMap kube-system/antrea-windows-config",
        "antrea-windows-with-ovs.yml",
    ),
    "Antrea without an address": (
        {"config_maps": antrea("antreaProxy: {proxyAll: true}")},
        ANTREA,
        "antrea-config",
        "error",
        "kubeAPIServerOverride is empty",
        "Set ",
    ),
    "Antrea next to kube-proxy": (
        {"config_maps": antrea("kubeAPIServerOverride: https://10.0.0.10:6443")},
        ANTREA,
        "antrea-config",
        "error",
        "proxyAll is off",
        "no kube-proxy",
    ),
    "Antrea with a text that is no YAML": (
        {"config_maps": antrea("{")},
        ANTREA,
        "antrea-config",
        "error",
        "cannot be read",
        "Correct",
    ),
    "clones of one machine": (
        {
            "all_nodes": tuple(
                a_node(name=name, operating_system="windows", machine_id="WIN") for name in ("b", "win-1")
            )
        },
        OVN,
        "machine-ids",
        "error",
        "the Nodes b, win-1 share one machine id, win",
        "computer_name",
    ),
    "Cilium alone": (
        {"config_maps": {"cilium-config": {}}},
        "network: {cni: win-overlay}",
        "cilium",
        "warning",
        "with Cilium alone there is no network for Windows nodes",
        "docs/networks.md",
    ),
    "no privileged pods": (
        {"privileged": False, **calico()},
        CALICO,
        "privileged-pods",
        "warning",
        "needs HostProcess pods",
        "--allow-privileged",
    ),
    "the controller's clock is an hour late": (
        {"ahead": timedelta(hours=1)},
        "",
        "controller-clock",
        "warning",
        "this computer's clock is 3600 s behind the API server's",
        "Correct the wrong clock",
    ),
    "node in the pod network": (
        {"all_nodes": (a_node(addresses=(("InternalIP", "10.244.7.7"),)),)},
        "",
        "cidr-overlap",
        "error",
        "10.244.7.7",
        "correct",
    ),
    "a Linux node of this name": (
        {"all_nodes": (a_node(operating_system="linux"),)},
        "",
        "node-name",
        "error",
        "runs linux",
        "another name",
    ),
    "agents without rights": (
        {"lacks": ("list services",)},
        "",
        "node-rbac",
        "error",
        "kube-proxy logs in",
        "manifests rbac",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_found_by_its_id(case: str, tmp_path: Path) -> None:
    fields, profile, id, level, reason, fix = CASES[case]
    [one] = found(FakeCluster(**fields), a_spec(tmp_path, profile=profile))

    assert (one.id, one.level) == (id, level)
    assert reason in one.reason
    assert fix in one.fix


def test_every_check_is_provoked() -> None:
    """A check that no case provokes might never say anything."""
    assert {check.id for check in CHECKS} == {case[2] for case in CASES.values()}


def test_a_question_that_the_api_server_refuses_is_a_warning(tmp_path: Path) -> None:
    cluster = FakeCluster(fails={"daemonsets": ClusterRefused("listing DaemonSets: forbidden")})

    [one] = found(cluster, a_spec(tmp_path))

    assert (one.id, one.level) == ("daemonset-selectors", "warning")
    assert "not checked" in one.reason


def test_a_cluster_that_does_not_answer_is_no_finding(tmp_path: Path) -> None:
    cluster = FakeCluster(fails={"nodes": ClusterUnreachable("no answer")})

    with pytest.raises(ClusterUnreachable):
        found(cluster, a_spec(tmp_path))


def test_what_drains_needs_more_rights(tmp_path: Path) -> None:
    cluster = FakeCluster(own_lacks=("create pods/eviction",))

    assert found(cluster, a_spec(tmp_path)) == ()
    assert [one.id for one in found(cluster, a_spec(tmp_path), drains=True)] == ["permissions"]


def test_a_cluster_is_asked_once_however_many_nodes_want_to_know(tmp_path: Path) -> None:
    cluster = FakeCluster()
    spec = a_spec(tmp_path)
    others = [replace(spec, node=replace(spec.node, name=f"win-{n}")) for n in range(2, 40)]

    found(cluster, spec, *others)

    assert [call[0] for call in cluster.calls].count("daemonsets") == 1
    assert [call[0] for call in cluster.calls].count("nodes") == 1


def test_a_shared_machine_id_is_reported_for_the_nodes_that_share_it(tmp_path: Path) -> None:
    spec = a_spec(tmp_path, profile=OVN)
    other = replace(spec, node=replace(spec.node, name="win-2"))
    ids = {"win-1": "one", "clone": "one", "win-2": "two", "old-1": "three", "old-2": "three"}
    nodes = [a_node(name=name, machine_id=id) for name, id in ids.items()]

    [one] = found(FakeCluster(all_nodes=tuple(nodes)), spec, other)

    assert (one.id, one.nodes) == ("machine-ids", ("win-1",))


def test_a_finding_of_one_node_stops_no_other(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    other = replace(spec, node=replace(spec.node, name="win-2"))
    cluster = FakeCluster(all_nodes=(a_node(operating_system="linux"),))
    preflight = Preflight((spec, other), lambda one: cluster)

    with pytest.raises(PreflightFailed, match="node-name"):
        preflight.stop_on_error(spec)
    preflight.stop_on_error(other)


def test_a_skipped_finding_stops_no_node_and_stays_in_the_report(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    cluster = FakeCluster(net_conf=None)
    preflight = Preflight((spec,), lambda one: cluster, skip=("flannel-config",))

    preflight.stop_on_error(spec)

    assert [(one.id, one.skipped) for one in preflight.so_far()] == [("flannel-config", True)]


def test_an_id_that_no_check_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Preflight((a_spec(tmp_path),), lambda one: None, skip=("flanel-config",))

    assert caught.value.hint == "Did you mean 'flannel-config'?"


def test_every_right_has_its_reason() -> None:
    for need in (*rights.JOIN, *rights.TOKENS, *rights.DRAIN, *rights.PREFLIGHT):
        assert need.why


def test_a_report_does_not_wait_for_a_cluster_that_is_being_asked(tmp_path: Path) -> None:
    """Ctrl-C writes the report of what is known, while an API server keeps a thread waiting."""
    asked, answer = threading.Event(), threading.Event()

    class Slow(FakeCluster):
        def nodes(self) -> tuple[NodeFacts, ...]:
            asked.set()
            answer.wait()
            return super().nodes()

    cluster, spec = Slow(all_nodes=(a_node(),), net_conf=None), a_spec(tmp_path)
    preflight = Preflight([spec], lambda spec: cluster)
    thread = threading.Thread(target=preflight.findings, args=(spec,))
    thread.start()
    asked.wait()

    assert preflight.so_far() == ()

    answer.set()
    thread.join()
    assert preflight.so_far() != ()


@pytest.mark.parametrize("profile", ["", CALICO, "network: {cni: azure}\nartifacts: {azure_cni: 1.6.18}"])
def test_cilium_beside_the_nodes_own_network_is_no_finding(profile: str, tmp_path: Path) -> None:
    cluster = FakeCluster(config_maps={"cilium-config": {}}, **calico())

    assert [one.id for one in found(cluster, a_spec(tmp_path, profile=profile)) if one.id == "cilium"] == []


def test_without_flannels_configuration_cilium_is_named_too(tmp_path: Path) -> None:
    cluster = FakeCluster(config_maps={"cilium-config": {}}, net_conf=None)

    assert [one.id for one in found(cluster, a_spec(tmp_path))] == ["flannel-config", "cilium"]


@pytest.mark.parametrize(
    "text", ["kind: KubeProxyConfiguration\nmode: kernelspace\n", "kind: KubeProxyConfiguration\n", "{"]
)
def test_a_mode_that_windows_takes_is_no_finding(text: str, tmp_path: Path) -> None:
    cluster = FakeCluster(
        proxy_configs=(("kube-system/kube-proxy-windows", "kube-system/kube-proxy"),), proxy_config=text
    )

    assert [one.id for one in found(cluster, a_spec(tmp_path)) if one.id == "kube-proxy-mode"] == []

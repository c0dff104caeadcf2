"""The mistakes that break real Windows nodes break a lab node too, with the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from winboot_lab.cluster import ClusterPlan
from winboot_lab.mirror import program

from lab_programs.conftest import (
    CONTAINERD_TOML,
    KUBELET,
    KUBELET_CONFIG,
    PROXY_CONFIG,
    Node,
    conflist,
)

CONF = r"C:\etc\cni\net.d\10-flannel.conflist"
TOML = r"C:\Program Files\containerd\config.toml"
CRICTL = [r"C:\k\crictl.exe", "--config", r"C:\k\crictl.yaml"]


def prepared(node: Node) -> Node:
    """Files and a running containerd."""
    node.binaries()
    node.configuration()
    assert node.containerd() == 0
    return node


def joined(node: Node, conf: dict[str, Any] | bytes) -> str:
    """Join with another CNI configuration; gives the Ready condition's message."""
    prepared(node)
    node.file(CONF, conf)
    assert node.kubelet() == 0
    node.settle(10)
    node.flanneld()
    node.settle(60)
    return node.ready()["message"]


def test_the_old_plugin_api_finds_no_endpoint(node: Node) -> None:
    """Trap 1: apiVersion 1 is the default, and means docker."""
    conf = conflist()
    del conf["plugins"][0]["delegate"]["apiVersion"]

    message = joined(node, conf)

    assert "failed to find HNSEndpoint" in message
    assert node.ready()["status"] == "False"


def test_flanneld_is_no_service(node: Node) -> None:
    """Trap 2: started by the control manager itself it ends in 1053."""
    prepared(node)

    assert node.service("flanneld", r"C:\k\flanneld.exe", "--kube-subnet-mgr=1") == 1053


def test_kubelet_without_its_service_flag_is_no_service(node: Node) -> None:
    prepared(node)

    assert node.service("kubelet", r"C:\k\kubelet.exe", r"--config=C:\var\lib\kubelet\config.yaml") == 1053


def test_making_the_network_bounces_the_adapter(node: Node) -> None:
    """Trap 3: every client loses its connection."""
    seen: list[str] = []
    node.machine.watch(seen.append)

    node.join()

    assert "network-lost" in seen and "network-back" in seen


def test_the_second_address_is_taken_by_the_host_itself(node: Node) -> None:
    """Trap 5: without a reservation the first pod is given .2, which HNS refuses."""
    prepared(node)
    node.kubelet()
    node.settle(10)
    node.flanneld()
    node.settle(15)
    for entry in node.machine.files.list(r"C:\var\lib\cni\networks\cbr0"):
        node.machine.files.delete(rf"C:\var\lib\cni\networks\cbr0\{entry.name}")
    node.admin(
        "POST",
        "/api/v1/namespaces/default/pods",
        {"metadata": {"name": "web"}, "spec": {"nodeName": "win-1", "containers": []}},
    )
    node.settle(30)

    events = node.admin("GET", "/api/v1/namespaces/default/events")["items"]

    assert any("part of any configured subnet" in e["message"] for e in events)


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ({"VNI": 1, "Port": 8472}, "VNI 1 must be greater"),
        ({"VNI": 4096, "Port": 8472}, "Windows supports 4789 only"),
        ({"VNI": 4096, "DirectRouting": True}, "DirectRouting is not supported"),
    ],
)
def test_linux_values_of_vxlan_end_flanneld(node: Node, backend: dict[str, Any], words: str) -> None:
    """Trap 6."""
    prepared(node)
    net_conf = {"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", **backend}}
    node.file(r"C:\etc\kube-flannel\net-conf.json", net_conf)
    node.kubelet()
    node.settle(10)

    node.flanneld()
    node.settle(5)

    assert words in node.log("flanneld")
    assert node.machine.services.need("flanneld").status == "Paused"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cgroupsPerQOS": True}, "CgroupsPerQOS (--cgroups-per-qos) true is not supported on Windows"),
        ({"enforceNodeAllocatable": ["pods"]}, "EnforceNodeAllocatable"),
    ],
)
def test_linux_values_end_an_older_kubelet(change: dict[str, Any], words: str) -> None:
    """Trap 7, up to 1.30; later it only warns."""
    old = Node(version="1.30.4")
    prepared(old)
    old.file(r"C:\var\lib\kubelet\config.yaml", {**KUBELET_CONFIG, **change})

    old.kubelet()
    old.settle(3)

    assert words in old.log("kubelet")
    assert old.machine.services.need("kubelet").status == "Stopped"


def test_a_resolv_conf_of_linux_keeps_pods_from_starting(node: Node) -> None:
    prepared(node)
    config = {k: v for k, v in KUBELET_CONFIG.items() if k != "resolvConf"}
    node.file(r"C:\var\lib\kubelet\config.yaml", config)
    node.kubelet()
    node.settle(10)

    assert "open /etc/resolv.conf: The system cannot find" in node.ready()["message"]


def test_an_external_cloud_provider_without_node_ip_has_no_address(node: Node) -> None:
    """Trap 8."""
    prepared(node)
    words = [w for w in KUBELET if not w.startswith("--node-ip")]
    node.service("kubelet", *words, "--cloud-provider=external")
    node.settle(10)

    kinds = [a["type"] for a in node.node()["status"]["addresses"]]
    assert kinds == ["Hostname"]


def test_containerd_ignores_the_sections_of_the_other_dialect(node: Node) -> None:
    """Trap 9: with version 2 and the new names, the CNI folders are the defaults, where nothing is."""
    node.binaries()
    node.configuration()
    node.file(TOML, CONTAINERD_TOML.replace("version = 3", "version = 2"))
    node.containerd()

    info = json.loads(node.run(*CRICTL, "info").stdout)

    network = info["status"]["conditions"][1]
    assert network["message"] == "Network plugin returns error: cni plugin not initialized"


def test_mirrors_and_config_path_together_end_the_cri(node: Node) -> None:
    """Trap 9: containerd runs on, without CRI."""
    node.binaries()
    node.configuration()
    extra = (
        "\n[plugins.'io.containerd.cri.v1.images'.registry.mirrors.'docker.io']\nendpoint = ['https://m']\n"
    )
    node.file(TOML, CONTAINERD_TOML + extra)
    node.containerd()

    asked = node.run(*CRICTL, "version")

    assert asked.code == 1 and b"unknown service runtime.v1.RuntimeService" in asked.stderr
    assert "cannot be set when `config_path`" in node.log("containerd")


def test_recovery_delays_are_milliseconds(node: Node) -> None:
    """Trap 10: 10 means a hundredth of a second."""
    prepared(node)
    node.sc("failure", "containerd", "reset=", "300", "actions=", "restart/10/restart/30000")

    shown = node.run(r"C:\Windows\System32\sc.exe", "qfailure", "containerd").stdout.decode()

    assert "RESTART -- Delay = 10 milliseconds." in shown


def test_a_service_sees_its_own_environment_without_a_reboot(node: Node) -> None:
    """Trap 11: the machine's variables are as old as the boot, the service's are read at each start."""
    prepared(node)
    key = node.machine.services.need("containerd").key
    node.machine.registry.set(key, "Environment", "MultiString", ["HTTPS_PROXY=http://proxy:3128"])
    with node.machine.lock:
        node.machine.world.behind_proxy.add("registry.k8s.io")
    before = node.run(*CRICTL, "pull", "registry.k8s.io/pause:3.9").code

    node.sc("stop", "containerd")
    node.sc("start", "containerd")

    assert before == 1
    assert node.run(*CRICTL, "pull", "registry.k8s.io/pause:3.9").code == 0


def test_a_byte_order_mark_breaks_the_cni_file(node: Node) -> None:
    """Trap 12: what Set-Content -Encoding UTF8 writes in 5.1."""
    raw = b"\xef\xbb\xbf" + json.dumps(conflist()).encode()

    assert "invalid character 'ï'" in joined(node, raw)


def test_a_byte_order_mark_breaks_containerds_file(node: Node) -> None:
    node.binaries()
    node.configuration()
    node.file(TOML, b"\xef\xbb\xbf" + CONTAINERD_TOML.encode())

    node.containerd()

    assert "failed to unmarshal TOML" in node.log("containerd")


@pytest.mark.parametrize(
    ("version", "flag", "dies"),
    [
        ("1.34.2", "--pod-infra-container-image=x", False),
        ("1.35.0", "--pod-infra-container-image=x", True),
        ("1.34.2", "--network-plugin=cni", True),
        ("1.34.2", "--container-runtime=remote", True),
        ("1.34.2", "--allow-privileged=true", True),
    ],
)
def test_a_flag_that_was_removed_ends_the_kubelet(version: str, flag: str, dies: bool) -> None:
    """Trap 13."""
    node = Node(version=version)
    prepared(node)

    node.kubelet(flag)
    node.settle(3)

    name = flag.partition("=")[0]
    assert (f"unknown flag: {name}" in node.log("kubelet")) == dies
    assert node.machine.services.need("kubelet").status == ("Stopped" if dies else "Running")


@pytest.mark.parametrize(
    ("version", "gates", "words"),
    [
        ("1.34.2", {"WinDSR": False}, "cannot set feature gate WinDSR to false, feature is locked to true"),
        ("1.34.2", {"NoSuchGate": True}, "unrecognized feature gate: NoSuchGate"),
    ],
)
def test_a_gate_that_is_locked_or_unknown_ends_kube_proxy(
    version: str, gates: dict[str, bool], words: str
) -> None:
    """Trap 14."""
    node = Node(version=version)
    prepared(node)
    node.file(r"C:\k\kubeconfig", node.read(r"C:\k\bootstrap-kubeconfig"))
    node.file(r"C:\k\kube-proxy.yaml", {**PROXY_CONFIG, "featureGates": gates})

    node.kube_proxy()
    node.settle(2)

    assert words in node.log("kube-proxy")


def test_dsr_needs_its_gate_up_to_1_32() -> None:
    node = Node(version="1.32.9")
    prepared(node)
    node.file(r"C:\k\kubeconfig", node.read(r"C:\k\bootstrap-kubeconfig"))
    winkernel = {**PROXY_CONFIG["winkernel"], "enableDSR": True}
    node.file(r"C:\k\kube-proxy.yaml", {**PROXY_CONFIG, "winkernel": winkernel})

    node.kube_proxy()

    assert "WinDSR feature gate not enabled" in node.log("kube-proxy")


def vxlan(*, flannel: bool = True) -> Node:
    """A node on an overlay; before its flanneld starts where it has none."""
    node = Node(ClusterPlan(flannel={"Type": "vxlan", "VNI": 4096, "Port": 4789}))
    node.binaries()
    node.configuration()
    backend = {"Type": "vxlan", "VNI": 4096, "Port": 4789, "Name": "flannel.4096"}
    node.file(r"C:\etc\kube-flannel\net-conf.json", {"Network": "10.244.0.0/16", "Backend": backend})
    conf = conflist(type="win-overlay")
    node.file(CONF, {**conf, "name": "flannel.4096"})
    node.containerd()
    node.kubelet()
    node.settle(10)
    if flannel:
        node.flanneld()
        node.settle(60)
    return node


def test_an_overlay_works_and_is_gone_after_a_reboot_until_flanneld_makes_it_again() -> None:
    """Trap 15: flannel's overlay is not persistent."""
    node = vxlan()
    ready = node.ready()["status"]
    (before,) = node.machine.hns.networks

    node.machine.reboot()
    node.settle(300)

    (after,) = node.machine.hns.networks
    data = json.loads(node.node()["metadata"]["annotations"]["flannel.alpha.coreos.com/backend-data"])
    assert ready == "True"
    assert before != after
    assert data["VtepMAC"] and data["VNI"] == 4096


def test_an_overlay_needs_a_source_address(node: Node) -> None:
    overlay = vxlan()
    winkernel = {"networkName": "flannel.4096"}
    overlay.file(r"C:\k\kube-proxy.yaml", {**PROXY_CONFIG, "winkernel": winkernel})
    overlay.kube_proxy()
    overlay.settle(3)

    assert "source-vip flag not set" in overlay.log("kube-proxy")


def test_kube_proxy_waits_for_a_network_of_another_name(node: Node) -> None:
    node.join()
    node.sc("stop", "kube-proxy")
    node.file(r"C:\k\kube-proxy.yaml", {**PROXY_CONFIG, "winkernel": {"networkName": "l2bridge"}})
    node.sc("start", "kube-proxy")
    node.settle(5)

    assert "Unable to find HNS Network specified" in node.log("kube-proxy")


def test_a_second_outbound_nat_is_appended_when_the_networks_exception_is_missing(node: Node) -> None:
    node.join()
    policies = [{"Type": "OutBoundNAT", "Settings": {"Exceptions": ["10.96.0.0/12"]}}]
    node.file(CONF, conflist(policies=[{"name": "EndpointPolicy", "value": p} for p in policies]))
    node.admin(
        "POST",
        "/api/v1/namespaces/default/pods",
        {"metadata": {"name": "web"}, "spec": {"nodeName": "win-1", "containers": []}},
    )
    node.settle(20)

    pods = [
        e for e in node.machine.hns.endpoints.values() if e["Name"] != "cbr0_ep" and not e["IsRemoteEndpoint"]
    ]

    assert [p["Type"] for p in pods[0]["Policies"]].count("OutBoundNAT") == 2


def test_both_spellings_of_the_pipe_work(node: Node) -> None:
    prepared(node)
    for endpoint in ("npipe:////./pipe/containerd-containerd", "npipe://./pipe/containerd-containerd"):
        assert node.run(r"C:\k\crictl.exe", "--runtime-endpoint", endpoint, "version").code == 0


def test_a_pause_image_without_this_build_cannot_be_pulled() -> None:
    node = prepared(Node(release="2025"))
    node.outside.images.builds["registry.k8s.io/pause:old"] = (17763,)

    pulled = node.run(*CRICTL, "pull", "registry.k8s.io/pause:old")

    assert b"no match for platform in manifest" in pulled.stderr


def test_an_expired_token_is_an_unauthorized_loop(node: Node) -> None:
    prepared(node)
    node.settle(2 * 3600)

    node.kubelet()
    node.settle(20)

    assert node.log("kubelet").count("cannot create certificate signing request: Unauthorized") == 4
    assert not node.machine.files.exists(r"C:\var\lib\kubelet\pki\kubelet-client-current.pem")


def test_a_clock_far_behind_refuses_the_servers_certificate(node: Node) -> None:
    prepared(node)
    node.machine.skew = -2 * 3600.0
    node.kubelet()
    node.settle(10)

    assert "certificate has expired or is not yet valid" in node.log("kubelet")


def test_a_missing_plugin_is_named(node: Node) -> None:
    prepared(node)
    node.machine.files.delete(r"C:\opt\cni\bin\win-bridge.exe")
    node.kubelet()
    node.settle(10)
    node.flanneld()
    node.settle(30)

    assert 'failed to find plugin "win-bridge"' in node.ready()["message"]


def test_flanneld_without_its_rights_waits_and_says_so() -> None:
    bare = Node(ClusterPlan(grant_nodes=False))
    prepared(bare)
    bare.kubelet()
    bare.settle(10)
    bare.flanneld()
    bare.settle(10)

    assert 'User "system:node:win-1" cannot list resource "nodes"' in bare.log("flanneld")


def test_a_node_without_pod_network_ends_flanneld_again_and_again(node: Node) -> None:
    node.cluster.controllers.paused.add("nodeipam")
    prepared(node)
    node.kubelet()
    node.settle(10)
    node.flanneld()
    node.settle(30)

    assert "pod cidr not assigned" in node.log("flanneld")


def test_two_kubelets_fight_for_the_port(node: Node) -> None:
    node.join()

    assert node.service("kubelet2", *KUBELET) == 0
    assert "bind:" in node.log("kubelet")


def test_the_programs_of_another_version_say_so(node: Node) -> None:
    node.binaries()
    node.file(r"C:\k\kubelet.exe", program("kubelet", "1.33.0"))

    assert node.run(r"C:\k\kubelet.exe", "--version").stdout == b"Kubernetes v1.33.0\n"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("syncFrequency", "1 minute", r"time: unknown unit \" minute\" in duration \"1 minute\""),
        ("evictionHard", {"memory.available": "110%"}, "a percentage up to 100%"),
        ("serializeImagePulls", "yes", "KubeletConfiguration.serializeImagePulls of type bool"),
    ],
)
def test_a_kubelet_ends_on_a_value_that_its_field_does_not_take(
    node: Node, field: str, value: object, words: str
) -> None:
    """By its type or by its range; the service starts again and again, and no Node comes."""
    prepared(node)
    node.file(r"C:\var\lib\kubelet\config.yaml", {**KUBELET_CONFIG, field: value})

    node.kubelet()
    node.settle(3)

    assert words in node.log("kubelet")
    assert node.machine.services.need("kubelet").status == "Stopped"


def test_a_kube_proxy_ends_on_a_value_that_its_field_does_not_take(node: Node) -> None:
    """The same for its own configuration."""
    prepared(node)
    node.file(r"C:\k\kube-proxy.yaml", {**PROXY_CONFIG, "configSyncPeriod": 15})

    node.kube_proxy()
    node.settle(3)

    assert "configSyncPeriod: 15 is not valid, expected a duration" in node.log("kube-proxy")


def test_a_kubelet_ends_on_a_gate_that_is_on_while_the_one_it_needs_is_off() -> None:
    """From 1.36 on; GracefulNodeShutdown alone looks as if it were of Linux only."""
    node = prepared(Node(version="1.36.2"))
    gates = {"featureGates": {"GracefulNodeShutdown": False}}
    node.file(r"C:\var\lib\kubelet\config.yaml", {**KUBELET_CONFIG, **gates})

    node.kubelet()
    node.settle(3)

    assert "needs GracefulNodeShutdown, which is off" in node.log("kubelet")

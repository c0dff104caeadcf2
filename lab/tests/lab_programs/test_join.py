"""A lab machine with the right files and services becomes a Ready node, and says why when it does not."""

from __future__ import annotations

from datetime import timedelta

from winboot_lab.cluster.authority import load_certificate, subject_of

from lab_programs.conftest import Node, decode


def test_a_node_that_is_set_up_well_turns_ready(node: Node) -> None:
    node.join()

    found = node.node()

    assert node.ready()["reason"] == "KubeletReady"
    assert found["metadata"]["labels"]["pool"] == "windows"
    assert found["metadata"]["labels"]["node.kubernetes.io/windows-build"] == "10.0.20348"
    assert {"key": "os", "value": "windows", "effect": "NoSchedule"} in found["spec"]["taints"]
    assert found["status"]["nodeInfo"]["systemUUID"] == node.machine.hardware.uuid
    assert [a["address"] for a in found["status"]["addresses"]] == ["10.0.0.21", "win-1"]


def test_the_kubelet_bootstraps_once_and_then_uses_its_own_certificate(node: Node) -> None:
    node.join()
    pem = node.read(r"C:\var\lib\kubelet\pki\kubelet-client-current.pem")
    node.machine.files.delete(r"C:\k\bootstrap-kubeconfig")

    node.machine.reboot()
    node.settle(300)

    assert subject_of(load_certificate(pem)).common_name == "system:node:win-1"
    assert node.read(r"C:\var\lib\kubelet\pki\kubelet-client-current.pem") == pem
    assert node.machine.services.need("kubelet").status == "Running"
    assert node.ready()["status"] == "True"


def test_the_serving_certificate_waits_for_an_approval(node: Node) -> None:
    node.join()
    current = r"C:\var\lib\kubelet\pki\kubelet-server-current.pem"
    before = node.machine.files.exists(current)

    node.approve_all()
    node.settle(20)

    assert not before
    subject = subject_of(load_certificate(node.read(current)))
    assert (subject.dns_names, subject.addresses) == (("win-1",), ("10.0.0.21",))


def test_a_client_certificate_is_renewed_before_it_ends(node: Node) -> None:
    node.cluster.controllers.certificate_lifetime = timedelta(minutes=30)
    node.join()
    first = node.read(r"C:\var\lib\kubelet\pki\kubelet-client-current.pem")

    node.settle(27 * 60)

    second = node.read(r"C:\var\lib\kubelet\pki\kubelet-client-current.pem")
    assert first != second
    assert node.ready()["status"] == "True"


def test_flanneld_writes_its_lease_network_and_routes(node: Node) -> None:
    node.join()

    annotations = node.node()["metadata"]["annotations"]
    routes = [(r.prefix, r.next_hop) for r in node.machine.network.routes]

    assert annotations["flannel.alpha.coreos.com/backend-type"] == "host-gw"
    assert annotations["flannel.alpha.coreos.com/public-ip"] == "10.0.0.21"
    assert ("10.244.0.0/24", "10.0.0.10") in routes
    assert "FLANNEL_SUBNET=10.244.1.1/24" in node.read(r"C:\run\flannel\subnet.env")
    assert node.machine.network.holder("10.244.1.2") is not None


def test_kube_proxy_balances_the_services_it_sees(node: Node) -> None:
    node.join()

    balanced = str(node.machine.hns.tree()["policy lists"])  # type: ignore[call-overload]

    assert "10.96.0.1" in balanced and "10.96.0.10" in balanced


def test_a_pod_of_the_node_runs_with_an_address_and_is_gone_after_deletion(node: Node) -> None:
    node.join()
    pods = "/api/v1/namespaces/default/pods"
    node.pod("web")

    node.settle(15)
    pod = node.admin("GET", f"{pods}/web")
    node.admin("DELETE", f"{pods}/web")
    node.settle(15)

    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["podIP"].startswith("10.244.1.")
    assert node.run(r"C:\k\crictl.exe", "--config", r"C:\k\crictl.yaml", "pods", "--quiet").stdout == b""
    assert not node.machine.files.exists(rf"C:\var\lib\cni\networks\cbr0\{pod['status']['podIP']}")


def test_a_node_keeps_its_bridge_over_a_reboot_and_is_ready_again(node: Node) -> None:
    node.join()
    network = node.machine.hns.networks.copy()

    node.machine.reboot()
    node.settle(300)

    assert node.machine.hns.networks.keys() == network.keys()
    assert node.ready()["status"] == "True"


def test_kubectl_reads_the_node_with_the_kubelets_credentials(node: Node) -> None:
    node.join()
    kubectl = [
        r"C:\k\kubectl.exe",
        "--kubeconfig",
        r"C:\k\kubeconfig",
        "--request-timeout=10s",
        "get",
        "node",
    ]

    own = node.run(*kubectl, "win-1", "--ignore-not-found", "--output", "json")
    other = node.run(*kubectl, "nobody", "--ignore-not-found", "--output", "json")

    assert own.code == 0 and b'"podCIDR": "10.244.1.0/24"' in own.stdout
    assert (other.code, other.stdout) == (0, b"")


def test_the_pause_image_is_pulled_once_and_listed(node: Node) -> None:
    node.binaries()
    node.configuration()
    node.containerd()
    crictl = [r"C:\k\crictl.exe", "--config", r"C:\k\crictl.yaml"]

    pulled = node.run(*crictl, "--timeout", "600s", "pull", "registry.k8s.io/pause:3.10")
    listed = node.run(*crictl, "images", "--output", "json")

    assert pulled.code == 0
    assert b'"registry.k8s.io/pause:3.10"' in listed.stdout


def test_a_secret_never_leaves_the_bootstrap_file(node: Node) -> None:
    node.join()
    node.machine.files.delete(r"C:\k\bootstrap-kubeconfig")

    everything = str(node.machine.snapshot())

    assert "0123456789abcdef" not in everything
    assert decode("MDEyMzQ1Njc4OWFiY2RlZg==") == "0123456789abcdef"

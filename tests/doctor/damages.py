"""The table of damages: what happens to a healthy node, and the rule that is its first cause."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from winboot_lab.cluster.kinds import NODES
from winboot_lab.programs.flanneld import Flanneld

from tests.lab import actions
from tests.lab.actions import (
    CLIENT,
    STATE,
    Hand,
    all_of,
    append,
    certificate,
    delete,
    delete_node,
    endpoint,
    kubeconfig,
    network,
    patch_node,
    patch_status,
    regedit,
    remove_network,
    sc,
    stop,
    taints,
    with_bom,
    write,
)
from tests.lab.site import Site

CNI: Final = r"C:\etc\cni\net.d"
CONFLIST: Final = rf"{CNI}\10-flannel.conflist"
STORE: Final = r"C:\var\lib\cni\networks\cbr0"
LOGS: Final = r"C:\var\log"
FLAGS: Final = r"C:\var\lib\kubelet\kubeadm-flags.env"
SERVICES: Final = r"SYSTEM\CurrentControlSet\Services"
CURRENT: Final = r"SOFTWARE\Microsoft\Windows\CurrentVersion"
SESSION: Final = r"SYSTEM\CurrentControlSet\Control\Session Manager"


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to win-1, and the id of the rule that doctor names first."""

    rule: str
    do: Hand
    site: str = "plain"


def _log(service: str, text: str) -> Hand:
    """The service logged this a moment ago."""

    def hand(site: Site) -> None:
        path = site.specs()[0].services[service].log_file
        append(path, f"E0304 05:06:07.000000    1234 a.go:1] {text}\r\n")(site)

    return hand


def _event(source: str, id: int, *words: str, times: int = 1) -> Hand:
    def hand(site: Site) -> None:
        for _ in range(times):
            site.machine.events.write("System", source, id, " ".join(words), "Error")

    return hand


def _registry(path: str, name: str, kind: Any, data: Any) -> Hand:
    return regedit(path, name, kind, data)


def _key(path: str) -> Hand:
    """A registry key whose presence means something."""
    return lambda site: site.machine.registry.create(rf"HKEY_LOCAL_MACHINE\{path}")


def _service(name: str, **state: Any) -> Hand:
    """A service is in another state; nothing starts it again meanwhile."""

    def hand(site: Site) -> None:
        found = site.machine.services.need(name)
        for key, value in state.items():
            setattr(found, key, value)

    return hand


def _feature(site: Site) -> None:
    found = site.machine.features.optional("Containers")
    assert found is not None
    found.state = "InstallPending"
    delete(r"C:\ProgramData\winboot\features.json")(site)


def _no_gateway(site: Site) -> None:
    actions.guard_away(site)
    net = site.machine.network
    for route in [one for one in net.routes if one.prefix == "0.0.0.0/0"]:
        net.remove_route(route)


def _no_dns(site: Site) -> None:
    actions.guard_away(site)
    for adapter in site.machine.network.adapters:
        adapter.dns, adapter.dhcp_dns = [], []


def _off(site: Site) -> None:
    site.machine.power_off()
    site.settle(120)


def _management(address: str) -> Hand:
    return network(lambda found: found.update(ManagementIP=address))


def _hang(site: Site) -> None:
    """flanneld does nothing more: otherwise it puts right what is wrong."""
    Flanneld._keep_up = lambda self: None  # type: ignore[method-assign]


def _fill_store(site: Site) -> None:
    base = str(site.node()["spec"]["podCIDR"]).rpartition(".")[0]
    for last in range(1, 255):
        write(rf"{STORE}\{base}.{last}", "ab" * 32 + "\r\neth0")(site)


def _taint(key: str) -> Hand:
    def hand(site: Site) -> None:
        wanted = [*taints(site), {"key": key, "value": "true", "effect": "NoSchedule"}]
        patch_node({"spec": {"taints": wanted}})(site)

    return hand


def _without_taints(site: Site) -> None:
    patch_node({"spec": {"taints": []}})(site)


def _pod_cidr(cidr: str | None) -> Hand:
    """The Node came back with another pod CIDR, or with none."""

    def hand(site: Site) -> None:
        _hang(site)
        found = next(one for one in site.cluster.objects(NODES) if one["metadata"]["name"] == "win-1")
        found["spec"] |= {"podCIDR": cidr, "podCIDRs": [cidr]} if cidr else {}
        if cidr is None:
            found["spec"].pop("podCIDR", None)
            found["spec"].pop("podCIDRs", None)
        site.cluster.store.replace(NODES, found)

    return hand


def _balancer(edit: Callable[[dict[str, Any]], object]) -> Hand:
    def hand(site: Site) -> None:
        edit(next(iter(site.machine.hns.policy_lists.values())))

    return hand


def _no_dns_balancer(site: Site) -> None:
    hns = site.machine.hns
    for one in list(hns.policy_lists.values()):
        if "10.96.0.10" in one["Policies"][0]["VIPs"]:
            del hns.policy_lists[one["ID"]]


def _pod_endpoint(edit: Callable[[dict[str, Any]], object]) -> Hand:
    """The endpoint of a pod: a copy of the host's, attached as a pod's are."""

    def hand(site: Site) -> None:
        hns = site.machine.hns
        own = hns.by_name(hns.endpoints, "cbr0_ep")
        assert own is not None
        base = str(site.node()["spec"]["podCIDR"]).rpartition(".")[0]
        nat = {"Type": "OutBoundNAT", "Exceptions": ["10.244.0.0/16"]}
        pod = json.loads(json.dumps(own)) | {
            "ID": "11111111-2222-4333-8444-555555555555",
            "Name": "pod",
            "IPAddress": f"{base}.9",
            "DNSServerList": "10.96.0.10",
            "State": 3,
            "Policies": [nat],
        }
        edit(pod)
        hns.endpoints[pod["ID"]] = pod

    return hand


def _other_cni_file(site: Site) -> None:
    write(rf"{CNI}\00-other.conflist", json.dumps({"cniVersion": "0.3.0", "name": "other", "plugins": []}))(
        site
    )


def _pending(signer: str) -> Hand:
    """A request for this node's name that nothing approves; another user made it, as a bootstrap token does."""

    def hand(site: Site) -> None:
        listed = site.admin("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests")["items"]
        serving = next(one for one in listed if one["spec"]["signerName"] == signer)
        old = json.loads(json.dumps(serving))
        old["metadata"] = {"name": "csr-old"}
        old["status"] = {}
        site.admin("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", old)
        site.settle(120)

    return hand


def _vtep(site: Site) -> None:
    data = json.dumps({"VNI": 4096, "VtepMAC": "00:15:5d:ff:ff:ff"})
    _hang(site)
    patch_node({"metadata": {"annotations": {"flannel.alpha.coreos.com/backend-data": data}}})(site)


def _no_source_vip(site: Site) -> None:
    folder = site.specs()[0].network.ipam_store
    for path in [rf"{folder}\{one.name}" for one in site.machine.files.list(folder)]:
        if "source-vip" in site.machine.files.text(path):
            delete(path)(site)


def _loose_daemon_set(site: Site) -> None:
    pod = {"containers": [{"name": "a", "image": "a"}], "tolerations": [{"operator": "Exists"}]}
    labels = {"matchLabels": {"app": "a"}}
    site.admin(
        "POST",
        "/apis/apps/v1/namespaces/kube-system/daemonsets",
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "loose", "namespace": "kube-system"},
            "spec": {
                "selector": labels,
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod},
            },
        },
    )


def _second_kubelet(site: Site) -> None:
    """An administrator started the program by hand, too."""
    processes = site.machine.processes
    running = processes.named("kubelet")[0]
    processes.logon_process(running.path, running.token)


def _docker(site: Site) -> None:
    services = site.machine.services
    services.create("docker", r"C:\Windows\System32\vmcompute.exe")
    _service("docker", status="Running")(site)


def _apipa(site: Site) -> None:
    actions.guard_away(site)
    adapter = site.machine.network.management()
    assert adapter is not None
    adapter.addresses.append(dataclasses.replace(adapter.addresses[-1], ip="169.254.3.4", prefix_length=16))


def _no_program(site: Site) -> None:
    stop("kubelet")(site)
    path = site.specs()[0].paths.kubelet
    delete(path)(site)


def _crash_loop(site: Site) -> None:
    display = site.specs()[0].services["kube-proxy"].display_name
    stop("kube-proxy")(site)
    site.settle(1)
    sc("start", "kube-proxy")(site)
    for _ in range(5):
        site.machine.events.write("System", "Service Control Manager", 7034, "x", "Error", (display, "1"))


def _timeout(site: Site) -> None:
    display = site.specs()[0].services["kubelet"].display_name
    stop("kubelet")(site)
    site.machine.events.write("System", "Service Control Manager", 7009, "x", "Error", ("30000", display))


def _hns_crashed(site: Site) -> None:
    site.machine.services.need("hns").display = "Hostnetzwerkdienst"
    site.machine.events.write(
        "System", "Service Control Manager", 7031, "x", "Error", ("Hostnetzwerkdienst", "1")
    )


def _no_pause_image(site: Site) -> None:
    paths = site.specs()[0].paths
    image = site.specs()[0].runtime.pause_image
    actions.program(site, paths.crictl, "--config", paths.crictl_config, "rmi", image)


def _no_routes(site: Site) -> None:
    _hang(site)
    for route in [one for one in site.machine.network.routes if one.next_hop == "10.0.1.12"]:
        site.machine.network.remove_route(route)


def _no_remotes(site: Site) -> None:
    _hang(site)

    def edit(found: dict[str, Any]) -> None:
        found["Policies"] = [
            one for one in found["Policies"] if one.get("DestinationPrefix") != "10.244.2.0/24"
        ]

    network(edit, "flannel.4096")(site)


def _shims(site: Site) -> None:
    for number in range(3):
        site.machine.processes.add(
            "containerd-shim-runhcs-v1", rf"C:\k\{number}\containerd-shim-runhcs-v1.exe", "x"
        )


def _kubelet_version(site: Site) -> None:
    info = site.node()["status"]["nodeInfo"] | {"kubeletVersion": "v1.99.0"}
    patch_status({"nodeInfo": info})(site)


def _condition(type: str, status: str, reason: str) -> Hand:
    return patch_status(
        {"conditions": [{"type": type, "status": status, "reason": reason, "message": reason}]}
    )


def _without_api(site: Site) -> None:
    site.internet.close("10.0.0.10", 6443)


def _no_balancers(site: Site) -> None:
    site.machine.hns.policy_lists.clear()


def _lost(site: Site) -> None:
    """The kubelet runs, and the cluster receives no report from it."""
    found = next(one for one in site.cluster.objects(NODES) if one["metadata"]["name"] == "win-1")
    for one in found["status"]["conditions"]:
        if one["type"] == "Ready":
            one |= {
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
            }
    site.cluster.store.replace(NODES, found)


def _cni_elsewhere(site: Site) -> None:
    """containerd looks for its CNI configuration in another folder."""
    path = site.specs()[0].paths.containerd_config
    actions.replace(path, CNI, r"C:\elsewhere")(site)
    stop("containerd")(site)
    for name in ("containerd", "kubelet", "flanneld", "kube-proxy"):
        sc("start", name)(site)
    site.settle(60)


DAMAGES: Final = (
    Damage("no-address", _apipa),
    Damage("api-unreachable", _without_api),
    Damage("docker-beside", _docker),
    Damage("hns-crashed", _hns_crashed),
    Damage("program-missing", _no_program),
    Damage("service-timeout", _timeout),
    Damage("service-restarts", _crash_loop),
    Damage(
        "service-waits",
        all_of(
            stop("kubelet"),
            regedit(rf"{SERVICES}\kubelet", "DependOnService", "MultiString", ["NoSuchService"]),
        ),
    ),
    Damage("pause-image", _no_pause_image),
    Damage(
        "proxy-forbidden",
        all_of(_no_balancers, _log("kube-proxy", "services is forbidden: User x cannot list")),
    ),
    Damage("kubelet-lost", _lost),
    Damage("cni-not-ready", _cni_elsewhere),
    Damage("network-type", network(lambda found: found.update(Type="Overlay"))),
    Damage("leaked-shims", _shims),
    Damage("sibling-route", _no_routes, site="bridge"),
    Damage("sibling-remote", _no_remotes, site="overlay"),
    Damage("kubelet-too-new", _kubelet_version),
    Damage("network-unavailable", _condition("NetworkUnavailable", "True", "NoRouteCreated")),
    Damage("node-not-ready", _condition("Ready", "False", "KubeletNotReady")),
    Damage("kubelet-silent", _off),
    Damage("os-update", _registry(r"SOFTWARE\Microsoft\Windows NT\CurrentVersion", "UBR", "DWord", 2582)),
    Damage(
        "os-build",
        _registry(r"SOFTWARE\Microsoft\Windows NT\CurrentVersion", "CurrentBuildNumber", "String", "14393"),
    ),
    Damage("containers-feature", _feature),
    Damage("clock-off", lambda site: site.machine.faults.skew(-1800)),
    Damage("disk-full", lambda site: site.machine.faults.disk_full(free=1_000_000_000)),
    Damage(
        "computer-name",
        lambda site: site.machine.power.rename("OTHER") or site.machine.reboot() or site.settle(200),
    ),
    Damage("no-page-file", _registry(rf"{SESSION}\Memory Management", "PagingFiles", "MultiString", [])),
    Damage("low-memory", _event("Microsoft-Windows-Resource-Exhaustion-Detector", 2004)),
    Damage("unexpected-restart", _event("EventLog", 6008)),
    Damage("restart-pending", _key(rf"{CURRENT}\WindowsUpdate\Auto Update\RebootRequired")),
    Damage(
        "other-tool",
        all_of(
            _registry(rf"{SERVICES}\kubelet", "Description", "String", "The kubelet."),
            delete(rf"{STATE}\former\kubelet.jsonl"),
        ),
    ),
    Damage(
        "kubeadm-conflict",
        write(rf"{STATE}\adoption.json", json.dumps([{"path": FLAGS, "written": "1"}])),
    ),
    Damage("path-too-long", _registry(rf"{SESSION}\Environment", "Path", "ExpandString", r"C:\a;" * 500)),
    Damage("firewall-policy", lambda site: site.machine.faults.policy_without_local_rules()),
    Damage("no-gateway", _no_gateway),
    Damage("no-dns-server", _no_dns),
    Damage("hns-stopped", _service("hns", status="Stopped")),
    Damage("vmcompute-stopped", _service("vmcompute", status="Stopped")),
    Damage("firewall-stopped", _service("mpssvc", status="Stopped")),
    Damage("service-missing", all_of(stop("kube-proxy"), sc("delete", "kube-proxy"))),
    Damage("service-deleted", _registry(rf"{SERVICES}\kube-proxy", "DeleteFlag", "DWord", 1)),
    Damage("service-paused", _service("kubelet", status="Paused")),
    Damage("service-disabled", sc("config", "kubelet", "start=", "disabled")),
    Damage("service-stopped", stop("kubelet")),
    Damage("service-manual", sc("config", "kubelet", "start=", "demand")),
    Damage(
        "unknown-flag", all_of(stop("kubelet"), _log("kubelet", "unknown flag: --pod-infra-container-image"))
    ),
    Damage("unknown-gate", all_of(stop("kubelet"), _log("kubelet", "unrecognized feature gate: WinDSR"))),
    Damage("kubelet-config", all_of(stop("kubelet"), _log("kubelet", "failed to validate kubelet flags: x"))),
    Damage(
        "port-bound",
        all_of(stop("kubelet"), _log("kubelet", "tcp :10250: bind: Only one usage of each socket address")),
    ),
    Damage(
        "containerd-config",
        all_of(stop("containerd"), _log("containerd", "invalid plugin config: `mirrors` cannot be set when")),
    ),
    Damage("second-process", _second_kubelet),
    Damage("cni-file-mark", with_bom(CONFLIST)),
    Damage("cni-file-invalid", write(CONFLIST, "{")),
    Damage("cni-other-file", _other_cni_file),
    Damage("cni-missing", delete(CONFLIST)),
    Damage("other-os", _log("kubelet", "Das Betriebssystem des Containers passt nicht. (0xc0370101)")),
    Damage("no-platform", _log("containerd", "no match for platform in manifest: not found")),
    Damage("proxy-refuses", _log("containerd", "proxyconnect tcp: dial tcp: i/o timeout")),
    Damage("registry-ca", _log("containerd", "x509: certificate signed by unknown authority")),
    Damage("cni-plugin", _log("containerd", r"failed to find plugin \"flannel\" in path [C:\\bin]")),
    Damage("no-memory", _log("containerd", "The paging file is too small for this operation")),
    Damage("sandbox-stuck", _log("kubelet", "failed to reserve sandbox name: name is reserved")),
    Damage("layer-refused", _log("containerd", "hcsshim::PrepareLayer failed in Win32: x (0x1)")),
    Damage("port-taken", _log("kube-proxy", "hcnCreateLoadBalancer failed in Win32: x (0x803b0013)")),
    Damage("containerd-panic", write(r"C:\ProgramData\containerd\root\panic.log", "panic: x")),
    Damage(
        "other-cluster",
        kubeconfig(lambda d: d["clusters"][0]["cluster"].update(server="https://10.9.9.9:6443")),
    ),
    Damage("certificate-expired", certificate(age=timedelta(days=400), days=30)),
    Damage("certificate-broken", write(CLIENT, "no certificate")),
    Damage(
        "token-refused",
        all_of(delete(CLIENT), _log("kubelet", "cannot create certificate signing request: Unauthorized")),
    ),
    Damage("no-credentials", delete(CLIENT)),
    Damage("no-serving-certificate", delete(r"C:\var\lib\kubelet\pki\kubelet-server-current.pem")),
    Damage("request-pending", _pending("kubernetes.io/kubelet-serving")),
    Damage("no-pod-cidr", _pod_cidr(None)),
    Damage("network-missing", all_of(_hang, actions.guard_away, remove_network())),
    Damage(
        "hns-object-exists",
        all_of(
            _hang,
            actions.guard_away,
            remove_network(),
            _log("flanneld", "HNS failed: (0x803b0010)"),
        ),
    ),
    Damage("network-type", network(lambda found: found.update(Type="Overlay"))),
    Damage("network-subnet", _pod_cidr("10.244.77.0/24")),
    Damage("network-address", _management("169.254.7.7")),
    Damage("subnet-env-missing", all_of(_hang, delete(r"C:\run\flannel\subnet.env"))),
    Damage(
        "subnet-env-other",
        all_of(
            _hang,
            write(
                r"C:\run\flannel\subnet.env", "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.99.1/24\n"
            ),
        ),
    ),
    Damage("overlay-router", _vtep, site="vxlan"),
    Damage("firewall-rule", lambda site: site.machine.firewall.remove("winboot-kubelet")),
    Damage("no-forwarding", actions.forwarding_off("10.0.1.11")),
    Damage("endpoint-detached", endpoint(lambda hns, found: hns.detach(found))),
    Damage("pods-without-nat", _pod_endpoint(lambda pod: pod.update(Policies=[]))),
    Damage("pods-other-dns", _pod_endpoint(lambda pod: pod.update(DNSServerList="8.8.8.8"))),
    Damage("addresses-used-up", _fill_store),
    Damage("no-source-vip", _no_source_vip, site="vxlan"),
    Damage("balancer-broken", _balancer(lambda one: one.update(State=1))),
    Damage("dns-service-missing", _no_dns_balancer),
    Damage(
        "ports-used-up",
        actions.system("netsh", "int", "ipv4", "set", "dynamicport", "udp", "start=49152", "num=255"),
    ),
    Damage("node-missing", delete_node),
    Damage("cloud-taint", _taint("node.cloudprovider.kubernetes.io/uninitialized")),
    Damage("startup-taint", _taint("winboot.io/starting")),
    Damage("node-address", patch_status({"addresses": [{"type": "InternalIP", "address": "10.0.9.9"}]})),
    Damage("node-cordoned", patch_node({"spec": {"unschedulable": True}})),
    Damage("taint-missing", _without_taints),
    Damage("loose-daemon-sets", _loose_daemon_set),
)


# Rules that no damage of the lab shows, and why.
ELSEWHERE: Final[Mapping[str, str]] = {
    "runtime-silent": "tests/doctor/test_rules.py: in the lab a containerd that runs answers",
}

"""docs/seeds.md: every reference in the map of what was asked for leads to something that exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import typer

from tests.every import assert_none_wrong
from winboot.config.compat import load
from winboot.config.inventory import HostKeys
from winboot.config.model import model_at
from winboot.config.networks import NETWORKS
from winboot.config.profile import Profile
from winboot.operations.doctor.rules import RULES
from winboot.operations.verify.flows import FLOWS, LIMITATIONS
from winboot.remote.manifests import MANIFESTS
from winboot.script.steps import STEPS

PAGE = Path(__file__).parents[2] / "docs" / "seeds.md"
FACTS = load()
# What the sources name, by the first words of its row: systems, modes, flags, services, troubles and flows.
NAMED = [
    *("Windows Server 2019", "Semi-annual releases", "Windows Server 2016", "Insider builds"),
    *("L2bridge", "L2tunnel", "Overlay", "Transparent", "NAT"),
    *("win-bridge", "win-overlay", "Azure-CNI", "Flannel host-gateway", "Flannel VXLAN", "Calico", "OVS"),
    *(
        "Session affinity",
        "Direct server return",
        "Preserve-destination",
        "IPv4 and IPv6 together",
        "Local traffic policy",
    ),
    *(
        "Pod to pod, by address",
        "Pod to pod, by name",
        "Pod to service, by cluster IP",
        "Pod to service, by short name",
    ),
    *("Pod to service, by full name", "Pod to the outside, by address", "Pod to the outside, by name"),
    *("Node to pod", "Pod to node"),
    *(
        "--hostname-override",
        "--pod-infra-container-image",
        "--resolv-conf",
        "--allow-privileged",
        "--cluster-dns",
    ),
    *("--hairpin-mode", "--image-pull-progress-deadline", "--cgroups-per-qos", "--enforce-node-allocatable"),
    *("--log-dir", "--network-plugin", "--register-with-taints", "--windows-priorityclass", "--service"),
    *(
        "--kubelet-reserve",
        "--eviction-hard",
        "--proxy-mode",
        "--enable-dsr",
        "--network-name",
        "--source-vip",
    ),
    *("--cluster-cidr", "--feature-gates", "flanneld --kubeconfig-file"),
    *("Native services with sc.exe", "nssm.exe", "kubelet", "kube-proxy", "flanneld"),
    *("How do I know that start.ps1", "Can node processes run as services", "Pods have no connectivity"),
    *(
        "Pods cannot ping",
        "The node cannot use its own NodePort",
        "vNICs and HNS endpoints",
        "flannel after rejoining",
    ),
    *(
        "flanneld waits",
        "subnet.env is missing",
        "The node cannot use service addresses",
        "No network adapter",
    ),
    *(
        "Pods stuck",
        "DNS does not work",
        "port-forward",
        "The node is behind a proxy",
        "What is a pause container",
    ),
    *(
        "Docker EE",
        "containerd 1.4",
        "Hyper-V isolation",
        "A page file",
        "CSI plugins",
        "FlexVolume",
        "runAsUserName",
    ),
    *(
        "Group managed service accounts",
        "win-webserver",
        "LogMonitor",
        "Taints and tolerations",
        "RuntimeClass",
        "kubeadm",
    ),
    *("Secrets in clear text", "Volume mounts", "Linux security context", "hostIPC", "Termination grace"),
    *("CPU and memory limits", "CNI specification", "Services of type", "nssm AppDirectory", "start-kubelet"),
    *("register-svc.ps1: NetworkMode", "register-svc.ps1: ManagementIP", "register-svc.ps1: ClusterCIDR"),
    *("register-svc.ps1: KubeDnsServiceIP", "register-svc.ps1: LogDir", "start.ps1: InterfaceName"),
    *("beta.kubernetes.io/os", "kubectl exec", "nodeSelector", "Linux containers on Windows", "HugePages"),
    *("Node problem detector", "In-tree volumes", "Up to 64 backends", "Session affinity with a time-out"),
    *("IPv6 alone", "DNS: one suffix", "DNS through CNI", "gate HyperVContainer", "gate WinOverlay"),
    *("gate IPv6DualStack", "Version skew", "Host and image", "Control plane on Linux", "Cluster API"),
    *("Active Directory", "AWS with kops", "Conformance", "Guessing the pod CIDR", "The network set-up"),
    *("--kubeconfig", "--v", "--enable-debugging-handlers", "--cluster-domain", "--allow-privileged"),
]


def _rows() -> list[tuple[str, str]]:
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [row for row in rows if row[0] not in ("named", "---")]


@cache
def _commands() -> set[str]:
    from winboot.cli.commands import register

    app = typer.Typer()
    register(app, [])
    return {one.name or "" for one in app.registered_commands} | {
        one.name or "" for one in app.registered_groups
    }


def _has_key(model: type, path: str) -> bool:
    *above, last = path.split(".")
    owner = model_at(model, tuple(above))
    return owner is not None and last in owner.model_fields


CATALOGUES = {
    "step": {step.name for step in STEPS},
    "network": {network.id for network in NETWORKS},
    "manifest": {one.name for one in MANIFESTS},
    "flow": {one.id for one in FLOWS} | set(LIMITATIONS),
    "doctor": {one.id for one in RULES},
    "fix": set(FACTS.section("fixes")),
    "feature": set(FACTS.section("features")),
    "gate": set(FACTS.section("gates")),
    "kubelet": {f"--{flag}" for flag in FACTS.section("kubelet_flags")},
    "kube-proxy": {f"--{flag}" for flag in FACTS.section("kube_proxy_flags")},
}


def _exists(reference: str) -> bool:
    kind, _, name = reference.replace(": ", " ", 1).partition(" ")
    if kind == "profile":
        return _has_key(Profile, name)
    if kind == "inventory":
        return _has_key(HostKeys, name)
    if kind == "winboot":
        return name in _commands()
    return name in CATALOGUES[kind]


_KINDS = (
    "profile: ",
    "inventory: ",
    "winboot ",
    *(f"{kind}: " for kind in CATALOGUES),
    "kubelet --",
    "kube-proxy --",
)


def _wrong(answer: str) -> list[str]:
    references = [word for word in re.findall(r"`([^`]+)`", answer) if word.startswith(_KINDS)]
    if not references and not re.search(r"\b(later|not on this OS)\b", answer):
        return ["it has no reference"]
    return [reference for reference in references if not _exists(reference)]


def test_each_row_leads_somewhere() -> None:
    """All its references exist; a row without any says later, or that this OS has no such thing."""
    assert_none_wrong({f"{name}: {answer}": _wrong(answer) for name, answer in _rows()})


def test_what_the_sources_name_has_its_row() -> None:
    """The list of systems, modes, flags, services, troubles and flows."""
    rows = _rows()

    assert_none_wrong(
        {name: "" if any(row[0].startswith(name) for row in rows) else "no row" for name in NAMED}
    )


def test_each_flow_that_verify_tries_or_names_has_its_row() -> None:
    """And each limitation of Windows."""
    text = PAGE.read_text(encoding="utf-8")

    assert [id for id in sorted(CATALOGUES["flow"]) if f"`flow: {id}`" not in text] == []

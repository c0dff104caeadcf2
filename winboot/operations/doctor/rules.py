"""The rules: one function each, in the order in which causes come before their consequences.

A rule yields its evidence, a sentence each; nothing if it does not fire. Its source names where the rule is from. A rule
whose subject was not read does not fire.

More than 800 lines: the order of the rules is the order of the causes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from winboot.base.clock import clock_level
from winboot.config.compat.facts import load
from winboot.config.compat.platform import bad_updates
from winboot.config.networks import hns_owners
from winboot.node.probes import FREE_BLOCKS, free_blocks
from winboot.operations.doctor.subject import Subject, within

Layer = Literal[
    "access",
    "machine",
    "windows",
    "services",
    "runtime",
    "credentials",
    "kubelet",
    "network",
    "proxy",
    "node",
]
Severity = Literal["fault", "degraded", "warning"]
Check = Callable[[Subject], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """`step`: the step whose repair fixes it, `*` for a whole repair, empty if a person must; `drain`: the repair ends pods.
    `explains`: rules or layers that follow from it, None for those of its layer."""

    id: str
    layer: Layer
    severity: Severity
    title: str
    fix: str
    source: str
    check: Check
    step: str = ""
    drain: bool = False
    explains: frozenset[str] | None = None


_FOUND: Final[list[Rule]] = []


def _rule(
    id: str,
    layer: Layer,
    severity: Severity,
    title: str,
    fix: str,
    source: str,
    *,
    step: str = "",
    drain: bool = False,
    explains: tuple[str, ...] | None = None,
) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        caused = None if explains is None else frozenset(explains)
        _FOUND.append(Rule(id, layer, severity, title, fix, source, check, step, drain, caused))
        return check

    return register


# ---- access ---------------------------------------------------------------------------------------------


@_rule(
    "kubelet-silent",
    "access",
    "fault",
    "the kubelet stopped reporting and winboot cannot log in to the machine",
    "Look at the machine's console: is the machine on, and does it have its address?",
    "kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go, tryUpdateNodeHealth",
)
def _kubelet_silent(s: Subject) -> Iterator[str]:
    if s.node is not None and s.node.silent_since and not s.document.login:
        yield f"the kubelet has not reported since {s.node.silent_since[:19]}"


# ---- machine --------------------------------------------------------------------------------------------


@_rule(
    "other-tool",
    "machine",
    "warning",
    "another tool made this node",
    "doctor, verify and status only read. `winboot join --adopt --drain` takes the node over.",
    "sig-windows-tools hostprocess/PrepareNode.ps1; image-builder roles/kubernetes; aks-engine windowskubeletfunc.ps1",
    # What winboot would have installed is missing there, and files are believed only where winboot closed their folders.
    explains=("program-missing", "runtime-silent", "certificate-broken", "firewall-rule", "taint-missing"),
)
def _other_tool(s: Subject) -> Iterator[str]:
    maker = s.one("maker")
    if maker is not None and maker["what"]:
        yield f"the node was made by {maker['what']}"


@_rule(
    "kubeadm-conflict",
    "machine",
    "fault",
    "kubeadm changed this node after winboot took the node over",
    "Set the node's version in the profile and run `winboot join --adopt`; or run `winboot remove`.",
    "kubernetes cmd/kubeadm/app/phases/kubelet/flags.go; cmd/reset.go",
    explains=("services", "credentials", "kubelet", "node"),
)
def _kubeadm_conflict(s: Subject) -> Iterator[str]:
    maker = s.one("maker")
    for path in maker["changed"] if maker is not None else ():
        yield f"{path} was written or deleted"


@_rule(
    "os-build",
    "machine",
    "fault",
    "a machine with this Windows build cannot be a node",
    "Use Windows Server 2019, 2022 or 2025.",
    "kubernetes-sigs/sig-windows-tools hack/DebugWindowsNode.ps1",
)
def _os_build(s: Subject) -> Iterator[str]:
    system = s.one("system")
    if system is not None and system["build"] not in (17763, 20348, 26100):
        yield f"the build is {system['build']}"


@_rule(
    "os-update",
    "machine",
    "degraded",
    "an installed Windows update breaks containers",
    "Drain the node, install a later cumulative update, and restart the machine.",
    "microsoft/Windows-Containers#516, projectcalico/calico#9019",
)
def _os_update(s: Subject) -> Iterator[str]:
    for system in s.rows("system"):
        for one in bad_updates(load(), system["build"]):
            if one.first <= system["revision"] < one.fixed:
                yield f"{one.kb}: {one.what}; {one.fixed_kb} corrects it"


@_rule(
    "containers-feature",
    "machine",
    "fault",
    "the Windows feature Containers is not on",
    "If the feature waits for a restart, restart the machine; otherwise repair windows-features.",
    "openshift/windows-machine-config-operator, sig-windows-tools PrepareNode.ps1",
    step="windows-features",
)
def _containers_feature(s: Subject) -> Iterator[str]:
    system = s.one("system")
    if system is not None and system["containers"] not in ("Enabled", ""):
        yield f"the feature is {system['containers']}"


@_rule(
    "clock-off",
    "machine",
    "fault",
    "the machine's clock differs from the cluster's",
    "Run `w32tm /resync /force` on the machine, and set its time source (windows.time_servers).",
    "go crypto/x509 verify.go: certificates are not yet valid or have expired",
    step="system-settings",
    explains=("credentials", "kubelet", "node"),
)
def _clock_off(s: Subject) -> Iterator[str]:
    for one in s.rows("clock"):
        off = abs(datetime.fromisoformat(one["now"].replace("Z", "+00:00")) - s.taken)
        if clock_level(max(off - timedelta(seconds=s.document.margin_s), timedelta())) == "error":
            yield f"the clock is {off.total_seconds():.0f} seconds off"


@_rule(
    "disk-full",
    "machine",
    "fault",
    "a drive of the node is nearly full",
    "Run `crictl rmi --prune` on the node, remove old logs, or extend the drive.",
    "Azure/AgentBaker staging/cse/windows: partition is extended; kubelet eviction nodefs.available 10 %",
)
def _disk_full(s: Subject) -> Iterator[str]:
    for one in s.rows("disk"):
        if one["size"] and one["free"] / one["size"] < 0.10:
            yield f"{100 * one['free'] // one['size']} % of {one['drive']} is free"


@_rule(
    "computer-name",
    "machine",
    "fault",
    "the computer name is not the node's name",
    "If a rename waits for a restart, restart the machine; otherwise run `winboot repair`.",
    "kubernetes pkg/util/node GetHostname; cloudbase-init names machines at their first boot",
    step="computer-name",
)
def _computer_name(s: Subject) -> Iterator[str]:
    system = s.one("system")
    own = s.expected.computer_name
    if system is not None and system["name"].lower() != own.lower():
        yield f"the computer name is {system['name']} instead of {own}"


@_rule(
    "no-page-file",
    "machine",
    "degraded",
    "the machine has no page file",
    "Set windows.page_file_mib in the profile, then repair system-settings.",
    "kubernetes.io Windows containers: Windows has no out-of-memory killer",
    step="system-settings",
)
def _no_page_file(s: Subject) -> Iterator[str]:
    system = s.one("system")
    if system is not None and not system["page_file"].strip():
        yield "PagingFiles is empty"


@_rule(
    "low-memory",
    "machine",
    "degraded",
    "Windows ran out of memory",
    "Lower the pods' memory, raise systemReserved, or extend the page file.",
    "Azure/AgentBaker collect-windows-logs.ps1, event 2004 of Resource-Exhaustion-Detector",
)
def _low_memory(s: Subject) -> Iterator[str]:
    if count := sum(s.events(2004).values()):
        yield f"event 2004 came {count} times in the last day"


@_rule(
    "unexpected-restart",
    "machine",
    "warning",
    "the machine stopped without a shutdown",
    "Read the System log around event 6008, and the file MEMORY.DMP if Windows wrote one.",
    "Azure/AgentBaker collect-windows-logs.ps1, event 6008 of EventLog",
)
def _unexpected_restart(s: Subject) -> Iterator[str]:
    if count := sum(s.events(6008).values()):
        yield f"event 6008 came {count} times in the last day"


@_rule(
    "restart-pending",
    "machine",
    "warning",
    "Windows waits for a restart",
    "Drain and restart the node in a maintenance window.",
    "Windows servicing: Component Based Servicing\\RebootPending, WindowsUpdate\\RebootRequired",
)
def _restart_pending(s: Subject) -> Iterator[str]:
    system = s.one("system")
    if system is not None and system["pending"]:
        yield f"pending: {system['pending']}"


@_rule(
    "path-too-long",
    "machine",
    "warning",
    "the machine's PATH is longer than 2048 characters",
    "Remove repeated entries from the machine's PATH.",
    "kubernetes-sigs/sig-windows-tools PrepareNode.ps1 appends to PATH at each run",
)
def _path_too_long(s: Subject) -> Iterator[str]:
    system = s.one("system")
    if system is not None and system["path"] > 2048:
        yield f"PATH has {system['path']} characters"


@_rule(
    "firewall-policy",
    "machine",
    "degraded",
    "a Group Policy ignores local firewall rules",
    "Ask the domain's administrators to allow the node's firewall rules.",
    "Microsoft, Windows Firewall CSP: AllowLocalPolicyMerge",
)
def _firewall_policy(s: Subject) -> Iterator[str]:
    system = s.one("system")
    if system is not None and system["ignored"]:
        yield f"AllowLocalPolicyMerge is 0 for {', '.join(system['ignored'])}"


@_rule(
    "no-gateway",
    "machine",
    "fault",
    "the machine has no default route",
    "Set the adapter's gateway again; `winboot repair` restores the route if winboot recorded it.",
    "microsoft/SDN#498, ovn-org/ovn-kubernetes#2530: a new HNS network loses static settings",
    step="address-guard",
)
def _no_gateway(s: Subject) -> Iterator[str]:
    if s.was_read("gateways") and not any(one["prefix"] == "0.0.0.0/0" for one in s.rows("gateways")):
        yield "Get-NetRoute shows no 0.0.0.0/0"


@_rule(
    "no-address",
    "machine",
    "fault",
    "an adapter has only a link-local address (169.254.0.0/16)",
    "Renew the DHCP lease, or give the adapter its static address again.",
    "flannel-io/flannel#1394; RFC 3927",
)
def _no_address(s: Subject) -> Iterator[str]:
    for one in s.rows("adapters"):
        if within(one["address"], "169.254.0.0/16") and one["state"] == "Preferred":
            yield f"{one['alias']} has {one['address']}"


@_rule(
    "no-dns-server",
    "machine",
    "degraded",
    "the node has no DNS server",
    "Set the adapter's DNS servers; `winboot repair` restores them if winboot recorded them.",
    "kubernetes-sigs/sig-windows-tools#162: DNS servers are lost when HNS takes the adapter",
    step="address-guard",
)
def _no_dns_server(s: Subject) -> Iterator[str]:
    if (
        s.was_read("adapters")
        and s.rows("adapters")
        and not any(one["servers"] for one in s.rows("adapters"))
    ):
        yield "no adapter has a DNS server"


@_rule(
    "api-unreachable",
    "machine",
    "fault",
    "the node cannot connect to the API server",
    "Run `Test-NetConnection` on the node; look at routes and the control plane's firewall.",
    "kubernetes.io, ports and protocols: 6443",
    explains=("node", "kubelet", "credentials"),
)
def _api_unreachable(s: Subject) -> Iterator[str]:
    for one in s.rows("server"):
        if not one["ok"]:
            yield f"{one['server']} accepts no connection"


# ---- services of Windows --------------------------------------------------------------------------------


def _windows_service(name: str) -> Check:
    def check(s: Subject) -> Iterator[str]:
        found = s.service(name)
        if found is not None and found["state"] != "Running":
            yield f"{name} is {found['state'] or 'missing'}{_start(found)}"

    return check


def _start(found: dict[str, object]) -> str:
    return " and disabled" if found["start"] == "disabled" else ""


for _name, _title, _source in (
    ("hns", "the Host Network Service does not run", "sig-windows-tools hack/DebugWindowsNode.ps1"),
    (
        "vmcompute",
        "the Host Compute Service does not run",
        "microsoft/hcsshim: containers are made by vmcompute",
    ),
):
    _rule(
        f"{_name}-stopped",
        "windows",
        "fault",
        _title,
        f"Run `Start-Service {_name}` on the node; if the service is missing, repair windows-features.",
        _source,
        step="windows-features",
    )(_windows_service(_name))
_rule(
    "firewall-stopped",
    "windows",
    "fault",
    "the Windows firewall service does not run",
    "Set mpssvc and BFE to start automatically, and restart the machine.",
    "Microsoft, Windows Firewall: stopping the service mpssvc is not supported",
)(
    lambda s: (
        f"{one['name']} is {one['state'] or 'missing'}{_start(one)}"
        for one in s.rows("known")
        if one["name"] in ("mpssvc", "BFE") and one["state"] != "Running"
    )
)


@_rule(
    "hns-crashed",
    "windows",
    "degraded",
    "the Host Network Service ended unexpectedly",
    "Restart kube-proxy: HNS lost the load balancers when it restarted.",
    "Azure/AgentBaker hnsremediator.ps1; microsoft/Windows-Containers#278",
    explains=("proxy",),
)
def _hns_crashed(s: Subject) -> Iterator[str]:
    for name, count in s.events(7031, 7034).items():
        if name in ("Host Network Service", "hns"):
            yield f"{name} ended {count} times in the last day"


@_rule(
    "docker-beside",
    "windows",
    "warning",
    "Docker runs next to containerd",
    "Remove Docker, or set Docker's bridge to none: Docker adopts HNS networks.",
    "microsoft/SDN Kubernetes/windows: the nat network",
)
def _docker_beside(s: Subject) -> Iterator[str]:
    if s.runs("docker") and "docker" not in s.expected.services:
        yield "the service docker runs"


# ---- services of the node -------------------------------------------------------------------------------


def _of_node(s: Subject) -> Iterator[dict[str, object]]:
    """The services of the node."""
    yield from (one for one in s.rows("known") if one["name"] in s.expected.services)


def _each(test: Callable[[Subject, dict[str, object]], str]) -> Check:
    def check(s: Subject) -> Iterator[str]:
        for one in _of_node(s):
            if text := test(s, one):
                yield f"{one['name']} {text}"

    return check


_rule(
    "service-missing",
    "services",
    "fault",
    "a service of the node is missing",
    "`winboot repair` makes the service again.",
    "Microsoft, service error 1060",
    step="*",
)(_each(lambda s, one: "is missing" if not one["state"] and not one["start"] else ""))
_rule(
    "service-deleted",
    "services",
    "fault",
    "a service is marked for deletion",
    "Close programs that hold the service (services.msc, Process Explorer), or restart the machine.",
    "Microsoft, service error 1072; winsvc.h DeleteService",
)(_each(lambda s, one: "has the registry value DeleteFlag 1" if one["deleted"] else ""))
_rule(
    "program-missing",
    "services",
    "fault",
    "the program of a service is missing",
    "`winboot repair` copies the program again; check whether a virus scanner removed the program.",
    "Microsoft, service error 2",
    step="artifacts",
)(_each(lambda s, one: f"lacks {', '.join(_texts(one, 'missing'))}" if one["missing"] else ""))


@_rule(
    "unknown-flag",
    "services",
    "fault",
    "a program refuses a command-line flag",
    "Remove the flag from the profile, or use a version that has this flag.",
    "spf13/pflag errors.go; sig-windows-tools PR 397",
)
def _unknown_flag(s: Subject) -> Iterator[str]:
    yield from _logged(s, "unknown-flag", ("kubelet", "kube-proxy", "flanneld"), "unknown flag")


@_rule(
    "unknown-gate",
    "services",
    "fault",
    "a program refuses a feature gate",
    "Remove the gate from the profile, or use a version that has this gate and has not locked it.",
    "kubernetes component-base featuregate/feature_gate.go",
)
def _unknown_gate(s: Subject) -> Iterator[str]:
    yield from _logged(s, "unknown-gate", ("kubelet", "kube-proxy"), "feature gate")


@_rule(
    "kubelet-config",
    "services",
    "fault",
    "the kubelet refuses its configuration",
    "Read the end of the kubelet's log; correct kubelet.config or kubelet.flags, then run `winboot repair`.",
    "kubernetes cmd/kubelet/app/server.go; kubernetes#129952, projectcalico/calico#7552",
    step="kubelet",
)
def _kubelet_config(s: Subject) -> Iterator[str]:
    yield from _logged(s, "kubelet-refuses", ("kubelet",), "failed to load or validate")


@_rule(
    "port-bound",
    "services",
    "fault",
    "a port or socket of the node is in use or reserved",
    "The log names it. Run `Get-NetTCPConnection` and `netsh int ipv4 show excludedportrange tcp`; if the log names "
    "kubelet.sock, delete this file.",
    "Microsoft, WSAEADDRINUSE and WSAEACCES; docker/for-win#6319; kubernetes#126965",
)
def _port_bound(s: Subject) -> Iterator[str]:
    if all(one["count"] < 2 for one in s.rows("processes")):
        yield from _logged(s, "port-bound", ("kubelet", "kube-proxy", "containerd", "flanneld"), "bind")


@_rule(
    "containerd-config",
    "services",
    "fault",
    "containerd refuses its configuration",
    "containerd's log has the reason. Registries belong to hosts.toml, not to registry.mirrors of a drop-in file.",
    "containerd internal/cri/config/config.go, ValidateImageConfig",
    step="containerd-config",
)
def _containerd_config(s: Subject) -> Iterator[str]:
    # containerd runs on without a plug-in that did not load: only the kubelet and crictl miss it.
    if (s.is_sick("containerd") or _silent(s)) and (count := s.signature("config-refused")):
        yield f"containerd logged “invalid config” {count} times"


def _logged(s: Subject, id: str, services: tuple[str, ...], text: str) -> Iterator[str]:
    """Lines that count only if the service that logged them is sick: logs remember old trouble."""
    for name in services:
        if s.is_sick(name) and (count := s.signature(id, name)):
            yield f"{name} logged “{text}” {count} times"


_rule(
    "service-waits",
    "services",
    "fault",
    "a service depends on another service that does not run",
    "Start the other service first, or find out why the other service ended.",
    "Microsoft, service error 1068",
)(
    _each(
        lambda s, one: (
            f"needs {', '.join(str(name) for name in _waits(one))}"
            if one["state"] == "Stopped" and _waits(one) and not set(_waits(one)) & set(s.expected.services)
            else ""
        )
    )
)


def _waits(one: dict[str, object]) -> list[str]:
    return _texts(one, "waits")


def _texts(one: dict[str, object], key: str) -> list[str]:
    found = one[key]
    return [str(name) for name in found] if isinstance(found, list) else []


_rule(
    "service-timeout",
    "services",
    "fault",
    "a service did not answer the service manager in time",
    "Check whether its program can run as a Windows service; flanneld needs NSSM.",
    "Microsoft, events 7000 and 7009, error 1053",
)(
    _each(
        lambda s, one: (
            "did not answer the service manager within 30 seconds (event 7009)"
            if one["state"] == "Stopped" and _named(s, 7009, str(one["name"]))
            else ""
        )
    )
)


def _named(s: Subject, id: int, name: str) -> int:
    """How often an event names this service, by its display name."""
    return sum(
        count
        for subject, count in s.events(id).items()
        if name in (subject, s.expected.displays.get(subject))
    )


_rule(
    "service-paused",
    "services",
    "fault",
    "a service is paused",
    "Read the service's log: NSSM pauses the service if its program ends at once at each start.",
    "kubernetes#123173; nssm.cc usage, AppThrottle",
)(_each(lambda s, one: "is paused" if one["state"] == "Paused" else ""))
_rule(
    "service-disabled",
    "services",
    "fault",
    "a service of the node is disabled",
    "`winboot repair` sets the service's start type again.",
    "Microsoft, service error 1058",
    step="*",
)(_each(lambda s, one: "is disabled" if one["start"] == "disabled" else ""))
_rule(
    "service-stopped",
    "services",
    "fault",
    "a service of the node does not run",
    "`winboot repair` starts the service; if the service stops again, read its log.",
    "kubernetes.io, troubleshooting Windows nodes",
    step="*",
)(
    _each(
        lambda s, one: (
            f"is {one['state']} {one['end']}".strip()
            if one["state"] in ("Stopped", "StopPending", "StartPending") and not _waits_for_other(s, one)
            else ""
        )
    )
)


def _waits_for_other(s: Subject, one: dict[str, object]) -> bool:
    """Whether another service of the node that it needs is stopped, too: that one is the cause."""
    return bool(set(_waits(one)) & set(s.expected.services))


@_rule(
    "service-restarts",
    "services",
    "fault",
    "a service ends again and again",
    "Read the service's last error in its log below C:\\var\\log.",
    "Microsoft, events 7031 and 7034 of the Service Control Manager",
)
def _service_restarts(s: Subject) -> Iterator[str]:
    for one in s.rows("services"):
        if one["ends"] >= 3 and 0 <= one["seconds"] < 600:
            yield f"{one['name']} ended {one['ends']} times in the last day and has run for {one['seconds']} seconds"


_rule(
    "service-manual",
    "services",
    "warning",
    "a service does not start when the machine starts",
    "`winboot repair` sets the service's start type to automatic.",
    "kubernetes-sigs/image-builder#554",
    step="*",
)(
    _each(
        lambda s, one: (
            "starts on demand" if one["start"] == "demand" and one["name"] not in s.expected.on_demand else ""
        )
    )
)


@_rule(
    "second-process",
    "services",
    "degraded",
    "a program of the node runs more than once",
    "End each process that does not belong to a service.",
    "sig-windows-tools hack/DebugWindowsNode.ps1: exactly one kubelet.exe and one kube-proxy.exe",
)
def _second_process(s: Subject) -> Iterator[str]:
    for one in s.rows("processes"):
        if one["count"] > 1:
            yield f"{one['count']} processes of {one['name']}"


# ---- container runtime ----------------------------------------------------------------------------------


@_rule(
    "runtime-silent",
    "runtime",
    "fault",
    "containerd runs and does not answer",
    "`winboot plan` shows whether containerd-config differs; else read containerd's log, drain, and restart containerd.",
    "kubernetes-sigs/cri-tools crictl info; containerd#2348: the CRI plug-in is off",
    step="containerd",
)
def _runtime_silent(s: Subject) -> Iterator[str]:
    if _silent(s):
        yield next((one["message"] for one in _ready(s)), "") or "crictl info got no answer"
        if count := s.signature("no-cri"):
            yield f"the kubelet logged “unknown service runtime.v1” {count} times: the CRI plug-in is off"


def _silent(s: Subject) -> bool:
    """Whether containerd runs and serves no CRI."""
    return s.runs("containerd") and s.was_read("runtime") and not any(one["ok"] for one in _ready(s))


def _ready(s: Subject) -> list[dict[str, Any]]:
    return [one for one in s.rows("runtime") if one["name"] == "RuntimeReady"]


@_rule(
    "cni-file-mark",
    "runtime",
    "fault",
    "a CNI configuration starts with a byte order mark",
    "`winboot repair` writes winboot's file again; save your own files as UTF-8 without a byte order mark.",
    "go encoding/json: a byte order mark is an invalid character",
    step="cni-config",
)
def _cni_file_mark(s: Subject) -> Iterator[str]:
    yield from (f"{one['file']} starts with EF BB BF" for one in s.rows("cni") if one["mark"])


@_rule(
    "cni-file-invalid",
    "runtime",
    "fault",
    "a CNI configuration is not JSON",
    "`winboot repair` writes winboot's own file again; correct or delete any other.",
    "containernetworking/cni libcni/conf.go, ConfListFromFile",
    step="cni-config",
)
def _cni_file_invalid(s: Subject) -> Iterator[str]:
    yield from (f"{one['file']} is not JSON" for one in s.rows("cni") if not one["valid"] and not one["mark"])


@_rule(
    "cni-other-file",
    "runtime",
    "fault",
    "containerd reads another CNI configuration instead of winboot's file",
    "Delete the other file: containerd reads only the first file in alphabetical order.",
    "containerd/go-cni opts.go, loadFromConfDir; kubernetes.io, network plugins",
)
def _cni_other_file(s: Subject) -> Iterator[str]:
    files = sorted(one["file"] for one in s.rows("cni"))
    if s.expected.cni_file and s.expected.cni_file in files and files[0] != s.expected.cni_file:
        yield f"{files[0]} comes before {s.expected.cni_file} in alphabetical order"


@_rule(
    "cni-missing",
    "runtime",
    "fault",
    "there is no CNI configuration",
    "`winboot repair` writes the configuration; if an operator writes it, look at the operator's pods.",
    "containerd internal/cri/server/status.go: cni plugin not initialized",
    step="cni-config",
)
def _cni_missing(s: Subject) -> Iterator[str]:
    if (
        s.was_read("cni")
        and s.expected.cni_file
        and s.expected.cni_file not in {o["file"] for o in s.rows("cni")}
    ):
        yield f"{s.expected.cni_file} is missing"


@_rule(
    "cni-not-ready",
    "runtime",
    "fault",
    "containerd's network is not ready",
    "`winboot plan` shows the differences in containerd-config and cni-config.",
    "containerd internal/cri/server/status.go, NetworkReady",
    step="cni-config",
    explains=("node",),
)
def _cni_not_ready(s: Subject) -> Iterator[str]:
    for one in s.rows("runtime"):
        if one["name"] == "NetworkReady" and not one["ok"]:
            yield one["message"] or "NetworkReady is false"


@_rule(
    "pause-image",
    "runtime",
    "degraded",
    "the pause image is missing",
    "`winboot repair` pulls the pause image.",
    "seed 12: without the pause image, pods stay in ContainerCreating",
    step="pause-image",
)
def _pause_image(s: Subject) -> Iterator[str]:
    if s.runs("containerd") and any(one["ok"] for one in s.rows("runtime")):
        yield from (f"{s.expected.pause_image} is missing" for one in s.rows("disk")[:1] if not one["image"])


def _pull(id: str, title: str, fix: str, source: str, text: str, *services: str) -> None:
    """A rule about pods that cannot start: lines in the log of a healthy containerd."""

    def check(s: Subject) -> Iterator[str]:
        if s.was_read("signatures") and (count := s.signature(id, *services)):
            yield f"“{text}” is in the log {count} times"

    _rule(id, "runtime", "warning", title, fix, source)(check)


_pull(
    "other-os",
    "an image is for another Windows build",
    "Use an image of the node's build, and a nodeSelector with node.kubernetes.io/windows-build.",
    "Microsoft, Windows container version compatibility (0xc0370101); seed 12; containerd#7856",
    "operating system does not match",
    "containerd",
    "kubelet",
)
_pull(
    "no-platform",
    "an image has no variant for the node's Windows build",
    "Use a tag of this build. Keep Linux pods off the node: nodeSelector kubernetes.io/os=linux, or the taint os=windows.",
    "containerd core/images/image.go; containerd#7439: another build matches no more than Linux",
    "no match for platform in manifest",
    "containerd",
    "kubelet",
)
_pull(
    "proxy-refuses",
    "an HTTP proxy refuses a program of the node",
    "Correct proxy.http, proxy.https and proxy.no_proxy in the profile; look at the machine's variable HTTPS_PROXY.",
    "go net/http transport.go; seed 16; kubernetes#96171",
    "proxyconnect tcp or Forbidden",
)
_pull(
    "cni-plugin",
    "a CNI program or containerd's shim is missing",
    "`winboot repair` copies the program again; check whether a virus scanner removed the program.",
    "containernetworking/cni pkg/invoke/find.go; sig-windows-tools#102; k0s#7039",
    "failed to find plugin",
)
_pull(
    "no-memory",
    "a container did not start because memory and page file were used up",
    "Enlarge windows.page_file_mib, lower the pods' memory, or raise systemReserved.",
    "Azure/AKS#1941, microsoft/nav-docker#383",
    "The paging file is too small",
)
_pull(
    "sandbox-stuck",
    "a pod hangs while Windows makes or ends its sandbox",
    "Drain and restart the node; install Windows updates and a later containerd.",
    "kubernetes#107561; microsoft/Windows-Containers#430",
    "failed to reserve sandbox name",
)
_pull(
    "layer-refused",
    "Windows does not mount the layers of an image",
    "Exclude containerd's folders from scanners and backups (`fltmc` lists filter drivers); upgrade containerd.",
    "microsoft/hcsshim#919, docker/for-win#13932, containerd#8891",
    "hcsshim::PrepareLayer",
)


@_rule(
    "registry-ca",
    "runtime",
    "warning",
    "containerd does not trust a registry's certificate",
    "Add the registry's CA to the profile: runtime.registries.<host>.ca or trust_roots.",
    "go crypto/x509 verify.go",
)
def _registry_ca(s: Subject) -> Iterator[str]:
    if s.was_read("signatures") and (count := s.signature("unknown-authority", "containerd")):
        yield f"“certificate signed by unknown authority” is in containerd's log {count} times"


@_rule(
    "leaked-shims",
    "runtime",
    "warning",
    "there are more containerd shims than pods",
    "Drain and restart the node.",
    "Azure/AgentBaker collect-windows-logs.ps1 compares shims with crictl pods",
)
def _leaked_shims(s: Subject) -> Iterator[str]:
    store = s.one("store")
    if store is not None and 0 <= store["sandboxes"] < store["shims"]:
        yield f"{store['shims']} shims for {store['sandboxes']} pod sandboxes"


@_rule(
    "containerd-panic",
    "runtime",
    "warning",
    "containerd has crashed",
    "Read panic.log, report the crash to the containerd project, and upgrade containerd.",
    "containerd cmd/containerd/command/service_windows.go, panic.log",
)
def _containerd_panic(s: Subject) -> Iterator[str]:
    for one in s.rows("files"):
        if one["path"].endswith("panic.log") and one["size"]:
            yield f"{one['path']} has {one['size']} bytes"


# ---- credentials ----------------------------------------------------------------------------------------


@_rule(
    "other-cluster",
    "credentials",
    "fault",
    "the kubelet's credentials belong to another cluster or node",
    "`winboot repair` gives the kubelet new credentials.",
    "kubernetes cmd/kubeadm kubeconfig; pkg/kubelet/certificate/bootstrap isClientConfigStillValid",
    step="kubelet-credentials",
)
def _other_cluster(s: Subject) -> Iterator[str]:
    yield from _credential(
        s, "kubeconfig of another cluster", "issued below another CA", "client certificate of "
    )


@_rule(
    "certificate-expired",
    "credentials",
    "fault",
    "the kubelet's client certificate has expired",
    "`winboot repair` gives the kubelet a new token.",
    "kubernetes pkg/kubelet/certificate: a kubelet cannot renew a certificate that expired while the kubelet was off",
    step="kubelet-credentials",
)
def _certificate_expired(s: Subject) -> Iterator[str]:
    yield from _credential(s, "client certificate has expired")


@_rule(
    "certificate-broken",
    "credentials",
    "fault",
    "kubelet-client-current.pem holds no certificate",
    "`winboot repair` gives the kubelet new credentials.",
    "kubernetes client-go util/certificate/certificate_store.go",
    step="kubelet-credentials",
)
def _certificate_broken(s: Subject) -> Iterator[str]:
    for one in s.rows("credentials"):
        if one["broken"]:
            yield "the file has no readable certificate"


@_rule(
    "token-refused",
    "credentials",
    "fault",
    "the API server refuses the bootstrap token",
    "`winboot repair` makes a new token; kubeadm's tokens expire after 24 hours. `winboot preflight` checks its rights.",
    "kubernetes pkg/kubelet/certificate/bootstrap/bootstrap.go; kubernetes#62585",
    step="kubelet-credentials",
)
def _token_refused(s: Subject) -> Iterator[str]:
    if any(one["fault"] for one in s.rows("credentials")) and (
        count := s.signature("unauthorized", "kubelet")
    ):
        yield f"the API server refused the kubelet's request {count} times"


@_rule(
    "request-pending",
    "credentials",
    "fault",
    "the kubelet's certificate request waits for approval",
    "Approve the request: `winboot csr list`, `winboot csr approve`.",
    "kubernetes.io, TLS bootstrapping; certificates.k8s.io",
)
def _request_pending(s: Subject) -> Iterator[str]:
    if s.api is not None:
        yield from (f"a {kind} request has been pending for more than a minute" for kind in s.api.pending)


@_rule(
    "no-credentials",
    "credentials",
    "fault",
    "the kubelet has no client certificate",
    "`winboot repair` gives the kubelet a bootstrap token.",
    "kubernetes pkg/kubelet/certificate/bootstrap: unable to load bootstrap kubeconfig",
    step="kubelet-credentials",
)
def _no_credentials(s: Subject) -> Iterator[str]:
    for one in s.rows("credentials"):
        if one["fault"] in ("no kubeconfig", "no client certificate") and not one["broken"]:
            bootstrap = "" if one["bootstrap"] else ", and there is no bootstrap kubeconfig"
            yield f"{one['fault']}{bootstrap}"


def _credential(s: Subject, *starts: str) -> Iterator[str]:
    """What is wrong with the client certificate, if it starts with one of these."""
    for one in s.rows("credentials"):
        if one["fault"].startswith(starts) and not one["broken"]:
            yield one["fault"]


@_rule(
    "no-serving-certificate",
    "credentials",
    "degraded",
    "the kubelet has no serving certificate: `kubectl logs` and `kubectl exec` fail",
    "Approve the kubelet's request: see `winboot csr list`; `winboot join` approves requests that pass its checks.",
    "kubernetes pkg/kubelet/certificate/kubelet.go; remote error: tls: internal error",
)
def _no_serving_certificate(s: Subject) -> Iterator[str]:
    for one in s.rows("credentials"):
        if not one["serving"] and not one["fault"] and s.node is not None:
            yield "kubelet-server-current.pem is missing"


# ---- the pod network ------------------------------------------------------------------------------------


@_rule(
    "no-pod-cidr",
    "network",
    "fault",
    "the Node has no pod CIDR",
    "Start kube-controller-manager with --allocate-node-cidrs, or enlarge the cluster's pod CIDR.",
    "kubernetes pkg/controller/nodeipam; flannel: node pod cidr not assigned",
)
def _no_pod_cidr(s: Subject) -> Iterator[str]:
    if s.node is not None and s.expected.pod_cidr and not s.node.pod_cidrs:
        yield "spec.podCIDR is empty"


def _owner(name: str) -> str:
    return " or ".join(hns_owners(name)) or "winboot knows no solution that makes it"


@_rule(
    "hns-object-exists",
    "network",
    "fault",
    "an existing HNS network blocks the node's network",
    "Uninstall the solution that made this network; if no solution owns it, delete it after a drain. Then `winboot repair`.",
    "microsoft/hcsshim#850, 0x803b0010; sig-windows-tools#245 and #249",
    step="pod-network",
    drain=True,
)
def _hns_object_exists(s: Subject) -> Iterator[str]:
    # 0x57 has other reasons, too: it counts only if there is another network.
    count = s.signature("object-exists") + (s.signature("network-refused") if s.others() else 0)
    if count and s.was_read("networks") and s.network() is None:
        yield f"HNS refused a network {count} times (0x803b0010, 0x1392 or 0x57), and there is no {s.expected.network}"
        yield from (f"the network {name} is here: {_owner(name)}" for name in s.others())


@_rule(
    "network-missing",
    "network",
    "fault",
    "the HNS network of the pods is missing",
    "`winboot repair` makes the network again.",
    "kubernetes#79515; sig-windows-tools#89",
    step="pod-network",
)
def _network_missing(s: Subject) -> Iterator[str]:
    if s.was_read("networks") and s.expected.network and not s.expected.first_pod and s.network() is None:
        yield f"there is no HNS network {s.expected.network}"


@_rule(
    "network-type",
    "network",
    "fault",
    "the HNS network has the wrong type",
    "`winboot repair --drain` makes the network again.",
    "flannel pkg/backend; microsoft/hcsshim HNSNetwork.Type",
    step="pod-network",
    drain=True,
)
def _network_type(s: Subject) -> Iterator[str]:
    found = s.network()
    if found is None or not s.expected.hns_type:
        return
    if str(found["type"]).lower() != s.expected.hns_type.lower():
        yield f"{found['name']} is {found['type']}, not {s.expected.hns_type}"


@_rule(
    "network-subnet",
    "network",
    "fault",
    "the HNS network has the subnet of another Node",
    "`winboot repair --drain` makes the network again.",
    "flannel pkg/backend/hostgw; the Node was deleted and registered again",
    step="pod-network",
    drain=True,
)
def _network_subnet(s: Subject) -> Iterator[str]:
    found = s.network()
    if found is None or s.node is None or not s.expected.pod_cidr or not s.node.pod_cidrs:
        return
    if not set(found["subnets"]) & set(s.node.pod_cidrs):
        yield f"{found['name']} has {', '.join(found['subnets'])}; the Node's pod CIDR is {', '.join(s.node.pod_cidrs)}"


@_rule(
    "network-address",
    "network",
    "fault",
    "the HNS network has no usable management address",
    "Wait until the adapter has its address, then run `winboot repair --drain`.",
    "microsoft/SDN networkhealth.ps1, IncorrectManagementIp; Azure/AgentBaker",
    step="pod-network",
    drain=True,
)
def _network_address(s: Subject) -> Iterator[str]:
    found = s.network()
    if found is None:
        return
    # Antrea asks for it with its prefix length (antrea-io/antrea net_windows.go, CreateHNSNetwork).
    kept = str(found["management"]).partition("/")[0]
    own = {one["address"] for one in s.rows("interfaces")}
    if not kept or within(kept, "169.254.0.0/16") or (own and kept not in own):
        yield f"ManagementIP of {found['name']} is {kept or 'empty'}"


@_rule(
    "subnet-env-missing",
    "network",
    "fault",
    "flanneld has not written subnet.env",
    "Check that flanneld runs, and read its log; `winboot repair` starts flanneld.",
    "flannel pkg/subnet/config.go; seed 10",
    step="flanneld",
)
def _subnet_env_missing(s: Subject) -> Iterator[str]:
    if "flanneld" in s.expected.services and s.was_read("subnet") and s.one("subnet") is None:
        yield "C:\\run\\flannel\\subnet.env is missing"
        if count := s.signature("forbidden", "flanneld"):
            yield f"flanneld logged “is forbidden” {count} times: `winboot manifests rbac` prints its rights"


@_rule(
    "subnet-env-other",
    "network",
    "fault",
    "subnet.env names the subnet of another Node",
    "Restart flanneld: flanneld writes subnet.env again.",
    "flannel pkg/subnet/config.go, WriteSubnetFile; seed 8",
    step="flanneld",
)
def _subnet_env_other(s: Subject) -> Iterator[str]:
    found = s.one("subnet")
    if found is not None and s.node is not None and s.node.pod_cidrs:
        address = found["subnet"].partition("/")[0]
        if not any(within(address, cidr) for cidr in s.node.pod_cidrs):
            yield f"FLANNEL_SUBNET is {found['subnet'] or 'missing'}; the Node's pod CIDR is {', '.join(s.node.pod_cidrs)}"


@_rule(
    "overlay-router",
    "network",
    "degraded",
    "other nodes send VXLAN packets to a wrong MAC address",
    "Restart flanneld: flanneld writes the Node's annotation again.",
    "flannel pkg/backend/vxlan/vxlan_windows.go, VtepMAC; microsoft/SDN",
    step="flanneld",
)
def _overlay_router(s: Subject) -> Iterator[str]:
    found = s.network()
    if found is None or s.node is None or not s.node.vtep or not found["router"]:
        return
    own = str(found["router"]).replace("-", ":").lower()
    if own != s.node.vtep.lower():
        yield f"the Node's annotation names {s.node.vtep}; the HNS network has {own}"


@_rule(
    "firewall-rule",
    "network",
    "degraded",
    "a firewall rule of the node is missing",
    "`winboot repair` writes the rule again.",
    "kubernetes.io, ports and protocols; VXLAN needs UDP 4789",
    step="firewall-rules",
)
def _firewall_rule(s: Subject) -> Iterator[str]:
    yield from (f"{one['name']} is missing or not set to allow" for one in s.rows("rules") if not one["ok"])


@_rule(
    "no-forwarding",
    "network",
    "degraded",
    "the node does not forward its pods' packets",
    "`winboot repair` turns forwarding on.",
    "flannel pkg/backend/hostgw/hostgw_windows.go: forwarding on both interfaces",
    step="pod-network",
)
def _no_forwarding(s: Subject) -> Iterator[str]:
    if s.expected.overlay or not s.expected.routes:
        return
    addresses = {
        value for kind, value in (s.node.addresses if s.node is not None else ()) if kind == "InternalIP"
    }
    for one in s.rows("interfaces"):
        if one["address"] in addresses and not one["forwarding"]:
            yield f"forwarding is off on the adapter {one['alias']}"


@_rule(
    "sibling-route",
    "network",
    "degraded",
    "a route to another node's pods is missing",
    "Restart flanneld; if winboot makes the routes, run `winboot repair`.",
    "flannel pkg/backend/route_network_windows.go",
    step="flanneld",
)
def _sibling_route(s: Subject) -> Iterator[str]:
    if s.expected.overlay or not s.expected.routes or not s.was_read("routes"):
        return
    have = {one["prefix"] for one in s.rows("routes")}
    for other in s.siblings:
        view = other.api.node if other.api is not None else None
        if view is None or other.expected.network != s.expected.network or not view.ready:
            continue
        yield from (f"no route to {cidr} of {other.node}" for cidr in view.pod_cidrs if cidr not in have)


@_rule(
    "sibling-remote",
    "network",
    "degraded",
    "the overlay network has no entry for another node's pods",
    "Restart flanneld: flanneld writes the RemoteSubnetRoute policies again.",
    "flannel pkg/backend/vxlan/vxlan_network_windows.go",
    step="flanneld",
)
def _sibling_remote(s: Subject) -> Iterator[str]:
    found = s.network()
    if not s.expected.overlay or found is None or "flanneld" not in s.expected.services:
        return
    have = {one["prefix"] for one in found["remotes"]}
    for other in s.siblings:
        view = other.api.node if other.api is not None else None
        if view is None or other.expected.network != s.expected.network or not view.ready:
            continue
        yield from (f"no remote subnet {cidr} of {other.node}" for cidr in view.pod_cidrs if cidr not in have)


@_rule(
    "endpoint-detached",
    "network",
    "degraded",
    "an HNS endpoint is not attached to a container",
    "Delete and recreate the endpoint's pod; `winboot repair --drain` makes the network again.",
    "microsoft/SDN networkhealth.ps1, EndpointState; hcsshim internal/hns EndpointState",
)
def _endpoint_detached(s: Subject) -> Iterator[str]:
    for one in s.rows("endpoints"):
        if one["name"] and one["state"] not in (2, 3) and one["network"] not in s.others():
            yield f"{one['name']} is in state {one['state']}"


@_rule(
    "pods-without-nat",
    "network",
    "degraded",
    "pods have no OutBoundNAT policy and cannot reach addresses outside the cluster",
    "Repair cni-config, then recreate the pods.",
    "microsoft/SDN Kubernetes/windows/debug/Debug.md; seed 5",
    step="cni-config",
)
def _pods_without_nat(s: Subject) -> Iterator[str]:
    if s.expected.nat:
        yield from (
            f"the endpoint of {one['address']} has no OutBoundNAT" for one in s.pods() if not one["nat"]
        )


@_rule(
    "pods-other-dns",
    "network",
    "degraded",
    "pods do not use the cluster's DNS server",
    "Repair cni-config, then recreate the pods.",
    "containernetworking/plugins pkg/hns; seed 14",
    step="cni-config",
)
def _pods_other_dns(s: Subject) -> Iterator[str]:
    for one in s.pods():
        servers = {part for part in str(one["dns"]).replace(" ", "").split(",") if part}
        if s.expected.dns and not servers & set(s.expected.dns):
            yield f"the endpoint of {one['address']} has {', '.join(sorted(servers)) or 'no DNS server'}"


@_rule(
    "addresses-used-up",
    "network",
    "fault",
    "the node's pod addresses are used up",
    "`winboot repair` removes the entries of deleted pods; lower maxPods if pods still use all addresses.",
    "kubernetes#108121; containernetworking/plugins host-local",
    step="ipam-reservations",
)
def _addresses_used_up(s: Subject) -> Iterator[str]:
    store = s.one("store")
    if store is None or s.node is None:
        return
    for cidr in s.node.pod_cidrs[:1]:
        size = _size(cidr)
        if size is not None and store["used"] >= size:
            yield f"{store['used']} of {size} addresses are taken"


def _size(cidr: str) -> int | None:
    """How many addresses pods can have: all but the network's, the gateway's and the broadcast's. None for other texts."""
    try:
        return ipaddress.ip_network(cidr, strict=False).num_addresses - 3
    except ValueError:
        return None


# ---- kube-proxy -----------------------------------------------------------------------------------------


@_rule(
    "no-source-vip",
    "proxy",
    "fault",
    "kube-proxy has no source address on the overlay",
    "`winboot repair` reserves an address.",
    "kubernetes#78338, pkg/proxy/winkernel/proxier.go sourceVip",
    step="ipam-reservations",
)
def _no_source_vip(s: Subject) -> Iterator[str]:
    store = s.one("store")
    if s.expected.source_vip and s.expected.kube_proxy and store is not None and s.was_read("store"):
        if not store["vip"]:
            yield "the IPAM store has no reservation source-vip"
        elif (
            s.node is not None
            and s.node.pod_cidrs
            and not any(within(store["vip"], c) for c in s.node.pod_cidrs)
        ):
            yield f"{store['vip']} is not in {', '.join(s.node.pod_cidrs)}"


@_rule(
    "dns-service-missing",
    "proxy",
    "degraded",
    "the cluster's DNS address has no load balancer on the node",
    "Restart kube-proxy: kube-proxy writes its load balancers again.",
    "Azure/AgentBaker networkhealth.ps1, ValidDNSLoadbalancerPolicy",
    step="kube-proxy",
)
def _dns_service_missing(s: Subject) -> Iterator[str]:
    if not s.was_read("balancers") or not s.runs("kube-proxy") or s.network() is None:
        return
    have = {one["address"] for one in s.rows("balancers") if one["port"] == 53}
    others = [
        o for o in s.siblings if {b["address"] for b in o.machine.get("balancers", ())} & set(s.expected.dns)
    ]
    if have.isdisjoint(s.expected.dns) and (others or s.rows("balancers")):
        yield f"HNS has no load balancer for {', '.join(s.expected.dns)} port 53"


@_rule(
    "balancer-broken",
    "proxy",
    "degraded",
    "a load balancer of HNS has no effect",
    "Restart kube-proxy: kube-proxy writes its load balancers again.",
    "Azure/AgentBaker networkhealth.ps1, LoadBalancerPolicyState",
    step="kube-proxy",
)
def _balancer_broken(s: Subject) -> Iterator[str]:
    for one in s.rows("balancers"):
        if one["state"] != 2:
            yield f"{one['address']}:{one['port']} is in state {one['state']}"


@_rule(
    "ports-used-up",
    "proxy",
    "degraded",
    "HNS has few blocks of ports left",
    "Widen windows.dynamic_ports in the profile, and turn on kube-proxy's direct server return.",
    "microsoft/SDN Debug.md; Azure/AgentBaker PortReservationTest.ps1",
    step="dynamic-ports",
)
def _ports_used_up(s: Subject) -> Iterator[str]:
    for one in s.rows("ports"):
        free = free_blocks(str(one["range"]), one["excluded"])
        if free <= FREE_BLOCKS:
            yield f"{one['name']}: {free} free blocks of 64 ports"


@_rule(
    "port-taken",
    "proxy",
    "warning",
    "HNS refuses a load balancer's port that is in use",
    "kube-proxy's log names the service and its port. Change that port, or keep windows.dynamic_ports away from it.",
    "kubernetes/community#8883, Azure/AgentBaker#1352",
)
def _port_taken(s: Subject) -> Iterator[str]:
    if count := s.signature("port-exists"):
        yield f"HNS refused a port (0x803b0013) {count} times"


@_rule(
    "proxy-forbidden",
    "proxy",
    "degraded",
    "kube-proxy may not read services",
    "Bind kube-proxy's user to the ClusterRole system:node-proxier: `winboot manifests rbac` prints the binding.",
    "kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go",
)
def _proxy_forbidden(s: Subject) -> Iterator[str]:
    if not s.rows("balancers") and (count := s.signature("forbidden", "kube-proxy")):
        yield f"kube-proxy logged “is forbidden” {count} times and wrote no load balancer"


# ---- the Node -------------------------------------------------------------------------------------------


@_rule(
    "node-missing",
    "node",
    "fault",
    "the cluster has no Node of this name",
    "`winboot join` registers the Node.",
    "kubernetes pkg/kubelet/kubelet_node_status.go",
)
def _node_missing(s: Subject) -> Iterator[str]:
    if s.api is not None and s.api.node is None:
        yield f"there is no Node {s.document.node}"


@_rule(
    "kubelet-too-new",
    "node",
    "fault",
    "the kubelet is newer than the API server",
    "Upgrade the control plane first, or run `winboot rollback NODE`.",
    "kubernetes.io, version skew policy",
)
def _kubelet_too_new(s: Subject) -> Iterator[str]:
    if s.node is None or s.api is None:
        return
    kubelet, server = _line(s.node.kubelet), _line(s.api.version)
    if kubelet and server and kubelet > server:
        yield f"the kubelet has version {s.node.kubelet}, the API server {s.api.version}"


def _line(version: str) -> tuple[int, ...]:
    """Major and minor; empty for a text that is not a version: the kubelet chooses it."""
    found = re.match(r"v?([0-9]{1,3})\.([0-9]{1,3})", version)
    return tuple(map(int, found.groups())) if found is not None else ()


@_rule(
    "cloud-taint",
    "node",
    "fault",
    "the cloud controller has not initialised the Node",
    "Look at the pods of cloud-controller-manager, which must support Windows nodes.",
    "kubernetes.io, node.cloudprovider.kubernetes.io/uninitialized",
)
def _cloud_taint(s: Subject) -> Iterator[str]:
    taints = s.node.taints if s.node is not None else ()
    if any(one.startswith("node.cloudprovider.kubernetes.io/uninitialized") for one in taints):
        yield "the Node has the taint node.cloudprovider.kubernetes.io/uninitialized"


@_rule(
    "startup-taint",
    "node",
    "fault",
    "the join is unfinished: the Node still has winboot's startup taint",
    "`winboot join` finishes the join and removes the taint.",
    "docs/steps.md, startup-taint",
)
def _startup_taint(s: Subject) -> Iterator[str]:
    taints = s.node.taints if s.node is not None else ()
    if any(one.startswith(s.expected.startup_taint) for one in taints):
        yield f"the Node has the taint {s.expected.startup_taint}"


@_rule(
    "node-address",
    "node",
    "fault",
    "the Node has an address that its machine does not have",
    "Set node_ip in the inventory, then run `winboot repair`.",
    "kubernetes#125348; kubelet --node-ip",
    step="kubelet",
)
def _node_address(s: Subject) -> Iterator[str]:
    if s.node is None or not s.was_read("interfaces"):
        return
    own = {one["address"] for one in s.rows("interfaces")}
    has = [value for kind, value in s.node.addresses if kind == "InternalIP"]
    if not set(has) & own:
        yield f"the Node has {', '.join(has) or 'no address'}; the machine has {', '.join(sorted(own))}"


@_rule(
    "network-unavailable",
    "node",
    "fault",
    "the cloud's route controller reports no route for the Node",
    "Read cloud-controller-manager's log; with flannel, start cloud-controller-manager with --configure-cloud-routes=false.",
    "kubernetes staging/src/k8s.io/cloud-provider/controllers/route, NoRouteCreated",
)
def _network_unavailable(s: Subject) -> Iterator[str]:
    if s.node is not None and s.node.network_reason == "NoRouteCreated":
        yield "the condition NetworkUnavailable has the reason NoRouteCreated"


@_rule(
    "kubelet-lost",
    "node",
    "fault",
    "the cluster receives no report from the kubelet",
    "Read the kubelet's log; `winboot plan` shows the differences.",
    "kubernetes pkg/controller/nodelifecycle: NodeStatusUnknown",
)
def _kubelet_lost(s: Subject) -> Iterator[str]:
    if s.node is not None and s.node.silent_since and s.document.login:
        yield f"the last report came at {s.node.silent_since[:19]}"


@_rule(
    "node-not-ready",
    "node",
    "fault",
    "the Node is not Ready",
    "Read the message of the Node's condition Ready; `winboot plan` shows the differences.",
    "kubernetes pkg/kubelet/nodestatus/setters.go, ReadyCondition",
)
def _node_not_ready(s: Subject) -> Iterator[str]:
    if s.node is not None and not s.node.ready and not s.node.silent_since:
        yield s.node.message or s.node.reason or "the condition Ready is not True"


@_rule(
    "node-cordoned",
    "node",
    "warning",
    "the Node is cordoned",
    "When the work on the node is finished, run `kubectl uncordon`.",
    "kubernetes.io, spec.unschedulable",
)
def _node_cordoned(s: Subject) -> Iterator[str]:
    if s.node is not None and s.node.unschedulable:
        yield "spec.unschedulable is true"


@_rule(
    "taint-missing",
    "node",
    "warning",
    "a taint or label of the profile is missing on the Node",
    "`winboot repair` writes the profile's taints and labels again.",
    "seed: Linux pods are scheduled on Windows nodes without a taint",
    step="*",
)
def _taint_missing(s: Subject) -> Iterator[str]:
    if s.node is None:
        return
    yield from (f"the taint {one} is missing" for one in s.expected.taints if one not in s.node.taints)
    for key, value in s.expected.labels.items():
        if s.node.labels.get(key) != value:
            yield f"the label {key} is {s.node.labels.get(key, 'missing')}"


@_rule(
    "loose-daemon-sets",
    "node",
    "warning",
    "a DaemonSet of Linux pods tolerates Windows nodes",
    "Give the DaemonSet the nodeSelector kubernetes.io/os: linux.",
    "kubernetes.io, Windows scheduling; seed",
)
def _loose_daemon_sets(s: Subject) -> Iterator[str]:
    if s.api is not None:
        yield from (f"{one} has no nodeSelector for an operating system" for one in s.api.loose_daemon_sets)


RULES: Final = tuple(_FOUND)

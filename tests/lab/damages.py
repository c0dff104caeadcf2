"""The table of damages: for every `what` that a look can emit, something that happens to a joined node."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from winboot_lab.cluster.authority import CLIENT_AUTH, Authority, Subject
from winboot_lab.programs.calico import calico_node
from winboot_lab.programs.kube_proxy import KubeProxy
from winboot_lab.programs.outside import HostProcess
from winboot_lab.windows.acl import DELETE_CHILD, WRITE, Rule

from tests.lab import actions
from tests.lab.actions import (
    CLIENT,
    KUBECONFIG,
    PKI,
    SERVICES,
    STATE,
    Hand,
    all_of,
    append,
    certificate,
    delete,
    delete_folder,
    delete_node,
    endpoint,
    kubeconfig,
    let_in,
    network,
    patch_node,
    patch_status,
    regedit,
    remove_network,
    replace,
    sc,
    system,
    taints,
    unset,
    wait,
    with_bom,
    write,
)
from tests.lab.difference_patterns import ANY
from tests.lab.scenes import by_hand
from tests.lab.site import Site


@dataclass(frozen=True, slots=True)
class Damage:
    """One damage. `whats`: the exact findings of a look afterwards (ANY for values that differ from site to site).

    `scene`: the node. `meanwhile`: another actor's change while winboot repairs.
    """

    name: str
    whats: tuple[str, ...]
    do: Hand
    scene: str = "everything"
    meanwhile: Hand | None = None


def damage(
    name: str, *whats: str, do: Hand, scene: str = "everything", meanwhile: Hand | None = None
) -> Damage:
    """A line of the table."""
    return Damage(name, whats, do, scene, meanwhile)


def at_once(name: str, *lines: Damage) -> Damage:
    """Several lines on one node at the same time: they do not get in each other's way."""
    return Damage(
        name, tuple(what for line in lines for what in line.whats), all_of(*(line.do for line in lines))
    )


PLUGINS = r"C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1"
PROGRAMS = (
    *(rf"C:\k\versions\containerd-2.3.6\{n}.exe" for n in ("containerd", "ctr", "containerd-shim-runhcs-v1")),
    *(rf"C:\k\versions\kubernetes-1.36.5\{n}.exe" for n in ("kubelet", "kube-proxy", "kube-log-runner")),
    r"C:\k\versions\kubectl-1.36.5\kubectl.exe",
    r"C:\k\versions\crictl-1.36.0\crictl.exe",
    r"C:\k\versions\nssm-2.24\nssm.exe",
    r"C:\k\versions\flannel-0.28.9\flanneld.exe",
    *(rf"{PLUGINS}\{n}.exe" for n in ("win-bridge", "host-local", "flannel")),
)
NATIVE = ("containerd", "kubelet", "kube-proxy")
ALL_SERVICES = (*NATIVE, "flanneld")
RULES = ["winboot-kubelet", "winboot-kube-proxy-health", "winboot-node-ports-tcp", "winboot-node-ports-udp"]
FIREWALL = r"SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
W32TIME = r"SYSTEM\CurrentControlSet\Services\W32Time\Parameters"
CONFLIST = r"C:\etc\cni\net.d\10-flannel.conflist"
HOSTS = r"C:\ProgramData\containerd\certs.d\private.corp.example\hosts.toml"
STORE = r"C:\var\lib\cni\networks\cbr0"
TEXTS = (
    r"C:\k\crictl.yaml",
    r"C:\Program Files\containerd\config.toml",
    r"C:\var\lib\kubelet\config.yaml",
    r"C:\etc\kube-flannel\net-conf.json",
    r"C:\k\flanneld.kubeconfig",
    CONFLIST,
    r"C:\k\kube-proxy.kubeconfig",
    r"C:\k\kube-proxy.yaml",
    r"C:\ProgramData\containerd\certs.d\registry.k8s.io\hosts.toml",
)


def _rule_off(name: str) -> Hand:
    def hand(site: Site) -> None:
        rule = site.machine.firewall.find(name)
        assert rule is not None
        rule.enabled = False
        site.machine.firewall.save(rule)

    return hand


def _reserved(site: Site, last: int) -> str:
    return rf"{STORE}\{site.node()['spec']['podCIDR'].rpartition('.')[0]}.{last}"


def _leak(owner: str, address: str | None = None) -> Hand:
    def hand(site: Site) -> None:
        path = rf"{STORE}\{address}" if address else _reserved(site, 77)
        write(path, f"{owner}\r\neth0")(site)
        # So long ago that no pod is still being created with it.
        site.settle(11 * 60)

    return hand


def _reservation(last: int, content: str | None) -> Hand:
    def hand(site: Site) -> None:
        path = _reserved(site, last)
        (delete(path) if content is None else write(path, content))(site)

    return hand


def _older_configuration(service: str) -> Hand:
    """A run that died between writing a file and restarting the service."""

    def hand(site: Site) -> None:
        write(rf"{STATE}\restart-{service}.json", json.dumps({"boot_id": actions.boot_id(site)}))(site)

    return hand


def _forget_image(site: Site) -> None:
    actions.program(
        site,
        r"C:\k\versions\crictl-1.36.0\crictl.exe",
        "--config",
        r"C:\k\crictl.yaml",
        "rmi",
        "registry.k8s.io/pause:3.10.2",
    )


def _untrust(site: Site) -> None:
    store = site.machine.sockets.certificates["LocalMachine\\Root"]
    for thumbprint in [t for t in store if t in _roots(site)]:
        del store[thumbprint]


def _roots(site: Site) -> set[str]:
    """The thumbprints of the roots in the profile."""
    import hashlib
    import ssl

    der = ssl.PEM_cert_to_DER_cert((site.folder / "root.pem").read_text(encoding="ascii"))
    return {hashlib.sha1(der).hexdigest().upper()}  # a thumbprint is SHA-1


def _rename(site: Site) -> None:
    site.machine.power.rename("SOMEBODY")
    site.machine.reboot()
    site.settle(200)


def _unregister(name: str) -> Hand:
    def hand(site: Site) -> None:
        task = site.machine.tasks.find(name, "\\winboot\\")
        assert task is not None
        site.machine.tasks.unregister(task)

    return hand


def _other_command(name: str) -> Hand:
    def hand(site: Site) -> None:
        task = site.machine.tasks.find(name, "\\winboot\\")
        assert task is not None
        task.actions[0].arguments = "-EncodedCommand ZQB4AGkAdAA="

    return hand


def _task(name: str, **values: object) -> Hand:
    """Change a task's settings."""

    def hand(site: Site) -> None:
        task = site.machine.tasks.find(name, "\\winboot\\")
        assert task is not None
        for key, value in values.items():
            setattr(task, key, value)

    return hand


FAILED_BOOT: Final = {"step": "pod-network", "message": "HNS did not answer"}


def _start_record(noted: Callable[[Site], dict[str, Any]]) -> Hand:
    """What the startup task noted of its last start."""

    def hand(site: Site) -> None:
        write(rf"{STATE}\started.json", json.dumps(noted(site)))(site)

    return hand


def _rights(path: str, rights: int) -> Hand:
    """Every user gets these rights on a folder itself, not on what is in it."""

    def hand(site: Site) -> None:
        rules = site.machine.files.need(path)[1].acl.copy()
        rules.explicit.append(Rule(actions.USERS, rights))
        site.machine.files.set_acl(path, rules)

    return hand


def _owner(path: str) -> Hand:
    """An account that is not an administrator owns it."""

    def hand(site: Site) -> None:
        site.machine.files.need(path)[1].acl.owner = actions.USERS

    return hand


def _record(edit: Callable[[dict[str, Any]], object]) -> Hand:
    """The record of the network settings is of another time."""
    path = rf"{STATE}\network.json"

    def hand(site: Site) -> None:
        data = json.loads(site.machine.files.text(path))
        edit(data)
        write(path, json.dumps(data))(site)

    return hand


def _disable_task(name: str) -> Hand:
    def hand(site: Site) -> None:
        task = site.machine.tasks.find(name, "\\winboot\\")
        assert task is not None
        task.enabled = False

    return hand


def _end_guard(site: Site) -> None:
    """Disable the guard's task, then end it."""
    _disable_task("guard")(site)
    task = site.machine.tasks.find("guard", "\\winboot\\")
    assert task is not None
    site.machine.tasks.stop(task)


def _no_exclusion(site: Site) -> None:
    defender = site.machine.defender
    for kind in ("ExclusionProcess", "ExclusionPath"):
        defender.drop(kind, defender.exclusions(kind))


def _other_node(site: Site) -> None:
    """The Node goes, and others take subnets before the kubelet comes again: its pod CIDR will be another one."""
    actions.stop("kubelet")(site)
    delete_node(site)
    sc("start", "kubelet")(site)
    site.settle(20)


def _without_pod_cidr(site: Site) -> None:
    site.cluster.controllers.paused.add("nodeipam")
    _other_node(site)


def _startup_taint(site: Site) -> None:
    taint = {"key": "winboot.io/starting", "value": "true", "effect": "NoSchedule"}
    patch_node({"spec": {"taints": [*taints(site), taint]}})(site)


def _without_taint(site: Site) -> None:
    patch_node({"spec": {"taints": [t for t in taints(site) if t["key"] != "os"] or None}})(site)


def _detach(hns: object, found: dict[str, object]) -> None:
    hns.detach(found)  # type: ignore[attr-defined]


def _another_address(hns: object, found: dict[str, object]) -> None:
    hns.detach(found)  # type: ignore[attr-defined]
    found["IPAddress"] = str(found["IPAddress"]).rpartition(".")[0] + ".9"
    hns.attach(found, {"CompartmentId": 1, "SystemType": "Host"})  # type: ignore[attr-defined]


def _type(found: dict[str, object]) -> None:
    found["Type"] = "L2Tunnel"


def _adapter(found: dict[str, object]) -> None:
    """The name alone says nothing: adapters are renamed. Its address is on another interface, the endpoint's."""
    found["NetworkAdapterName"] = "Ethernet 9"
    (subnet,) = found["Subnets"]  # type: ignore[misc, attr-defined]
    found["ManagementIP"] = str(subnet["GatewayAddress"]).rpartition(".")[0] + ".2"


def _subnet(found: dict[str, object]) -> None:
    found["Subnets"] = [
        {**found["Subnets"][0], "AddressPrefix": "10.99.0.0/24", "GatewayAddress": "10.99.0.1"}
    ]  # type: ignore[index]


def _management(found: dict[str, object]) -> None:
    found["ManagementIP"] = "169.254.17.42"


def _pod_addresses(site: Site, last: int) -> str:
    return _reserved(site, last).rpartition("\\")[2]


def _forwarding(last: int | None) -> Hand:
    def hand(site: Site) -> None:
        address = site.plans[0].address if last is None else _pod_addresses(site, last)
        actions.forwarding_off(address)(site)

    return hand


def _without_containers(site: Site) -> None:
    """The feature is removed, and the machine restarted."""
    features = site.machine.features
    found = features.find("Containers")
    assert found is not None
    features.remove(found)
    site.machine.reboot()
    site.settle(240)


def _hang(site: Site) -> None:
    """kube-proxy runs and does nothing any more."""
    for process in site.machine.processes.all():
        if isinstance(process.served, KubeProxy):
            process.served.synced = False
            process.served._next = float("inf")


def _cordon(site: Site) -> None:
    """A run that was killed after its drain."""
    patch_node(
        {"metadata": {"annotations": {"winboot.io/cordoned": "true"}}, "spec": {"unschedulable": True}}
    )(site)


def _nssm(service: str, values: dict[str, Any]) -> Hand:
    """Change NSSM's values."""
    key = rf"{SERVICES}\{service}\Parameters"
    kinds = {int: "DWord", str: "ExpandString", list: "MultiString"}
    return all_of(*(regedit(key, name, kinds[type(value)], value) for name, value in values.items()))


NSSM_VALUES: dict[str, Any] = {
    "AppDirectory": "D:\\",
    "AppEnvironmentExtra": ["A=b"],
    "Application": r"C:\k\other.exe",
    "AppNoConsole": 0,
    "AppParameters": "--other",
    "AppRestartDelay": 1,
    "AppRotateBytes": 1,
    "AppRotateFiles": 0,
    "AppRotateOnline": 0,
    "AppStderr": r"C:\other.log",
    "AppStdout": r"C:\other.log",
}


def _own_kubeconfig(edit: Callable[[dict[str, Any]], object]) -> Hand:
    path = r"C:\k\kube-proxy.kubeconfig"

    def hand(site: Site) -> None:
        data = json.loads(site.machine.files.text(path))
        edit(data)
        write(path, json.dumps(data))(site)

    return hand


def _expired_kubeconfig(site: Site) -> None:
    now = site.time.datetime() - timedelta(days=3)
    pair = site.cluster.authority.issue(
        Subject("system:kube-proxy"), (CLIENT_AUTH,), (now, now + timedelta(days=1))
    )
    encoded = base64.b64encode(pair.certificate.encode()).decode()
    _own_kubeconfig(lambda data: data["users"][0]["user"].update({"client-certificate-data": encoded}))(site)


def _vni(found: dict[str, Any]) -> None:
    found["Subnets"][0]["Policies"] = [{"Type": "VSID", "VSID": 9999}]


def _route(act: Callable[[Any, Any], object]) -> Hand:
    """Something happens to the route to the pods of the control plane's node."""

    def hand(site: Site) -> None:
        net = site.machine.network
        for route in [r for r in net.routes if r.next_hop == "10.0.0.10"]:
            act(net, route)

    return hand


def _other_way(net: Any, route: Any) -> None:
    net.remove_route(route)
    net.add_route(dataclasses.replace(route, next_hop="10.0.0.99"))


def _stale_route(site: Site) -> None:
    net = site.machine.network
    route = next(r for r in net.routes if r.next_hop == "10.0.0.10")
    net.add_route(dataclasses.replace(route, prefix="10.244.77.0/24", next_hop="10.0.0.77"))


def _old_state(site: Site) -> None:
    path = r"C:\k\azure-vnet.json"
    write(path, "{}")(site)
    long_ago = site.machine.now() - timedelta(days=1)
    site.machine.files.set_times(path, modified=long_ago)


def _operator(program: HostProcess | None) -> Hand:
    """The operator's pods are gone, or there again."""

    def hand(site: Site) -> None:
        programs = site.outside.host_processes
        for name in programs:
            programs[name] = program or (lambda run, node: None)

    return hand


# Without the kubelet's credentials the machine cannot read the Node: these are wanted as `(known after join)`.
UNKNOWABLE = (
    "node win-1: registered",
    "node win-1: pod CIDR",
    "HNS network cbr0: subnets",
    "HNS endpoint cbr0_ep",
    r"file C:\run\flannel\subnet.env: subnet",
    "reserved address for winboot gateway",
    "reserved address for winboot endpoint",
)
# The findings after a Node that is made again.
NEW_NODE = ("node label pool",)

DAMAGES: tuple[Damage, ...] = (
    # Windows itself
    damage("an administrator renames the computer", "computer name", do=_rename),
    damage(
        "a person sizes the page file",
        "page file",
        do=regedit(
            r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management",
            "PagingFiles",
            "MultiString",
            [r"D:\pagefile.sys 100 100"],
        ),
    ),
    damage(
        "long paths are turned off",
        r"registry HKLM\SYSTEM\CurrentControlSet\Control\FileSystem: LongPathsEnabled",
        do=regedit(r"SYSTEM\CurrentControlSet\Control\FileSystem", "LongPathsEnabled", "DWord", 0),
    ),
    damage(
        "crash dumps are turned off",
        r"registry HKLM\SYSTEM\CurrentControlSet\Control\CrashControl: CrashDumpEnabled",
        r"registry HKLM\SYSTEM\CurrentControlSet\Control\CrashControl: AutoReboot",
        do=all_of(
            regedit(r"SYSTEM\CurrentControlSet\Control\CrashControl", "CrashDumpEnabled", "DWord", 0),
            unset(r"SYSTEM\CurrentControlSet\Control\CrashControl", "AutoReboot"),
        ),
    ),
    damage(
        "the search list goes",
        r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters: SearchList",
        do=unset(r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters", "SearchList"),
    ),
    damage(
        "a known fix is undone",
        r"registry HKLM\SYSTEM\CurrentControlSet\Services\hns\State: EnableCompartmentNamespace",
        do=regedit(r"SYSTEM\CurrentControlSet\Services\hns\State", "EnableCompartmentNamespace", "DWord", 0),
    ),
    damage(
        "another power plan",
        "power plan",
        do=system("powercfg", "/setactive", "381b4222-f694-41f0-9685-ff5bb260df2e"),
    ),
    damage("the domain's time", "time source: type", do=regedit(W32TIME, "Type", "String", "NT5DS")),
    damage(
        "another time server",
        "time source: servers",
        do=regedit(W32TIME, "NtpServer", "String", "time.windows.com,0x8"),
    ),
    damage(
        "the time service waits for a trigger",
        "service w32time: start type",
        do=sc("config", "w32time", "start=", "demand"),
    ),
    damage("the time service is stopped", "service w32time: state", do=sc("stop", "w32time")),
    damage(
        "TCP ports as Windows has them",
        "dynamic ports: tcp",
        do=system(
            "netsh", "int", "ipv4", "set", "dynamicportrange", "tcp", "startport=49152", "numberofports=16384"
        ),
    ),
    damage(
        "UDP ports as Windows has them",
        "dynamic ports: udp",
        do=system(
            "netsh", "int", "ipv4", "set", "dynamicportrange", "udp", "startport=49152", "numberofports=16384"
        ),
    ),
    damage(
        "an excluded port is given back to clients",
        "excluded ports: udp 65330-65330",
        do=system(
            "netsh", "int", "ipv4", "delete", "excludedportrange", "udp", "startport=65330", "numberofports=1"
        ),
    ),
    damage("the company's CA is taken out", "certificate • in the store •", do=_untrust),
    damage(
        "all exclusions are dropped",
        "Defender exclusion process •",
        "Defender exclusion path •",
        do=_no_exclusion,
    ),
    # Folders
    at_once(
        "folders of logs are deleted",
        *(
            damage(f"{path} is deleted", f"folder {path}", do=delete_folder(path))
            for path in (r"C:\var\log\pods", r"C:\var\log\containers")
        ),
    ),
    damage(
        "the configuration's folder is deleted with what is in it",
        r"folder C:\etc\cni\net.d",
        f"file {CONFLIST}: content",
        do=delete_folder(r"C:\etc\cni\net.d"),
    ),
    damage("everybody may read the keys", rf"folder {PKI}: others with rights", do=let_in(PKI)),
    damage(
        "everybody may write to the plugins' folder",
        rf"folder {PLUGINS}: other accounts that may write",
        do=_rights(PLUGINS, WRITE),
    ),
    damage(
        "everybody may replace what containerd heeds",
        r"folder C:\etc\cni: other accounts that may replace its contents",
        do=_rights(r"C:\etc\cni", DELETE_CHILD),
    ),
    # What others own is set aside whole, for an undo: tests/steps/test_directories.py has it.
    # Firewall
    at_once(
        "all rules are deleted",
        *(
            damage(f"the rule {rule} is deleted", f"firewall rule {rule}", do=unset(FIREWALL, rule))
            for rule in RULES
        ),
    ),
    damage(
        "a rule is turned off",
        "firewall rule winboot-kubelet",
        do=lambda site: _edit_rule(site, "winboot-kubelet", "Active=TRUE", "Active=FALSE"),
    ),
    damage(
        "a rule has another port",
        "firewall rule winboot-kubelet",
        do=lambda site: _edit_rule(site, "winboot-kubelet", "LPort=10250", "LPort=10251"),
    ),
    damage(
        "a rule blocks",
        "firewall rule winboot-kubelet",
        do=lambda site: _edit_rule(site, "winboot-kubelet", "Action=Allow", "Action=Block"),
    ),
    # winboot's own tasks
    damage("the startup task is deleted", r"task \winboot\boot: command", do=_unregister("boot")),
    damage("the startup task runs something else", r"task \winboot\boot: command", do=_other_command("boot")),
    damage("the log task is deleted", r"task \winboot\logs: command", do=_unregister("logs")),
    damage("the log task is disabled", r"task \winboot\logs: state", do=_disable_task("logs")),
    *(
        damage(
            f"the {name} task has another {what}",
            rf"task \winboot\{name}: {what}",
            do=_task(name, **{what: value}),
        )
        for name in ("boot", "guard", "logs")
        for what, value in (("description", "somebody's"), ("priority", 9))
    ),
    *(
        damage(
            f"the {name} task runs as another account, and never",
            rf"task \winboot\{name}: account",
            rf"task \winboot\{name}: triggers",
            do=_task(name, user="LOCAL SERVICE", triggers=[]),
        )
        for name in ("boot", "guard", "logs")
    ),
    damage("the guard's task is deleted", r"task \winboot\guard: command", do=_unregister("guard")),
    damage("the guard's task is disabled", r"task \winboot\guard: state", do=_disable_task("guard")),
    damage(
        "a step failed when the machine started",
        "work of pod-network at the start of the machine",
        do=_start_record(lambda site: {"boot_id": actions.boot_id(site), "failed": [FAILED_BOOT]}),
    ),
    damage(
        "the startup task did not come to its work, and no guard does it",
        "work of the startup task at the start of the machine",
        r"task \winboot\guard: state",
        do=all_of(
            _end_guard,
            _start_record(lambda site: {"boot_id": "before", "failed": []}),
            lambda site: site.settle(45 * 60),
        ),
    ),
    # Programs
    at_once(
        "all programs have other bytes",
        *(
            damage(f"{path} has other bytes", f"file {path}: sha256", do=append(path, "x"))
            for path in PROGRAMS
        ),
    ),
    damage(
        "plugins are deleted",
        rf"file {PLUGINS}\host-local.exe: sha256",
        rf"file {PLUGINS}\flannel.exe: sha256",
        do=all_of(delete(rf"{PLUGINS}\host-local.exe"), delete(rf"{PLUGINS}\flannel.exe")),
    ),
    # Storage
    damage(
        "csi-proxy runs and has lost its pipe",
        r"pipe \\.\pipe\csi-proxy-filesystem-v1: served",
        do=lambda site: site.machine.files.pipes.pop("csi-proxy-filesystem-v1") and None,
    ),
    at_once(
        "what iSCSI needs of Windows is off",
        damage("the initiator is stopped", "service MSiSCSI: state", do=actions.stop("MSiSCSI")),
        damage(
            "the initiator starts on demand",
            "service MSiSCSI: start type",
            do=sc("config", "MSiSCSI", "start=", "demand"),
        ),
        damage(
            "a rule of iSCSI is off",
            "firewall rule MsiScsi-In-TCP: active",
            do=_rule_off("MsiScsi-In-TCP"),
        ),
    ),
    # Texts
    at_once(
        "a line more in all texts",
        *(damage(f"a line more in {path}", f"file {path}: content", do=append(path, "\n")) for path in TEXTS),
    ),
    at_once(
        "texts with a byte order mark",
        *(
            damage(f"{path} with a byte order mark", f"file {path}: content", do=with_bom(path))
            for path in (
                CONFLIST,
                r"C:\var\lib\kubelet\config.yaml",
                r"C:\Program Files\containerd\config.toml",
            )
        ),
    ),
    damage(
        "a configuration is deleted",
        r"file C:\k\kube-proxy.yaml: content",
        do=delete(r"C:\k\kube-proxy.yaml"),
    ),
    damage(
        "another program's CNI configuration",
        r"file C:\etc\cni\net.d\00-other.conf: another CNI configuration",
        do=write(r"C:\etc\cni\net.d\00-other.conf", "{}"),
    ),
    damage(
        "a bootstrap file is left behind",
        r"file C:\k\bootstrap-kubeconfig: no longer needed",
        do=write(r"C:\k\bootstrap-kubeconfig", "{}"),
    ),
    damage(
        "a mirror is added by hand", f"file {HOSTS}: content", do=replace(HOSTS, "[host", "# mine\n[host")
    ),
    damage(
        "the registry's login is taken out", f"file {HOSTS}: logins", do=replace(HOSTS, "Basic ", "Other ")
    ),
    damage("everybody may read the registry's login", f"file {HOSTS}: access", do=let_in(HOSTS)),
    # Services
    at_once(
        "all services are started otherwise",
        *(
            damage(
                f"{name} is started otherwise",
                f"service {name}: command line",
                do=sc("config", name, "binPath=", rf"C:\k\{name}.exe --other"),
            )
            for name in ALL_SERVICES
        ),
    ),
    at_once(
        "all services are to start otherwise",
        *(
            damage(
                f"{name} is to be started by hand",
                f"service {name}: start type",
                do=sc("config", name, "start=", "demand"),
            )
            for name in ("containerd", "kubelet")
        ),
        *(
            damage(
                f"{name} is to start before anybody guards it",
                f"service {name}: start type",
                do=sc("config", name, "start=", "auto"),
            )
            for name in ("flanneld", "kube-proxy")
        ),
    ),
    damage(
        "the kubelet is started late",
        "service kubelet: start type",
        do=sc("config", "kubelet", "start=", "delayed-auto"),
    ),
    damage(
        "the kubelet is disabled",
        "service kubelet: start type",
        do=sc("config", "kubelet", "start=", "disabled"),
    ),
    at_once(
        "all services depend on something else",
        *(
            damage(
                f"{name} depends on something else",
                f"service {name}: depends on",
                do=sc("config", name, "depend=", "w32time"),
            )
            for name in ALL_SERVICES
        ),
    ),
    at_once(
        "all services run as another account",
        *(
            damage(
                f"{name} runs as another account",
                f"service {name}: account",
                do=sc("config", name, "obj=", r"NT AUTHORITY\LocalService"),
            )
            for name in ALL_SERVICES
        ),
    ),
    at_once(
        "all services get another variable",
        *(
            damage(
                f"{name} gets another variable",
                f"service {name}: environment",
                do=regedit(
                    rf"{SERVICES}\{name}", "Environment", "MultiString", ["HTTP_PROXY=http://elsewhere:1"]
                ),
            )
            for name in ALL_SERVICES
        ),
    ),
    at_once(
        "no service is restarted when it dies",
        *(
            damage(
                f"{name} is not restarted when it dies",
                f"service {name}: recovery",
                do=sc("failure", name, "reset=", "0", "actions=", ""),
            )
            for name in ALL_SERVICES
        ),
    ),
    damage(
        "seconds were meant, milliseconds were written",
        "service kubelet: recovery",
        do=sc("failure", "kubelet", "reset=", "900", "actions=", "restart/10/restart/30/restart/60"),
    ),
    at_once(
        "all services also recover from a stop",
        *(
            damage(
                f"{name} also recovers from a stop",
                f"service {name}: recovery after a stop with an error",
                do=sc("failureflag", name, "1"),
            )
            for name in ALL_SERVICES
        ),
    ),
    at_once(
        "all services run with older configurations",
        *(
            damage(
                f"{name} runs with an older configuration",
                f"service {name}: configuration in use",
                do=_older_configuration(name),
            )
            for name in ALL_SERVICES
        ),
    ),
    damage("kube-proxy is stopped", "service kube-proxy: state", do=sc("stop", "kube-proxy")),
    damage(
        "flanneld is stopped",
        "service flanneld: state",
        "service kube-proxy: state",
        do=actions.stop("flanneld"),
    ),
    damage(
        "the kubelet is stopped",
        *(f"service {name}: state" for name in ALL_SERVICES[1:]),
        do=actions.stop("kubelet"),
    ),
    damage(
        "containerd is stopped",
        *(f"service {name}: state" for name in ALL_SERVICES),
        "image registry.k8s.io/pause:3.10.2",
        do=actions.stop("containerd"),
    ),
    # The cluster's side of it
    damage("the pause image is collected", "image registry.k8s.io/pause:3.10.2", do=_forget_image),
    damage("the client certificate is gone", "kubelet client certificate", *UNKNOWABLE, do=delete(CLIENT)),
    damage(
        "the client certificate has expired",
        "kubelet client certificate",
        "service kubelet: state",
        "service kube-proxy: state",
        *UNKNOWABLE,
        do=all_of(
            certificate(age=timedelta(days=40), days=30), actions.stop("kubelet"), sc("start", "kubelet")
        ),
    ),
    damage(
        "a certificate of another node",
        "kubelet client certificate",
        do=certificate(name="system:node:win-2"),
    ),
    damage("the kubeconfig is gone", "kubelet client certificate", *UNKNOWABLE, do=delete(KUBECONFIG)),
    damage(
        "the kubeconfig is of another cluster",
        "kubelet client certificate",
        *UNKNOWABLE,
        do=kubeconfig(lambda data: data["clusters"][0]["cluster"].update(server="https://elsewhere:6443")),
    ),
    damage(
        "another CA",
        "kubelet client certificate",
        r"file C:\etc\kubernetes\pki\ca.crt: content",
        do=write(r"C:\etc\kubernetes\pki\ca.crt", Authority("another").pem),
    ),
    damage(
        "the serving certificate is gone",
        "kubelet serving certificate",
        do=delete(rf"{PKI}\kubelet-server-current.pem"),
    ),
    damage(
        "the Node is deleted",
        *UNKNOWABLE,
        *NEW_NODE,
        "node taint os:NoSchedule",
        "node win-1: Ready",
        do=delete_node,
    ),
    damage(
        "the Node is deleted and comes again with another pod CIDR",
        *UNKNOWABLE[2:],
        "leaked address •.1",
        "leaked address •.2",
        "service kube-proxy: state",
        *NEW_NODE,
        "node annotation winboot.io/owned",
        "node taint winboot.io/starting",
        do=_other_node,
    ),
    damage(
        "the Node has no pod CIDR",
        *UNKNOWABLE[1:],
        "service kube-proxy: state",
        *NEW_NODE,
        "node annotation winboot.io/owned",
        "node taint winboot.io/starting",
        do=_without_pod_cidr,
        meanwhile=lambda site: site.cluster.controllers.resume("nodeipam"),
    ),
    damage(
        "the Node is still that of a machine that died",
        "node win-1: machine",
        "node win-1: Ready",
        *(f"service {name}: state" for name in ALL_SERVICES[1:]),
        do=all_of(
            actions.stop("kubelet"),
            patch_status(
                {
                    "nodeInfo": {"systemUUID": "00000000-0000-0000-0000-000000000001"},
                    "conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}],
                }
            ),
        ),
    ),
    damage(
        "a label is taken off", "node label pool", do=patch_node({"metadata": {"labels": {"pool": None}}})
    ),
    damage(
        "a label is changed", "node label pool", do=patch_node({"metadata": {"labels": {"pool": "linux"}}})
    ),
    damage("a taint is taken off", "node taint os:NoSchedule", do=_without_taint),
    damage(
        "the note of what is ours goes",
        "node annotation winboot.io/owned",
        do=patch_node({"metadata": {"annotations": {"winboot.io/owned": None}}}),
    ),
    damage("the startup taint is back", "node taint winboot.io/starting", do=_startup_taint),
    damage(
        "the Node is not Ready",
        "node win-1: Ready",
        do=patch_status(
            {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
        ),
    ),
    # The network
    damage(
        "the network is removed",
        "HNS network cbr0",
        "HNS endpoint cbr0_ep",
        r"task \winboot\guard: state",
        "node win-1: Ready",
        do=all_of(_end_guard, remove_network(), wait(15)),
    ),
    damage(
        "the network hangs on another adapter",
        "HNS network cbr0: adapter",
        "HNS network cbr0: management address",
        do=network(_adapter),
    ),
    damage(
        "flanneld is kept from starting since a rewiring that failed",
        "service flanneld: kept from starting",
        do=write(rf"{STATE}\held.json", json.dumps({"agent": "flanneld", "why": "a rewiring is under way"})),
    ),
    damage(
        "the record of the network is gone",
        "record of the network settings",
        do=delete(rf"{STATE}\network.json"),
    ),
    damage(
        "the record of the network is of an earlier time",
        "record of the network settings: •",
        do=_record(lambda data: data["adapters"][0].update(dns=["10.9.9.9"])),
    ),
    damage("the network is of another type", "HNS network cbr0: type", do=network(_type)),
    damage("the network has another subnet", "HNS network cbr0: subnets", do=network(_subnet)),
    damage(
        "the network has latched on to no address",
        "HNS network cbr0: management address",
        do=network(_management),
    ),
    damage(
        "the host's endpoint is removed",
        "HNS endpoint cbr0_ep",
        r"task \winboot\guard: state",
        do=all_of(_end_guard, endpoint(lambda hns, found: hns.remove_endpoint(found))),
    ),
    damage("the host's endpoint has another address", "HNS endpoint cbr0_ep", do=endpoint(_another_address)),
    damage(
        "the host's endpoint is detached", "HNS endpoint cbr0_ep: attached to the host", do=endpoint(_detach)
    ),
    damage("forwarding is off on the endpoint", "forwarding on the interface of •", do=_forwarding(2)),
    damage("forwarding is off on the uplink", "forwarding on the interface of •", do=_forwarding(None)),
    damage(
        "subnet.env says something else",
        r"file C:\run\flannel\subnet.env: subnet",
        do=replace(r"C:\run\flannel\subnet.env", "FLANNEL_SUBNET=10.244", "FLANNEL_SUBNET=10.245"),
    ),
    damage(
        "the gateway's reservation is gone", "reserved address for winboot gateway", do=_reservation(1, None)
    ),
    damage(
        "the endpoint's address is reserved for something else",
        "reserved address for winboot endpoint",
        do=_reservation(2, "somebody\r\nelse"),
    ),
    damage(
        "the feature is removed",
        "feature Containers",
        r"registry HKLM\SYSTEM\CurrentControlSet\Services\hns\State: EnableCompartmentNamespace",
        "HNS network External",
        "HNS network cbr0",
        "HNS endpoint cbr0_ep",
        "service kube-proxy: state",
        "node win-1: Ready",
        do=_without_containers,
    ),
    damage("kube-proxy hangs", "kube-proxy: health", do=_hang),
    damage("the startup task is disabled", r"task \winboot\boot: state", do=_disable_task("boot")),
    damage("a run was killed after its drain", "node win-1: cordon", do=_cordon),
    damage(
        "NSSM's values are left on a service of the control manager's",
        "service kubelet: values of NSSM",
        do=_nssm("kubelet", {"Application": r"C:\k\kubelet.exe", "AppParameters": "--old"}),
    ),
    damage(
        "NSSM has other settings",
        *(f"service flanneld: {name}" for name in (*NSSM_VALUES, "AppExit")),
        do=all_of(
            _nssm("flanneld", NSSM_VALUES),
            regedit(rf"{SERVICES}\flanneld\Parameters\AppExit", "", "String", "Ignore"),
        ),
    ),
    # A kube-proxy with a credential of its own, and everything under NSSM
    *(
        damage(
            f"kube-proxy's own credential: {name}",
            f"file C:\\k\\kube-proxy.kubeconfig: {what}",
            do=do,
            scene="own credential",
        )
        for name, what, do in (
            ("it is gone", "credential", delete(r"C:\k\kube-proxy.kubeconfig")),
            ("it has expired", "credential", _expired_kubeconfig),
            ("everybody may read it", "access", let_in(r"C:\k\kube-proxy.kubeconfig")),
            (
                "it is another text",
                "form",
                write(r"C:\k\kube-proxy.kubeconfig", "apiVersion: v1\nkind: Config\n"),
            ),
            (
                "it is of another cluster",
                "server",
                _own_kubeconfig(
                    lambda data: data["clusters"][0]["cluster"].update(server="https://elsewhere:6443")
                ),
            ),
            (
                "it trusts another CA",
                "CA",
                _own_kubeconfig(
                    lambda data: data["clusters"][0]["cluster"].update(
                        {"certificate-authority": "C:\\other.crt"}
                    )
                ),
            ),
        )
    ),
    damage(
        "NSSM starts the kubelet otherwise",
        "service kubelet: AppParameters",
        "service kubelet: AppPriority",
        do=_nssm("kubelet", {"AppParameters": "--other", "AppPriority": 64}),
        scene="own credential",
    ),
    damage(
        "an administrator lets the control manager start the kubelet",
        "service kubelet: command line",
        do=sc("config", "kubelet", "binPath=", r"C:\k\kubelet.exe --windows-service"),
        scene="own credential",
    ),
    # An overlay
    damage(
        "the overlay has another VNI",
        "HNS network flannel.4096: VNI",
        do=network(_vni, "flannel.4096"),
        scene="vxlan",
    ),
    damage(
        "the overlay is removed",
        "HNS network flannel.4096",
        r"task \winboot\guard: state",
        "node win-1: Ready",
        do=all_of(_end_guard, remove_network("flannel.4096"), wait(15)),
        scene="vxlan",
    ),
    # A network and routes of winboot's own
    damage(
        "winboot's network is removed",
        "HNS network l2bridge",
        "HNS endpoint l2bridge_ep",
        "route to 10.244.0.0/24",
        r"task \winboot\guard: state",
        "node win-1: Ready",
        do=all_of(_end_guard, remove_network("l2bridge"), wait(15)),
        scene="own network",
    ),
    damage(
        "a route is removed",
        "route to 10.244.0.0/24",
        do=_route(lambda net, route: net.remove_route(route)),
        scene="own network",
    ),
    damage("a route leads elsewhere", "route to 10.244.0.0/24", do=_route(_other_way), scene="own network"),
    damage("a route of a node that is gone", "route to 10.244.77.0/24", do=_stale_route, scene="own network"),
    damage(
        "no account may read the nodes",
        "kubelet client certificate",
        "node win-1: registered",
        "node win-1: pod CIDR",
        "HNS network l2bridge: subnets",
        "HNS endpoint l2bridge_ep",
        "routes to the pods of other nodes",
        *(f"reserved address for winboot {what}" for what in ("gateway", "endpoint")),
        r"file C:\etc\cni\net.d\10-win-bridge.conflist: content",
        do=delete(KUBECONFIG),
        scene="own network",
    ),
    # Azure
    damage(
        "the state of pods before the restart is left",
        r"file C:\k\azure-vnet.json: state of pods before the restart",
        do=_old_state,
        scene="azure",
    ),
    damage(
        "the node no longer reaches its own pods",
        "HNS network vxlan0: way to its own pods",
        do=network(lambda found: found["Policies"].clear(), "vxlan0"),
        scene="own overlay",
    ),
    damage(
        "an endpoint as older versions made it is left",
        "HNS endpoint Calico_ep: kind",
        do=endpoint(lambda hns, found: found.update(IsRemoteEndpoint=False), "Calico_ep"),
        scene="own calico",
    ),
    # Networks that another owner brings
    *(
        damage(
            f"{scene}: the network has no owner, and a part is gone: {whats[0]}",
            *whats,
            do=all_of(_operator(None), do),
            meanwhile=_operator(calico_node if scene == "operator" else by_hand),
            scene=scene,
        )
        for scene, whats, do in (
            (
                "operator",
                (r"CNI configuration in C:\etc\cni\net.d",),
                delete(r"C:\etc\cni\net.d\10-calico.conflist"),
            ),
            (
                "operator",
                ("HNS network Calico", "node win-1: Ready"),
                all_of(remove_network("Calico"), wait(15)),
            ),
            ("installed by hand", (r"file C:\opt\cni\bin\calico.exe",), delete(r"C:\opt\cni\bin\calico.exe")),
            (
                "installed by hand",
                ("HNS endpoint Calico_ep", r"file C:\k\kube-proxy.yaml: content"),
                endpoint(lambda hns, found: hns.remove_endpoint(found), "Calico_ep"),
            ),
        )
    ),
    *(
        damage(
            f"{scene}: the network has no owner, and no guard restores the settings",
            r"CNI configuration in C:\etc\cni\net.d",
            r"task \winboot\guard: state",
            guarded,
            do=all_of(_operator(None), delete(r"C:\etc\cni\net.d\10-calico.conflist"), _end_guard),
            meanwhile=_operator(calico_node),
            scene=scene,
        )
        for scene, guarded in (
            ("operator", "guard of the static address 10.0.1.11"),
            ("operator by DHCP", "guard of the settings of •"),
        )
    ),
    damage("an address leaks", "leaked address •", do=_leak("ab" * 32)),
    damage(
        "an address of another network is left", "leaked address 10.9.9.9", do=_leak("winboot", "10.9.9.9")
    ),
)


def _edit_rule(site: Site, name: str, old: str, new: str) -> None:
    registry = site.machine.registry
    key = rf"{actions.HKLM}\{FIREWALL}"
    text = registry.text(key, name)
    assert old in text
    registry.set(key, name, "String", text.replace(old, new))


# What no single hand on a joined node provokes: the test that sees it, by a piece of its text.
ELSEWHERE: Final = {
    # Their repair ends all pods, whose new endpoints have other names.
    "boot option TESTSIGNING": ("tests/steps/test_test_signing.py", "boot option TESTSIGNING"),
    "ports of Open vSwitch": ("tests/steps/test_antrea_ports.py", "ports of Open vSwitch"),
    "Docker network host": ("tests/steps/test_docker.py", '"Docker network host": ('),
    "containerd discard_unpacked_layers": (
        "tests/steps/test_containerd_config.py",
        "containerd discard_unpacked_layers",
    ),
    f"drive {ANY} room for both image stores": ("tests/steps/test_adoption.py", "room for both image stores"),
    f"image {ANY} of this node's pods": ("tests/steps/test_adoption.py", "of this node's pods"),
    rf"scheduled task \{ANY}: state": (
        "tests/steps/test_adoption.py",
        r"scheduled task \k8s-restart-job: state",
    ),
    # Only a drained join with another profile moves the root.
    "containerd root": ("tests/lab/test_image_root.py", '"containerd root"'),
    f"folder {ANY}: images of a former root": ("tests/lab/test_image_root.py", "images of a former root"),
    "certificate • in the store Root": (
        "tests/steps/test_trust_roots.py",
        "test_an_issuing_ca_that_an_older_winboot_put_into_root_is_moved",
    ),
    f"file {ANY} of the registry {ANY}": (
        "tests/steps/test_containerd_config.py",
        "of the registry r.example",
    ),
    "gmsa: clock": ("tests/steps/test_gmsa.py", "gmsa: clock"),
    "gmsa: domain of this machine": ("tests/steps/test_gmsa.py", "gmsa: domain of this machine"),
    "gmsa: secure channel to the domain": ("tests/steps/test_gmsa.py", "gmsa: secure channel to the domain"),
    f"gmsa: domain controllers of {ANY}": ("tests/steps/test_gmsa.py", "gmsa: domain controllers of"),
    f"gmsa: class {ANY} of Container Credential Guard": ("tests/steps/test_gmsa.py", "gmsa: class"),
    rf"registry HKLM\{ANY}: owner and rules": ("tests/steps/test_gmsa.py", "owner and rules"),
    rf"gmsa: HKLM\{ANY}: {ANY}": ("tests/steps/test_gmsa.py", r"gmsa: HKLM\SOFTWARE"),
    f"gmsa: account {ANY}": ("tests/steps/test_gmsa.py", "gmsa: account WebApp"),
    f"gmsa: library {ANY}: readable by services": ("tests/steps/test_gmsa.py", "readable by services"),
    f"gmsa: event provider {ANY}: {ANY}": ("tests/steps/test_gmsa.py", "gmsa: event provider"),
    f"gmsa: event manifest {ANY}": ("tests/steps/test_gmsa.py", "gmsa: event manifest"),
    f"gmsa: plug-in {ANY}": ("tests/steps/test_gmsa.py", "gmsa: plug-in"),
    f"module {ANY}: present": ("tests/steps/test_storage_services.py", "ModuleMissing"),
    f"file {ANY}: placed by": ("tests/steps/test_artifacts.py", ": placed by"),
    "kubelet identity": ("tests/steps/test_adoption.py", "kubelet identity"),
    "node": ("tests/steps/test_adoption.py", 'found.pop("node")'),
    f"service {ANY}: use": ("tests/steps/test_adoption.py", ": use"),
    f"HNS network {ANY}: Docker's": ("tests/steps/test_adoption.py", ": Docker's"),
    f"folder {ANY}: images": ("tests/steps/test_adoption.py", ": images"),
    f"file {ANY}: written": ("tests/steps/test_adoption.py", ": written"),
    f"file {ANY}: taken for absent": ("tests/steps/test_trust.py", "is_not_believed_is_taken_for_absent"),
    f"file {ANY}: version": ("tests/steps/test_artifacts.py", "is_found_by_what_the_program_says"),
    f"folder {ANY}: files of others": ("tests/steps/test_directories.py", "files of others"),
    f"folder {ANY}: layers that no containerd knows": (
        "tests/steps/test_layers.py",
        "layers that no containerd knows",
    ),
    f"folder {ANY}: of others": ("tests/steps/test_directories.py", ": of others"),
    "UUID of the machine that joined": (
        "tests/lab/test_copied_machine.py",
        "UUID of the machine that joined",
    ),
    f"node {ANY}: address": ("tests/steps/test_registration.py", "OtherNodeAddress"),
    f"pipe {ANY}": ("tests/steps/test_containerd.py", r"pipe \\.\pipe\containerd-containerd"),
    f"service {ANY}: other accounts that may change it": (
        "tests/steps/test_containerd.py",
        "other accounts that may change it",
    ),
    f"service {ANY}: other accounts that may write its registry key": (
        "tests/steps/test_containerd.py",
        "other accounts that may write its registry key",
    ),
    "kube-proxy: rules in HNS": ("tests/steps/test_kube_proxy.py", "rules in HNS"),
    f"node {ANY}: version of the {ANY}": ("tests/join/test_admission.py", "version of the kubelet is"),
    f"what was at {ANY}": ("tests/steps/test_directories.py", "what was at"),
    "pods of another major of containerd": ("tests/steps/test_containerd.py", "containerd:shims"),
    "versions held by a rollback": ("tests/steps/test_versions.py", "versions:held"),
} | {
    # Azure's alone. Each part of a task is compared by the function that compares those of the tasks above.
    rf"task \winboot\events: {part}": ("tests/steps/test_azure_events.py", r"task \winboot\events: command")
    for part in ("account", "command", "description", "priority", "state", "triggers")
}

"""The table of damages: for every `what` that a look can emit, something that happens to a joined node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

from tests.lab import hands
from tests.lab.hands import (
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
from tests.lab.site import Site
from winboot.lab.cluster.authority import Authority


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that happened. `whats`: what a look must say then, exactly (ANY for what differs from site to site).
    `scene`: on which node. `meanwhile`: what somebody else does while winboot repairs.
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


PROGRAMS = (
    *(
        rf"C:\Program Files\containerd\bin\{n}.exe"
        for n in ("containerd", "ctr", "containerd-shim-runhcs-v1")
    ),
    *(
        rf"C:\k\{n}.exe"
        for n in ("kubelet", "kube-proxy", "kube-log-runner", "kubectl", "crictl", "nssm", "flanneld")
    ),
    *(rf"C:\opt\cni\bin\{n}.exe" for n in ("win-bridge", "host-local", "flannel")),
)
NATIVE = ("containerd", "kubelet", "kube-proxy")
ALL_SERVICES = (*NATIVE, "flanneld")
EMPTY_FOLDERS = (
    r"C:\ProgramData\containerd\certs.d\gone",
    r"C:\var\log\pods",
)
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
    rf"{STATE}\boot.ps1",
    r"C:\ProgramData\containerd\certs.d\registry.k8s.io\hosts.toml",
)


def _reserved(site: Site, last: int) -> str:
    return rf"{STORE}\{site.node()['spec']['podCIDR'].rpartition('.')[0]}.{last}"


def _leak(owner: str, address: str | None = None) -> Hand:
    def hand(site: Site) -> None:
        path = rf"{STORE}\{address}" if address else _reserved(site, 77)
        write(path, f"{owner}\r\neth0")(site)

    return hand


def _reservation(last: int, content: str | None) -> Hand:
    def hand(site: Site) -> None:
        path = _reserved(site, last)
        (delete(path) if content is None else write(path, content))(site)

    return hand


def _older_configuration(service: str) -> Hand:
    """A run that died between writing a file and starting the service anew."""

    def hand(site: Site) -> None:
        write(rf"{STATE}\restart-{service}.json", json.dumps({"boot_id": hands.boot_id(site)}))(site)

    return hand


def _forget_image(site: Site) -> None:
    path = r"C:\ProgramData\containerd\root\io.containerd.metadata.v1.bolt\meta.db"
    data = json.loads(site.machine.files.read(path))
    write(path, json.dumps({**data, "images": {}}, sort_keys=True))(site)


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


def _disable_task(site: Site) -> None:
    task = site.machine.tasks.find("logs", "\\winboot\\")
    assert task is not None
    task.enabled = False


def _no_exclusion(site: Site) -> None:
    defender = site.machine.defender
    for kind in ("ExclusionProcess", "ExclusionPath"):
        defender.drop(kind, defender.exclusions(kind))


def _other_node(site: Site) -> None:
    """The Node goes, and others take subnets before the kubelet comes again: its pod CIDR will be another one."""
    hands.stop("kubelet")(site)
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
        hands.forwarding_off(address)(site)

    return hand


# Without the kubelet's credentials nobody can ask for the Node: these are wanted as `(known after join)`.
UNKNOWABLE = (
    "node win-1: registered",
    "node win-1: pod CIDR",
    "HNS network cbr0: subnets",
    "HNS endpoint cbr0_ep",
    r"file C:\run\flannel\subnet.env: subnet",
    "reserved address for winboot gateway",
    "reserved address for winboot endpoint",
)
# What comes with a Node that is made anew.
NEW_NODE = ("node label pool",)

DAMAGES: tuple[Damage, ...] = (
    # Windows itself
    damage("somebody renames the computer", "computer name", do=_rename),
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
    damage("the company's CA is taken out", "trusted root •", do=_untrust),
    damage(
        "all exclusions are dropped",
        "Defender exclusion process •",
        "Defender exclusion path •",
        do=_no_exclusion,
    ),
    # Folders
    *(
        damage(f"{path} is deleted", f"folder {path}", do=delete_folder(path))
        for path in (r"C:\var\log\pods", r"C:\var\log\containers")
    ),
    damage(
        "the configuration's folder is deleted with what is in it",
        r"folder C:\etc\cni\net.d",
        f"file {CONFLIST}: content",
        do=delete_folder(r"C:\etc\cni\net.d"),
    ),
    damage("everybody may read the keys", rf"folder {PKI}: others with rights", do=let_in(PKI)),
    # Firewall
    *(
        damage(f"the rule {rule} is deleted", f"firewall rule {rule}", do=unset(FIREWALL, rule))
        for rule in RULES
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
    damage("the log task is disabled", r"task \winboot\logs: state", do=_disable_task),
    # Programs
    *(damage(f"{path} has other bytes", f"file {path}: sha256", do=append(path, "x")) for path in PROGRAMS),
    damage(
        "plugins are deleted",
        r"file C:\opt\cni\bin\host-local.exe: sha256",
        r"file C:\opt\cni\bin\flannel.exe: sha256",
        do=all_of(delete(r"C:\opt\cni\bin\host-local.exe"), delete(r"C:\opt\cni\bin\flannel.exe")),
    ),
    # Texts
    *(damage(f"a line more in {path}", f"file {path}: content", do=append(path, "\n")) for path in TEXTS),
    *(
        damage(f"{path} with a byte order mark", f"file {path}: content", do=with_bom(path))
        for path in (CONFLIST, r"C:\var\lib\kubelet\config.yaml", r"C:\Program Files\containerd\config.toml")
    ),
    damage(
        "a configuration is deleted",
        r"file C:\k\kube-proxy.yaml: content",
        do=delete(r"C:\k\kube-proxy.yaml"),
    ),
    damage(
        "somebody else's CNI configuration",
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
    *(
        damage(
            f"{name} is started otherwise",
            f"service {name}: command line",
            do=sc("config", name, "binPath=", rf"C:\k\{name}.exe --other"),
        )
        for name in ALL_SERVICES
    ),
    *(
        damage(
            f"{name} is to be started by hand",
            f"service {name}: start type",
            do=sc("config", name, "start=", "demand"),
        )
        for name in ALL_SERVICES
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
    *(
        damage(
            f"{name} depends on something else",
            f"service {name}: depends on",
            do=sc("config", name, "depend=", "w32time"),
        )
        for name in ALL_SERVICES
    ),
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
    *(
        damage(
            f"{name} is not restarted when it dies",
            f"service {name}: recovery",
            do=sc("failure", name, "reset=", "0", "actions=", ""),
        )
        for name in ALL_SERVICES
    ),
    damage(
        "seconds were meant, milliseconds were written",
        "service kubelet: recovery",
        do=sc("failure", "kubelet", "reset=", "900", "actions=", "restart/10/restart/30/restart/60"),
    ),
    *(
        damage(
            f"{name} also recovers from a stop",
            f"service {name}: recovery after a stop with an error",
            do=sc("failureflag", name, "1"),
        )
        for name in ALL_SERVICES
    ),
    *(
        damage(
            f"{name} runs with an older configuration",
            f"service {name}: configuration in use",
            do=_older_configuration(name),
        )
        for name in ALL_SERVICES
    ),
    damage("kube-proxy is stopped", "service kube-proxy: state", do=sc("stop", "kube-proxy")),
    damage(
        "flanneld is stopped",
        "service flanneld: state",
        "service kube-proxy: state",
        do=hands.stop("flanneld"),
    ),
    damage(
        "the kubelet is stopped",
        *(f"service {name}: state" for name in ALL_SERVICES[1:]),
        do=hands.stop("kubelet"),
    ),
    damage(
        "containerd is stopped",
        *(f"service {name}: state" for name in ALL_SERVICES),
        "image registry.k8s.io/pause:3.10.1",
        do=hands.stop("containerd"),
    ),
    # The cluster's side of it
    damage("the pause image is collected", "image registry.k8s.io/pause:3.10.1", do=_forget_image),
    damage("the client certificate is gone", "kubelet client certificate", *UNKNOWABLE, do=delete(CLIENT)),
    damage(
        "the client certificate has expired",
        "kubelet client certificate",
        "service kubelet: state",
        "service kube-proxy: state",
        *UNKNOWABLE,
        do=all_of(
            certificate(age=timedelta(days=40), days=30), hands.stop("kubelet"), sc("start", "kubelet")
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
            hands.stop("kubelet"),
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
        "node win-1: Ready",
        do=all_of(remove_network(), wait(15)),
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
        do=endpoint(lambda hns, found: hns.remove_endpoint(found)),
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
    damage("an address leaks", "leaked address •", do=_leak("ab" * 32)),
    damage(
        "an address of another network is left", "leaked address 10.9.9.9", do=_leak("winboot", "10.9.9.9")
    ),
)


def _edit_rule(site: Site, name: str, old: str, new: str) -> None:
    registry = site.machine.registry
    key = rf"{hands.HKLM}\{FIREWALL}"
    text = registry.text(key, name)
    assert old in text
    registry.set(key, name, "String", text.replace(old, new))

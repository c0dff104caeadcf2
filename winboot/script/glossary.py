"""Words that people use around Windows nodes, and what winboot does about each; for `winboot explain`.

What is decided somewhere is not repeated here: a text names the key, the step or the command that has it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Final

from winboot.base import exits

WORDS: Final[Mapping[str, str]] = {
    "adopt": (
        "--adopt takes over a machine that another tool made a node. How it was is noted first, and `winboot "
        "remove` puts that back. Without the flag such a machine is left alone (ForeignNode)."
    ),
    "cni": (
        "The plugin that gives a pod its network. containerd calls it with the configuration of the step "
        "cni-config; which one it is, network.cni says (`winboot explain network`)."
    ),
    "containerd": (
        "The container runtime, the only one winboot installs. Version: runtime.containerd; its config.toml "
        "is the whole text of the step containerd-config; registries and mirrors: runtime.registries; the "
        "proxy for its pulls: proxy."
    ),
    "cordon": (
        "Marks a node so that no new pod comes to it. winboot cordons before it drains, and lifts only a "
        "cordon of its own."
    ),
    "csr": (
        "A CertificateSigningRequest. A kubelet asks for its client certificate with a bootstrap token, and "
        "for its serving certificate once it runs; nobody approves serving certificates by itself. `join` "
        "approves those of its own nodes, `winboot csr watch` later ones; what one may say comes from the "
        "inventory (docs/certificates.md)."
    ),
    "dsr": (
        "Direct server return: the answer of a pod behind a Service goes straight to the client, without "
        "passing the load balancer of HNS again. kube-proxy does it with --enable-dsr and the gate WinDSR "
        "(`winboot explain gate WinDSR`), on Windows Server 2022 and later; overlay networks want it. winboot"
        " turns it on where the version allows it."
    ),
    "drain": (
        "Cordon, then evict the pods, and wait. On a live node winboot changes nothing that would disturb "
        "pods without --drain (NeedsDrain); budgets of pods are heeded, and the node is made schedulable "
        "again as it was. `winboot upgrade` always drains."
    ),
    "flannel": (
        "A network solution whose agent (flanneld) makes the HNS network itself. network.cni: flannel with "
        "network.mode host-gw or vxlan (`winboot explain network flannel`)."
    ),
    "gmsa": (
        "Group managed service accounts: a pod runs as an account of Active Directory. It needs a "
        "CredentialSpec in the cluster, its webhook, and a machine that is a member of the domain. winboot "
        "joins members of a domain without renaming them, and does nothing else about it."
    ),
    "guard": (
        "What gives a machine its address back when a new network does not come up: a task of the system that"
        " watches an adapter while it is rewired, also at each start (steps address-guard and pod-network)."
    ),
    "hns": (
        "The Host Network Service of Windows: it makes the virtual networks, endpoints and load balancers of "
        "pods. Who makes the network of a node (winboot, an agent, you), `winboot explain network` says; the "
        "step pod-network looks at it."
    ),
    "host-gw": (
        "Routes between nodes in one layer-2 network, without encapsulation: the fastest, and it needs no UDP"
        " port. network: {cni: flannel, mode: host-gw}."
    ),
    "hostprocess": (
        "A container that runs on the host itself, with its rights. DaemonSets of Calico and kube-proxy use "
        "it."
    ),
    "hyper-v": (
        "Containers in a machine of their own (isolation hyperv), through a handler of containerd: "
        "runtime.isolation with hypervisor, and a RuntimeClass. It needs the role Hyper-V, which the step "
        "windows-features turns on."
    ),
    "journal": (
        "What was said in a run, line by line: here in $WINBOOT_STATE/runs (`winboot log last`), and on the "
        "machine in C:\\ProgramData\\winboot."
    ),
    "l2bridge": (
        "An HNS network in which pods have addresses behind the node's own and the host rewrites MAC "
        "addresses; host-gw and win-bridge use it."
    ),
    "lease": (
        "Two kinds: the kubelet renews the Lease of its Node, by which the cluster knows that it lives; and "
        "the claim that a run of winboot has on a node is a Lease in winboot-system (docs/fleets.md)."
    ),
    "mirror": (
        "A server that has the artifacts, asked in place of upstream: artifacts.source. Registries with a "
        "mirror: runtime.registries."
    ),
    "ntlm": (
        "The login that WinRM uses where there is no domain; it seals the messages on port 5985. "
        "connection.auth."
    ),
    "overlay": (
        "An HNS network that wraps packets between nodes in VXLAN. flannel in mode vxlan, win-overlay and "
        "Calico use it; the gate WinOverlay must be on."
    ),
    "pause": (
        "The image of the container that holds a pod's network. It must fit the Windows build; the default "
        "does for all (runtime.pause_image; step pause-image)."
    ),
    "preflight": (
        "What is looked at before a join changes anything: cluster, rights, versions, and the machine itself."
        " `winboot preflight`; ids in docs/preflight.md; --skip-preflight ID lets a join continue in spite of"
        " one."
    ),
    "proxy": (
        "proxy.http, proxy.https, proxy.no_proxy: for downloads of the machine, and in the environment of the"
        " services. Addresses of the cluster are added to no_proxy. A proxy may not be spoken to by https:// "
        "and has no password in its URL."
    ),
    "psrp": (
        "PowerShell Remoting: the protocol in which winboot speaks to a machine over WinRM "
        "(connection.transport: winrm)."
    ),
    "ready": (
        "A node is Ready when its kubelet says that runtime and network work. winboot waits for it, then sets"
        " labels and taints, and takes its startup taint away last."
    ),
    "reimage": (
        "`winboot repair --by reimage` has the cloud give the machine a fresh disk, and joins it once more; "
        "--by replace takes another machine."
    ),
    "repair": (
        "`winboot repair` is `winboot join` for nodes that exist: it looks, and changes what differs. "
        "Machines that are no nodes are left alone."
    ),
    "report": (
        "What a run did to each node: the table, -o json, -o junit, --report FILE.html. `winboot report last`"
        " shows it again."
    ),
    "runtimeclass": (
        "The name under which a pod chooses a handler of containerd, and with it nodes of one Windows build. "
        "`winboot manifests runtimeclass` prints one for each."
    ),
    "taint": (
        "Keeps pods away that do not tolerate it. node.taints are the profile's (os=windows:NoSchedule is "
        "usual); winboot.io/starting is winboot's own: the kubelet registers with it, and it goes when all is"
        " proved."
    ),
    "token": (
        "A bootstrap token: with it a kubelet asks for its first certificate. winboot mints one for each node"
        " that needs it, for a short time, and deletes it afterwards."
    ),
    "vxlan": (
        "Packets between nodes wrapped in UDP (4789 on Windows), with the VNI 4096 or higher. network: {cni: "
        "flannel, mode: vxlan}; both ends must agree (`winboot explain network flannel-vxlan`)."
    ),
    "webhook": "See csr for certificates and gmsa for accounts; winboot installs none.",
    "winrm": (
        "Windows Remote Management: HTTP on 5985 (the login seals the messages) or HTTPS on 5986. The default"
        " transport; connection.*, `winboot ping`."
    ),
}
# Other spellings of them.
_ALIASES: Final[Mapping[str, str]] = {
    "bootstrap-token": "token",
    "bootstrap": "token",
    "certificate": "csr",
    "certificatesigningrequest": "csr",
    "direct-server-return": "dsr",
    "hcn": "hns",
    "hostgw": "host-gw",
    "hyperv": "hyper-v",
    "pause-image": "pause",
    "sandbox": "pause",
    "uncordon": "cordon",
    "evict": "drain",
    "http_proxy": "proxy",
    "https_proxy": "proxy",
    "no_proxy": "proxy",
    "registry": "mirror",
    "logs": "journal",
    "log": "journal",
    "runtime": "containerd",
    "runtime-class": "runtimeclass",
    "taints": "taint",
    "toleration": "taint",
}
# The codes of docs/exit-codes.md (tests/cli/test_explain.py).
EXIT_CODES: Final[Mapping[int, str]] = {
    exits.DONE: "done: nothing is left to change",
    exits.FAILED: (
        "a step failed, preflight found an error, or nodes failed for different reasons; the report names "
        "step, cause and next step"
    ),
    exits.NOT_DONE: (
        "something that was wanted was not done, though nothing failed: plan found changes, a drain or a "
        "restart is needed, or somebody said no"
    ),
    exits.SOME_FAILED: "some nodes failed, the others did not: fix those and run the same command again",
    exits.STOPPED_ITSELF: (
        "stopped by itself: a failure budget or a deadline is used up (docs/fleets.md); the same command "
        "continues with the others"
    ),
    exits.USAGE: "wrong use, or a profile, inventory or step file is wrong; nothing was contacted",
    69: "every node failed alike: machine, cluster or cloud is out of reach; `winboot ping`",
    exits.NOT_WRITTEN: "all is done, but the report could not be written",
    exits.SUPERSEDED: "another run has taken over a node: let it finish",
    77: "every node failed alike: the login was refused, or a right is missing",
    129: "SIGHUP: the terminal or the SSH session was closed; run the same command again, it continues",
    exits.INTERRUPTED: "interrupted by Ctrl-C; run the same command again, it continues",
    143: "SIGTERM; run the same command again, it continues",
}


def word(name: str) -> str | None:
    """The text of a word, however it is written; None where there is none."""
    wanted = name.strip().lower().replace(" ", "-")
    wanted = _ALIASES.get(wanted, wanted)
    text = WORDS.get(wanted) or WORDS.get(wanted.replace("_", "-"))
    if text is None:
        return None
    return f"{wanted}\n" + textwrap.fill(
        text, 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


# What the flags do that winboot writes itself
# (kubernetes.io/docs/reference/command-line-tools-reference, kubelet and kube-proxy).
FLAGS: Final[Mapping[str, str]] = {
    "bootstrap-kubeconfig": "the login for the first certificate, used where the kubeconfig is not there yet",
    "cert-dir": "where the kubelet keeps its certificates",
    "cluster-cidr": "the network of all pods: traffic to services from elsewhere is given the node's address",
    "config": "the file with the configuration; flags win over it",
    "config-dir": "a folder of further configuration files, in the order of their names",
    "container-runtime-endpoint": "the named pipe of containerd",
    "enable-dsr": "replies of services go to the client directly, not back through the load balancer",
    "hostname-override": "the name of the Node; without it the computer name, in lower case",
    "kubeconfig": "where the API server is, and the login there",
    "network-name": "the HNS network that kube-proxy makes its policies for",
    "node-ip": "the address that the Node has as InternalIP: the API server reaches the kubelet there, and pods of the host's "
    "network have it. Without it the kubelet takes the one that the machine's name or default route leads to",
    "node-labels": "labels that the kubelet gives its Node when it first registers",
    "proxy-mode": "how services are made; on Windows kernelspace alone",
    "register-with-taints": "taints that the Node has from its first moment on",
    "root-dir": "the folder for volumes and pods",
    "root-hnsendpoint-name": "the HNS endpoint of the node itself, for overlays",
    "source-vip": "the address that nodes of an overlay give to traffic for services",
    "windows-service": "the program answers the service manager itself",
}

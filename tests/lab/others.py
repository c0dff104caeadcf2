"""Nodes that other tools made, each Ready and with the identity that kubeadm gave it.

Where files, services and flags lie: kubernetes-sigs/sig-windows-tools hostprocess/PrepareNode.ps1 (30b5f0d0); image-builder
images/capi/ansible/windows/roles/kubernetes/tasks/sc.yml and nssm.yml; kubernetes cmd/kubeadm/app/cmd/phases/join/kubelet.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from winboot_lab.cluster.authority import CLIENT_AUTH, Subject
from winboot_lab.docker_node import CNI_CONF, KUBELET, bridge_conf, prepare_node
from winboot_lab.mirror import program

from tests.lab import actions
from tests.lab.site import Site
from winboot.config.compat import Version

START: Final = r"C:\k\StartKubelet.ps1"
FLAGS: Final = r"C:\var\lib\kubelet\kubeadm-flags.env"
CONFIG: Final = r"C:\var\lib\kubelet\config.yaml"
CREDENTIAL: Final = r"C:\etc\kubernetes\kubelet.conf"
CA: Final = r"C:\etc\kubernetes\pki\ca.crt"
CERTIFICATE: Final = r"C:\var\lib\kubelet\pki\kubelet-client-current.pem"
RELEASE: Final = r"C:\image-builder-release.txt"
CONTAINERD: Final = r"C:\Program Files\containerd\containerd.exe"
POWERSHELL: Final = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe"
_PAIR: Final = r"C:\var\lib\kubelet\pki\kubelet-client-2026-09-01-10-00-00.pem"
_ARGUMENTS: Final = (
    r"--cert-dir=C:\var\lib\kubelet\pki --config=/var/lib/kubelet/config.yaml "
    "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf "
    "--enable-debugging-handlers --cgroups-per-qos=false"
)
# What `kubeadm join` writes of the ConfigMap kubelet-config (componentconfigs/kubelet.go and kubelet_windows.go).
_CONFIG: Final = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True},
        "x509": {"clientCAFile": CA},
    },
    "authorization": {"mode": "Webhook"},
    "clusterDNS": ["10.96.0.10"],
    "clusterDomain": "cluster.local",
    "containerRuntimeEndpoint": "npipe:////./pipe/containerd-containerd",
    "cgroupDriver": "systemd",
    "enforceNodeAllocatable": [],
    "resolvConf": "",
    "rotateCertificates": True,
}


@dataclass(frozen=True, slots=True)
class Maker:
    """A tool that makes nodes: its id as winboot reports it, and how it sets up the kubelet's service."""

    id: str
    service: Callable[[Site], None]


def _nssm(site: Site, path: str) -> None:
    actions.write(path, program("nssm", "2.24"))(site)
    command = rf"C:\k\kubelet.exe $KubeletArgs {_ARGUMENTS} --hostname-override={site.plans[0].name}"
    actions.write(START, f"# The flags of kubeadm, then:\n{command}\n")(site)
    ended = actions.program(
        site, path, "install", "kubelet", POWERSHELL, "-ExecutionPolicy", "Bypass", "-NoProfile", START
    )
    assert ended.code == 0, ended


def _prepare_node(site: Site) -> None:
    _nssm(site, r"C:\Program Files\nssm\nssm.exe")
    actions.sc("config", "kubelet", "depend=", "containerd")(site)


def _image_nssm(site: Site) -> None:
    actions.write(RELEASE, b"BUILD_TIMESTAMP=1756721000\n")(site)
    _nssm(site, r"C:\k\nssm.exe")


def _image_service(site: Site) -> None:
    actions.write(RELEASE, b"BUILD_TIMESTAMP=1756721000\n")(site)
    actions.write(r"C:\k\kube-log-runner.exe", program("kube-log-runner", str(_version(site))))(site)
    runner = r"C:\k\kube-log-runner.exe --log-file=C:/var/log/kubelet/kubelet.log"
    line = (
        rf"{runner} C:\k\kubelet.exe --windows-service {_ARGUMENTS} --hostname-override={site.plans[0].name}"
    )
    actions.sc("create", "kubelet", "binPath=", line, "start=", "auto", "depend=", "containerd")(site)


MAKERS: Final[Mapping[str, Maker]] = {
    one.id: one
    for one in (
        Maker("kubeadm-prepare-node", _prepare_node),
        Maker("image-builder-service", _image_service),
        Maker("image-builder-nssm", _image_nssm),
    )
}


def _version(site: Site) -> str:
    return site.cluster.plan.version


def kubeadm_node(site: Site, maker: str) -> None:
    """Make the site's machine a Ready node as this tool does: containerd, kubeadm's files, the kubelet's service."""
    machine = site.machine
    machine.power.rename(site.plans[0].name.upper())
    machine.features.install_now("Containers")
    machine.reboot(seconds=1)
    site.settle(30)
    _containerd(site)
    actions.write(r"C:\k\kubelet.exe", program("kubelet", _version(site)))(site)
    _joined(site)
    MAKERS[maker].service(site)
    actions.sc("start", "kubelet")(site)
    site.settle(120)


# The Windows programs of flannel on a Docker node, as SDN's start.ps1 has them.
_FLANNELD: Final = (
    r"--kubeconfig-file=C:\etc\kubernetes\kubelet.conf",
    "--kube-subnet-mgr=1",
    "--iface=10.0.1.11",
    "--ip-masq=1",
)
_NET_CONF: Final = {"Network": "10.244.0.0/16", "Backend": {"Type": "host-gw", "Name": "cbr0"}}
NSSM: Final = r"C:\k\nssm.exe"


def docker_node(site: Site, kind: str) -> None:
    """Make the site's machine a Ready node with dockershim and flannel host-gw, as PrepareNode.ps1, AKS Engine or image-builder
    before 2024 set up the kubelet. In the lab flanneld is a service of NSSM: hostNetwork pods of Docker do not run there."""
    machine = site.machine
    machine.power.rename(site.plans[0].name.upper())
    machine.features.install_now("Containers")
    machine.reboot(seconds=1)
    site.settle(30)
    site.outside.images.builds["mcr.microsoft.com/oss/kubernetes/pause:1.4.1"] = (machine.build,)
    prepare_node(machine, _version(site))
    actions.write(r"C:\opt\cni\bin\flannel.exe", program("flannel", "1.1.0"))(site)
    for name in ("win-bridge", "host-local"):
        actions.write(rf"C:\opt\cni\bin\{name}.exe", program(name, "0.9.1"))(site)
    actions.write(
        CNI_CONF, json.dumps(bridge_conf("cbr0", "10.244.0.0/16", "10.96.0.0/12", "10.0.0.0/16", "10.0.1.11"))
    )(site)
    _joined(site)
    script = DOCKER_KINDS[kind](site)
    command = " ".join(
        [r"C:\k\kubelet.exe", "$KubeletArgs", *KUBELET, f"--hostname-override={site.plans[0].name}"]
    )
    actions.write(script, f"# The flags of kubeadm, then:\n{command}\n")(site)
    _under_nssm(site, "kubelet", POWERSHELL, "-ExecutionPolicy", "Bypass", "-NoProfile", script)
    actions.sc("config", "kubelet", "depend=", "docker")(site)
    actions.sc("start", "kubelet")(site)
    site.settle(60)
    actions.write(r"C:\k\flanneld.exe", program("flanneld", "0.14.0"))(site)
    actions.write(r"C:\etc\kube-flannel\net-conf.json", json.dumps(_NET_CONF))(site)
    _under_nssm(site, "flanneld", r"C:\k\flanneld.exe", *_FLANNELD)
    for name, value in (("AppDirectory", "C:\\"), ("AppEnvironmentExtra", f"NODE_NAME={site.plans[0].name}")):
        assert actions.program(site, NSSM, "set", "flanneld", name, value).code == 0
    actions.sc("start", "flanneld")(site)
    site.settle(120)


def _under_nssm(site: Site, name: str, *words: str) -> None:
    ended = actions.program(site, NSSM, "install", name, *words)
    assert ended.code == 0, ended


def _by_aks_engine(site: Site) -> str:
    actions.write(r"C:\AzureData\CustomDataSetupScript.ps1", "# theirs\n")(site)
    return r"C:\k\kubeletstart.ps1"


def _by_image_builder(site: Site) -> str:
    actions.write(RELEASE, b"BUILD_TIMESTAMP=1656721000\n")(site)
    return START


def _by_prepare_node(site: Site) -> str:
    site.machine.services.create("rancher-wins", r"C:\k\wins.exe srv app run")
    return START


# What each tool has besides, and where its start script lies.
DOCKER_KINDS: Final[Mapping[str, Callable[[Site], str]]] = {
    "kubeadm-prepare-node": _by_prepare_node,
    "aks-engine": _by_aks_engine,
    "image-builder-nssm": _by_image_builder,
}


def _containerd(site: Site) -> None:
    (spec,) = site.specs()
    version = str(spec.runtime.version)
    folder = CONTAINERD.rpartition("\\")[0]
    actions.write(CONTAINERD, program("containerd", version))(site)
    actions.write(rf"{folder}\containerd-shim-runhcs-v1.exe", program("containerd-shim-runhcs-v1", version))(
        site
    )
    actions.write(rf"{folder}\config.toml", _containerd_config(spec.runtime.pause_image))(site)
    ended = actions.program(site, CONTAINERD, "--register-service")
    assert ended.code == 0, ended
    actions.sc("start", "containerd")(site)


def _containerd_config(pause: str) -> str:
    """As Install-Containerd.ps1 of sig-windows-tools changes the default: CNI in kubeadm's folders."""
    return f"""version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{pause}'
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['C:\\opt\\cni\\bin']
conf_dir = 'C:\\etc\\cni\\net.d'
"""


def _joined(site: Site) -> None:
    """What `kubeadm join` leaves: CA, kubelet.conf, the certificate that it names, config.yaml and the flags."""
    cluster, now = site.cluster, site.time.datetime()
    node = site.plans[0].name
    subject = Subject(f"system:node:{node}", ("system:nodes",))
    pair = cluster.authority.issue(
        subject, (CLIENT_AUTH,), (now - timedelta(hours=1), now + timedelta(days=300))
    )
    actions.write(CA, cluster.authority.pem)(site)
    actions.write(_PAIR, (pair.certificate + pair.key))(site)
    site.machine.files.link(CERTIFICATE, _PAIR, "SymbolicLink")
    actions.write(CREDENTIAL, _kubeconfig(cluster.plan.server))(site)
    fields = set() if _with_field(site) else {"containerRuntimeEndpoint"}
    actions.write(CONFIG, json.dumps({key: value for key, value in _CONFIG.items() if key not in fields}))(
        site
    )
    actions.write(FLAGS, f'KUBELET_KUBEADM_ARGS="--hostname-override={node}"\n')(site)


def _with_field(site: Site) -> bool:
    return Version.parse(_version(site)).at_least("1.27")


def _kubeconfig(server: str) -> str:
    cluster = {"certificate-authority": CA, "server": server}
    user = {"client-certificate": CERTIFICATE, "client-key": CERTIFICATE}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default-cluster", "cluster": cluster}],
        "users": [{"name": "default-auth", "user": user}],
        "contexts": [{"name": "default", "context": {"cluster": "default-cluster", "user": "default-auth"}}],
        "current-context": "default",
    }
    return json.dumps(config, indent=2)

"""Nodes that other tools made, each Ready and with the identity that kubeadm gave it.

Where files, services and flags lie: kubernetes-sigs/sig-windows-tools hostprocess/PrepareNode.ps1 (30b5f0d0); image-builder
images/capi/ansible/windows/roles/kubernetes/tasks/sc.yml and nssm.yml; kubernetes cmd/kubeadm/app/cmd/phases/join/kubelet.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from winboot_lab.cluster.authority import CLIENT_AUTH, Subject
from winboot_lab.mirror import program

from tests.lab import actions
from tests.lab.site import Site

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
_CONFIG: Final = r"""apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: 'C:\etc\kubernetes\pki\ca.crt'}
authorization: {mode: Webhook}
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: npipe:////./pipe/containerd-containerd
cgroupDriver: systemd
enforceNodeAllocatable: []
resolvConf: ""
rotateCertificates: true
"""


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


def _containerd(site: Site) -> None:
    (spec,) = site.specs()
    version = str(spec.runtime.containerd)
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
    actions.write(CONFIG, _CONFIG)(site)
    actions.write(FLAGS, f'KUBELET_KUBEADM_ARGS="--hostname-override={node}"\n')(site)


def _kubeconfig(server: str) -> str:
    return f"""apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: C:\\etc\\kubernetes\\pki\\ca.crt
    server: {server}
  name: default-cluster
contexts:
- context: {{cluster: default-cluster, user: default-auth}}
  name: default-context
current-context: default-context
users:
- name: default-auth
  user:
    client-certificate: C:\\var\\lib\\kubelet\\pki\\kubelet-client-current.pem
    client-key: C:\\var\\lib\\kubelet\\pki\\kubelet-client-current.pem
"""

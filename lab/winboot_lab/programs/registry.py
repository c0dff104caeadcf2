"""Which program a file's identity line names."""

from __future__ import annotations

from winboot_lab.programs.antrea import REPOSITORY as ANTREA
from winboot_lab.programs.antrea import Antrea, antrea_agent
from winboot_lab.programs.calico import Calico, CalicoIpam, calico_node, pool_of
from winboot_lab.programs.calico_node import CalicoNodeProgram, MergedCalico
from winboot_lab.programs.containerd import ContainerdProgram, ShimProgram
from winboot_lab.programs.crictl import Crictl, Ctr
from winboot_lab.programs.csi_proxy import CsiProxyProgram
from winboot_lab.programs.docker import DockerdProgram, DockerProgram
from winboot_lab.programs.docker_cri import CriDockerdProgram
from winboot_lab.programs.flanneld import FlanneldProgram
from winboot_lab.programs.host_kube_proxy import REPOSITORY, HostKubeProxy
from winboot_lab.programs.hybrid_overlay import HybridOverlayProgram
from winboot_lab.programs.kube_proxy import KubeProxyProgram
from winboot_lab.programs.kubectl import Kubectl
from winboot_lab.programs.kubelet import KubeletProgram
from winboot_lab.programs.nssm import NssmProgram
from winboot_lab.programs.outside import Outside
from winboot_lab.programs.plugins import Azure, AzureIpam, Flannel, HostLocal, WinBridge, WinOverlay
from winboot_lab.programs.sc import Sc
from winboot_lab.programs.system import (
    Bcdedit,
    Curl,
    Netsh,
    Powercfg,
    PowerShell,
    Refused,
    Shutdown,
    Taskkill,
    W32tm,
)
from winboot_lab.programs.tar import Tar
from winboot_lab.programs.wevtutil import Wevtutil
from winboot_lab.programs.wrappers import CmdProgram, LogRunnerProgram
from winboot_lab.windows.install import IN_BOX
from winboot_lab.windows.programs import Program, Programs


def install_programs(programs: Programs, outside: Outside) -> None:
    """Make every stand-in known."""
    known: dict[str, Program] = {
        "antrea": Antrea(),
        "azure-vnet": Azure(),
        "azure-vnet-ipam": AzureIpam(),
        "bcdedit": Bcdedit(),
        "calico": Calico(outside),
        "calico-ipam": CalicoIpam(),
        "calico-node": CalicoNodeProgram(outside),
        "calico-windows": MergedCalico(outside),
        "cmd": CmdProgram(),
        "containerd": ContainerdProgram(outside),
        "containerd-shim-runhcs-v1": ShimProgram(),
        "cri-dockerd": CriDockerdProgram(),
        "crictl": Crictl(),
        "csi-proxy": CsiProxyProgram(),
        "ctr": Ctr(),
        "curl": Curl(),
        "docker": DockerProgram(),
        "dockerd": DockerdProgram(outside),
        "flannel": Flannel(),
        "flanneld": FlanneldProgram(outside),
        "host-local": HostLocal(),
        "hybrid-overlay-node": HybridOverlayProgram(outside),
        "kube-log-runner": LogRunnerProgram(),
        "kube-proxy": KubeProxyProgram(outside),
        "kubectl": Kubectl(outside),
        "kubelet": KubeletProgram(outside),
        "netsh": Netsh(),
        "nssm": NssmProgram(),
        "powercfg": Powercfg(),
        "powershell": PowerShell(),
        "sc": Sc(),
        "shutdown": Shutdown(),
        "tar": Tar(),
        "taskkill": Taskkill(),
        "w32tm": W32tm(),
        "wevtutil": Wevtutil(),
        "win-bridge": WinBridge(),
        "win-overlay": WinOverlay(),
    }
    outside.host_processes.setdefault(
        "calico/node-windows", lambda run, node: calico_node(run, node, pool_of(outside))
    )
    outside.host_processes.setdefault(ANTREA, antrea_agent)
    kube_proxy = HostKubeProxy(outside)
    outside.host_processes.setdefault(REPOSITORY, kube_proxy)
    outside.host_ends.setdefault(REPOSITORY, kube_proxy.end)
    for name, program in known.items():
        programs.add(name, program)
    for name in IN_BOX:
        if name not in known:
            programs.add(name, Refused(name))

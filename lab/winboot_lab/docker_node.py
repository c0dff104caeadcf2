"""A node of Docker's time: the engine as its provider for PowerShell installs it, and what PrepareNode.ps1 leaves.

Sources: kubernetes-sigs/sig-windows-tools v0.1.5, kubeadm/scripts/PrepareNode.ps1 (StartKubelet.ps1 in it) and
kubeadm/flannel/flannel-overlay.yml; OneGet/MicrosoftDockerProvider, which unpacks the engine below Program Files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from winboot_lab.mirror import program
from winboot_lab.programs.wrappers import join
from winboot_lab.windows.programs_api import Exit

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine

FOLDER: Final = r"C:\Program Files\Docker"
DAEMON_JSON: Final = r"C:\ProgramData\docker\config\daemon.json"
CNI_CONF: Final = r"C:\etc\cni\net.d\10-flannel.conf"
# The flags that StartKubelet.ps1 adds to kubeadm's own flags.
KUBELET: Final = (
    r"--cert-dir=C:\var\lib\kubelet\pki",
    "--config=/var/lib/kubelet/config.yaml",
    "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
    "--kubeconfig=/etc/kubernetes/kubelet.conf",
    "--pod-infra-container-image=mcr.microsoft.com/oss/kubernetes/pause:1.4.1",
    "--enable-debugging-handlers",
    "--cgroups-per-qos=false",
    "--enforce-node-allocatable=",
    "--network-plugin=cni",
    "--resolv-conf=",
    "--log-dir=/var/log/kubelet",
    "--logtostderr=false",
    "--image-pull-progress-deadline=20m",
)


def install_engine(
    machine: Machine,
    version: str = "20.10.9",
    config: Mapping[str, Any] | None = None,
    *,
    folder: str = FOLDER,
    flags: Sequence[str] = (),
) -> None:
    """Put Docker Engine on a machine with the feature Containers, register its service and start it. `flags` become the
    service's; `config` is daemon.json."""
    for name in ("docker", "dockerd"):
        write(machine, rf"{folder}\{name}.exe", program(name, version))
    if config is not None:
        write(machine, DAEMON_JSON, json.dumps(config).encode())
    for words in (
        [rf"{folder}\dockerd.exe", "--register-service", *flags],
        [r"C:\Windows\System32\sc.exe", "start", "docker"],
    ):
        ended = run(machine, *words)
        assert ended.code == 0, ended


def docker(machine: Machine, *words: str, folder: str = FOLDER) -> str:
    """What docker.exe prints; an AssertionError where it fails."""
    ended = run(machine, rf"{folder}\docker.exe", *words)
    assert ended.code == 0, ended
    return ended.stdout.decode()


def prepare_node(machine: Machine, kubernetes: str, engine: str = "20.10.9") -> None:
    """What PrepareNode.ps1 does before `kubeadm join`: the engine with its network `host`, the kubelet's program, NSSM. The
    kubelet's service is that of StartKubelet.ps1, with the flags above."""
    install_engine(machine, engine)
    docker(machine, "network", "create", "-d", "nat", "host")
    write(machine, r"C:\k\kubelet.exe", program("kubelet", kubernetes))
    write(machine, r"C:\k\nssm.exe", program("nssm", "2.24"))


def bridge_conf(name: str, pods: str, services: str, nodes: str, node: str) -> dict[str, Any]:
    """A CNI configuration of that time for flannel host-gw: HNS version 1, policies with flat members."""
    policies = [
        {"Type": "OutBoundNAT", "ExceptionList": [pods, services, nodes]},
        {"Type": "ROUTE", "DestinationPrefix": services, "NeedEncap": True},
        {"Type": "ROUTE", "DestinationPrefix": f"{node}/32", "NeedEncap": True},
    ]
    return {
        "name": name,
        "cniVersion": "0.3.0",
        "type": "flannel",
        "capabilities": {"dns": True},
        "delegate": {
            "type": "win-bridge",
            "policies": [{"Name": "EndpointPolicy", "Value": one} for one in policies],
        },
    }


def write(machine: Machine, path: str, content: bytes) -> None:
    """A file with the folders above it."""
    machine.files.make_directory(path.rpartition("\\")[0])
    machine.files.write(path, content)


def run(machine: Machine, *words: str) -> Exit:
    """Run a console program to its end."""
    with machine.lock:
        process = machine.processes.spawn(join(list(words)))
        return machine.processes.run(process, b"")

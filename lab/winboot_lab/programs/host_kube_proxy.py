"""kube-proxy in a HostProcess pod, as the DaemonSet kube-proxy-windows of sig-windows-tools brings it with Calico.

https://github.com/kubernetes-sigs/sig-windows-tools/tree/master/hostprocess/calico/kube-proxy: start.ps1 waits for the HNS
network Calico and, on an overlay, for the endpoint Calico_ep, whose address is the source VIP. It removes the policy lists
that are there, and starts kube-proxy with the account kube-proxy of kube-system. The gates that it sets are on by themselves
from 1.33 (WinDSR) and 1.20 (WinOverlay) on; for later versions they are left out here, as its image has to.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from winboot_lab.cluster import LabCluster
from winboot_lab.programs import hcn
from winboot_lab.programs.base import Run
from winboot_lab.programs.calico import ENDPOINT, NETWORK
from winboot_lab.programs.kube_proxy import KubeProxy
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.programs_api import Died, Image
from winboot_lab.windows.session import Computer

REPOSITORY: Final = "sigwindowstools/kube-proxy"
_PROGRAM: Final = r"C:\hpc\kube-proxy\kube-proxy.exe"
_KUBECONFIG: Final = "/var/lib/kube-proxy/kubeconfig.conf"
_NAME: Final = "kube-proxy"


class HostKubeProxy:
    """What the pod does on a machine: one program, started when its network is there."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def __call__(self, run: Run, node: Mapping[str, Any]) -> None:
        """Start it, unless it runs."""
        machine = run.machine
        network = hcn.network(machine, NETWORK)
        if network is None or machine.processes.named(_NAME):
            return
        words = [_PROGRAM, "--v=2", "--proxy-mode=kernelspace", f"--kubeconfig={_KUBECONFIG}"]
        words += [f"--hostname-override={node['metadata']['name']}", "--enable-dsr=true"]
        if network["Type"] == "Overlay":
            own = hcn.endpoint(machine, ENDPOINT)
            if own is None:
                return
            words.append(f"--source-vip={own['IPAddress']}")
        for found in hcn.call(machine, "GET", "/policylists/") or []:
            hcn.call(machine, "DELETE", f"/policylists/{found['ID']}")
        cluster = next(iter(self._outside.clusters.values()))
        run.write(_KUBECONFIG, _kubeconfig(cluster))
        self._start(machine, words, cluster.plan.version)

    def end(self, machine: Computer) -> None:
        """The pod is gone, and with its container the program."""
        for process in machine.processes.named(_NAME):
            if process.path == _PROGRAM:
                machine.processes.kill(process.pid)

    def _start(self, machine: Computer, words: list[str], version: str) -> None:
        """The container's files are seen by the container alone: no file of the machine stands behind the process."""
        process = machine.processes.add(_NAME, _PROGRAM, " ".join(words))
        process.image = Image(_NAME, version)
        process.environment = {"KUBE_NETWORK": NETWORK}
        process.directory = "C:\\"
        served = _InPod(Run(machine, process, words, process.environment), self._outside)
        process.served = served
        died = served.on_start()
        if died is not None:
            machine.processes.finish(process, died)


class _InPod(KubeProxy):
    """It lives as long as a runtime keeps its container."""

    def on_tick(self) -> Died | None:
        """One second; without kubelet and containerd no runtime keeps it."""
        if not any(self.machine.processes.named(name) for name in ("kubelet", "containerd")):
            return Died(1)
        return super().on_tick()


def _kubeconfig(cluster: LabCluster) -> bytes:
    """As kubeadm's ConfigMap kube-proxy has it, with the token of the pod's account."""
    token, _ = cluster.authenticator.issue_token("kube-system", _NAME, timedelta(days=365), cluster.now())
    ca = base64.b64encode(cluster.authority.pem.encode("ascii")).decode("ascii")
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "default",
                "cluster": {"server": cluster.plan.server, "certificate-authority-data": ca},
            }
        ],
        "users": [{"name": "default", "user": {"token": token}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    }
    return json.dumps(config).encode("utf-8")

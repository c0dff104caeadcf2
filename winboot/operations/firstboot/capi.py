"""First boot for Cluster API: a KubeadmConfigTemplate whose machines winboot joins before `kubeadm join` would run.

cloudbase-init puts all commands of a KubeadmConfig into one script of cmd.exe (its runcmd plugin, _unify_scripts, 1.1.9):
preKubeadmCommands, `kubeadm join`, postKubeadmCommands (cluster-api, bootstrap/kubeadm/pkg/cloudinit/node.go). So the second
command ends the script: kubeadm never runs, whether first boot began or failed. For Cluster API the file `boot.ready_file`
ends the bootstrap, which winboot writes when the Node is Ready; it finds the Node by the provider id.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

import yaml

from winboot.config.inventory import Machine

API: Final = "bootstrap.cluster.x-k8s.io/v1beta2"
# cluster-api, docs/book/src/developer/providers/contracts/bootstrap-config.md: the sentinel, and the taint of a new node.
READY_FILE: Final = r"C:\run\cluster-api\bootstrap-success.complete"
TAINT: Final = "node.cluster.x-k8s.io/uninitialized:NoSchedule"
SCRIPT: Final = r"C:\run\winboot\first-boot.ps1"
_KEY: Final = "first-boot.ps1"
_RUN: Final = (
    rf"%SystemRoot%\System32\WindowsPowerShell\v1.0\powershell.exe -NoLogo -NoProfile -NonInteractive "
    rf"-ExecutionPolicy Bypass -File {SCRIPT}"
)


def template(name: str, script: str) -> str:
    """A Secret with the script, which may hold a voucher, and the template that refers to it, as YAML.

    The script is in base64: the bootstrap data is a Jinja template, and a script may hold braces.
    """
    encoded = base64.b64encode(script.encode()).decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-first-boot"},
        "stringData": {_KEY: encoded},
    }
    files = [
        {
            "path": SCRIPT,
            "encoding": "base64",
            "contentFrom": {"secret": {"name": f"{name}-first-boot", "key": _KEY}},
        }
    ]
    spec = {
        "files": files,
        "preKubeadmCommands": [_RUN, "exit /b %ERRORLEVEL%"],
        # What makes it the configuration of a worker; winboot takes name and socket from its profile.
        "joinConfiguration": {"nodeRegistration": {"criSocket": "npipe:////./pipe/containerd-containerd"}},
    }
    config = {
        "apiVersion": API,
        "kind": "KubeadmConfigTemplate",
        "metadata": {"name": name},
        "spec": {"template": {"spec": spec}},
    }
    return yaml.safe_dump_all([secret, config], sort_keys=False, width=1000)


def complaints(machine: Machine) -> Iterator[str]:
    """What a machine's profile lacks for Cluster API to find its Node."""
    boot, flags = machine.profile.boot, machine.profile.kubelet.flags
    if boot.ready_file != READY_FILE:
        yield f"boot.ready_file: Cluster API waits for {READY_FILE}"
    if TAINT not in map(str, boot.taints):
        yield f"boot.taints: Cluster API removes {TAINT} from a Node that it knows"
    if machine.provider_id is None and flags.get("cloud-provider") != "external":
        yield (
            "the Node gets no provider id: set kubelet.flags {cloud-provider: external} where a cloud controller sets it, "
            "or set provider_id of the host"
        )

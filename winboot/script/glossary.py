"""Exit codes, and the flags that winboot writes itself, in words; for `winboot explain` and the manual page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.base import exits

EXIT_CODES: Final[Mapping[int, str]] = {
    exits.DONE: "done: nothing is left to change",
    exits.FAILED: (
        "a step failed, preflight found an error, or nodes failed for different reasons; the report names "
        "step, cause and next step"
    ),
    exits.NOT_DONE: (
        "something that was wanted was not done, though nothing failed: plan found changes, a drain or a "
        "restart is needed, or the user said no"
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


# What the flags do that winboot writes itself
# (kubernetes.io/docs/reference/command-line-tools-reference, kubelet and kube-proxy).
FLAGS: Final[Mapping[str, str]] = {
    "bootstrap-kubeconfig": "the login for the first certificate, used where the kubeconfig is not there yet",
    "cert-dir": "where the kubelet keeps its certificates",
    "cluster-cidr": "the network of all pods: traffic to services from elsewhere is given the node's address",
    "config": "the file with the configuration; flags win over it",
    "config-dir": "a folder of further configuration files, in the order of their names",
    "container-runtime": "which kind of runtime, up to 1.26: docker, or remote for containerd",
    "container-runtime-endpoint": "the named pipe of containerd",
    "enable-dsr": "replies of services go to the client directly, not back through the load balancer",
    "hostname-override": "the name of the Node; without it the computer name, in lower case",
    "image-credential-provider-bin-dir": "the folder of the programs that give the kubelet logins for registries",
    "image-credential-provider-config": "the file that says which image uses which of those programs",
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

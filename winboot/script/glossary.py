"""Exit codes, and the flags that winboot writes itself, in words; for `winboot explain` and the manual page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.base import exits

EXIT_CODES: Final[Mapping[int, str]] = {
    exits.DONE: "success: no changes are left",
    exits.FAILED: (
        "a step failed, preflight found an error, or nodes failed for different reasons; the report shows step, "
        "cause and next step"
    ),
    exits.NOT_DONE: (
        "not done, without a failure: plan found changes, a drain or a restart is needed, or you answered no"
    ),
    exits.SOME_FAILED: "some nodes failed and others succeeded: fix the failed nodes and run the same command again",
    exits.STOPPED_ITSELF: (
        "winboot stopped: a failure budget or a deadline is used up (docs/fleets.md); the same command continues "
        "with the remaining nodes"
    ),
    exits.USAGE: "a wrong command line, profile, inventory or step file; winboot has not contacted any machine",
    69: "all nodes failed for the same reason: machine, cluster or cloud is unreachable; run `winboot ping`",
    exits.NOT_WRITTEN: "the work is done, but winboot could not write the report",
    exits.SUPERSEDED: "another run took over a node: wait until that run ends",
    77: "all nodes failed for the same reason: the login was refused, or a right is missing",
    129: "SIGHUP: the terminal or the SSH session was closed; the same command continues",
    exits.INTERRUPTED: "interrupted by Ctrl-C; the same command continues",
    143: "interrupted by SIGTERM; the same command continues",
}


# What the flags do that winboot writes itself
# (kubernetes.io/docs/reference/command-line-tools-reference, kubelet and kube-proxy).
FLAGS: Final[Mapping[str, str]] = {
    "bootstrap-kubeconfig": "the login for the kubelet's first certificate, used until the kubeconfig exists",
    "cert-dir": "the folder of the kubelet's certificates",
    "cluster-cidr": "the network of all pods: service traffic from outside it gets the node's address",
    "config": "the file with the configuration; a flag overrides the same setting in the file",
    "config-dir": "a folder of more configuration files, which the kubelet reads in the order of their names",
    "container-runtime": "the kind of runtime, up to 1.26: docker, or remote for containerd",
    "container-runtime-endpoint": "the named pipe of containerd",
    "enable-dsr": "direct server return: replies go straight to the client instead of back through the load balancer",
    "hostname-override": "the Node's name; the default is the computer name in lower case",
    "image-credential-provider-bin-dir": "the folder of the credential providers (they give the kubelet registry logins)",
    "image-credential-provider-config": "the file that assigns images to credential providers",
    "kubeconfig": "the file with the API server's address and the login",
    "network-name": "the HNS network in which kube-proxy makes load balancers",
    "node-ip": "the Node's InternalIP: the API server connects to the kubelet at this address, and pods with hostNetwork have "
    "it. Without this flag the kubelet uses the address of the machine's name or default route",
    "node-labels": "labels that the kubelet gives its Node when it first registers",
    "proxy-mode": "how kube-proxy implements services; Windows has only kernelspace",
    "register-with-taints": "taints that the Node has from its registration on",
    "root-dir": "the folder for volumes and pods",
    "root-hnsendpoint-name": "the HNS endpoint of the node itself, used on overlay networks",
    "source-vip": "the source address that kube-proxy gives to service traffic on an overlay",
    "windows-service": "run as a Windows service, without a wrapper such as NSSM",
}

"""A Kubernetes API for the lab: what kubelets, kube-proxy, flanneld and winboot itself talk to.

The state lives in this process (`store`). Every request passes authentication, authorization (RBAC and the
node authorizer) and admission (`cluster`). The controllers that matter for a joining node run on the same
thread (`controllers`). A TLS server on loopback (`server`) serves all of it to lightkube and kubectl.
"""

from winboot_lab.cluster.authentication import Credentials
from winboot_lab.cluster.cluster import Answer, LabCluster
from winboot_lab.cluster.failure import ApiFailure
from winboot_lab.cluster.identity import Identity
from winboot_lab.cluster.plan import ClusterPlan
from winboot_lab.cluster.server import ClusterServer

__all__ = ["Answer", "ApiFailure", "ClusterPlan", "ClusterServer", "Credentials", "Identity", "LabCluster"]

"""STEPS: all that winboot does to a node, in order. The plan chooses from it; the command line and the docs list it."""

from __future__ import annotations

from typing import Final

from winboot.steps.address_guard import ADDRESS_GUARD
from winboot.steps.artifacts import ARTIFACTS
from winboot.steps.azure_state import AZURE_STATE
from winboot.steps.calico_node import CALICO_NODE
from winboot.steps.cni_config import CNI_CONFIG
from winboot.steps.computer_name import COMPUTER_NAME
from winboot.steps.containerd import CONTAINERD
from winboot.steps.containerd_config import CONTAINERD_CONFIG
from winboot.steps.defender_exclusions import DEFENDER_EXCLUSIONS
from winboot.steps.directories import DIRECTORIES
from winboot.steps.dynamic_ports import DYNAMIC_PORTS
from winboot.steps.firewall_rules import FIREWALL_RULES
from winboot.steps.flanneld import FLANNELD
from winboot.steps.flanneld_config import FLANNELD_CONFIG
from winboot.steps.host_route import HOST_ROUTE
from winboot.steps.ipam_reservations import IPAM_RESERVATIONS
from winboot.steps.kube_proxy import KUBE_PROXY
from winboot.steps.kube_proxy_config import KUBE_PROXY_CONFIG
from winboot.steps.kubelet import KUBELET
from winboot.steps.kubelet_config import KUBELET_CONFIG
from winboot.steps.kubelet_credentials import KUBELET_CREDENTIALS
from winboot.steps.log_rotation import LOG_ROTATION
from winboot.steps.node_labels import NODE_LABELS
from winboot.steps.node_preflight import NODE_PREFLIGHT
from winboot.steps.operator_network import OPERATOR_NETWORK
from winboot.steps.pause_image import PAUSE_IMAGE
from winboot.steps.pod_network import POD_NETWORK
from winboot.steps.pod_routes import POD_ROUTES
from winboot.steps.postboot_task import POSTBOOT_TASK
from winboot.steps.registration import REGISTRATION
from winboot.steps.startup_taint import STARTUP_TAINT_LIFT
from winboot.steps.step import Step
from winboot.steps.system_settings import SYSTEM_SETTINGS
from winboot.steps.trust_roots import TRUST_ROOTS
from winboot.steps.windows_features import WINDOWS_FEATURES

STEPS: Final[tuple[Step, ...]] = (
    NODE_PREFLIGHT,
    COMPUTER_NAME,
    WINDOWS_FEATURES,
    SYSTEM_SETTINGS,
    DYNAMIC_PORTS,
    TRUST_ROOTS,
    DIRECTORIES,
    FIREWALL_RULES,
    DEFENDER_EXCLUSIONS,
    POSTBOOT_TASK,
    LOG_ROTATION,
    ARTIFACTS,
    CONTAINERD_CONFIG,
    CONTAINERD,
    PAUSE_IMAGE,
    ADDRESS_GUARD,
    KUBELET_CREDENTIALS,
    KUBELET_CONFIG,
    KUBELET,
    REGISTRATION,
    FLANNELD_CONFIG,
    FLANNELD,
    POD_NETWORK,
    HOST_ROUTE,
    CALICO_NODE,
    AZURE_STATE,
    POD_ROUTES,
    OPERATOR_NETWORK,
    IPAM_RESERVATIONS,
    CNI_CONFIG,
    KUBE_PROXY_CONFIG,
    KUBE_PROXY,
    NODE_LABELS,
    STARTUP_TAINT_LIFT,
)

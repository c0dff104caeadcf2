"""STEPS: all that winboot does to a node, in order. The plan chooses from it; the command line and the docs list it."""

from __future__ import annotations

from typing import Final

from winboot.script.steps.address_guard import ADDRESS_GUARD
from winboot.script.steps.adoption import ADOPTION
from winboot.script.steps.antrea_ports import ANTREA_PORTS
from winboot.script.steps.artifacts import ARTIFACTS
from winboot.script.steps.azure_events import AZURE_EVENTS
from winboot.script.steps.azure_state import AZURE_STATE
from winboot.script.steps.calico_node import CALICO_NODE
from winboot.script.steps.cni_config import CNI_CONFIG
from winboot.script.steps.computer_name import COMPUTER_NAME
from winboot.script.steps.containerd import CONTAINERD
from winboot.script.steps.containerd_config import CONTAINERD_CONFIG
from winboot.script.steps.cri_dockerd import CRI_DOCKERD
from winboot.script.steps.csi_proxy import CSI_PROXY
from winboot.script.steps.defender_exclusions import DEFENDER_EXCLUSIONS
from winboot.script.steps.directories import DIRECTORIES
from winboot.script.steps.docker import DOCKER
from winboot.script.steps.docker_config import DOCKER_CONFIG
from winboot.script.steps.download_sources import DOWNLOAD_SOURCES
from winboot.script.steps.dynamic_ports import DYNAMIC_PORTS
from winboot.script.steps.firewall_rules import FIREWALL_RULES
from winboot.script.steps.flanneld import FLANNELD
from winboot.script.steps.flanneld_config import FLANNELD_CONFIG
from winboot.script.steps.gmsa import GMSA
from winboot.script.steps.host_route import HOST_ROUTE
from winboot.script.steps.hybrid_overlay import HYBRID_OVERLAY
from winboot.script.steps.ipam_reservations import IPAM_RESERVATIONS
from winboot.script.steps.kube_proxy import KUBE_PROXY
from winboot.script.steps.kube_proxy_config import KUBE_PROXY_CONFIG
from winboot.script.steps.kubelet import KUBELET
from winboot.script.steps.kubelet_config import KUBELET_CONFIG
from winboot.script.steps.kubelet_credentials import KUBELET_CREDENTIALS
from winboot.script.steps.log_rotation import LOG_ROTATION
from winboot.script.steps.node_labels import NODE_LABELS
from winboot.script.steps.node_preflight import NODE_PREFLIGHT
from winboot.script.steps.node_ready import NODE_READY
from winboot.script.steps.operator_network import OPERATOR_NETWORK
from winboot.script.steps.pause_image import PAUSE_IMAGE
from winboot.script.steps.pod_network import POD_NETWORK
from winboot.script.steps.pod_routes import POD_ROUTES
from winboot.script.steps.postboot_task import POSTBOOT_TASK
from winboot.script.steps.registration import REGISTRATION
from winboot.script.steps.startup_taint import STARTUP_TAINT_LIFT
from winboot.script.steps.step import Step
from winboot.script.steps.storage_services import STORAGE_SERVICES
from winboot.script.steps.system_settings import SYSTEM_SETTINGS
from winboot.script.steps.test_signing import TEST_SIGNING
from winboot.script.steps.trust_roots import TRUST_ROOTS
from winboot.script.steps.windows_features import WINDOWS_FEATURES

STEPS: Final[tuple[Step, ...]] = (
    NODE_PREFLIGHT,
    DOWNLOAD_SOURCES,
    COMPUTER_NAME,
    WINDOWS_FEATURES,
    TEST_SIGNING,
    SYSTEM_SETTINGS,
    DYNAMIC_PORTS,
    TRUST_ROOTS,
    DIRECTORIES,
    ADOPTION,
    FIREWALL_RULES,
    DEFENDER_EXCLUSIONS,
    STORAGE_SERVICES,
    POSTBOOT_TASK,
    LOG_ROTATION,
    ARTIFACTS,
    CONTAINERD_CONFIG,
    CONTAINERD,
    DOCKER_CONFIG,
    DOCKER,
    PAUSE_IMAGE,
    CRI_DOCKERD,
    CSI_PROXY,
    ADDRESS_GUARD,
    ANTREA_PORTS,
    KUBELET_CREDENTIALS,
    KUBELET_CONFIG,
    KUBELET,
    REGISTRATION,
    AZURE_EVENTS,
    FLANNELD_CONFIG,
    FLANNELD,
    POD_NETWORK,
    HOST_ROUTE,
    CALICO_NODE,
    HYBRID_OVERLAY,
    AZURE_STATE,
    POD_ROUTES,
    OPERATOR_NETWORK,
    IPAM_RESERVATIONS,
    CNI_CONFIG,
    KUBE_PROXY_CONFIG,
    KUBE_PROXY,
    NODE_READY,
    GMSA,
    NODE_LABELS,
    STARTUP_TAINT_LIFT,
)

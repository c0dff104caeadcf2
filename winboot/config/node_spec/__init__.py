"""Profile and machine, resolved and frozen: all that the steps may know about one node.

Every value is decided here; nothing is looked up later except what exists only on the node, which is a
`winboot.config.networks.Known`. Section and key names are the profile's. Secrets are references, never values.
"""

from winboot.config.inventory import MachineSpec
from winboot.config.node_spec.node import (
    STARTUP_TAINT,
    Artifact,
    BootSpec,
    ClusterSpec,
    HandlerSpec,
    KubeletSpec,
    KubeProxySpec,
    KubernetesSpec,
    Manager,
    Member,
    NetworkSpec,
    NodeObjectSpec,
    NodeSpec,
    Paths,
    ProfileSource,
    ProxySpec,
    RegistryFix,
    RegistrySpec,
    RuntimeSpec,
    ServiceSpec,
    ServicesSpec,
    StepSource,
    Taint,
)
from winboot.config.node_spec.pins import pin_complaints, read_pin, unversioned
from winboot.config.node_spec.resolve import resolve, unresolved

__all__ = [
    "STARTUP_TAINT",
    "Artifact",
    "BootSpec",
    "ClusterSpec",
    "HandlerSpec",
    "KubeProxySpec",
    "KubeletSpec",
    "KubernetesSpec",
    "MachineSpec",
    "Manager",
    "Member",
    "NetworkSpec",
    "NodeObjectSpec",
    "NodeSpec",
    "Paths",
    "ProfileSource",
    "ProxySpec",
    "RegistryFix",
    "RegistrySpec",
    "RuntimeSpec",
    "ServiceSpec",
    "ServicesSpec",
    "StepSource",
    "Taint",
    "pin_complaints",
    "read_pin",
    "resolve",
    "unresolved",
    "unversioned",
]

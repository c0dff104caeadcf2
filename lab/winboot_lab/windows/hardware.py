"""What the machine is made of and which Windows it runs: the constants of one machine."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Release:
    """One Windows Server release."""

    name: Literal["2019", "2022", "2025"]
    build: int
    ubr: int
    product: str
    display_version: str
    hns_version: tuple[int, int]
    # Whether a static address survives when a virtual switch takes over the adapter.
    keeps_static_address: bool


RELEASES: dict[str, Release] = {
    "2019": Release("2019", 17763, 7678, "Windows Server 2019 Datacenter", "1809", (9, 5), False),
    "2022": Release("2022", 20348, 4052, "Windows Server 2022 Datacenter", "21H2", (13, 3), False),
    "2025": Release("2025", 26100, 4946, "Windows Server 2025 Datacenter", "24H2", (15, 4), True),
}

Hypervisor = Literal["none", "hyper-v", "vmware", "kvm", "azure", "aws"]

_VENDORS: dict[str, tuple[str, str]] = {
    "none": ("Dell Inc.", "PowerEdge R650"),
    "hyper-v": ("Microsoft Corporation", "Virtual Machine"),
    "azure": ("Microsoft Corporation", "Virtual Machine"),
    "vmware": ("VMware, Inc.", "VMware7,1"),
    "kvm": ("QEMU", "Standard PC (Q35 + ICH9, 2009)"),
    "aws": ("Amazon EC2", "m5.large"),
}


@dataclass(slots=True)
class Hardware:
    """The box. `mac_spoofing`: whether the hypervisor's port lets other MAC addresses through."""

    uuid: str
    mac: str
    machine_sid: str
    serial: str
    processors: int = 4
    memory: int = 16 * 1024**3
    disk: int = 127 * 1024**3
    disk_used: int = 14 * 1024**3
    hypervisor: Hypervisor = "hyper-v"
    virtualization: bool = True
    mac_spoofing: bool = True
    # The feature is not part of an installation.
    bitlocker: Literal["Missing", "Off", "On"] = "Missing"
    boot_seconds: float = 45.0
    dhcp_seconds: float = 4.0
    # Without an answer Windows gives the interface an automatic private address (169.254/16) after about a minute.
    autoconfiguration_seconds: float = 60.0
    disk_delay: float = 0.0
    installation: Literal["Server", "Server Core"] = "Server Core"
    kbs: tuple[str, ...] = field(default=("KB5063880", "KB5064010"))

    @classmethod
    def named(cls, name: str) -> Hardware:
        """A box whose identities follow from a name, so that two runs of a lab agree."""
        seed = hashlib.sha256(name.encode()).digest()
        parts = [int.from_bytes(seed[i : i + 4], "big") for i in (0, 4, 8)]
        return cls(
            uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.lab.winboot.io")).upper(),
            mac="00-15-5D-" + "-".join(f"{b:02X}" for b in seed[12:15]),
            machine_sid="S-1-5-21-" + "-".join(str(p) for p in parts),
            serial="-".join(f"{b:04d}" for b in seed[16:20]),
        )

    @property
    def manufacturer(self) -> str:
        """What SMBIOS says made the box."""
        return _VENDORS[self.hypervisor][0]

    @property
    def model(self) -> str:
        """What SMBIOS calls the box."""
        return _VENDORS[self.hypervisor][1]

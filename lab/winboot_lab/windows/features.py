"""Windows features: installed, pending, or without payload; what they bring appears after the restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from winboot_lab.windows.files import Files
from winboot_lab.windows.host import Host
from winboot_lab.windows.programs_api import image_bytes
from winboot_lab.windows.registry import CBS_PENDING
from winboot_lab.windows.scm import ServiceControl
from winboot_lab.windows.snapshot import Tree

State = Literal["Available", "Installed", "InstallPending", "UninstallPending", "Removed"]


@dataclass(slots=True)
class Feature:
    """One role or feature. `optional_name` is its DISM name; `payload`: whether its files are on the machine."""

    name: str
    display: str
    optional_name: str
    state: State = "Available"
    reboots: bool = True
    payload: bool = True
    needs: tuple[str, ...] = ()
    kind: Literal["Role", "Role Service", "Feature"] = "Feature"


def _catalogue() -> list[Feature]:
    return [
        Feature("Containers", "Containers", "Containers"),
        Feature("Hyper-V", "Hyper-V", "Microsoft-Hyper-V", kind="Role"),
        Feature(
            "RSAT-Hyper-V-Tools", "Hyper-V Management Tools", "RSAT-Hyper-V-Tools-Feature", reboots=False
        ),
        Feature(
            "Hyper-V-PowerShell",
            "Hyper-V Module for Windows PowerShell",
            "Microsoft-Hyper-V-Management-PowerShell",
            reboots=False,
        ),
        Feature("Windows-Defender", "Microsoft Defender Antivirus", "Windows-Defender", state="Installed"),
        Feature("NET-Framework-45-Core", ".NET Framework 4.8", "NetFx4", state="Installed", reboots=False),
        Feature(
            "PowerShell",
            "Windows PowerShell 5.1",
            "MicrosoftWindowsPowerShell",
            state="Installed",
            reboots=False,
        ),
        Feature("FS-SMB1", "SMB 1.0/CIFS File Sharing Support", "SMB1Protocol"),
        Feature("Failover-Clustering", "Failover Clustering", "FailoverCluster-FullServer"),
        Feature("SNMP-Service", "SNMP Service", "SNMP", reboots=False),
    ]


class Features:
    """The features of the machine."""

    def __init__(self, machine: Host, files: Files, services: ServiceControl) -> None:
        self._machine, self._files, self._services = machine, files, services
        self._known = {f.name.lower(): f for f in _catalogue()}

    def all(self) -> list[Feature]:
        """Every feature, by name."""
        return sorted(self._known.values(), key=lambda f: f.name)

    def find(self, name: str) -> Feature | None:
        """A feature by its Server Manager name."""
        return self._known.get(name.lower())

    def optional(self, name: str) -> Feature | None:
        """A feature by its DISM name."""
        return next((f for f in self._known.values() if f.optional_name.lower() == name.lower()), None)

    def installed(self, name: str) -> bool:
        """Whether the feature works now."""
        found = self.find(name)
        return found is not None and found.state == "Installed"

    def install(self, feature: Feature, *, source: str | None = None) -> int:
        """Turn a feature on; 0, or the HRESULT it fails with."""
        if feature.state in ("Installed", "InstallPending"):
            return 0
        if not feature.payload and not (source and self._files.exists(source)):
            return 0x800F081F
        if feature.name == "Hyper-V" and not self._machine.hardware.virtualization:
            return 0x800F0922
        feature.payload = True
        feature.state = "InstallPending" if feature.reboots else "Installed"
        if feature.reboots:
            self._machine.registry.create(CBS_PENDING, volatile=True)
        return 0

    def remove(self, feature: Feature) -> None:
        """Turn a feature off."""
        if feature.state == "InstallPending":
            feature.state = "Available"
        elif feature.state == "Installed":
            feature.state = "UninstallPending" if feature.reboots else "Available"
            if feature.reboots:
                self._machine.registry.create(CBS_PENDING, volatile=True)

    def finish_pending(self) -> None:
        """Boot: what was pending is done."""
        for feature in self._known.values():
            if feature.state == "InstallPending":
                feature.state = "Installed"
                self._bring(feature)
            elif feature.state == "UninstallPending":
                feature.state = "Available"
                self._take_away(feature)

    def install_now(self, name: str) -> None:
        """Have a feature installed and restarted already (a machine from an image)."""
        feature = self._known[name.lower()]
        feature.state = "Installed"
        self._bring(feature)
        self._services.start_automatic()

    def remove_now(self, name: str) -> None:
        """Have a feature removed and restarted already."""
        feature = self._known[name.lower()]
        feature.state = "Available"
        self._take_away(feature)

    def _bring(self, feature: Feature) -> None:
        services = self._services
        if feature.name in ("Containers", "Hyper-V"):
            if services.find("vmcompute") is None:
                services.create(
                    "vmcompute",
                    r"C:\Windows\System32\vmcompute.exe",
                    display="Hyper-V Host Compute Service",
                    start=2,
                    depends=["rpcss"],
                    builtin=True,
                )
            if services.find("hns") is None:
                services.create(
                    "hns",
                    r"C:\Windows\System32\svchost.exe -k NetSvcs -p",
                    display="Host Network Service",
                    start=3,
                    depends=["rpcss", "nsi"],
                    builtin=True,
                )
                services.change(services.need("hns"), start=2)
                self._machine.registry.create(services.need("hns").key + r"\State")
        if feature.name == "Containers":
            folder = r"C:\Windows\System32"
            self._files.write(rf"{folder}\hnsdiag.exe", image_bytes("hnsdiag", str(self._machine.build)))
            self._files.write(rf"{folder}\hcsdiag.exe", image_bytes("hcsdiag", str(self._machine.build)))
        if feature.name == "Hyper-V" and services.find("vmms") is None:
            services.create(
                "vmms",
                r"C:\Windows\System32\vmms.exe",
                display="Hyper-V Virtual Machine Management",
                start=2,
                depends=["rpcss", "winmgmt"],
                builtin=True,
            )

    def _take_away(self, feature: Feature) -> None:
        services = self._services
        gone = {
            "Containers": ("hns",),
            "Hyper-V": ("vmms",),
            "Windows-Defender": ("WinDefend",),
        }.get(feature.name, ())
        if not (self.installed("Containers") or self.installed("Hyper-V")):
            gone = (*gone, "vmcompute", "hns")
        for name in gone:
            found = services.find(name)
            if found is not None and not (name == "hns" and self.installed("Hyper-V")):
                found.status, found.process = "Stopped", None
                services.delete(found)

    def tree(self) -> Tree:
        """State by name."""
        return {f.name: f.state for f in self.all()}

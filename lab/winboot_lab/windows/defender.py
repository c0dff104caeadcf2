"""Microsoft Defender: preferences, exclusions, tamper protection, policy, and its absence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from winboot_lab.windows.features import Features
from winboot_lab.windows.registry import HKLM, POLICIES, Registry
from winboot_lab.windows.scm import ServiceControl
from winboot_lab.windows.snapshot import Tree

EXCLUSIONS = HKLM + r"\SOFTWARE\Microsoft\Windows Defender\Exclusions"
_KEYS = {"ExclusionPath": "Paths", "ExclusionProcess": "Processes", "ExclusionExtension": "Extensions"}


@dataclass(slots=True)
class _State:
    tamper_protected: bool = False
    mode: Literal["Normal", "Passive", "Not running"] = "Normal"
    # Tamper protection takes a change of these without a word and forgets it.
    deaf: bool = False
    exclusions: dict[str, list[str]] = field(default_factory=lambda: {k: [] for k in _KEYS})


class Defender:
    """The antivirus of the machine."""

    def __init__(self, registry: Registry, features: Features, services: ServiceControl) -> None:
        self._registry, self._features, self._services = registry, features, services
        self.state = _State()

    @property
    def present(self) -> bool:
        """Whether the feature is installed and its service runs: otherwise its cmdlets fail."""
        return self._features.installed("Windows-Defender") and self._services.running("WinDefend")

    def exclusions(self, kind: str) -> list[str]:
        """What is excluded, local and by policy."""
        policy = rf"{POLICIES}\Windows Defender\Exclusions\{_KEYS[kind]}"
        key = self._registry.find(policy)
        held = [v.name for v in key.values.values()] if key else []
        return sorted({*self.state.exclusions[kind], *held}, key=str.lower)

    def add(self, kind: str, names: list[str]) -> None:
        """Exclude more."""
        if self.state.deaf:
            return
        known = self.state.exclusions[kind]
        known.extend(n for n in names if n.lower() not in [k.lower() for k in known])
        self._publish(kind)

    def drop(self, kind: str, names: list[str]) -> None:
        """Exclude less; what is not excluded is no error."""
        if self.state.deaf:
            return
        gone = {n.lower() for n in names}
        self.state.exclusions[kind] = [k for k in self.state.exclusions[kind] if k.lower() not in gone]
        self._publish(kind)

    def _publish(self, kind: str) -> None:
        key = rf"{EXCLUSIONS}\{_KEYS[kind]}"
        self._registry.wipe(key)
        self._registry.create(key)
        for name in self.state.exclusions[kind]:
            self._registry.set(key, name, "DWord", 0)

    def machine_came_up(self) -> None:
        """Boot: MsMpEng is the process of its service; nothing else to do while it is present."""
        if not self._services.running("WinDefend"):
            self.state.mode = "Not running"

    def tree(self) -> Tree:
        """Exclusions and mode."""
        return {"mode": self.state.mode, **{k: list(v) for k, v in self.state.exclusions.items()}}

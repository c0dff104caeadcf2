"""The compatibility facts: JSON files next to this module, each read at its first use.

An overlay is a YAML file with the same sections (`minors`, `kubelet_flags`, `gates`, …), laid over the data map by
map. It is how a Kubernetes minor newer than winboot becomes known. `python -m tools.compat_bake` writes one into the
data for good.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from winboot.base.errors import InvalidInput
from winboot.config.compat.version import Version, minor_key
from winboot.config.source import Complaint, Node, Place, locate, raw, read, typed

Facts = Mapping[str, Any]

# Which file holds which section.
FILES: Final = {
    "kubernetes": ("about", "seen", "minors", "coming", "bad_patches", "label_rules"),
    "kubelet": ("kubelet_flags", "kubelet_fields"),
    "kube_proxy": ("kube_proxy_flags", "kube_proxy_fields"),
    "gates": ("gates",),
    "windows": ("builds", "features", "bad_updates", "fixes", "csi_drivers"),
    "runtime": ("containerd", "docker", "pause", "security_defaults"),
    "containerd": ("containerd_settings",),
    "artifacts": ("artifacts", "dead_hosts"),
    "texts": ("reasons", "misspelled", "sources"),
}
_FILE_OF: Final = {section: name for name, sections in FILES.items() for section in sections}


class Compat:
    """The facts, perhaps with an overlay. Sections are maps or lists as in the files."""

    def __init__(self, overlay: Facts | None = None) -> None:
        self._overlay = overlay or {}
        self._merged: dict[str, Any] = {}

    def section(self, name: str) -> Any:
        """One section, overlay included."""
        if name not in self._merged:
            shipped = shipped_file(_FILE_OF[name])[name]
            over = self._overlay.get(name)
            self._merged[name] = shipped if over is None else laid_over(shipped, over)
        return self._merged[name]

    @property
    def as_of(self) -> str:
        """The date of the data."""
        return str(self.section("about")["as_of"])

    @property
    def newest(self) -> str:
        """The newest minor the data knows."""
        return max(map(str, self.section("minors")), key=minor_key)

    @property
    def floor(self) -> str:
        """The oldest minor winboot makes nodes for."""
        return str(self.section("about")["floor"])

    def minors(self) -> tuple[str, ...]:
        """Every minor winboot makes nodes for, oldest first."""
        known = sorted(self.section("minors"), key=minor_key)
        return tuple(minor for minor in known if minor_key(minor) >= minor_key(self.floor))

    def line(self, version: Version) -> str:
        """The minor whose facts apply: the version's own, or the newest known for one that is newer still."""
        return version.minor if minor_key(version.minor) <= minor_key(self.newest) else self.newest

    def minor(self, version: Version) -> Facts:
        """What is known about the version's minor; for one newer than the data, what is known of the newest. An overlay that
        was learned from programs names the minor that all else is taken from (`like`)."""
        known: Mapping[str, Facts] = self.section("minors")
        line = self.line(version)
        facts = known[line if line in known else self.floor]
        return {**known[facts["like"]], **facts} if facts.get("like") in known else facts

    def source(self, name: str) -> str:
        """The address behind a source's short name."""
        return str(self.section("sources").get(name, name))

    def reason(self, key: str) -> tuple[str, str]:
        """Why, and what to write instead; two empty texts where nothing special is known."""
        why, instead = self.section("reasons").get(key, ("", ""))
        return str(why), str(instead)


@cache
def shipped_file(name: str) -> dict[str, Any]:
    """One file of the data that winboot ships."""
    text = (
        resources.files("winboot.config.compat").joinpath("data", f"{name}.json").read_text(encoding="utf-8")
    )
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def laid_over(low: Any, high: Any) -> Any:
    """Maps merge key by key, a null removes, everything else replaces."""
    if not (isinstance(low, Mapping) and isinstance(high, Mapping)):
        return high
    merged = dict(low)
    for key, value in high.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = laid_over(low.get(key), value)
    return merged


@cache
def load(overlay: Path | None = None) -> Compat:
    """The facts that winboot ships, with the overlay file over them."""
    if overlay is None:
        return Compat()
    node = read(overlay)
    unknown = [entry.key_place for key, entry in node.entries.items() if key not in _FILE_OF]
    if unknown:
        raise InvalidInput(
            f"{overlay}: is not a compatibility overlay",
            problems=tuple(_unknown_section(place) for place in unknown),
            hint="An overlay has the sections of winboot's own data; see docs/compat.md.",
        )
    overlaid = Compat(typed(raw(node)))
    _refuse_wrong_date(overlaid, node)
    return overlaid


def _refuse_wrong_date(compat: Compat, node: Node) -> None:
    """The date of the data is compared with today and with ends of life, so it must be one."""
    try:
        datetime.date.fromisoformat(compat.as_of)
    except ValueError:
        place = locate(node, ("about", "as_of"))
        wrong = f"{compat.as_of!r} is not a date"
        complaint = Complaint(place, "about.as_of", wrong, expected="a date such as 2026-11-24")
        raise InvalidInput(
            f"{node.place.file}: is not a compatibility overlay", problems=(complaint,)
        ) from None


def _unknown_section(place: Place) -> Complaint:
    return Complaint(
        place, "", "an overlay has no section of this name", expected="one of " + ", ".join(sorted(_FILE_OF))
    )

"""What goes with what: versions, flags, fields, gates, Windows builds, images and downloads.

The facts are data (`data/*.json`, read lazily); the functions answer with `Finding`s: supported, warned or
refused, each with a reason and a source. `load(overlay)` lays a file of newer facts over the data that
winboot ships.
"""

from winboot.config.compat.downloads import check_line, check_pin
from winboot.config.compat.explain import explain
from winboot.config.compat.facts import Compat, load
from winboot.config.compat.finding import Finding
from winboot.config.compat.flags import check_field, check_flag, check_gate, check_values, move_flags
from winboot.config.compat.platform import (
    check_build,
    check_containerd,
    check_crictl,
    check_feature,
    check_kubernetes,
    check_pause_image,
    check_skew,
    containerd_config_version,
    default_containerd,
    default_pause_image,
    has_stable_abi,
    pull_limit,
    updates_needed,
)
from winboot.config.compat.version import Version

__all__ = [
    "Compat",
    "Finding",
    "Version",
    "check_build",
    "check_containerd",
    "check_crictl",
    "check_feature",
    "check_field",
    "check_flag",
    "check_gate",
    "check_kubernetes",
    "check_line",
    "check_pause_image",
    "check_pin",
    "check_skew",
    "check_values",
    "containerd_config_version",
    "default_containerd",
    "default_pause_image",
    "explain",
    "has_stable_abi",
    "load",
    "move_flags",
    "pull_limit",
    "updates_needed",
]

"""STEPS: all that winboot does to a node, in order. The plan chooses from it; the command line and the docs list it."""

from __future__ import annotations

from typing import Final

from winboot.steps.artifacts import ARTIFACTS
from winboot.steps.computer_name import COMPUTER_NAME
from winboot.steps.defender_exclusions import DEFENDER_EXCLUSIONS
from winboot.steps.directories import DIRECTORIES
from winboot.steps.dynamic_ports import DYNAMIC_PORTS
from winboot.steps.firewall_rules import FIREWALL_RULES
from winboot.steps.node_preflight import NODE_PREFLIGHT
from winboot.steps.postboot_task import POSTBOOT_TASK
from winboot.steps.step import Step
from winboot.steps.system_settings import SYSTEM_SETTINGS
from winboot.steps.windows_features import WINDOWS_FEATURES

STEPS: Final[tuple[Step, ...]] = (
    NODE_PREFLIGHT,
    COMPUTER_NAME,
    WINDOWS_FEATURES,
    SYSTEM_SETTINGS,
    DYNAMIC_PORTS,
    DIRECTORIES,
    FIREWALL_RULES,
    DEFENDER_EXCLUSIONS,
    POSTBOOT_TASK,
    ARTIFACTS,
)

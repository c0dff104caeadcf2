"""STEPS: all that winboot does to a node, in order. The plan chooses from it; the command line and the docs list it."""

from __future__ import annotations

from typing import Final

from winboot.steps.dynamic_ports import DYNAMIC_PORTS
from winboot.steps.node_preflight import NODE_PREFLIGHT
from winboot.steps.step import Step

STEPS: Final[tuple[Step, ...]] = (
    NODE_PREFLIGHT,
    DYNAMIC_PORTS,
)

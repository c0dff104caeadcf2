"""Move the range of client ports away from the NodePorts, and make it large."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    ports = spec.windows.dynamic_ports
    assert ports is not None  # `wanted` says so
    return {"start": ports.start, "count": ports.count}


def _wanted(spec: NodeSpec) -> bool:
    return spec.windows.dynamic_ports is not None


DYNAMIC_PORTS = Step(
    name="dynamic-ports",
    why="each load-balanced service takes blocks of client ports; the default range is soon empty and touches NodePorts",
    inputs=_inputs,
    needs=("node-preflight",),
    wanted=_wanted,
)

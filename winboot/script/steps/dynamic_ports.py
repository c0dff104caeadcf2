"""Move the range of client ports away from the NodePorts, make it large, and exclude ports that others need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    ports = spec.windows.dynamic_ports
    return {
        "range": None if ports is None else {"Start": ports.start, "Count": ports.count},
        "excluded": [
            {"protocol": protocol, "first": one.start, "last": one.start + one.count - 1}
            for one in spec.windows.excluded_ports
            for protocol in ((one.protocol,) if one.protocol else ("tcp", "udp"))
        ],
    }


def _leaves(spec: NodeSpec) -> Mapping[str, Sequence[str]]:
    ports = spec.windows.dynamic_ports
    return {
        "ports of clients": [] if ports is None else [f"{_range(ports.start, ports.count)} (tcp and udp)"],
        "ports excluded from client use": [
            f"{_range(one.start, one.count)} ({one.protocol or 'tcp and udp'})"
            for one in spec.windows.excluded_ports
        ],
    }


def _range(start: int, count: int) -> str:
    return f"{start}-{start + count - 1}"


def _wanted(spec: NodeSpec) -> bool:
    return spec.windows.dynamic_ports is not None or bool(spec.windows.excluded_ports)


DYNAMIC_PORTS = Step(
    name="dynamic-ports",
    why="each load-balanced service reserves client ports in blocks; the default range is small and overlaps the NodePorts",
    inputs=_inputs,
    leaves=_leaves,
    needs=("node-preflight", "download-sources"),
    wanted=_wanted,
    identity=False,
)

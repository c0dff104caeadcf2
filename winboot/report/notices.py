"""What the controller itself reports to a listener, in addition to the events of a node's script. Nothing is decided
by it."""

from __future__ import annotations

from dataclasses import dataclass

from winboot.report.results import NodeReport


@dataclass(frozen=True, slots=True)
class PassBegun:
    """The script begins on the node; it will report these steps, in this order. `look`: it changes nothing."""

    steps: tuple[str, ...]
    look: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """The node is waited for: why, and for how many seconds at most."""

    text: str
    most: float


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """The work on the node has ended."""

    report: NodeReport


Notice = PassBegun | Waiting | NodeEnded

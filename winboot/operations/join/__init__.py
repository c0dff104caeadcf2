"""Make every machine of an inventory a Ready node of its cluster: `story` is the path, `secrets` what travels on it.

What lies below: `winboot.node.drain` and `winboot.node.admission` (the cluster's side of a node), `winboot.node.fleet` (many
nodes), `winboot.node.run` (the script on one of them).
"""

from winboot.node.fleet import Options, PreparedNode, RunContext, prepare
from winboot.operations.join.story import ask_sources, check_both_sides, join, survey

__all__ = [
    "Options",
    "PreparedNode",
    "RunContext",
    "ask_sources",
    "check_both_sides",
    "join",
    "prepare",
    "survey",
]

"""Make every machine of an inventory a Ready node of its cluster: `story` is the path, `secrets` what travels on it.

What lies below: `winboot.drain` and `winboot.admission` (the cluster's side of a node), `winboot.fleet` (many nodes),
`winboot.run` (the script on one of them).
"""

from winboot.fleet import Options, PreparedNode, RunContext, prepare
from winboot.join.story import check_both_sides, join, survey

__all__ = ["Options", "PreparedNode", "RunContext", "check_both_sides", "join", "prepare", "survey"]

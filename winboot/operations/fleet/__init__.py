"""One run over many nodes by many workers, on as many machines: pods of a Kubernetes Indexed Job, or plain processes.

    view      what the claims say: which worker works on what, what became of it, and how far the run may go
    worker    claim, work, give back; its own shard first, then the others'
    release   one worker at a time lets the nodes in, by the same budget as `winboot join`
    manifest  the Job and what it needs, as plain YAML

The claims are all that workers share. The wave of a node is its place in the order of the run; a claim of the run itself says
up to which one nodes may be begun.
"""

from __future__ import annotations

from winboot.operations.fleet.view import RunId, View
from winboot.operations.fleet.worker import FleetWorker, Shard

__all__ = ["FleetWorker", "RunId", "Shard", "View"]

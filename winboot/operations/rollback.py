"""A node goes back to the versions that it had before, one node at a time.

    look (what the machine notes of its versions) → look again, with the script of those → cordon, drain → change
    → Ready with these versions → probes → lift our cordon

The files lie on the machine still (`kubernetes.keep_versions`), so that it is a switch of paths and a restart of services.
The machine notes that these versions are to stay: `plan` names the difference, `join` and `repair` leave them, until the
profile wants the same or `winboot upgrade` runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import NodeRun, Options, RunContext, run_nodes
from winboot.node.preflight import Preflight
from winboot.operations.join.story import refuse_without_ca, repair_node
from winboot.operations.upgrade import one_by_one
from winboot.report.results import Report


def rollback(
    specs: Sequence[NodeSpec], context: RunContext, options: Options, *, flows: bool = False
) -> Report:
    """Take each node back to the versions before; with `flows`, traffic has to flow afterwards. A node that is back already
    costs two pipelines.

    Raises InvalidInput while a CA is missing.
    """
    refuse_without_ca(specs)
    options = replace(one_by_one(specs, options, flows=flows), versions="back")
    preflight = Preflight(specs, context.cluster, skip=options.skip_preflight, drains=True)
    return run_nodes("rollback", partial(_back, preflight=preflight), specs, context, options)


def _back(run: NodeRun, *, preflight: Preflight) -> None:
    repair_node(run, preflight=preflight)
    if run.turned:
        version = run.spec.kubernetes.version
        run.notes.append(
            f"the node stays at Kubernetes {version} until `winboot upgrade`, or until the profile has it"
        )

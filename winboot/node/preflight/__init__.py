"""Both sides, looked at before the first write: is the cluster ready for these nodes, and may we do what a join does?

    checks   the checks, each with a stable id
    view     what they look at: one cluster, each question asked once

`Preflight` asks each cluster of a run once, when the first of its nodes wants to know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from msgspec import structs

from winboot.base.errors import PreflightFailed, UsageError
from winboot.config.node_spec import NodeSpec
from winboot.config.source import nearest
from winboot.node.names import Others
from winboot.node.preflight.checks import CHECKS, Check, wrong_ids
from winboot.node.preflight.view import ClusterView
from winboot.remote.cluster.base import Cluster, NodeFacts
from winboot.report.finding import Finding


class Preflight:
    """The preflight of one run. Used by the threads of all its nodes."""

    def __init__(
        self,
        specs: Sequence[NodeSpec],
        cluster: Callable[[NodeSpec], Cluster | None],
        *,
        skip: Sequence[str] = (),
        drains: bool = False,
    ) -> None:
        """Raises UsageError for an id in `skip` that no check has."""
        refuse_unknown(skip)
        self._specs = tuple(specs)
        self._cluster = cluster
        self._skip = frozenset(skip)
        self._drains = drains
        self._lock = threading.Lock()
        self._asked: dict[int, tuple[Finding, ...]] = {}
        self._found: tuple[Finding, ...] = ()
        self._nodes: dict[int, tuple[NodeFacts, ...]] = {}

    def findings(self, spec: NodeSpec) -> tuple[Finding, ...]:
        """What concerns this node: its own findings and those of all its cluster. Raises ClusterError."""
        cluster = self._cluster(spec)
        if cluster is None:
            return ()
        # The others wait for the first one's answers instead of asking the same.
        with self._lock:
            if id(cluster) not in self._asked:
                self._asked[id(cluster)] = self._ask(cluster)
                self._found = (*self._found, *self._asked[id(cluster)])
            found = self._asked[id(cluster)]
        return tuple(one for one in found if not one.nodes or spec.node.name in one.nodes)

    def instead(self, spec: NodeSpec) -> Preflight:
        """The preflight of a node that goes by other versions than its profile's, as `spec` has them; the others stay."""
        specs = [spec if one.node.name == spec.node.name else one for one in self._specs]
        return Preflight(specs, self._cluster, skip=tuple(self._skip), drains=self._drains)

    def others(self, spec: NodeSpec) -> Others:
        """The other machines of this run, and the Nodes of this node's cluster, which winboot reads when they
        matter."""

        def nodes() -> tuple[NodeFacts, ...]:
            cluster = self._cluster(spec)
            if cluster is None:
                return ()
            with self._lock:
                if id(cluster) not in self._nodes:
                    self._nodes[id(cluster)] = cluster.nodes()
                return self._nodes[id(cluster)]

        return Others([one.machine for one in self._specs], nodes)

    def so_far(self) -> tuple[Finding, ...]:
        """Everything that was found in this run so far, for its report. Waits for no cluster that is being asked."""
        return self._found

    def stop_on_error(self, spec: NodeSpec) -> None:
        """Raise PreflightFailed when something must be put right before this node is changed."""
        errors = [one for one in self.findings(spec) if one.stops]
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise PreflightFailed(
                f"{spec.node.name}: preflight {errors[0].id}: {errors[0].reason}{more}",
                hint=errors[0].fix,
                node=spec.node.name,
            )

    def _ask(self, cluster: Cluster) -> tuple[Finding, ...]:
        specs = [spec for spec in self._specs if self._cluster(spec) is cluster]
        view = ClusterView(cluster, specs, drains=self._drains)
        return tuple(
            structs.replace(one, skipped=one.id in self._skip)
            for check in CHECKS
            for one in check.findings(view)
        )


def refuse_unknown(ids: Sequence[str]) -> None:
    """Raises UsageError for an id that no check has."""
    for wrong in wrong_ids(ids):
        ids = [check.id for check in CHECKS]
        meant = nearest(wrong, ids)
        hint = f"Did you mean {meant!r}?" if meant else f"One of {', '.join(ids)}."
        raise UsageError(f"--skip-preflight {wrong}: no check has this id", hint=hint)


__all__ = ["CHECKS", "Check", "Finding", "Preflight"]

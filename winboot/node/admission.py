"""Let a machine be a node: its labels and taints, Ready, and last the startup taint.

The startup taint keeps pods away from the registration until everything is in order; it goes only from a node that is
Ready and has its labels and taints.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from winboot.base.errors import ClusterError, NodeFailed
from winboot.config.node_spec import NodeSpec
from winboot.remote.cluster.base import Cluster, NodeFacts, NodeWish, Wait
from winboot.remote.cluster.labels import all_of, cordoned_by_us, identity
from winboot.remote.cluster.labels import differences as label_differences
from winboot.report.events import Difference, Problem, StepDone

LABELS = "node-labels"
STARTUP_TAINT = "startup-taint"


@dataclass(frozen=True, slots=True)
class Admission:
    """The controller's own steps for one node. `steps` are those of the plan; `ready` is how long to wait for Ready.

    `say` hears what is being done, `note` what the report is to mention. `minted` is false for a machine that came with a
    token of somebody else's; `changed` says that the node's own steps have changed something in this run.
    """

    cluster: Cluster
    spec: NodeSpec
    steps: tuple[str, ...]
    ready: float
    wait: Wait
    say: Callable[[str], None]
    note: Callable[[str], None]
    minted: bool = True
    changed: bool = False

    def look(self, node: NodeFacts | None) -> list[StepDone]:
        """How labels, taints and Ready differ; nothing is changed."""
        found = {LABELS: self._label_differences(node), STARTUP_TAINT: self._taint_differences(node)}
        return [
            StepDone("", name, "would-change" if differences else "ok", 0, differences)
            for name, differences in found.items()
            if name in self.steps
        ]

    def blocked(self, undone: Sequence[str]) -> list[StepDone]:
        """The same steps on a node whose own ones are not done."""
        return [_blocked(name, undone) for name in self.steps]

    def admit(self, record: Callable[[StepDone], None]) -> NodeFacts | None:
        """Labels and taints, then Ready, and last the startup taint; gives the Node as it was seen last."""
        done = StepDone("", LABELS, "ok", 0)
        if LABELS in self.steps:
            done = _timed(LABELS, lambda: self.cluster.change_node(self.name, self.wish))
            record(done)
        if STARTUP_TAINT not in self.steps:
            return self.cluster.node(self.name)
        if done.state == "failed":
            # Without its labels and taints the node would get pods that do not belong there.
            record(_blocked(STARTUP_TAINT, (LABELS,)))
            return self.cluster.node(self.name)
        seen: list[NodeFacts | None] = [None]
        record(_timed(STARTUP_TAINT, lambda: self._open_for_pods(seen)))
        return seen[-1]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.spec.node.name

    @property
    def wish(self) -> NodeWish:
        """Labels and taints as the profile wants them."""
        return NodeWish(self.spec.node.labels, self.spec.node.taints)

    def _label_differences(self, node: NodeFacts | None) -> tuple[Difference, ...]:
        if node is not None:
            return label_differences(node, self.wish)
        return all_of(self.wish)

    def _taint_differences(self, node: NodeFacts | None) -> tuple[Difference, ...]:
        taint = self.spec.node.startup_taint
        if node is None:
            return (Difference(f"node {self.name}: Ready", None, "True", key="ready"),)
        if node.has_taint(taint.key):
            return (Difference(f"node taint {taint.key}", str(taint), None, key=f"taint:{identity(taint)}"),)
        if not node.ready:
            return (Difference(f"node {self.name}: Ready", node.reason or "False", "True", key="ready"),)
        # A cordon of ours that an earlier run could not lift.
        if not cordoned_by_us(node):
            return ()
        return (Difference(f"node {self.name}: cordon", "by winboot", None, key="cordon"),)

    def _open_for_pods(self, seen: list[NodeFacts | None]) -> tuple[Difference, ...]:
        """Wait for Ready and lift the startup taint: from here on pods may come. What was seen goes to `seen`."""
        # Another controller may have brought it here since this one has looked.
        before = self.cluster.node(self.name)
        seen.append(before)
        differences = self._taint_differences(before)
        if not differences:
            # A repair of a live node may have been killed before this one.
            if self.changed:
                self._forget_tokens()
            return ()
        if before is None or not before.ready:
            self.say("waiting for Ready")
        node = self.cluster.wait_ready(self.name, timeout=self.ready, wait=self.wait)
        seen.append(node)
        if node is None or not node.ready:
            reason = "there is no Node" if node is None else f"{node.reason}: {node.message}"
            raise NodeFailed(
                f"not Ready after {self.ready:.0f} s: {reason}",
                hint=f"kubectl describe node {self.name}; the kubelet's log on the machine says more.",
                node=self.name,
            )
        self._forget_tokens()
        self.cluster.lift_taint(self.name, self.spec.node.startup_taint.key)
        self.cluster.uncordon(self.name)
        return differences

    def _forget_tokens(self) -> None:
        """A token that a killed run left behind has done its duty, too. Housekeeping: without it they expire."""
        if not self.minted or self.spec.cluster.bootstrap_token != "mint":
            return
        try:
            self.cluster.forget_tokens(node=self.name)
        except ClusterError as error:
            self.note(f"bootstrap tokens of earlier runs were not looked for: {error.problem}")


def _blocked(name: str, undone: Sequence[str]) -> StepDone:
    problem = Problem("NeedsStep", f"the node is not done: {', '.join(undone)}", "Fix those steps first.")
    return StepDone("", name, "blocked", 0, problem=problem)


def _timed(name: str, act: Callable[[], tuple[Difference, ...]]) -> StepDone:
    """Do one of the controller's steps; what it changed is what was different."""
    clock = time.monotonic()
    try:
        changed = act()
    except (ClusterError, NodeFailed) as error:
        problem = Problem(type(error).__name__, error.problem, error.hint)
        return StepDone("", name, "failed", _ms(clock), problem=problem)
    return StepDone("", name, "changed" if changed else "ok", _ms(clock), changed)


def _ms(clock: float) -> int:
    return round((time.monotonic() - clock) * 1000)

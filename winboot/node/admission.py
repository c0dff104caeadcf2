"""Let a machine be a node: its labels and taints, Ready, and last the startup taint.

The startup taint keeps pods away from the registration until everything is in order; it goes only from a node that is
Ready and has its labels and taints.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from winboot.base.errors import ClusterError, NodeFailed
from winboot.config.node_spec import NodeSpec, Taint
from winboot.remote.cluster.base import NodeFacts, Nodes, NodeWish, Wait
from winboot.remote.cluster.labels import all_of, cordoned_by_us, identity
from winboot.remote.cluster.labels import differences as label_differences
from winboot.report.events import Difference, Problem, StepDone

LABELS = "node-labels"
STARTUP_TAINT = "startup-taint"
_ASKS_S: Final = 2.0


def believed() -> None:
    """A Ready node is taken at its word."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The controller's own steps for one node. `steps` are those of the plan; `ready` is how long to wait for Ready.

    `say` receives what is being done, `note` what the report is to mention; `changed` says that the node's own steps
    have changed something in this run.
    """

    cluster: Nodes
    spec: NodeSpec
    steps: tuple[str, ...]
    ready: float
    wait: Wait
    say: Callable[[str], None]
    note: Callable[[str], None]
    changed: bool = False
    # Asks the Ready node whether it works, before pods may come; raises NodeFailed.
    prove: Callable[[], None] = believed

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
        return (*self._readiness_differences(node, taint), *self._version_differences(node))

    def _version_differences(self, node: NodeFacts) -> tuple[Difference, ...]:
        """Kubelet and runtime, as they run: the kubelet writes both with its status (pkg/kubelet/nodestatus/setters.go,
        VersionInfo). What the Node does not say yet is not a difference."""
        wanted = {
            "kubelet": (node.kubelet_version, str(self.spec.kubernetes.version)),
            "container runtime": (
                node.runtime_version.removeprefix(f"{self.spec.runtime.name}://"),
                str(self.spec.runtime.version),
            ),
        }
        return tuple(
            Difference(f"node {self.name}: version of the {what}", is_, want, key=f"version:{what}")
            for what, (is_, want) in wanted.items()
            if is_ and not _is_version(is_, want)
        )

    def _readiness_differences(self, node: NodeFacts, taint: Taint) -> tuple[Difference, ...]:
        if node.has_taint(taint.key):
            return (Difference(f"node taint {taint.key}", str(taint), None, key=f"taint:{identity(taint)}"),)
        if not node.ready:
            return (Difference(f"node {self.name}: Ready", node.reason or "False", "True", key="ready"),)
        # Our own cordon, which an earlier run could not lift.
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
            return ()
        if before is None or not before.ready:
            self.say("waiting for Ready")
        node = self.cluster.wait_ready(self.name, timeout=self.ready, wait=self.wait)
        seen.append(node)
        if node is None or not node.ready:
            reason = "there is no Node" if node is None else f"{node.reason}: {node.message}"
            raise NodeFailed(
                f"not Ready after {self.ready:.0f} s: {reason}",
                hint=f"Run `kubectl describe node {self.name}`; read the kubelet's log on the machine.",
                node=self.name,
            )
        self._await_versions(node)
        self.prove()
        self.cluster.lift_taint(self.name, self.spec.node.startup_taint.key)
        self.cluster.uncordon(self.name)
        return differences

    def _await_versions(self, node: NodeFacts) -> None:
        """Until the Node says the versions that are wanted: a kubelet that was just started writes them with its next status.
        Raises NodeFailed where it does not."""
        end = time.monotonic() + self.ready
        seen: NodeFacts | None = node
        while seen is not None and (found := self._version_differences(seen)):
            if time.monotonic() >= end or self.wait(_ASKS_S):
                said = "; ".join(f"{one.what} is {one.is_} instead of {one.want}" for one in found)
                raise NodeFailed(
                    f"after {self.ready:.0f} s the Node still reports: {said}",
                    hint="The running kubelet is not the installed one: see `sc.exe qc kubelet` on the machine, and check "
                    "whether another program starts a kubelet.",
                    node=self.name,
                )
            seen = self.cluster.node(self.name)


def _is_version(is_: str, want: str) -> bool:
    """Whether a version is the wanted one or a vendor's build of it (v1.36.5-eks-1); an early one is another."""
    return re.match(rf"v?{re.escape(want)}(\Z|\+|-(?!alpha|beta|rc))", is_) is not None


def _blocked(name: str, undone: Sequence[str]) -> StepDone:
    problem = Problem("NeedsStep", f"the node is not done: {', '.join(undone)}", "Fix these steps first.")
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

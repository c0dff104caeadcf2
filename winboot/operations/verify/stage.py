"""The namespace of one verification: made, filled, and gone again whatever happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Final

from winboot.base.clean import clean
from winboot.base.errors import ClusterError, ClusterRefused
from winboot.config.node_spec import NodeSpec
from winboot.operations.verify import objects
from winboot.operations.verify.scene import NodeScene, PodAt, Scene
from winboot.remote.cluster import rights
from winboot.remote.cluster.base import Cluster
from winboot.remote.cluster.workbench import Thing, Workbench

POLL_S: Final = 2.0
GONE_S: Final = 60.0
_PREFIX: Final = "winboot-verify-"
# Policies that hold in every namespace. Of those that there may be these are read.
CLUSTER_POLICIES: Final = (
    "ClusterNetworkPolicy",
    "AdminNetworkPolicy",
    "BaselineAdminNetworkPolicy",
    "GlobalNetworkPolicy",
)
# What a kubelet says of a container that will not come by waiting.
_PULLS: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_ENDS: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
)


@dataclass(slots=True)
class Stage:
    """The objects of one run. `wait` passes seconds and says True when the run is to end; `say` reports to the
    user."""

    cluster: Cluster
    bench: Workbench
    run: str
    holder: str
    wait: Callable[[float], bool]
    timeout: float
    keep: bool = False
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    pid: int = field(default_factory=os.getpid)
    # A namespace of the cluster's owner; without it the run makes one of its own.
    given: str = ""
    # What was made in it, in its order.
    made: list[Thing] = field(default_factory=list)
    # The namespace. A run may verify more than once, and the one before may still be ending.
    space: str = ""

    def __post_init__(self) -> None:
        """Choose the name of the namespace."""
        self.space = self.given or self.space or f"{_PREFIX}{self.run}-{token_hex(2)}"

    # ---- before and after ------------------------------------------------------------------------------

    def clear_leftovers(self) -> tuple[str, ...]:
        """Delete the namespaces of runs that were killed; gives their names. Those that were kept on purpose stay."""
        if self.given:
            return ()
        found = self.bench.listed("Namespace", labels={"app.kubernetes.io/managed-by": "winboot"})
        left = [str(one["metadata"]["name"]) for one in found if self._left(one)]
        for name in left:
            self.bench.remove_namespace(name)
        return tuple(left)

    def _left(self, thing: Thing) -> bool:
        metadata = thing["metadata"]
        labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
        # Others may give their namespace these labels; its name says whose it is, too.
        ours = objects.OURS in labels and str(metadata["name"]).startswith(_PREFIX)
        if not ours or objects.KEPT in labels or metadata["name"] == self.space:
            return False
        holder, _, pid = str(notes.get(objects.HOLDER, "")).rpartition("#")
        if holder == self.holder and pid.isdigit():
            return int(pid) == self.pid or not _runs(int(pid))
        try:
            return datetime.fromisoformat(str(notes.get(objects.UNTIL))) < self.now()
        except ValueError:
            return True

    def open(self) -> None:
        """Make the namespace, unless it is given. Raises ClusterRefused with the right that is missing."""
        if self.given:
            return
        until = self.now() + timedelta(seconds=2 * self.timeout + 600)
        made = objects.namespace(
            self.space,
            self.run,
            f"{self.holder}#{self.pid}",
            until.isoformat(timespec="seconds"),
            kept=self.keep,
        )
        try:
            self.bench.make(made)
        except ClusterRefused as error:
            raise self._explained(error) from error

    def _explained(self, error: ClusterRefused) -> ClusterError:
        """Whether the right is missing, or an admission said no."""
        needs = (*rights.verify_in(self.given), *rights.VERIFY_READS) if self.given else rights.VERIFY
        missing = self.cluster.own_missing_rights(needs)
        if missing:
            return ClusterRefused(
                f"{error.problem} (missing: {'; '.join(map(str, missing))})",
                hint="`winboot manifests verifier` prints the rights that verify needs.",
            )
        return Refused(
            error.problem,
            hint="An admission policy or a quota of the cluster refuses the request: make an exception for the "
            f"namespaces {objects.OURS}, or ask the owner of the policy.",
        )

    def close(self, *, patient: bool) -> str:
        """Delete the namespace and, when `patient`, wait until it has gone. The answer names what is left."""
        if self.given:
            return self._empty()
        if self.keep:
            return f"kept: namespace {self.space}; `kubectl delete namespace {self.space}` removes it"
        by_hand = f"`kubectl delete namespace {self.space}` removes it, and so does the next `winboot verify`"
        try:
            if not self.bench.remove_namespace(self.space) or not patient:
                return ""
            waited = 0.0
            while waited < GONE_S:
                if not any(one["metadata"]["name"] == self.space for one in self._spaces()):
                    return ""
                if self.wait(POLL_S):
                    return ""  # it is on its way
                waited += POLL_S
        except ClusterError as error:
            return f"winboot could not delete the namespace {self.space}: {error.problem}; {by_hand}"
        return f"the namespace {self.space} is still being deleted"

    def _empty(self) -> str:
        """Delete what was made in a namespace that stays."""
        if self.keep:
            return f"kept: {len(self.made)} objects in the namespace {self.space}"
        try:
            while self.made:
                self.bench.remove(self.made[-1])
                self.made.pop()
        except ClusterError as error:
            return f"{len(self.made)} objects are left in the namespace {self.space}: {error.problem}"
        return ""

    def _make(self, thing: objects.Object) -> Thing:
        made = self.bench.make(thing)
        if objects.OURS not in (made["metadata"].get("labels") or {}):
            raise Refused(
                f"the namespace {self.space} has a {thing['kind']} {made['metadata']['name']} that is not winboot's",
                hint="Give an empty namespace with --namespace.",
            )
        self.made.append(thing)
        return made

    def _spaces(self) -> Sequence[Thing]:
        return self.bench.listed("Namespace", labels={"app.kubernetes.io/managed-by": "winboot"})

    # ---- pods and services -----------------------------------------------------------------------------

    def fill(self, scene: Scene, images: Mapping[str, str], linux: str, linux_image: str) -> None:
        """Make all pods and services. A pod that is refused is noted at its node."""
        pull = self._pull_secret([node.spec for node in scene.nodes])
        for node in scene.nodes:
            image = images.get(node.spec.machine.os, objects.IMAGES[node.spec.machine.os])
            for role in ("server", "client"):
                self._pod(node, objects.windows_pod(node.spec, self.space, role, image, pull=pull))
            made = self._service(f"node-{node.name}", {objects.NODE: node.name}, node_port=True)
            node.service, node.node_port = _address(made), int(made["spec"]["ports"][0].get("nodePort") or 0)
        scene.service = _address(self._service("web", {}, node_port=False))
        if linux:
            scene.linux_node = linux
            try:
                self._make(objects.linux_pod(linux, self.space, linux_image, pull=pull))
            except ClusterRefused as error:
                scene.linux_problem = self._explained(error).problem

    def network_policies(self) -> tuple[str, ...]:
        """What another controller has put into the namespace to refuse connections; nothing where it may not be
        read."""
        try:
            found = self.bench.listed("NetworkPolicy", self.space)
        except ClusterError:
            return ()
        return tuple(str(one["metadata"]["name"]) for one in found)

    def cluster_policies(self) -> tuple[str, ...]:
        """Kind and name of each policy over all namespaces; of kinds that the cluster lacks, or hides from us, none."""
        found = []
        for kind in CLUSTER_POLICIES:
            try:
                listed = self.bench.listed(kind)
            except ClusterError:
                continue
            found += [f"{kind} {one['metadata']['name']}" for one in listed]
        return tuple(found)

    def _pod(self, node: NodeScene, pod: objects.Object) -> None:
        try:
            self._make(pod)
        except ClusterRefused as error:
            node.problem = self._explained(error).problem

    def _service(self, name: str, selector: Mapping[str, str], *, node_port: bool) -> Thing:
        try:
            return self._make(objects.service(self.space, name, selector, node_port=node_port))
        except ClusterRefused as error:
            raise self._explained(error) from error

    def _pull_secret(self, specs: Sequence[NodeSpec]) -> bool:
        """Whether the profile's registries want a login, which pods get as an image pull secret."""
        logins = {
            one.host: (one.host, one.user, one.credential)
            for spec in specs
            for one in spec.runtime.registries
            if one.credential is not None and one.user
        }
        if logins:
            read = [
                (host, user, credential.read(f"runtime.registries.{host}"))
                for host, user, credential in logins.values()
            ]
            self._make(objects.pull_secret(self.space, read))
        return bool(logins)

    def start(self, *things: objects.Object) -> str:
        """Make these objects and wait until the pods among them run; why they do not, or nothing."""
        for thing in things:
            try:
                self._make(thing)
            except ClusterRefused as error:
                return self._explained(error).problem
        names = [str(one["metadata"]["name"]) for one in things if one["kind"] == "Pod"]
        waited = 0.0
        while True:
            pods = {str(one["metadata"]["name"]): one for one in self.bench.listed("Pod", self.space)}
            problem = next(filter(None, (_hopeless(pods[name]) for name in names if name in pods)), "")
            if problem or all(name in pods and _running(pods[name]) for name in names):
                return problem
            if waited >= self.timeout or self.wait(POLL_S):
                return f"{', '.join(names)} did not run within {self.timeout:.0f} s"
            waited += POLL_S

    def end(self, thing: objects.Object) -> None:
        """Delete one object of this run, if it is there, and wait until it has gone."""
        self.bench.remove(thing)
        # In place: other threads append to the list.
        with suppress(ValueError):
            self.made.remove(thing)
        waited, name = 0.0, thing["metadata"]["name"]
        while waited < GONE_S and any(
            one["metadata"]["name"] == name for one in self.bench.listed(str(thing["kind"]), self.space)
        ):
            if self.wait(POLL_S):
                return
            waited += POLL_S

    def wait_running(self, scene: Scene) -> bool:
        """Wait until every pod runs, or will not; what is wrong is noted at its node. True when the run is to end."""
        waited = 0.0
        while True:
            pods = {str(one["metadata"]["name"]): one for one in self.bench.listed("Pod", self.space)}
            waiting = [node for node in scene.nodes if not node.problem and not _settled(node, pods)]
            linux = scene.linux_node and not scene.linux_problem and not _settled_linux(scene, pods)
            if not waiting and not linux:
                return False
            if waited >= self.timeout:
                break
            if self.wait(POLL_S):
                return True
            waited += POLL_S
        for node in waiting:
            node.problem = f"its pods did not run within {self.timeout:.0f} s" + self._last_event(node)
            node.server = node.client = None
        if linux:
            scene.linux_problem = f"the pod did not run within {self.timeout:.0f} s"
        return False

    def _last_event(self, node: NodeScene) -> str:
        """What the cluster's events say last of a node's pods."""
        try:
            events = self.bench.listed("Event", self.space)
        except ClusterError:
            return ""
        ours = [
            str(one.get("message", ""))
            for one in events
            if str((one.get("involvedObject") or {}).get("name", "")).endswith(f"-{node.name}")
            and one.get("type") == "Warning"
        ]
        return f": {clean(ours[-1])}" if ours else ""


class Refused(ClusterError):
    """An admission, a quota or a policy of the cluster refuses what a verification needs; no right is missing."""

    exit_code = 1


def _address(service: Thing) -> str:
    return str(service["spec"].get("clusterIP", ""))


def _settled(node: NodeScene, pods: Mapping[str, Thing]) -> bool:
    """Whether both pods of a node run, or one of them will not."""
    both = [pods.get(f"{role}-{node.name}") for role in ("server", "client")]
    for pod in both:
        if pod is None:
            return False
        problem = _hopeless(pod)
        if problem:
            node.problem = problem
            return True
    running = [_running(pod) for pod in both if pod is not None]
    node.server, node.client = running
    if None in running:
        node.server = node.client = None
        return False
    return True


def _settled_linux(scene: Scene, pods: Mapping[str, Thing]) -> bool:
    pod = pods.get("linux")
    if pod is None:
        return False
    scene.linux_problem = _hopeless(pod)
    scene.linux = _running(pod)
    return bool(scene.linux_problem) or scene.linux is not None


def _running(pod: Thing) -> PodAt | None:
    status = pod.get("status") or {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or []}
    if status.get("phase") != "Running" or not status.get("podIP") or conditions.get("Ready") != "True":
        return None
    return PodAt(str(pod["metadata"]["name"]), str(status["podIP"]))


def _hopeless(pod: Thing) -> str:
    """Why a pod will not run however long one waits; empty where it may."""
    status: Mapping[str, Any] = pod.get("status") or {}
    for one in status.get("containerStatuses") or []:
        waiting = (one.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason", ""))
        if reason in _PULLS:
            return f"{one.get('image')} cannot be pulled: {clean(str(waiting.get('message', '')))}"
        if reason in _ENDS:
            return f"{reason}: {clean(str(waiting.get('message', '')))}"
    if status.get("phase") == "Failed":
        return clean(f"{status.get('reason', 'Failed')}: {status.get('message', '')}")
    return ""


def _runs(pid: int) -> bool:
    """Whether a process of this computer runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OSError):
        return True
    return True

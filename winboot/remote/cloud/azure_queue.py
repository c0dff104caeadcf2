"""Azure as a queue of lifecycle messages. It sends none, so the queue derives them from what it sees:

    a machine runs and has no Node, or one with its startup taint still on      launch
    its Node's annotation reports a scheduled event that removes it             drain
    a Node that is not Ready, of a machine that Azure no longer lists           the Node is deleted

Each machine reports its own events in its Node (the step azure-events); what it reports counts for itself only. The queue
remembers nothing that matters: a worker that is killed is followed by one that sees the same.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from winboot.base.errors import ClusterError, NoSuchHost, UsageError, WinbootError
from winboot.config.annotations import CORDON, EVENTS, FOR_AN_EVENT, OWNED
from winboot.config.node_spec import STARTUP_TAINT, NodeSpec
from winboot.remote.cloud.azure_names import PREFIX, ResourceId
from winboot.remote.cloud.base import (
    CloudHost,
    HookAction,
    HookNeeds,
    Lifecycle,
    Message,
    Query,
    Stage,
    Wait,
    same_provider_id,
)
from winboot.remote.cloud.composing import Member
from winboot.remote.cloud.metadata import Run, ScheduledEvent, approve, reported_events

if TYPE_CHECKING:
    from winboot.remote.cloud.azure import ScaleSet

_MINUTES: Final = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")
LAUNCH: Final = "launch"
# What Azure does to machines (azure-compute-docs: windows/scheduled-events.md, EventType), the worst first. A Freeze pauses a
# machine for some seconds: its pods stay.
_EVENTS: Final = ("Terminate", "Preempt", "Redeploy", "Reboot")
_FINAL: Final = frozenset({"Terminate", "Preempt"})
# A look lasts for two rounds, so that one that comes late or fails does not make each machine's work ask by itself.
_ROUNDS: Final = 2.0
_LASTS_S: Final = 30.0
# How often Nodes are read for what their machines report: a cordon has five seconds.
_LISTEN_S: Final = 2.0


class Node(Protocol):
    """What the queue reads of a Node."""

    @property
    def name(self) -> str: ...
    @property
    def provider_id(self) -> str: ...
    @property
    def ready(self) -> bool: ...
    @property
    def unschedulable(self) -> bool: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    def has_taint(self, key: str) -> bool:
        """Whether it has a taint of this key."""
        ...


class Nodes(Protocol):
    """What the queue asks of a cluster."""

    def nodes(self) -> Sequence[Node]:
        """All Nodes."""
        ...

    def windows_nodes(self) -> Sequence[Node]:
        """Those of Windows machines."""
        ...

    def uncordon(self, name: str) -> bool:
        """Lift winboot's cordon; whether there was one."""
        ...

    def delete_node(self, name: str) -> bool:
        """Delete a Node; whether it was there."""
        ...


class Machine(Protocol):
    """A machine of the inventory: what it is in the cloud, what it is to be, and its cluster."""

    @property
    def member(self) -> Member: ...
    @property
    def spec(self) -> NodeSpec: ...
    @property
    def cluster(self) -> Nodes: ...


class Machines(Protocol):
    """The machines of the inventory, as `winboot.operations.hook.work.NodeWork` knows them."""

    @property
    def join_timeout(self) -> float: ...
    def look(self, lasts: float) -> Sequence[Machine]:
        """All machines, asked now; `seen` and `target` answer from this list for so many seconds."""
        ...

    def seen(self) -> Sequence[Machine] | None:
        """What `look` has found last, while it lasts."""
        ...

    def target(self, instance: str) -> Machine | None:
        """One machine; None where the inventory does not mean it."""
        ...

    def clusters(self) -> Sequence[Nodes]:
        """The clusters of all profiles and machines."""
        ...


class Session(Protocol):
    """A session to a machine."""

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Any]) -> Iterator[str]:
        """Run a script; the lines that it sends."""
        ...


class Log(Protocol):
    """One line of the log."""

    def __call__(self, message: str, **about: Any) -> None: ...


class AzureProvider(Protocol):
    """What the queue asks of Azure in addition to the machines."""

    def hosts(self, query: Query) -> Iterator[CloudHost]:
        """The machines."""
        ...

    def lifecycle(self) -> Lifecycle:
        """`protect`."""
        ...

    def scale_set(self, group: str, name: str) -> ScaleSet:
        """A scale set's repairs and notice."""
        ...


@dataclass(slots=True)
class AzureQueue:
    """See `winboot.remote.cloud.base.HookQueue`. Times are in seconds: `every` lies between two looks, `rest` is how long a
    machine that was abandoned is left alone."""

    provider: AzureProvider
    work: Machines
    connect: Callable[[NodeSpec], AbstractContextManager[Session]]
    wait: Wait
    log: Log
    every: float = 30.0
    rest: float = 1800.0
    # Only log what the queue would change in the cluster by itself.
    dry: bool = False
    clock: Callable[[], float] = time.monotonic
    _due: float = 0.0
    _found: deque[HookAction] = field(default_factory=deque)
    _hidden: dict[str, float] = field(default_factory=dict)
    _received: dict[str, int] = field(default_factory=dict)
    _heard: dict[str, float] = field(default_factory=dict)
    _resting: dict[str, float] = field(default_factory=dict)
    _sets: dict[str, ScaleSet] = field(default_factory=dict)
    # Machines that an event ends, by the last look.
    _going: set[str] = field(default_factory=set)
    # The event of a machine that was logged last as one that takes nothing away.
    _noted: dict[str, str] = field(default_factory=dict)

    def receive(self, most: int, visibility: int) -> list[Message]:
        """Look, at most once in `every` seconds; what a machine reports of itself arrives in between."""
        while not self._found and (left := self._due - self.clock()) > 0:
            if messages := self._messages(self._reported(), most, visibility):
                return messages
            if self.wait(min(left, _LISTEN_S)):
                return []
        if self.wait(0.0):
            return []
        if not self._found:
            self._due = self.clock() + self.every
            # What ends has a notice that runs.
            self._found = deque(sorted(self._wanted(), key=lambda one: one.kind == LAUNCH))
        return self._messages(self._rest(), most, visibility)

    def _rest(self) -> Iterator[HookAction]:
        """What the last look has found and no worker has taken yet."""
        while self._found:
            yield self._found.popleft()

    def _messages(self, actions: Iterable[HookAction], most: int, visibility: int) -> list[Message]:
        now, messages = self.clock(), list[Message]()
        for action in actions:
            handle = _handle(action)
            if self._hidden.get(handle, 0.0) > now:
                continue
            self._hidden[handle] = now + visibility
            self._received[handle] = self._received.get(handle, 0) + 1
            messages.append(Message(handle, action, self._received[handle]))
            if len(messages) == most:
                break
        return messages

    def _reported(self) -> Iterator[HookAction]:
        """What machines of the last look have reported of themselves since."""
        reporting = self.work.seen() or ()
        clusters = {id(one.cluster): one.cluster for one in reporting}
        nodes = {key: _by_name(cluster.windows_nodes()) for key, cluster in clusters.items()}
        for one in reporting:
            event = _own_event(one, nodes[id(one.cluster)])
            if event is None or not self._matters(event, one) or event.status != "Scheduled":
                continue
            action = _asked_for(event, one)
            # What was answered a moment ago may still be written there.
            if self._heard.get(_handle(action), 0.0) <= self.clock():
                yield action

    def extend(self, message: Message, seconds: int) -> None:
        """Keep it from being delivered again."""
        self._hidden[message.handle] = self.clock() + seconds

    def delete(self, message: Message) -> None:
        """Forget it; what still has to be done is seen again."""
        self._hidden.pop(message.handle, None)
        self._heard[message.handle] = self.clock() + self.every
        self._received.pop(message.handle, None)

    def stage(self, action: HookAction) -> Stage:
        """Where a machine that starts is: by its Node, and by what Azure lists."""
        target = self.work.target(action.instance)
        if action.instance in self._going:
            return "ends"
        if target is None:
            # The worker asks whose machine it is.
            return "starts"
        if not _runs(target):
            return "unlisted"
        node = _by_provider_id(target.cluster.nodes()).get(_provider_id(target))
        return "starts" if _is_new(target, node) else "stays"

    def begin(self, action: HookAction) -> None:
        """Keep scale-in and automatic repairs from a machine that is being joined: it does not look healthy meanwhile."""
        target = self.work.target(action.instance) if action.kind == LAUNCH else None
        if target is None:
            return
        host = target.member.host
        if host.group:
            self._scale_set(host)
        if _protectable(host):
            self.provider.lifecycle().protect(host, protected=True)

    @property
    def abandoned_ends(self) -> bool:
        """No: it is left for a while, and tried again."""
        return False

    def heartbeat(self, action: HookAction) -> bool:
        """Nothing: an event waits as long as its notice says, and a new machine without end."""
        return True

    def unfit(self, group: str, needs: HookNeeds) -> list[str]:
        """Nothing here: winboot reports what is wrong with a scale set when it first sees it."""
        return []

    def complete(self, action: HookAction, result: str) -> bool:
        """Let the machine go on as one of its set, or let Azure end it; False where that had happened already."""
        if action.kind == LAUNCH:
            return self._let_in(action, result)
        target = self.work.target(action.instance)
        if target is None:
            return False
        machine = ResourceId.parse(target.member.host.id).machine_name
        try:
            with self.connect(target.spec) as transport:
                return approve(_run_of(transport), action.token, machine)
        except WinbootError as error:
            # Azure goes ahead by itself when the notice is over.
            self.log("an event was not approved", node=target.spec.node.name, problem=error.problem)
            return False

    def _let_in(self, action: HookAction, result: str) -> bool:
        if result != "CONTINUE":
            self._resting[action.instance] = self.clock() + self.rest
        target = self.work.target(action.instance)
        if target is None:
            return False
        host = target.member.host
        # One that a person has protected stays so: `protect` sees by the tag whose it is, and asks for this machine alone.
        if host.data.get("orchestration") == "uniform":
            try:
                self.provider.lifecycle().protect(host, protected=False)
            except NoSuchHost:
                return False
        return True

    # What there is.

    def _wanted(self) -> Iterator[HookAction]:
        targets = self.work.look(max(_ROUNDS * self.every, _LASTS_S))
        clusters = {id(one.cluster): one.cluster for one in targets}
        nodes = {key: cluster.nodes() for key, cluster in clusters.items()}
        known = _by_provider_id(one for several in nodes.values() for one in several)
        named = {key: _by_name(several) for key, several in nodes.items()}
        self._going = set()
        for target in targets:
            instance, group = target.member.host.id, target.member.host.group
            node, event = known.get(_provider_id(target)), _own_event(target, named[id(target.cluster)])
            if event is None or not self._matters(event, target):
                self._give_back(target, node)
                if _is_new(target, node) and self._resting.get(instance, 0.0) <= self.clock():
                    yield HookAction(LAUNCH, instance, group, "")
            elif event.status == "Scheduled":
                yield _asked_for(event, target)
        listed = {one.member.host.id.lower() for one in targets}
        # A cluster whose last machine is gone still has that machine's Node. If one of these is away, the work
        # continues.
        for cluster in self.work.clusters():
            if id(cluster) in nodes:
                self._forget_gone(cluster, nodes[id(cluster)], listed)
                continue
            with suppress(ClusterError):
                self._forget_gone(cluster, cluster.nodes(), listed)

    def _forget_gone(self, cluster: Nodes, nodes: Iterable[Node], listed: set[str]) -> None:
        """Delete the Nodes that winboot made of machines that are gone, where no cloud controller manager does."""
        ids: dict[str, str] = {}
        for node in nodes:
            # The kubelet wrote the provider id: what is not an id of a machine names no machine that is gone.
            with suppress(UsageError):
                if node.provider_id.startswith(PREFIX) and _is_ours(node) and not node.ready:
                    ids[node.name] = ResourceId.parse(node.provider_id).path
        unlisted = tuple(one for one in ids.values() if one.lower() not in listed)
        if not unlisted:
            return
        # Not in the inventory's list, but there? One list answers for all of them.
        groups = tuple(sorted({ResourceId.parse(one).group for one in unlisted}))
        there = listed | {one.id.lower() for one in self.provider.hosts(Query(unlisted, scopes=groups))}
        for name, instance in ids.items():
            if instance.lower() not in there:
                if self.dry:
                    self.log("its machine was gone without notice: the Node would be deleted", node=name)
                    continue
                cluster.delete_node(name)
                self.log("its machine was gone without notice: the Node is deleted", node=name)

    def _give_back(self, target: Machine, node: Node | None) -> None:
        """Lift the cordon from a machine that an event is over for, once its Node is Ready again. The worker that cordoned it
        may be no more."""
        if node is None or not node.ready or node.annotations.get(CORDON) != FOR_AN_EVENT:
            return
        if self.dry:
            self.log("its event is over: the Node would take pods again", node=node.name)
        elif target.cluster.uncordon(node.name):
            self.log("its event is over: the Node takes pods again", node=node.name)

    def _matters(self, event: ScheduledEvent, target: Machine) -> bool:
        """Whether an event takes the machine away; one that does not is logged once."""
        instance = target.member.host.id
        if event.kind in _FINAL:
            self._going.add(instance)
        if event.kind not in _EVENTS and self._noted.get(instance) != event.id:
            self._noted[instance] = event.id
            self.log("noted only", event=event.kind, node=target.spec.node.name)
        return event.kind in _EVENTS

    def _scale_set(self, host: CloudHost) -> ScaleSet:
        """The machine's scale set; winboot reports once what is wrong with it for this work."""
        key = _set_key(host)
        if key not in self._sets:
            found = self._sets[key] = self.provider.scale_set(ResourceId.parse(host.id).group, host.group)
            for problem in unfit(found, self.work.join_timeout):
                self.log("the scale set does not fit", scale_set=found.name, problem=problem)
        return self._sets[key]


def unfit(scale_set: ScaleSet, join_timeout: float) -> Iterator[str]:
    """What of a scale set's settings works against a controller that joins and drains its machines."""
    if not scale_set.uniform:
        # learn.microsoft.com/azure/virtual-machine-scale-sets/orchestration-modes-api-comparison: of instance protection,
        # Flexible sets have an "ARM resource lock" instead.
        yield (
            "it is Flexible: winboot joins and drains its machines, but Azure has no instance protection for them. "
            "A scale-in or a repair can end a machine during its join, and `repair --by replace` does not work"
        )
    if not scale_set.notice:
        yield "it gives no notice before it ends a machine: set scheduledEventsProfile.terminateNotificationProfile"
    grace = seconds_of(scale_set.repairs.grace)
    if scale_set.repairs.enabled and grace < join_timeout:
        yield (
            f"automatic repairs begin after {scale_set.repairs.grace or 'no grace at all'}, and a join may take "
            f"{join_timeout:.0f} s: raise automaticRepairsPolicy.gracePeriod"
        )


def seconds_of(duration: str) -> float:
    """An ISO 8601 duration of hours, minutes and seconds, as ARM writes them; 0 for none."""
    found = _MINUTES.fullmatch(duration)
    hours, minutes, seconds = (int(one or 0) for one in found.groups()) if found else (0, 0, 0)
    return hours * 3600.0 + minutes * 60 + seconds


def _gravity(event: ScheduledEvent) -> int:
    """The less the worse; what is only noted comes last."""
    return _EVENTS.index(event.kind) if event.kind in _EVENTS else len(_EVENTS)


def _runs(target: Machine) -> bool:
    host = target.member.host
    return host.state == "running" and host.data.get("provisioning_state") != "deleting"


def _is_new(target: Machine, node: Node | None) -> bool:
    """Whether the machine runs and is not a node yet, or was joined without an answer."""
    if not _runs(target):
        return False
    starting = target.spec.node.startup_taint.key
    return node is None or node.has_taint(starting) or _unanswered(target.member.host, node)


def _is_ours(node: Node) -> bool:
    """Whether winboot has made it a node, or was about to when its machine went."""
    return OWNED in node.annotations or node.has_taint(STARTUP_TAINT)


def _unanswered(host: CloudHost, node: Node) -> bool:
    """Whether it was joined by a worker that ended before its answer: the set could never end it. A Node that is cordoned, or
    not Ready, may be protected for a repair."""
    return bool(host.data.get("protected_by_winboot")) and node.ready and not node.unschedulable


def _handle(action: HookAction) -> str:
    return f"{action.kind} {action.instance}"


def _by_provider_id(nodes: Iterable[Node]) -> dict[str, Node]:
    return {one.provider_id.lower(): one for one in nodes if one.provider_id}


def _provider_id(target: Machine) -> str:
    return target.member.identity.provider_id.lower()


def _by_name(nodes: Iterable[Node]) -> dict[str, Node]:
    return {one.name: one for one in nodes}


def _own_event(target: Machine, nodes: Mapping[str, Node]) -> ScheduledEvent | None:
    """The worst that a machine reports of itself. Its Node is the one of its name: a kubelet may write to no other, but it
    chooses its provider id."""
    node = nodes.get(target.spec.node.name)
    if node is None or not same_provider_id(node.provider_id, target.member.identity.provider_id):
        return None
    return min(reported_events(node.annotations.get(EVENTS, "")), key=_gravity, default=None)


def _asked_for(event: ScheduledEvent, target: Machine) -> HookAction:
    """What an event that waits to be approved asks for."""
    host, final = target.member.host, event.kind in _FINAL
    return HookAction(
        *("drain", host.id, host.group, event.kind, event.id),
        # A Terminate waits at least five minutes: --drain-timeout bounds it.
        until=event.not_before if event.kind != "Terminate" else None,
        final=final,
        returns=not final,
    )


def _set_key(host: CloudHost) -> str:
    """A machine outside of scale sets receives its own events alone."""
    if not host.group:
        return host.id.lower()
    return f"{ResourceId.parse(host.id).group}/{host.group}".lower()


def _protectable(host: CloudHost) -> bool:
    """Only instances of Uniform scale sets can be, and one that already is, is an administrator's decision."""
    return host.data.get("orchestration") == "uniform" and not host.data.get("protected")


def _run_of(transport: Session) -> Run:
    def run(script: str, arguments: Mapping[str, Any]) -> Iterator[str]:
        return transport.run(script, arguments, {})

    return run

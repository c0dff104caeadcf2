"""Auto Scaling, EC2, SQS and a cluster as far as a hook's worker meets them, in virtual time.

Hooks really expire (launch: ABANDON, end: CONTINUE), ABANDON really replaces, spot machines are taken two minutes after their
notice, messages come late, twice, and again when no worker keeps them. An answer counts only for the hook and the token that
wait (Auto Scaling API reference, CompleteLifecycleAction). What a promise of the hook is broken by goes to `broken`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from types import SimpleNamespace
from typing import Any

from tests.cloud.virtual_time import EPOCH, Kernel, VirtualPace, VirtualStop
from winboot.base.errors import CloudError, CloudUnreachable, ClusterConflict, ClusterUnreachable
from winboot.config.annotations import CORDON, OWNED
from winboot.node.run import Stop
from winboot.operations.hook import Settings, Worker
from winboot.operations.hook.metrics import Log
from winboot.operations.hook.work import NodeWork, Outcome, Place
from winboot.remote.cloud.aws_hooks import stage_of, waits_for
from winboot.remote.cloud.aws_messages import parse
from winboot.remote.cloud.base import HookAction, HookNeeds, Stage
from winboot.remote.cloud.base import Message as Delivered
from winboot.remote.cluster.base import Drained, NodeFacts
from winboot.remote.cluster.claims import Claim, Claimant

HEARTBEAT_S = 900.0
PATIENCE_S = 5.0
JOIN_S = 600.0


@dataclass
class Instance:
    """One machine. `boots` is when it answers (None: never), `joins` how long a join takes."""

    id: str
    ours: bool
    state: str
    boots: float | None
    joins: float
    token: str = ""
    hook: str = ""
    until: float = 0.0
    end: float = 0.0
    since: float = 0.0
    terminated: float | None = None
    prepared: bool = False
    never_joins: bool = False
    joining: int = 0

    @property
    def provider_id(self) -> str:
        """Of its Node."""
        return f"aws:///eu-west-1a/{self.id}"


@dataclass
class Message:
    """One in the queue. `visible` is when it may be delivered."""

    id: str
    body: str
    visible: float
    received: int = 0
    handle: int = 0


@dataclass
class Node:
    """One Node; pods leave `leaves` seconds after their eviction, None: never."""

    name: str
    provider_id: str
    owned: bool = False
    ready: bool = False
    cordoned: float | None = None
    why: str = ""
    pods: dict[str, float | None] = field(default_factory=dict)

    @property
    def notes(self) -> dict[str, str]:
        """Its annotations."""
        return ({OWNED: "{}"} if self.owned else {}) | (
            {CORDON: self.why} if self.cordoned is not None else {}
        )


class World:
    """The cloud, the queue and the cluster."""

    def __init__(self, kernel: Kernel, seed: int, *, warm: bool = False) -> None:
        self.kernel, self.random, self.warm = kernel, random.Random(seed), warm
        self.desired = 0
        self.instances: dict[str, Instance] = {}
        self.messages: dict[str, Message] = {}
        self.nodes: dict[str, Node] = {}
        self.claims: dict[str, Claim] = {}
        self.broken: list[str] = []
        self.launched = self.expired = self.versions = 0
        self.alive: dict[str, float] = {}
        self.deaf_until = self.away_until = -1.0
        self.never_boots = self.never_joins = self.boot_s = 0.0
        # Whether EventBridge reports states, in addition to hooks and spot notices.
        self.bridge = True
        # By instance: how often its Node was made.
        self.made: Counter[str] = Counter()
        self._arrived: list[VirtualStop] = []
        # By the id of a message: what it warns of, and when a worker first had it.
        self.warnings: dict[str, str] = {}
        # By instance: until when the notice of its end lasts.
        self.noticed: dict[str, float] = {}
        self._number = 0

    def broke(self, what: str) -> None:
        """Note a promise that was not kept."""
        self.broken.append(f"{self.kernel.now:.0f} s: {what}")

    def api(self) -> None:
        """Each call to the cloud: it may be throttled."""
        self.kernel.check()
        if self.kernel.now < self.deaf_until and self.random.random() < 0.5:
            raise CloudUnreachable("RequestLimitExceeded", hint="")

    def cluster_api(self) -> None:
        """Each call to the cluster: it may be away."""
        self.kernel.check()
        if self.kernel.now < self.away_until:
            raise ClusterUnreachable("no answer", hint="")

    # The queue.

    def send(self, body: dict[str, Any], *, warns: str = "") -> None:
        """A message, some seconds late and sometimes twice."""
        for _ in range(1 if self.random.random() < 0.8 else 2):
            self._number += 1
            made = Message(f"m{self._number}", json.dumps(body), self.kernel.now + self.random.random() * 3)
            self.messages[made.id] = made
            self.warnings[made.id] = warns
            self.kernel.at(made.visible, self._arrive)

    def _arrive(self) -> None:
        arrived, self._arrived = self._arrived, []
        for one in arrived:
            one.request()

    def receive(self, most: int, visibility: int) -> list[Delivered]:
        """Long poll of 20 s."""
        self.api()
        end = self.kernel.now + 20.0
        while True:
            due = [one for one in self.messages.values() if one.visible <= self.kernel.now][: min(most, 10)]
            if due or self.kernel.now >= end:
                return [self._deliver(one, visibility) for one in due]
            arrives = VirtualStop(self.kernel)
            self._arrived.append(arrives)
            soonest = min((one.visible for one in self.messages.values()), default=end)
            arrives.wait(max(min(soonest, end) - self.kernel.now, 0.001))

    def _deliver(self, message: Message, visibility: int) -> Delivered:
        message.visible = self.kernel.now + visibility
        message.received += 1
        message.handle += 1
        if message.received == 1 and self.warnings[message.id]:
            self._expect_cordon(self.warnings[message.id])
        handle = f"{message.id}/{message.handle}"
        return Delivered(handle, parse(message.body), message.received, id=message.id)

    def _expect_cordon(self, instance: str) -> None:
        """The promise: its Node is cordoned within 5 s of the message."""
        node, at, process = self.node_of(instance), self.kernel.now, self.process
        if node is None or not node.owned or self.away_until > at:
            return

        def look() -> None:
            there = self.nodes.get(node.name)
            late = there is node and (there.cordoned is None or there.cordoned > at + PATIENCE_S)
            if late and process not in self.kernel.dead and self.away_until < at:
                self.broke(f"the node of {instance} was not cordoned within 5 s")

        self.kernel.at(at + PATIENCE_S, look)

    @property
    def process(self) -> str:
        """Whose call it is."""
        return self.kernel.current.process if self.kernel.current is not None else ""

    # The group.

    def scale(self, size: int) -> None:
        """What an autoscaler asks for."""
        self.desired = size
        self.reconcile()

    def reconcile(self) -> None:
        """Start what is missing, end what is too much."""
        living = [one for one in self.instances.values() if one.ours and self.counts(one)]
        for _ in range(self.desired - len(living)):
            self.launch()
        for one in living[self.desired :]:
            self.end(one)

    @staticmethod
    def counts(one: Instance) -> bool:
        """Whether its group counts it."""
        return one.state in ("Pending:Wait", "InService")

    def launch(self, *, ours: bool = True, warm: bool = False) -> Instance:
        """A machine of the group, or of another cluster."""
        self.launched += ours
        number = len(self.instances)
        boots = self.kernel.now + self.boot_s * (0.5 + self.random.random())
        never = self.random.random() < self.never_boots
        one = Instance(
            f"i-{number:04}", ours, "", None if never else boots, JOIN_S * (0.5 + self.random.random() / 2)
        )
        one.never_joins = self.random.random() < self.never_joins
        self.instances[one.id] = one
        self.wait_for(one, "Warmed:Pending:Wait" if warm else "Pending:Wait", "launch")
        return one

    def wait_for(self, one: Instance, state: str, hook: str) -> None:
        """It waits for its hook from now on."""
        self._number += 1
        one.state, one.hook, one.token = state, hook, f"t{self._number}"
        one.since, one.until = self.kernel.now, self.kernel.now + HEARTBEAT_S
        one.end = self.kernel.now + 100 * HEARTBEAT_S
        self._expire(one, one.token)
        transition = "LAUNCHING" if hook == "launch" else "TERMINATING"
        self.send(
            {
                "LifecycleTransition": f"autoscaling:EC2_INSTANCE_{transition}",
                "EC2InstanceId": one.id,
                "AutoScalingGroupName": "pool",
                "LifecycleHookName": hook,
                "LifecycleActionToken": one.token,
            },
            warns=one.id if hook == "end" else "",
        )

    def _expire(self, one: Instance, token: str) -> None:
        def look() -> None:
            if one.token != token or not one.state.endswith(":Wait"):
                return
            at = min(one.until, one.end)
            if self.kernel.now < at:
                self.kernel.at(at, look)
                return
            self.expired += 1
            if one.ours and self.someone_since(self.kernel.now - HEARTBEAT_S):
                self.broke(f"{one.id} waited unheard in {one.state}")
            self.answered(one, "ABANDON" if one.hook == "launch" else "CONTINUE")

        self.kernel.at(one.until, look)

    def someone_since(self, when: float) -> bool:
        """Whether one worker has lived all this time."""
        return any(since <= when for process, since in self.alive.items() if process not in self.kernel.dead)

    def answered(self, one: Instance, result: str) -> None:
        """The group continues with the instance."""
        if one.state.endswith("Terminating:Wait"):
            self.gone(one)
        elif result == "ABANDON":
            # With a hook at the end, or without: both are seen in accounts.
            if self.random.random() < 0.5:
                self.wait_for(one, "Terminating:Wait", "end")
            else:
                self.gone(one)
        else:
            one.state = "InService" if one.state == "Pending:Wait" else "Warmed:Stopped"
        self.reconcile()

    def end(self, one: Instance) -> None:
        """Scale-in, a refresh, or a person."""
        if one.terminated is None and "Terminating" not in one.state:
            self.wait_for(one, "Terminating:Wait", "end")

    def gone(self, one: Instance) -> None:
        """EC2 has ended it."""
        one.state = ""
        if one.terminated is None:
            one.terminated = self.kernel.now
            self.tell(one, "EC2 Instance State-change Notification", state="terminated")

    def lose(self, one: Instance) -> None:
        """It ends without notice; its group finds out, and waits for its hook all the same."""
        waits = "Terminating" in one.state
        one.terminated = self.kernel.now
        self.tell(one, "EC2 Instance State-change Notification", state="terminated")
        if not waits:
            self.wait_for(one, "Terminating:Wait", "end")
        self.reconcile()

    def want_warm(self, one: Instance) -> None:
        """The group takes it out of the pool: it boots again."""
        if one.state == "Warmed:Stopped":
            one.boots = self.kernel.now + self.boot_s / 4
            self.wait_for(one, "Pending:Wait", "launch")

    def tell(self, one: Instance, kind: str, *, warns: str = "", **detail: str) -> None:
        """What EventBridge says."""
        if "State-change" in kind and not self.bridge:
            return
        moment = VirtualPace(self.kernel, "").today().isoformat()
        self.send(
            {
                "source": "aws.ec2",
                "detail-type": kind,
                "time": moment,
                "detail": {"instance-id": one.id, **detail},
            },
            warns=warns,
        )

    def take_spot(self, one: Instance) -> None:
        """One notice of two minutes, then it is gone; the group finds out and waits for its hook all the same."""
        if one.terminated is not None or one.id in self.noticed:
            return
        self.tell(one, "EC2 Spot Instance Interruption Warning", warns=one.id)
        self.noticed[one.id] = self.kernel.now + 120.0

        def taken() -> None:
            if one.terminated is None:
                waits = "Terminating" in one.state
                one.terminated = self.kernel.now
                self.tell(one, "EC2 Instance State-change Notification", state="terminated")
                if one.state and not waits:
                    self.wait_for(one, "Terminating:Wait", "end")
                self.reconcile()

        self.kernel.at(self.kernel.now + 120.0, taken)

    def lives(self, node: str) -> bool:
        """Whether the machine of a Node runs."""
        there = self.nodes.get(node)
        return there is not None and self.instances[there.provider_id.rpartition("/")[2]].terminated is None

    # What a hook's queue asks.

    def extend(self, delivered: Delivered, seconds: int) -> None:
        """Only the last handle of a message counts."""
        self.api()
        message = self._held(delivered)
        if message is not None:
            message.visible = self.kernel.now + seconds
            self.kernel.at(message.visible, self._arrive)

    def delete(self, delivered: Delivered) -> None:
        """With an old handle SQS may keep it."""
        self.api()
        message = self._held(delivered)
        if message is not None:
            del self.messages[message.id]

    def _held(self, delivered: Delivered) -> Message | None:
        name, _, handle = delivered.handle.partition("/")
        message = self.messages.get(name)
        return message if message is not None and message.handle == int(handle) else None

    def state(self, action: HookAction) -> str:
        """The lifecycle state."""
        self.api()
        return self.instances[action.instance].state

    def stage(self, action: HookAction) -> Stage:
        """By its lifecycle state."""
        return stage_of(self.state(action))

    def begin(self, action: HookAction) -> None:
        """Nothing."""
        self.kernel.check()

    def _active(self, action: HookAction) -> Instance | None:
        one = self.instances[action.instance]
        named = one.hook == action.hook and one.token == action.token
        return one if named and waits_for(action, one.state) else None

    def heartbeat(self, action: HookAction) -> bool:
        """More time, for the hook that waits alone."""
        self.api()
        one = self._active(action)
        if one is None:
            return False
        if not one.ours:
            self.broke(f"a heartbeat for {one.id} of another cluster")
        one.until = self.kernel.now + HEARTBEAT_S
        return True

    def complete(self, action: HookAction, result: str) -> bool:
        """The answer."""
        self.api()
        one = self._active(action)
        if one is None:
            if waits_for(action, self.instances[action.instance].state):
                raise CloudError("ValidationError: No active Lifecycle Action found", hint="")
            return False
        if not one.ours:
            self.broke(f"{one.id} of another cluster was answered")
        self.answered(one, result)
        return True

    def unfit(self, group: str, needs: HookNeeds) -> list[str]:
        """Its limits are those of a good example."""
        return []

    abandoned_ends = True

    # The cluster.

    def node_of(self, instance: str) -> Node | None:
        """Its Node."""
        end = f"/{instance}"
        return next((one for one in self.nodes.values() if one.provider_id.endswith(end)), None)


class ModelCluster:
    """The cluster's side, by the methods that an end needs; leases, too."""

    def __init__(self, world: World) -> None:
        self.world = world

    def facts(self) -> tuple[NodeFacts, ...]:
        """All Nodes."""
        self.world.cluster_api()
        return tuple(
            NodeFacts(
                one.name, "1", one.ready, "", "", "", (), {}, one.notes, (), (), "v", "windows",
                provider_id=one.provider_id,
            )
            for one in self.world.nodes.values()
        )  # fmt: skip

    def nodes(self) -> tuple[NodeFacts, ...]:
        """All Nodes."""
        return self.facts()

    def windows_nodes(self) -> tuple[NodeFacts, ...]:
        """All Nodes: there are no others."""
        return self.facts()

    def cordon(self, name: str, *, why: str = "true") -> bool:
        """From now on."""
        self.world.cluster_api()
        node = self.world.nodes.get(name)
        if node is not None and node.cordoned is None:
            node.cordoned, node.why = self.world.kernel.now, why
            if any(
                not one.ours for one in self.world.instances.values() if one.provider_id == node.provider_id
            ):
                self.world.broke(f"the node {name} of another cluster was cordoned")
        return node is not None

    def uncordon(self, name: str) -> bool:
        """It takes pods again."""
        self.world.cluster_api()
        node = self.world.nodes.get(name)
        lifted = node is not None and node.cordoned is not None
        if node is not None:
            node.cordoned = None
        return lifted

    def drain(self, name: str, *, timeout: float, wait: Callable[[float], bool]) -> Drained:
        """Pods go after their grace, some never. Only its first question needs an answer: the product's own waits for the
        API server while there is time."""
        world, began = self.world, self.world.kernel.now
        world.cluster_api()
        while True:
            away = world.kernel.now < world.away_until
            node = world.nodes.get(name)
            left = node.pods if node is not None else {}
            for pod in [
                pod for pod, grace in left.items() if grace is not None and world.kernel.now >= began + grace
            ]:
                del left[pod]
            over = world.kernel.now - began >= timeout
            stopped = (
                (bool(left) or away)
                and not over
                and wait(min(2.0, max(timeout - (world.kernel.now - began), 0.1)))
            )
            if stopped and world.lives(name):
                world.broke(f"the drain of {name} ended before its pods and its time")
            if (not left and not away) or over or stopped:
                return Drained((), tuple((pod, "it has not ended") for pod in left))

    def delete_node(self, name: str) -> bool:
        """At once."""
        self.world.cluster_api()
        return self.world.nodes.pop(name, None) is not None

    # Leases.

    def read(self, node: str) -> Claim | None:
        """See `Leases`."""
        self.world.cluster_api()
        return self.world.claims.get(node)

    def create(self, claim: Claim) -> Claim:
        """See `Leases`."""
        self.world.cluster_api()
        if claim.node in self.world.claims:
            raise ClusterConflict("it is there", hint="")
        return self._put(claim)

    def renew(self, claim: Claim) -> Claim:
        """See `Leases`."""
        self.world.cluster_api()
        there = self.world.claims.get(claim.node)
        if there is None or there.version != claim.version:
            raise ClusterConflict("it has moved", hint="")
        return self._put(claim)

    def _put(self, claim: Claim) -> Claim:
        """No version comes twice, also after a deletion (resourceVersion)."""
        self.world.versions += 1
        made = replace(claim, version=str(self.world.versions))
        self.world.claims[claim.node] = made
        return made

    def delete(self, node: str) -> None:
        """See `Leases`."""
        self.world.cluster_api()
        self.world.claims.pop(node, None)


class ModelWork:
    """`NodeWork` on the model: the same questions, and joins that take their time."""

    join_timeout, drain_timeout, again, self_registering = 2400.0, 600.0, 15.0, False

    def __init__(self, world: World, process: str) -> None:
        self.world, self.process = world, process
        self.cluster = ModelCluster(world)
        self.context = SimpleNamespace(stop=VirtualStop(world.kernel))
        self.joins = 0

    def target(self, instance: str) -> Any:
        """The machine, where it is ours and has not ended."""
        return next(iter(self.targets((instance,))), None)

    def targets(self, instances: Iterable[str] = ()) -> list[Any]:
        """All of these."""
        self.world.api()
        found = [self.world.instances[one] for one in instances]
        return [self._target(one) for one in found if one.ours and one.terminated is None]

    def _target(self, one: Instance) -> Any:
        host = SimpleNamespace(id=one.id)
        identity = SimpleNamespace(provider_id=one.provider_id)
        return SimpleNamespace(
            member=SimpleNamespace(host=host, identity=identity),
            spec=SimpleNamespace(node=SimpleNamespace(name=f"win-{one.id}")),
            cluster=self.cluster,
        )

    def groups(self) -> tuple[str, ...]:
        """One."""
        return ("pool",)

    def notes(self, target: Any) -> dict[str, str]:
        """Nothing."""
        return {}

    def answering(self, targets: Sequence[Any]) -> dict[str, str]:
        """Three seconds for all of them."""
        if any(self._why(one) for one in targets):
            self.world.kernel.sleep(3.0)
        return {one.member.host.id: self._why(one) for one in targets}

    def _why(self, target: Any) -> str:
        one = self.world.instances[target.member.host.id]
        here = one.boots is not None and one.boots <= self.world.kernel.now and one.terminated is None
        return "" if here else "it does not answer"

    def launch(self, target: Any, halt: Stop, *, take_over: bool, heard: Any) -> Outcome:
        """Half of it, then the Node, then the rest."""
        one = self.world.instances[target.member.host.id]
        self.joins += 1
        one.joining += 1
        if one.joining > 1:
            self.world.broke(f"two joins of {one.id} at a time")
        try:
            for part in range(10):
                if halt.wait(one.joins / 10):
                    return Outcome(False, "interrupted", "Interrupted")
                if one.terminated is not None:
                    return Outcome(False, "the connection was lost", "ConnectionLost")
                if part == 5 and self.world.node_of(one.id) is None:
                    node = Node(target.spec.node.name, one.provider_id)
                    self.world.made[one.id] += 1
                    self.world.nodes[node.name] = node
            if one.never_joins:
                return Outcome(False, "the Node is not Ready", "NotReady")
            node = self.world.nodes[target.spec.node.name]
            node.owned = node.ready = True
            node.pods = self._pods(node.name)
            return Outcome(True)
        finally:
            one.joining -= 1
            self.joins -= 1

    def _pods(self, node: str) -> dict[str, float | None]:
        graces = [self.world.random.random() * 90 for _ in range(3)]
        stuck = {f"shop/{node}-stuck": None} if self.world.random.random() < 0.2 else {}
        return {f"shop/{node}-{at}": grace for at, grace in enumerate(graces)} | stuck

    def prepare(self, target: Any, halt: Stop, *, take_over: bool, heard: Any) -> Outcome:
        """What a warm pool's machine is given."""
        one = self.world.instances[target.member.host.id]
        if halt.wait(one.joins / 2):
            return Outcome(False, "interrupted", "Interrupted")
        one.prepared, one.joins = True, one.joins / 2
        return Outcome(True)

    def place(self, instance: str) -> Place | None:
        """The Node of an instance."""
        for node in self.cluster.facts():
            if node.provider_id.endswith(f"/{instance}"):
                return Place(self.cluster, node)  # type: ignore[arg-type]
        return None

    def whose(self, instance: str) -> str:
        """As EC2 says."""
        self.world.api()
        one = self.world.instances[instance]
        if one.terminated is not None:
            return (
                "gone"
                if self.world.kernel.now - one.terminated > 3600
                else "ours, ended"
                if one.ours
                else "foreign"
            )
        return "ours" if one.ours else "foreign"

    def has_ended(self, instance: str) -> bool:
        """As EC2 says."""
        self.world.api()
        return self.world.instances[instance].terminated is not None

    def drain(self, place: Place, seconds: float, over: Callable[[], bool]) -> str:
        """The product's own."""
        instance = place.node.provider_id.rpartition("/")[2]
        if self.world.kernel.now + seconds < self.world.noticed.get(instance, 0.0) - 1.0:
            self.world.broke(f"the drain of {instance} has less time than its notice")
        return NodeWork.drain(self, place, seconds, over)  # type: ignore[arg-type]


def a_process(world: World, name: str, workers: int = 8, **settings: Any) -> Worker:
    """A worker of this world, not begun."""
    pace = VirtualPace(world.kernel, name)
    worker = Worker(
        queue=world,
        work=ModelWork(world, name),  # type: ignore[arg-type]
        claimant=Claimant(name, pace.now),
        leases=lambda cluster: cluster,  # type: ignore[arg-type, return-value]
        stop=pace.stop(),
        settings=Settings(workers=workers, **{"minders": 1, "look": 5.0, **settings}),
        log=Log(StringIO()),
        pace=pace,
    )
    world.alive[name] = world.kernel.now
    world.kernel.spawn(name, worker.run)
    return worker


def said(worker: Worker) -> list[dict[str, Any]]:
    """What it logged."""
    stream: Any = worker.log._stream
    return [json.loads(line) for line in stream.getvalue().splitlines()]


__all__ = ["EPOCH", "World", "a_process", "said"]

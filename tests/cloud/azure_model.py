"""A scale set of spot machines in virtual time: what `hook_model` is for Auto Scaling, with the product's own `AzureQueue`.

Azure sends nothing: there are machines and scheduled events, which a machine's own metadata service lists. Events take
effect at their time or when they are approved (azure-compute-docs: windows/scheduled-events.md); a joined machine's task
writes what concerns it into its Node. What a promise of the hook is broken by goes to `broken`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import format_datetime
from io import StringIO
from types import SimpleNamespace
from typing import Any

from tests.cloud.hook_model import Instance, ModelCluster, ModelWork, Node, World
from tests.cloud.virtual_time import EPOCH, Kernel, VirtualPace
from winboot.base.errors import ConnectionLost
from winboot.config.annotations import EVENTS
from winboot.config.node_spec import Taint
from winboot.node.run import Stop
from winboot.operations.hook import Settings, Worker
from winboot.operations.hook.metrics import Log
from winboot.operations.hook.work import NodeWork, Outcome, Place
from winboot.remote.cloud.azure import Repairs, ScaleSet
from winboot.remote.cloud.azure_names import ResourceId
from winboot.remote.cloud.azure_queue import AzureQueue
from winboot.remote.cloud.base import CloudHost, Query
from winboot.remote.cluster.base import NodeFacts
from winboot.remote.cluster.claims import Claimant

SET = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets"
STARTING = Taint("winboot.io/starting", "true", "NoSchedule")
NOTICES = {"Preempt": 30.0, "Terminate": 900.0, "Reboot": 900.0, "Redeploy": 600.0, "Freeze": 900.0}
# How long a machine is away in a restart.
AWAY_S = 300.0
# A kubelet that is silent is not Ready after so long (node-monitor-grace-period of 1.32).
SILENT_S = 50.0


@dataclass
class Event:
    """What Azure will do."""

    id: str
    kind: str
    instance: str
    at: float
    status: str = "Scheduled"


@dataclass
class Machine(Instance):
    """One of a scale set, by its ARM id."""

    protected: bool = False
    away_until: float = -1.0

    @property
    def provider_id(self) -> str:
        """Of its Node."""
        return f"azure://{self.id}"


@dataclass
class AzureNode(Node):
    """One Node, with what its machine writes into it."""

    told: str = ""
    uncordoned: int = 0


class AzureWorld(World):
    """The subscription: one set that is ours, one of another cluster."""

    def __init__(self, kernel: Kernel, seed: int) -> None:
        super().__init__(kernel, seed)
        self.events: dict[str, Event] = {}
        self.tells = True

    # The set.

    def reconcile(self) -> None:
        """Start what is missing; what is too much is ended with notice."""
        leaving = {one.instance for one in self.events.values() if one.kind == "Terminate"}
        living = [one for one in self.ours() if one.id not in leaving]
        for _ in range(self.desired - len(living)):
            self.start()
        for one in living[max(self.desired, 0) :]:
            self.plan("Terminate", one)

    def ours(self) -> list[Machine]:
        """Our machines that are there."""
        return [one for one in self.machines() if one.ours and one.terminated is None]

    def machines(self) -> list[Machine]:
        """All that ever were."""
        return list(self.instances.values())  # type: ignore[arg-type]

    def start(self, *, ours: bool = True) -> Machine:
        """A new machine."""
        self.launched += ours
        number, never = len(self.instances), self.random.random() < self.never_boots
        boots = self.kernel.now + self.boot_s * (0.5 + self.random.random())
        name = "pool" if ours else "theirs"
        made = Machine(
            f"{SET}/{name}/virtualMachines/{number}", ours, "", None if never else boots, 600.0 * self.random.random()
        )  # fmt: skip
        made.never_joins = self.random.random() < self.never_joins
        self.instances[made.id] = made
        return made

    def plan(self, kind: str, one: Machine) -> None:
        """Azure plans something for a machine that has nothing before it."""
        if one.terminated is not None or any(event.instance == one.id for event in self.events.values()):
            return
        self._number += 1
        event = Event(f"E-{self._number}", kind, one.id, self.kernel.now + NOTICES[kind])
        self.events[event.id] = event
        if kind in ("Preempt", "Terminate"):
            self.noticed[one.id] = event.at
        self.kernel.at(event.at, lambda: self.take_effect(event))
        self.kernel.at(self.kernel.now + 1.0 + self.random.random(), lambda: self.tell_node(event))

    def tell_node(self, event: Event) -> None:
        """What the task of the machine does."""
        node, one = self.node_of_id(event.instance), self.instances[event.instance]
        if not self.tells or node is None or one.terminated is not None or event.id not in self.events:
            return
        if self.kernel.now < self.away_until:
            self.kernel.at(self.away_until + 5.0, lambda: self.tell_node(event))
            return
        node.told = f"{event.kind}|{event.status}|{event.id}|{self.written(event)}"
        if event.kind != "Freeze":
            self.expect_cordon(event)

    def written(self, event: Event) -> str:
        """Its time, as Azure writes it."""
        moment = EPOCH + timedelta(seconds=event.at)
        return format_datetime(moment, usegmt=True) if event.status == "Scheduled" else ""

    def expect_cordon(self, event: Event) -> None:
        """The promise: an owned Node is cordoned within 5 s, where a worker listens that has looked before."""
        node, at, now = self.node_of_id(event.instance), self.kernel.now, dict(self.alive)
        listening = [one for one, since in now.items() if one not in self.kernel.dead and since < at - 120.0]
        if node is None or not node.owned or not listening or at < max(self.away_until, self.deaf_until) + 60:
            return

        def look() -> None:
            there = self.nodes.get(node.name)
            calm = (
                max(self.away_until, self.deaf_until) < at
                and self.instances[event.instance].terminated is None
            )
            alive = any(one not in self.kernel.dead for one in listening)
            if there is node and node.cordoned is None and calm and alive and not self.busy():
                self.broke(f"the node of {event.instance} was not cordoned within 5 s of its {event.kind}")

        self.kernel.at(at + 5.0, look)

    def busy(self) -> bool:
        """True while a worker waits for a machine that does not answer; afterwards it receives again."""
        return any(
            one.terminated is None and one.away_until > self.kernel.now - 60 for one in self.machines()
        )

    def take_effect(self, event: Event) -> None:
        """At its time, or as soon as it is approved."""
        if self.events.get(event.id) is not event or event.status != "Scheduled":
            return
        one = self.instances[event.instance]
        event.status = "Started"
        if event.kind in ("Preempt", "Terminate"):
            del self.events[event.id]
            self.vanish(one)  # type: ignore[arg-type]
            return
        node = self.node_of_id(event.instance)
        if node is not None:
            node.told = ""
        if event.kind != "Freeze":
            one.away_until = self.kernel.now + AWAY_S  # type: ignore[attr-defined]
            if node is not None:
                node.ready = False
        self.kernel.at(self.kernel.now + AWAY_S, lambda: self.is_over(event))

    def is_over(self, event: Event) -> None:
        """The machine is back."""
        self.events.pop(event.id, None)
        node = self.node_of_id(event.instance)
        if node is not None and node.owned and self.instances[event.instance].terminated is None:
            node.ready = True
        # One that was to be ended had something before it.
        self.reconcile()

    def vanish(self, one: Machine) -> None:
        """It is no more; its kubelet falls silent, and the set starts another one."""
        if one.terminated is not None:
            return
        one.terminated = self.kernel.now
        for event in [event for event in self.events.values() if event.instance == one.id]:
            del self.events[event.id]

        def silent() -> None:
            node = self.node_of_id(one.id)
            if node is not None:
                node.ready = False

        self.kernel.at(self.kernel.now + SILENT_S, silent)
        self.reconcile()

    def node_of_id(self, instance: str) -> AzureNode | None:
        """Its Node."""
        wanted = f"azure://{instance}"
        return next((one for one in self.nodes.values() if one.provider_id == wanted), None)  # type: ignore[return-value]

    def lives(self, node: str) -> bool:
        """Whether the machine of a Node runs."""
        there = self.nodes.get(node)
        return (
            there is not None
            and self.instances[there.provider_id.removeprefix("azure://")].terminated is None
        )

    # What AzureQueue asks of Azure.

    def hosts(self, query: Query) -> Iterator[CloudHost]:
        """The machines of all sets."""
        self.api()
        for one in self.machines():
            if one.terminated is None and (not query.ids or one.id in query.ids):
                yield host_of(one)

    def lifecycle(self) -> AzureWorld:
        """`protect` below."""
        return self

    def protect(self, host: CloudHost, *, protected: bool) -> None:
        """Instance protection."""
        self.api()
        one: Any = self.instances[host.id]
        if not one.ours:
            self.broke(f"{host.id} of another cluster was protected")
        one.protected = protected

    def scale_set(self, group: str, name: str) -> ScaleSet:
        """One that fits."""
        self.api()
        return ScaleSet(group, name, True, self.desired, Repairs(enabled=False), "PT15M")

    @contextmanager
    def connect(self, spec: Any) -> Iterator[Any]:
        """A session to a machine, two seconds long."""
        self.kernel.check()
        self.kernel.sleep(2.0)
        one: Any = self.instances[spec.instance]
        if one.terminated is not None or one.away_until > self.kernel.now:
            raise ConnectionLost("no answer", hint="")
        yield SimpleNamespace(run=self.answer)

    def answer(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Any]) -> Iterator[str]:
        """Its metadata service."""
        if arguments["Method"] == "GET":
            found = [self.shown(one) for one in self.events.values()]
            body = json.dumps({"DocumentIncarnation": 1, "Events": found})
            return iter([json.dumps({"status": 200, "problem": "", "body": body})])
        (wanted,) = json.loads(arguments["Content"])["StartRequests"]
        event = self.events.get(wanted["EventId"])
        if event is None:
            return iter([json.dumps({"status": 400, "problem": "", "body": ""})])
        self.take_effect(event)
        return iter([json.dumps({"status": 200, "problem": "", "body": ""})])

    def shown(self, event: Event) -> dict[str, Any]:
        """One event of the document."""
        return {
            "EventId": event.id,
            "EventType": event.kind,
            "EventStatus": event.status,
            "Resources": [ResourceId.parse(event.instance).machine_name],
            "NotBefore": self.written(event),
        }


def host_of(one: Machine) -> CloudHost:
    """As Azure lists it."""
    resource = ResourceId.parse(one.id)
    ours = {"protected": one.protected, "protected_by_winboot": one.protected}
    data = {"orchestration": "uniform", "provisioning_state": "succeeded", **ours}
    return CloudHost(
        "azure", one.id, resource.machine_name, "running", "westeurope", "", "10.0.0.1", True,
        group=resource.scale_set or "", data=data,
    )  # fmt: skip


class AzureCluster(ModelCluster):
    """With taints, annotations of machines, and cordons that are lifted."""

    world: AzureWorld

    def facts(self) -> tuple[NodeFacts, ...]:
        """All Nodes."""
        found = []
        for one in super().facts():
            node: Any = self.world.nodes[one.name]
            notes = {**one.annotations, **({EVENTS: node.told} if node.told else {})}
            taints = () if node.owned else (STARTING,)
            found.append(
                replace(one, annotations=notes, taints=taints, unschedulable=node.cordoned is not None)
            )
        return tuple(found)

    def uncordon(self, name: str) -> bool:
        """It takes pods again."""
        lifted = super().uncordon(name)
        if lifted:
            node: Any = self.world.nodes[name]
            node.uncordoned += 1
        return lifted


@dataclass
class AzureWork(ModelWork):
    """`NodeWork` on this model."""

    world: AzureWorld
    process: str
    lasts: tuple[float, list[Any]] = field(default=(-1.0, []))

    def __post_init__(self) -> None:
        ModelWork.__init__(self, self.world, self.process)
        self.cluster = AzureCluster(self.world)

    def targets(self, instances: Any = ()) -> list[Any]:
        """All machines of the cluster, or these."""
        self.world.api()
        return [self._target(one) for one in self.world.ours() if not instances or one.id in instances]

    def look(self, lasts: float) -> list[Any]:
        """See `NodeWork`."""
        self.lasts = (self.world.kernel.now + lasts, self.targets())
        return self.lasts[1]

    def seen(self) -> list[Any] | None:
        """See `NodeWork`."""
        return self.lasts[1] if self.world.kernel.now < self.lasts[0] else None

    def clusters(self) -> list[Any]:
        """The one of the inventory's profile, whether or not it has a machine."""
        return [self.cluster]

    def target(self, instance: str) -> Any:
        """See `NodeWork`."""
        seen = self.seen()
        there = self.targets((instance,)) if seen is None else seen
        return next((one for one in there if one.member.host.id == instance), None)

    def _target(self, one: Any) -> Any:
        name = f"pool{int(one.id.rpartition('/')[2]):06}"
        node = SimpleNamespace(name=name, startup_taint=STARTING)
        return SimpleNamespace(
            member=SimpleNamespace(host=host_of(one), identity=SimpleNamespace(provider_id=one.provider_id)),
            spec=SimpleNamespace(node=node, instance=one.id),
            cluster=self.cluster,
        )

    def node_of(self, target: Any) -> NodeFacts | None:
        """Its Node."""
        wanted = target.member.identity.provider_id
        return next((one for one in self.cluster.facts() if one.provider_id == wanted), None)

    def place(self, instance: str) -> Place | None:
        """The Node of an instance."""
        for node in self.cluster.facts():
            if node.provider_id == f"azure://{instance}":
                return Place(self.cluster, node)  # type: ignore[arg-type]
        return None

    def launch(self, target: Any, halt: Stop, *, take_over: bool, heard: Any) -> Outcome:
        """Half of it, then the Node, then the rest."""
        one: Any = self.world.instances[target.member.host.id]
        one.joining += 1
        # A worker that cannot renew its claim notices within a minute; until then the machine's fence keeps the two apart.
        if one.joining > 1 and self.world.kernel.now > self.world.away_until + 60:
            self.world.broke(f"two joins of {one.id} at a time")
        try:
            for part in range(10):
                if halt.wait(one.joins / 10):
                    return Outcome(False, "interrupted", "Interrupted")
                if one.terminated is not None or one.away_until > self.world.kernel.now:
                    return Outcome(False, "the connection was lost", "ConnectionLost")
                if part == 5 and self.world.node_of_id(one.id) is None:
                    self.world.made[one.id] += 1
                    self.world.nodes[target.spec.node.name] = AzureNode(
                        target.spec.node.name, one.provider_id
                    )
            node = self.world.node_of_id(one.id)
            if node is None or one.never_joins:
                return Outcome(False, "the Node is not Ready", "NotReady")
            node.owned = node.ready = True
            node.pods = node.pods or self._pods(node.name)
            for event in [event for event in self.world.events.values() if event.instance == one.id]:
                # The join has started the machine's task.
                self.world.tell_node(event)
            return Outcome(True)
        finally:
            one.joining -= 1

    def has_ended(self, instance: str) -> bool:
        """As Azure says."""
        self.world.api()
        return self.world.instances[instance].terminated is not None

    def drain(self, place: Place, seconds: float, over: Callable[[], bool]) -> str:
        """The product's own."""
        instance = place.node.provider_id.removeprefix("azure://")
        until = self.world.noticed.get(instance, 0.0)
        # A worker gives the end of a Terminate its own --drain-timeout.
        if self.world.kernel.now + seconds < min(until, self.world.kernel.now + self.drain_timeout) - 2.0:
            self.world.broke(f"the drain of {instance} has less time than its notice")
        return NodeWork.drain(self, place, seconds, over)  # type: ignore[arg-type]


def an_azure_process(world: AzureWorld, name: str, workers: int = 8, **settings: Any) -> Worker:
    """A worker of this world."""
    pace, work, log = VirtualPace(world.kernel, name), AzureWork(world, name), Log(StringIO())
    stop: Any = pace.stop()
    work.context = SimpleNamespace(stop=stop)
    queue = AzureQueue(world, work, world.connect, stop.wait, log, clock=pace.now)  # type: ignore[arg-type]
    worker = Worker(
        queue=queue,
        work=work,  # type: ignore[arg-type]
        claimant=Claimant(name, pace.now),
        leases=lambda cluster: cluster,  # type: ignore[arg-type, return-value]
        stop=stop,
        settings=Settings(workers=workers, **{"minders": 1, "look": 5.0, **settings}),
        log=log,
        pace=pace,
    )
    world.alive[name] = world.kernel.now
    world.kernel.spawn(name, worker.run)
    return worker

"""What all parts of one hook process use, and its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from winboot.node.run import Stop
from winboot.operations.hook.metrics import Log, Metrics
from winboot.operations.hook.pace import Pace
from winboot.operations.hook.work import NodeWork
from winboot.operations.hook.work_queue import WorkQueue
from winboot.remote.cloud.base import HookNeeds, HookQueue
from winboot.remote.cluster.base import Cluster
from winboot.remote.cluster.claims import Claimant, Leases


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds, except `workers` (joins at a time), `minders` (heartbeat threads) and `gone_after`. That counts looks,
    or deliveries, after which an instance that the cloud does not list is gone, and failures after which a message is
    left to the queue.

    `sweep` lies between two looks at machines that join by themselves, also those that no message names: None for none.
    `look` lies between two looks of the scheduler; after `again` seconds it tries what could not be done.
    """

    workers: int = 8
    visibility: int = 120
    heartbeat: float = 30.0
    pause: float = 5.0
    gone_after: int = 5
    idle: float | None = None
    sweep: float | None = None
    minders: int = 4
    look: float = 1.0
    again: float = 15.0

    def needs(self, work: NodeWork, claim: float) -> HookNeeds:
        """What the hooks of a group must allow: a message that no worker keeps comes again, and a claim that no worker renews
        expires."""
        return HookNeeds(
            takeover=self.heartbeat + self.visibility + claim + self.again,
            join=work.join_timeout,
            drain=work.drain_timeout,
            workers=self.workers,
        )


@dataclass(slots=True, kw_only=True)
class Shared:
    """The ways to cloud, machines and cluster, and the items that all parts work on."""

    queue: HookQueue
    work: NodeWork
    claimant: Claimant
    leases: Callable[[Cluster], Leases]
    stop: Stop
    settings: Settings = Settings()
    metrics: Metrics = field(default_factory=Metrics)
    log: Log = field(default_factory=Log)
    pace: Pace = field(default_factory=Pace)
    items: WorkQueue = field(init=False)

    def __post_init__(self) -> None:
        self.items = WorkQueue(self.log, self.metrics, self.pace.now)

"""Evicting the pods of one node over lightkube, by kubectl drain's rules, and naming what keeps one from going."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from lightkube import Client
from lightkube.exceptions import ApiError
from lightkube.models.meta_v1 import DeleteOptions, ObjectMeta
from lightkube.resources.core_v1 import Pod

from winboot.base.errors import ClusterUnreachable
from winboot.remote.cluster.base import Drained, DrainRules, PodFacts, Wait
from winboot.remote.cluster.calls import Calls
from winboot.remote.cluster.failures import status_of

_POLL_S: Final = 2.0
# After a budget's refusal winboot tries again after this long, and then twice as long each time.
_FIRST_BACKOFF_S: Final = 2.0
_LONGEST_BACKOFF_S: Final = 30.0
_PAGE: Final = 500
_MISSING: Final = 404
_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(slots=True)
class _Refused:
    """Why one pod did not go the last time, and when winboot evicts it again."""

    why: str
    pause: float
    again: float


@dataclass(slots=True)
class Draining:
    """One drain of one node."""

    client: Client
    call: Calls
    node: str
    rules: DrainRules
    clock: Callable[[], float] = time.monotonic
    _evicted: dict[str, None] = field(default_factory=dict)
    _refused: dict[str, _Refused] = field(default_factory=dict)

    def pods(self) -> list[PodFacts]:
        """The pods that a drain would evict."""
        return [_facts(pod) for pod in self.call(f"listing the pods of {self.node}", self._evictable)]

    def images(self) -> list[str]:
        """The images of pods that have not ended, DaemonSets' and mirror pods' too."""
        pods = self.call(f"listing the pods of {self.node}", self._all)
        return sorted({image for pod in pods if not _ended(pod) for image in _images(pod)})

    def runs_containers(self) -> bool:
        """Whether one of the node's pods, DaemonSets' and mirror pods too, runs a container."""
        return any(_runs(pod) for pod in self.call(f"listing the pods of {self.node}", self._all))

    def run(self, *, timeout: float, wait: Wait) -> Drained:
        """Evict, asking again while a disruption budget or the API server says not yet, until no pod is left or the time is
        over. Nothing is evicted where the rules keep one: as kubectl drain does. Where the API server is away at the end,
        those are left that were there when it answered last."""
        there = self.pods()
        kept = tuple(self._kept(there))
        if kept:
            return Drained((), kept)
        seen, end = [pod.name for pod in there], self.clock() + timeout
        while True:
            try:
                pods = self._look()
            except ClusterUnreachable:
                if end - self.clock() <= 0 or wait(_POLL_S):
                    return self._ended(seen)
                continue
            seen = [full_name(pod.metadata) for pod in pods]
            for pod in pods:
                self._ask(pod)
            left = end - self.clock()
            if not pods or left <= 0 or wait(min(_POLL_S, left)):
                return self._ended(seen)

    def _kept(self, pods: Iterable[PodFacts]) -> Iterable[tuple[str, str]]:
        for pod in pods:
            if pod.unmanaged and not self.rules.unmanaged:
                yield pod.name, "no controller re-creates the pod (--force evicts it anyway)"
            elif pod.emptydir and not self.rules.emptydir:
                yield pod.name, "its emptyDir volumes would be lost (--delete-emptydir-data allows this)"

    def _ask(self, pod: Pod) -> None:
        """Ask for an eviction, unless it was granted, or refused a moment ago."""
        key = full_name(pod.metadata)
        before = self._refused.get(key)
        if key in self._evicted or (before is not None and self.clock() < before.again):
            return
        problem = self._evict(pod)
        if problem is None:
            self._evicted[key] = None
            return
        pause = _FIRST_BACKOFF_S if before is None else min(2 * before.pause, _LONGEST_BACKOFF_S)
        self._refused[key] = _Refused(problem, pause, self.clock() + pause)

    def _ended(self, seen: Iterable[str]) -> Drained:
        """What became of the pods; of those seen last where no API server answers now."""
        try:
            left = {key: self._reason(key) for key in (full_name(pod.metadata) for pod in self._look())}
        except ClusterUnreachable as error:
            left = dict.fromkeys(seen, f"its present state is unknown: {error.problem}")
        # One whose eviction got no answer, and that is gone, has been evicted as well.
        asked = dict.fromkeys((*self._evicted, *self._refused))
        return Drained(tuple(key for key in asked if key not in left), tuple(left.items()))

    def _reason(self, key: str) -> str:
        if key in self._evicted:
            return "its containers have not ended"
        return self._refused[key].why if key in self._refused else "the pod is new"

    def _look(self) -> list[Pod]:
        return self.call.once(f"listing the pods of {self.node}", self._evictable)

    def _evictable(self) -> list[Pod]:
        return [pod for pod in self._all() if not _stays(pod)]

    def _all(self) -> list[Pod]:
        return list(
            self.client.list(Pod, namespace="*", fields={"spec.nodeName": self.node}, chunk_size=_PAGE)
        )

    def _evict(self, pod: Pod) -> str | None:
        """Ask for one eviction; the reason when it cannot be done for now.

        A disruption budget that forbids it is a 429 whose causes name the budget, several budgets for one pod are a 500:
        https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works and
        checkAndDecrement of kubernetes' pkg/registry/core/pod/storage/eviction.go.
        """
        metadata = pod.metadata or ObjectMeta()
        name, namespace = metadata.name or "", metadata.namespace or ""
        options = None if self.rules.grace is None else DeleteOptions(gracePeriodSeconds=self.rules.grace)
        eviction = Pod.Eviction(metadata=ObjectMeta(name=name, namespace=namespace), deleteOptions=options)
        try:
            self.call.once(
                f"evicting {namespace}/{name}",
                lambda: self._create(eviction, name, namespace),
            )
        except ClusterUnreachable as error:
            cause = error.__cause__
            return _words(cause) or error.problem if isinstance(cause, ApiError) else error.problem
        return None

    def _create(self, eviction: Any, name: str, namespace: str) -> None:
        try:
            self.client.create(eviction, name, namespace=namespace)
        except httpx2.HTTPStatusError as error:
            # Gone already.
            if status_of(error) != _MISSING:
                raise


def _words(error: ApiError) -> str:
    """What the API server says, with its causes: they name the budget."""
    details = error.status.details
    causes = (details.causes if details is not None else None) or []
    return " ".join(filter(None, (error.status.message, *(cause.message for cause in causes))))


def _facts(pod: Pod) -> PodFacts:
    owners: Iterable[Any] = (pod.metadata.ownerReferences if pod.metadata is not None else None) or ()
    volumes = (pod.spec.volumes if pod.spec is not None else None) or []
    return PodFacts(
        full_name(pod.metadata),
        unmanaged=not any(owner.controller for owner in owners),
        emptydir=any(volume.emptyDir is not None for volume in volumes),
    )


def _stays(pod: Pod) -> bool:
    """Pods that a drain leaves: those of DaemonSets, mirror pods, and those that have ended."""
    metadata = pod.metadata
    owners: Iterable[Any] = (metadata.ownerReferences if metadata is not None else None) or ()
    annotations = (metadata.annotations if metadata is not None else None) or {}
    return _ended(pod) or _MIRROR in annotations or any(o.kind == "DaemonSet" for o in owners)


def _ended(pod: Pod) -> bool:
    return pod.status is not None and pod.status.phase in ("Succeeded", "Failed")


def _images(pod: Pod) -> Iterable[str]:
    spec = pod.spec
    containers = [] if spec is None else [*(spec.initContainers or ()), *(spec.containers or ())]
    return (one.image for one in containers if one.image)


def _runs(pod: Pod) -> bool:
    """Whether a container of it runs. A pod that is Running without a word about its containers is taken to have one."""
    status = pod.status
    if status is None:
        return False
    init = [*(status.initContainerStatuses or ()), *(status.ephemeralContainerStatuses or ())]
    if status.phase == "Running" and not status.containerStatuses:
        return True
    told = [*(status.containerStatuses or ()), *init]
    return any(one.state is not None and one.state.running is not None for one in told)


def full_name(metadata: ObjectMeta | None) -> str:
    """namespace/name."""
    return f"{metadata.namespace or ''}/{metadata.name or ''}" if metadata is not None else "/"

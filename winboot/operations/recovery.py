"""Repair that asks the cloud: a fresh system disk (reimage), or another machine in its place (replace).

    drain → the cloud's own operation → delete the Node → wait until the machine answers → (the caller joins it)

Killed anywhere, the same command begins again; after the cloud's operation `winboot join` alone is enough. The Node goes
after the machine, so that the old kubelet cannot register it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from winboot.base.errors import Interrupted, NodeFailed, NotDone, TransportError, UsageError, WinbootError
from winboot.base.retry import retried
from winboot.config.node_spec import NodeSpec
from winboot.node.drain import drain
from winboot.remote.cloud.base import CloudHost, Provider
from winboot.remote.cluster.base import Cluster, NodeFacts, Wait

Depth = Literal["reimage", "replace"]
Say = Callable[[str, str], None]
# A Windows image boots, runs its first-boot scripts and restarts once or twice.
ANSWERS_S: Final = 1800.0
ASKS_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is going to be done to one machine. `node` is None where the cluster has no Node of it."""

    spec: NodeSpec
    provider: Provider
    host: CloudHost
    node: NodeFacts | None
    depth: Depth

    @property
    def name(self) -> str:
        """The name of the Node."""
        return self.spec.node.name

    @property
    def steps(self) -> tuple[str, ...]:
        """The plan, a sentence for each thing that happens."""
        own = f"{self.host.id} ({self.host.state})"
        group = self.host.group
        cloud = {
            "reimage": f"reimage {own}: a fresh system disk; all data on it is lost, id and address stay",
            "replace": f"delete {own}: {group} starts another machine with a new name and address",
        }[self.depth]
        return (
            *(("drain the Node",) if self.node is not None else ()),
            cloud,
            *(("delete the Node",) if self.node is not None else ()),
            "wait until the machine answers, and join it"
            if self.depth == "reimage"
            else "your next step: join the new machine (a cloud inventory or `winboot hook serve` finds it)",
        )


@dataclass(frozen=True, slots=True)
class Means:
    """What a recovery needs from outside. `answers` raises TransportError while the machine cannot be reached."""

    cluster: Cluster | None
    answers: Callable[[NodeSpec], object]
    wait: Wait
    say: Say
    drain_timeout: float = 600.0
    answers_s: float = ANSWERS_S


def planned(
    specs: Sequence[NodeSpec],
    depth: Depth,
    machine_of: Callable[[str], tuple[Provider, CloudHost]],
    cluster: Callable[[NodeSpec], Cluster | None],
) -> list[Recovery]:
    """Find each machine in its cloud; nothing is changed. Raises NotDone for one whose provider id is unknown, or that
    cannot be recovered this way, before any machine is touched."""
    found = []
    for spec in specs:
        reached = cluster(spec)
        node = reached.node(spec.node.name) if reached is not None else None
        provider_id = spec.machine.provider_id or (node.provider_id if node is not None else "")
        if not provider_id:
            raise NotDone(
                f"{spec.node.name}: neither the inventory nor the Node has the machine's provider id",
                hint="Set the host's `provider_id` in the inventory, or use a cloud inventory (pool.aws.yaml).",
            )
        provider, host = machine_of(provider_id)
        _refuse_what_the_cloud_cannot(provider, host, depth)
        found.append(Recovery(spec, provider, host, node, depth))
    return found


def _refuse_what_the_cloud_cannot(provider: Provider, host: CloudHost, depth: Depth) -> None:
    if depth == "reimage" and provider.name == "aws":
        raise NotDone(f"{host.id}: EC2 does not reimage instances", hint="`--by replace` starts another one.")
    if depth == "replace" and host.data.get("orchestration") == "flexible":
        raise NotDone(
            f"{host.name} is in the Flexible scale set {host.group}: winboot replaces only instances of Uniform scale sets",
            hint="Use `--by reimage`.",
        )
    if depth == "replace" and not host.group:
        raise NotDone(
            f"{host.name} belongs to no group or scale set: nothing would start another machine",
            hint="Use `--by reimage`." if provider.name == "azure" else "Start another machine and join it.",
        )


def recover(one: Recovery, means: Means) -> None:
    """Do it to one machine. Raises NodeFailed where pods are left or the machine does not come back; then the Node stays
    cordoned or is gone, and the same command begins again."""
    if one.node is not None and means.cluster is not None:
        means.say(one.name, "draining")
        drain(means.cluster, one.name, timeout=means.drain_timeout, wait=means.wait)
    _in_the_cloud(one, means)
    if one.node is not None and means.cluster is not None:
        means.cluster.delete_node(one.name)
        means.say(one.name, "the Node is deleted")
    if one.depth == "reimage":
        _wait_for(one, means)


def _in_the_cloud(one: Recovery, means: Means) -> None:
    lifecycle = one.provider.lifecycle()
    means.say(one.name, f"winboot asks the cloud to {one.depth} it")
    if one.depth == "replace":
        lifecycle.replace(one.host)
        return
    protected = _protected(one)
    try:
        lifecycle.reimage(one.host)
    finally:
        if protected:
            # It is the reimage's failure that the reader must see.
            with suppress(WinbootError):
                lifecycle.protect(one.host, protected=False)


def _protected(one: Recovery) -> bool:
    """Keep a scale-in away meanwhile, where the machine's kind knows such a thing and it has not been done already."""
    if one.host.data.get("protected") and not one.host.data.get("protected_by_winboot"):
        return False
    try:
        one.provider.lifecycle().protect(one.host, protected=True)
    except UsageError:
        return False
    return True


def _wait_for(one: Recovery, means: Means) -> None:
    def wait(seconds: float) -> None:
        means.say(one.name, "waiting until the machine answers")
        if means.wait(seconds):
            raise Interrupted(
                f"{one.name}: interrupted: the machine was reimaged and does not answer yet",
                hint="When the machine answers, run `winboot join`.",
                node=one.name,
            )

    try:
        retried(lambda: means.answers(one.spec), means.answers_s, pause=ASKS_S, sleep=wait)
    except TransportError as error:
        raise NodeFailed(
            f"{one.name}: reimaged, but the machine does not answer: {error.problem}",
            hint="When the machine answers, run `winboot join`. " + error.hint,
            node=one.name,
        ) from error

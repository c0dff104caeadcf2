"""A cloud as winboot sees it: the protocols, and the values that pass them.

Every value is frozen and holds plain data: an SDK's object never leaves the module that imports the SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from winboot.base.secret import Secret
from winboot.config.inventory.cloud_name import ProviderName

# What a machine does, in the words of both clouds put on one list.
State = Literal["pending", "running", "stopping", "stopped", "terminated", "unknown"]
# Waits so many seconds; True means: stop waiting for good (`winboot.node.run.Stop.wait` is one).
Wait = Callable[[float], bool]


@dataclass(frozen=True, slots=True)
class Query:
    """Which machines. `filters` are the provider's own filters (name → values, any of them); `ids` are exact.

    `scopes` narrows an Azure query to resource groups; AWS has none. Both empty: every machine of the account there.
    """

    ids: tuple[str, ...] = ()
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudHost:
    """One machine as the cloud describes it; nothing in it is secret.

    `id` is the instance id or the ARM id; `group` the scaling group or scale set it belongs to, empty for none.
    `host_name` is the name the operating system has, where the cloud knows it. `data` is the cloud's own description
    in the words that Ansible's plugin of that cloud uses (`instance_type`, `placement`, `tags`): what `compose` and
    `keyed_groups` see.
    """

    provider: ProviderName
    id: str
    name: str
    state: State
    region: str
    zone: str
    private_ip: str
    windows: bool
    tags: Mapping[str, str] = field(default_factory=dict)
    private_dns: str = ""
    public_ip: str = ""
    public_dns: str = ""
    host_name: str = ""
    instance_type: str = ""
    image: str = ""
    group: str = ""
    launched: datetime | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """A machine's identity in the cluster: what controller and kubelet must agree on."""

    node_name: str
    provider_id: str
    node_ip: str
    region: str
    zone: str
    instance_type: str


@dataclass(frozen=True, slots=True)
class PodRoute:
    """A route to the pods of one node. `target` is what it goes to; a blackholed one goes nowhere."""

    table: str
    destination: str
    target: str
    blackhole: bool = False


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Whether the cloud's network lets a machine's pods speak: `forwards` is false while it drops packets that are not
    the machine's own (AWS source/destination check on, Azure IP forwarding off). `routes` are those to its pods."""

    forwards: bool
    routes: tuple[PodRoute, ...] = ()


class Lifecycle(Protocol):
    """What may be done to a machine as a whole. Each call returns when the cloud has accepted it; `wait_done` waits.

    A provider that cannot do one raises UsageError that says so.
    """

    def reimage(self, host: CloudHost) -> None:
        """Give it a fresh system disk from its image; id and address stay."""
        ...

    def replace(self, host: CloudHost) -> None:
        """End it so that its group starts another; UsageError for a machine without a group."""
        ...

    def protect(self, host: CloudHost, *, protected: bool) -> None:
        """Keep its group from ending it (scale-in and repairs) while it is worked on, or no longer."""
        ...


class Provider(Protocol):
    """One cloud, one account. Every method may be called from any thread.

    All failures are `winboot.base.errors.CloudError` or below it.
    """

    @property
    def name(self) -> ProviderName:
        """Which cloud it is."""
        ...

    def account(self) -> str:
        """The account or subscription, for the cache's key and for messages."""
        ...

    def hosts(self, query: Query) -> Iterator[CloudHost]:
        """The machines, page after page."""
        ...

    def host(self, id: str) -> CloudHost | None:
        """One machine by its id; None where the cloud has no such machine (any more)."""
        ...

    def identity(self, host: CloudHost) -> NodeIdentity:
        """Its identity in the cluster, by the rules of the cloud's own controller manager."""
        ...

    def password(self, host: CloudHost, key: Path, *, timeout: float, wait: Wait) -> Secret | None:
        """The administrator's first password, decrypted with a private key; None in a cloud that has no such thing.

        Waits up to `timeout` seconds while the machine still boots; CloudError names it after that.
        """
        ...

    def forwarding(self, host: CloudHost, pod_cidrs: tuple[str, ...]) -> Forwarding:
        """How the cloud's network treats its pods; changes nothing."""
        ...

    def ensure_forwarding(self, host: CloudHost, pod_cidrs: tuple[str, ...]) -> tuple[str, ...]:
        """Make it forward and route; gives a sentence for each change. Called only for `routes: winboot`."""
        ...

    def lifecycle(self) -> Lifecycle:
        """What may be done to machines as a whole."""
        ...


# What the cloud asks for. The first two wait for an answer: a machine is to be let in, or let go. `drain`: the cloud
# removes it at a time; `cordon`: the cloud may remove it, or has begun to; `gone`: it has ended.
ActionKind = Literal["launch", "terminate", "drain", "cordon", "gone"]


@dataclass(frozen=True, slots=True)
class HookAction:
    """What happens to one machine, `instance`, and to those of `also`.

    `hook` is the hook that waits, or in words what the cloud has noticed; `until` the end of the notice, None where the
    cloud says none. A `final` one takes the machine away for good; after one that `returns` it comes back by itself.
    """

    kind: ActionKind
    instance: str
    group: str
    hook: str
    token: str = ""
    until: datetime | None = None
    also: tuple[str, ...] = ()
    final: bool = False
    returns: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """A message without work in it, and why. One that is not `understood` may be meant for another program, or be newer than
    winboot."""

    reason: str
    understood: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A message as a queue delivered it. `handle` is what deletes it, `received` how often it was delivered; `id` stays the
    same when it is delivered again, with another handle."""

    handle: str
    action: HookAction | Nothing
    received: int = 1
    id: str = ""


# Where a machine is for its group: it waits to be let in, or to be prepared for a warm pool. Or it ends; it is in the
# group, and nothing waits; no group lists it.
Stage = Literal["starts", "warms", "ends", "stays", "unlisted"]


@dataclass(frozen=True, slots=True)
class HookNeeds:
    """What a worker needs of a group's hooks. Seconds, but for `workers`: the joins that go on at a time. `takeover` lies
    between the last heartbeat of a worker that was killed and the first of the one that follows it."""

    takeover: float
    join: float
    drain: float
    workers: int


class HookQueue(Protocol):
    """Where a cloud says that machines come and go, and where it waits for the answer."""

    @property
    def abandoned_ends(self) -> bool:
        """Whether a machine that starts and is answered with ABANDON is ended by its group."""
        ...

    def receive(self, most: int, visibility: int) -> list[Message]:
        """Wait a while for messages. They are not delivered again for `visibility` seconds."""
        ...

    def extend(self, message: Message, seconds: int) -> None:
        """Keep a message from being delivered again."""
        ...

    def delete(self, message: Message) -> None:
        """Delete a message; the last thing that is done."""
        ...

    def stage(self, action: HookAction) -> Stage:
        """Where the machine is now."""
        ...

    def begin(self, action: HookAction) -> None:
        """The machine is worked on from now on: keep the cloud's own repairs and scale-in away from it."""
        ...

    def heartbeat(self, action: HookAction) -> bool:
        """Ask for more time; False where the cloud no longer waits for it."""
        ...

    def unfit(self, group: str, needs: HookNeeds) -> list[str]:
        """What of the group's own limits cannot be met, a sentence with the numbers each."""
        ...

    def complete(self, action: HookAction, result: str) -> bool:
        """Answer CONTINUE or ABANDON; False where the cloud no longer waits for it."""
        ...


# The scheme of a provider id, `aws:///eu-west-1a/i-0abc`: case counts for AWS, not for Azure (ARM ids have none).
def same_provider_id(one: str, other: str) -> bool:
    """Whether two provider ids mean one machine. ARM ids have no case (cloud-provider-azure:pkg/provider/azure_vmss.go)."""
    if one.startswith("azure://"):
        return one.lower() == other.lower()
    return bool(one) and one == other

"""Proof of which machine calls, in addition to vouchers: the word of its cloud.

AWS is there. Azure's attested data fits the same interface: a kind, and the machine's identity or why winboot does
not believe it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from winboot.operations.firstboot.hello import Hello, Refusal
from winboot.remote.cloud.aws_identity import Certificates, Document, Flaw
from winboot.remote.cloud.base import CloudHost

# EC2 says when an instance was last started in two places; they differ by seconds.
_SAME_START: Final = timedelta(minutes=5)
# How long after its start an instance may still become a node: Windows needs minutes, and an endpoint may be away for a while.
OLDEST: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Proven:
    """Which machine it is: its instance in the cloud, which the inventory knows by the provider id, and since when it runs."""

    instance: str
    provider_id: str
    # None where the cloud does not say it.
    started: datetime | None = None


class Proof(Protocol):
    """One way for a machine to prove itself without a secret."""

    @property
    def kind(self) -> str:
        """What the machine is to ask its metadata service for: `aws`."""
        ...

    def prove(self, hello: Hello, *, known: bool) -> Proven | Refusal:
        """Its identity. `known`: it was let in before, from the same address. Raises CloudError."""
        ...


class Instances(Protocol):
    """What of EC2 a proof is held against; `winboot.remote.cloud.aws.AwsCloud` is one."""

    @property
    def regions(self) -> tuple[str, ...]:
        """Where the inventory has machines."""
        ...

    def account_id(self) -> str:
        """The number of our account."""
        ...

    def host(self, id: str) -> CloudHost | None:
        """An instance; None where it is not our own."""
        ...


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class AwsProof:
    """EC2's signed document, and the place: the call comes from the instance's own private address.

    The document alone would be worth little: any process that reads the metadata service of any of our instances has
    one, pods included, and keeps it. The address cannot be had from elsewhere in a VPC. `owns` says whether tags are
    the cluster's.
    """

    instances: Instances
    owns: Callable[[Mapping[str, str]], bool]
    certificates: Certificates = field(default_factory=Certificates.read)
    oldest: timedelta = OLDEST
    now: Callable[[], datetime] = _now

    @property
    def kind(self) -> str:
        """`aws`."""
        return "aws"

    def prove(self, hello: Hello, *, known: bool) -> Proven | Refusal:
        """See `Proof.prove`. winboot asks EC2 last: AWS signs the documents of all customers' instances, not only of
        our own."""
        document = self.certificates.document(hello.document, self.now())
        if isinstance(document, Flaw):
            return Refusal(document.id, document.why)
        refusal = next(self._strangeness(document, hello), None)
        if refusal is not None:
            return refusal
        host = self.instances.host(document.instance)
        if host is None:
            # DescribeInstances may not have an instance that was started seconds ago (EC2 API, "Eventual consistency").
            why = f"EC2 has no instance {document.instance} in winboot's account (yet)"
            return Refusal("UnknownInstance", why, wait=True)
        refusal = next(self._differences(document, host, known), None)
        return refusal or Proven(host.id, f"aws:///{host.zone}/{host.id}", host.launched)

    def _strangeness(self, document: Document, hello: Hello) -> Iterator[Refusal]:
        """What the document itself says otherwise."""
        ours = self.instances.account_id()
        if document.account != ours:
            yield Refusal(
                "AnotherAccount",
                f"the instance belongs to the account {document.account}, but winboot uses the account {ours}",
            )
        if document.region not in self.instances.regions:
            regions = ", ".join(self.instances.regions)
            why = f"the instance is in {document.region}, but the inventory has {regions}"
            yield Refusal("AnotherRegion", why)
        if document.address != hello.peer:
            why = f"the machine calls from {hello.peer}, but its instance has the address {document.address}"
            yield Refusal("AnotherAddress", f"{why}: NAT is not supported (docs/first-boot.md)")

    def _differences(self, document: Document, host: CloudHost, known: bool) -> Iterator[Refusal]:
        """What EC2 says otherwise."""
        if host.state not in ("pending", "running"):
            yield Refusal("InstanceEnded", f"the instance {host.id} is {host.state}")
        if host.private_ip != document.address:
            why = f"EC2 has {host.id} at {host.private_ip}, but its identity document at {document.address}"
            yield Refusal("AnotherAddress", why)
        if not self.owns(host.tags):
            yield Refusal("AnotherCluster", f"the instance {host.id} has no tag of this cluster")
        if host.launched is None:
            return
        if abs(document.pending - host.launched) > _SAME_START:
            why = f"the identity document is from {document.pending:%Y-%m-%d %H:%M} UTC, but {host.id} started at"
            yield Refusal("OldProof", f"{why} {host.launched:%Y-%m-%d %H:%M} UTC")
        if not known and self.now() - host.launched > self.oldest:
            hours = self.oldest.total_seconds() / 3600
            why = f"the instance {host.id} started more than {hours:.0f} h ago"
            yield Refusal("TooLate", f"{why}: stop and start the instance, or replace it")

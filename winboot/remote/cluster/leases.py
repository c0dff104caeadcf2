"""Leases of coordination.k8s.io over lightkube; see `winboot.remote.cluster.claims`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

import httpx2
from lightkube import Client
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease

from winboot.base.errors import ClusterConflict, ClusterRefused
from winboot.remote.cluster.claims import Claim
from winboot.remote.cluster.failures import status_of, translated
from winboot.remote.cluster.proxies import Proxy

_LABELS: Final = {"app.kubernetes.io/managed-by": "winboot", "winboot.io/kind": "claim"}
_RUN: Final = "winboot.io/run"
_OURS: Final = "winboot.io/"
_NOT_IN_A_NAME: Final = re.compile(r"[^a-z0-9.-]")


class LightkubeLeases:
    """Leases in one namespace.

    Each call is made once, unlike the others (`calls`). A write without an answer would meet itself as a conflict the
    second time. A holder of claims asks again anyway, at its own pace: a session renews every quarter of its
    duration. A claim is tried for a minute (`Ownership`); a fleet's worker looks every two seconds.
    """

    def __init__(self, client: Client, server: str, namespace: str, proxy: Proxy | None = None) -> None:
        self._client = client
        self._server = server
        self._proxy = proxy
        self._namespace = namespace

    def read(self, node: str) -> Claim | None:
        """See `Leases`."""
        with translated(f"reading the claim on {node}", self._server, self._proxy):
            try:
                return _claim(node, self._client.get(Lease, _name(node), namespace=self._namespace))
            except httpx2.HTTPStatusError as error:
                if status_of(error) == 404:
                    return None
                raise

    def create(self, claim: Claim) -> Claim:
        """See `Leases`."""
        with translated(f"claiming {claim.node}", self._server, self._proxy):
            try:
                return _claim(claim.node, self._client.create(self._lease(claim), namespace=self._namespace))
            except httpx2.HTTPStatusError as error:
                if status_of(error) != 404:
                    raise
        raise ClusterRefused(
            f"claiming {claim.node}: the cluster has no namespace {self._namespace}",
            hint="`winboot manifests operator` prints this namespace and the rights for claims.",
        )

    def renew(self, claim: Claim) -> Claim:
        """See `Leases`."""
        with translated(f"renewing the claim on {claim.node}", self._server, self._proxy):
            try:
                return _claim(claim.node, self._client.replace(self._lease(claim)))
            except httpx2.HTTPStatusError as error:
                if status_of(error) != 404:
                    raise
        # Taken over, worked on and given back, while we slept.
        raise ClusterConflict(f"the claim on {claim.node} no longer exists", hint="Another worker took it.")

    def delete(self, node: str) -> None:
        """See `Leases`."""
        with translated(f"giving back {node}", self._server, self._proxy):
            try:
                self._client.delete(Lease, _name(node), namespace=self._namespace)
            except httpx2.HTTPStatusError as error:
                if status_of(error) != 404:
                    raise

    def all(self) -> list[Claim]:
        """See `Leases`."""
        with translated("listing the claims", self._server, self._proxy):
            found = self._client.list(Lease, namespace=self._namespace, labels=dict(_LABELS))
            return [_claim(_node(one.metadata.name or ""), one) for one in found if one.metadata is not None]

    def _lease(self, claim: Claim) -> Lease:
        metadata = ObjectMeta(
            name=_name(claim.node),
            namespace=self._namespace,
            labels={**_LABELS, **({_RUN: claim.run} if claim.run else {})},
            annotations=dict(claim.notes),
            resourceVersion=claim.version or None,
        )
        now = datetime.now(UTC)
        spec = LeaseSpec(
            acquireTime=claim.acquired or now,
            # Given back is without a holder, as client-go's leader election has it (leaderelection.go, release).
            holderIdentity=claim.holder or None,
            leaseDurationSeconds=claim.duration,
            leaseTransitions=claim.transitions,
            renewTime=now,
        )
        return Lease(metadata=metadata, spec=spec)


def _name(node: str) -> str:
    kind, _, name = node.rpartition("/")
    return f"{kind or 'node'}-{_NOT_IN_A_NAME.sub('-', name.lower())}"


def _node(name: str) -> str:
    """What `_name` made this of; every name of a Node is written in lower case."""
    kind, _, rest = name.partition("-")
    return rest if kind == "node" else f"{kind}/{rest}"


def _claim(node: str, lease: Any) -> Claim:
    spec, metadata = lease.spec or LeaseSpec(), lease.metadata
    return Claim(
        node=node,
        holder=spec.holderIdentity or "",
        duration=spec.leaseDurationSeconds or 0,
        transitions=spec.leaseTransitions or 0,
        version=metadata.resourceVersion or "",
        run=(metadata.labels or {}).get(_RUN, ""),
        notes={key: text for key, text in (metadata.annotations or {}).items() if key.startswith(_OURS)},
        acquired=spec.acquireTime,
    )

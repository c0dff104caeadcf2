"""What a cluster keeps about a node in addition to its Node: certificate requests and the kubelet's Lease."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from lightkube import Client
from lightkube.resources.certificates_v1 import CertificateSigningRequest
from lightkube.resources.coordination_v1 import Lease

from winboot.remote.cluster.base import Belonging
from winboot.remote.cluster.calls import Calls
from winboot.remote.cluster.failures import status_of
from winboot.remote.cluster.rights import NODE_LEASES

_MISSING: Final = 404


@dataclass(frozen=True, slots=True)
class Belongings:
    """Finds and deletes them; `requests` names those of a node."""

    client: Client
    call: Calls
    requests: Callable[[str], list[str]]

    def of(self, node: str) -> tuple[Belonging, ...]:
        """All that is there now."""
        lease = self.call(
            f"reading the Lease of {node}",
            lambda: _unless_missing(lambda: self.client.get(Lease, node, namespace=NODE_LEASES)),
        )
        return (
            *(Belonging("certificate request", name) for name in self.requests(node)),
            *([Belonging("lease", f"{NODE_LEASES}/{node}")] if lease is not None else []),
        )

    def delete(self, one: Belonging) -> None:
        """Delete one; that it is gone already is fine."""
        name = one.name.rpartition("/")[2]

        def delete() -> Any:
            match one.kind:
                case "certificate request":
                    return self.client.delete(CertificateSigningRequest, name)
                case "lease":
                    return self.client.delete(Lease, name, namespace=NODE_LEASES)

        self.call(f"deleting {one}", lambda: _unless_missing(delete))


def _unless_missing(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except httpx2.HTTPStatusError as error:
        if status_of(error) == _MISSING:
            return None
        raise

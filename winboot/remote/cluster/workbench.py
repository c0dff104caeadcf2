"""A place to try things in a cluster: a namespace, pods and services in it, and what runs in the pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Thing = Mapping[str, Any]  # an object as the API has it


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command in a container has ended: its exit code, and what it said on both outputs."""

    code: int
    output: str
    errors: str = ""


class Workbench(Protocol):
    """What is done with pods and services. All failures are `winboot.base.errors.ClusterError` or below it."""

    def make(self, thing: Thing) -> Thing:
        """Create an object and give it as the API has it. One of this name that is there already is given as it is."""
        ...

    def listed(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> Sequence[Thing]:
        """All objects of a kind (`Pod`), in one namespace or everywhere, with these labels."""
        ...

    def remove(self, thing: Thing) -> None:
        """Delete an object that `make` has given; that it is gone already is fine."""
        ...

    def remove_namespace(self, name: str) -> bool:
        """Delete a namespace with all that is in it, and wait for nothing; False where it did not exist."""
        ...

    def execute(self, namespace: str, pod: str, command: Sequence[str], *, timeout: float) -> Ran:
        """Run a command in a pod's container, for `timeout` seconds at most."""
        ...

    def logs(self, namespace: str, pod: str) -> str:
        """What a pod's container has written."""
        ...

    def forward(self, namespace: str, pod: str, port: int, request: bytes, *, timeout: float) -> bytes:
        """Send a request to a port of a pod through the API server; what came back until the pod closed, or the header and
        something of a body."""
        ...

"""A document as rules read it: rows by subject, and the few questions that several rules ask."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from winboot.operations.doctor.document import ApiView, Document, Expected, NodeView


@dataclass(frozen=True, slots=True)
class Subject:
    """One node's facts, with the documents of its siblings. A subject that was not read has no rows."""

    document: Document
    siblings: Sequence[Document]

    @property
    def expected(self) -> Expected:
        """What the profile wants."""
        return self.document.expected

    @property
    def api(self) -> ApiView | None:
        """The cluster's side; None if it was not asked or did not answer."""
        return self.document.api

    @property
    def node(self) -> NodeView | None:
        """The Node object; None if it is missing or unknown."""
        return self.api.node if self.api is not None else None

    def rows(self, name: str) -> Sequence[dict[str, Any]]:
        """The rows of a subject."""
        return self.document.machine.get(name, ())

    def was_read(self, name: str) -> bool:
        """Whether the machine answered about this subject without a problem."""
        return name in self.document.machine and name not in self.document.problems

    def one(self, name: str) -> dict[str, Any] | None:
        """The only row of a subject."""
        return next(iter(self.rows(name)), None)

    def service(self, name: str) -> dict[str, Any] | None:
        """The definition of a service."""
        return next((one for one in self.rows("known") if one["name"] == name), None)

    def runs(self, name: str) -> bool:
        """Whether a service runs."""
        found = self.service(name)
        return found is not None and found["state"] == "Running"

    def is_sick(self, name: str) -> bool:
        """Whether a service does not run, or ended without being asked in the last day."""
        if not self.document.login:
            return self.node is not None and not self.node.ready
        ends = next((one["ends"] for one in self.rows("services") if one["name"] == name), 0)
        return self.was_read("known") and (not self.runs(name) or ends > 0)

    def signature(self, id: str, *services: str) -> int:
        """How many lines of these services' logs contain a known text; of all services if none is named."""
        return sum(
            one["count"]
            for one in self.rows("signatures")
            if one["id"] == id and (not services or one["service"] in services)
        )

    def events(self, *ids: int) -> dict[str, int]:
        """How often these events came, by the service that they name."""
        found: dict[str, int] = {}
        for one in self.rows("events"):
            if one["id"] in ids:
                found[str(one["subject"])] = found.get(str(one["subject"]), 0) + one["count"]
        return found

    def network(self) -> dict[str, Any] | None:
        """The HNS network that the profile names."""
        name = self.expected.network.lower()
        return next((one for one in self.rows("networks") if name and str(one["name"]).lower() == name), None)

    def others(self) -> list[str]:
        """The names of the HNS networks that the profile does not name."""
        name = self.expected.network.lower()
        return [str(one["name"]) for one in self.rows("networks") if str(one["name"]).lower() != name]

    def pods(self) -> list[dict[str, Any]]:
        """The HNS endpoints of pods: those of the pod network that are not the host's own."""
        network = self.network()
        subnets = network["subnets"] if network is not None else ()
        return [
            one
            for one in self.rows("endpoints")
            if one["state"] == 3 and any(within(str(one["address"]), subnet) for subnet in subnets)
        ]

    @property
    def taken(self) -> datetime:
        """When the facts were read, by the cluster's clock if it answered."""
        return datetime.fromisoformat(self.document.taken)


def within(address: str, cidr: str) -> bool:
    """Whether an address is in a network; False for texts that are neither."""
    try:
        return ipaddress.ip_address(address.partition("/")[0]) in ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False

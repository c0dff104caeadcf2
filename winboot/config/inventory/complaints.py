"""What is wrong with an inventory, gathered while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from winboot.config import compat
from winboot.config.source import Complaint, Place, Table, locate


@dataclass(slots=True)
class Complaints:
    """All complaints so far, in the order of the checks."""

    all: list[Complaint] = field(default_factory=list)

    def found(self, node: Table, path: tuple[str, ...], findings: list[compat.Finding]) -> None:
        """The compatibility data's findings as complaints at a path."""
        place = locate(node, path)
        self.all += [one.complaint(place, ".".join(path)) for one in findings]

    def complain(
        self, place: Place, path: str, wrong: str, expected: str = "", did_you_mean: str = ""
    ) -> None:
        """An error."""
        self.all.append(Complaint(place, path, wrong, expected, did_you_mean))

    def warn(self, place: Place, path: str, wrong: str, expected: str) -> None:
        """Something worth knowing."""
        self.all.append(Complaint(place, path, wrong, expected, level="warning"))

"""One answer of the compatibility data: how bad, about what, why, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from winboot.config.source import Complaint, Place

Level = Literal["error", "warning", "info"]
Reason = Literal[
    "unknown",
    "misspelled",
    "not-yet",
    "removed",
    "deprecated",
    "linux-only",
    "ignored",
    "must-be-off",
    "fails-on-windows",
    "wrong-value",
    "locked",
    "needs",
    "unsafe",
    "no-effect",
    "moved",
    "unsupported",
    "untested",
    "known-bad",
    "end-of-life",
    "newer-than-data",
    "missing-update",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """`error` refuses, `warning` continues and says so, `info` only informs. `source` is an address to read on."""

    level: Level
    id: Reason
    about: str
    reason: str
    instead: str = ""
    source: str = ""
    expected: str = ""
    did_you_mean: str = ""

    def __str__(self) -> str:
        expected = f"; expected {self.expected}" if self.expected else ""
        instead = f"; instead: {self.instead}" if self.instead else ""
        return f"{self.about}: {self.reason}{expected}{instead}"

    def complaint(self, place: Place, path: str) -> Complaint:
        """The same of a place in a file."""
        return Complaint(
            place,
            path,
            f"{self.about}: {self.reason}",
            self.expected,
            self.did_you_mean,
            self.level,
            source=self.source,
            instead=self.instead,
        )

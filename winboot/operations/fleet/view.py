"""What the claims of one place say of one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from winboot.base.foreign import Malformed, decoded
from winboot.node.fleet.ownership import OK
from winboot.remote.cluster.claims import RESULT, SESSIONS, Claim

# The claim of a run itself: its holder lets the nodes in.
RUNS: Final = "fleet/"
# Up to which wave nodes may be begun: a node's wave is its place in the order of the run, from 1 on.
WAVE: Final = "winboot.io/wave"
# The order of the run: places in the order of the inventory, as a JSON list; missing where it is the same.
ORDER: Final = "winboot.io/order"
# Why nothing new begins any more.
STOPPED: Final = "winboot.io/stopped"
# When the first worker began, an ISO 8601 time by its clock.
STARTED: Final = "winboot.io/started"
# Which try of the run: what has failed in an earlier one is begun again.
ATTEMPT: Final = "winboot.io/attempt"
_PLACES: Final = msgspec.json.Decoder(list[int])


@dataclass(frozen=True, slots=True)
class RunId:
    """A run, and which try of it this is, from 1 on."""

    name: str
    attempt: int = 1

    @property
    def key(self) -> str:
        """What its own claim is kept as: each try is let in again."""
        return f"{RUNS}{self.name}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class View:
    """All claims as they were at one moment, read for one run."""

    run: RunId
    claims: Mapping[str, Claim] = field(default_factory=dict)

    @classmethod
    def of(cls, run: RunId, claims: Iterable[Claim]) -> View:
        """These claims by what they are on."""
        return cls(run, {claim.node: claim for claim in claims})

    @property
    def release(self) -> Claim | None:
        """The claim of the run."""
        return self.claims.get(self.run.key)

    @property
    def wave(self) -> int:
        """Up to which wave nodes may be begun."""
        return number(self.release, WAVE)

    @property
    def stopped(self) -> str:
        """Why nothing new begins; empty while something may."""
        return self.release.notes.get(STOPPED, "") if self.release is not None else ""

    def order(self, nodes: Sequence[str]) -> list[str]:
        """These nodes of the inventory in the order of the run."""
        return ordered(self.release, nodes)

    def result(self, node: str) -> str:
        """What became of a node in this run; empty while that is not known. What has failed in an earlier try is not."""
        claim = self.claims.get(node)
        if claim is None or claim.run != self.run.name or claim.holder:
            return ""
        result = claim.notes.get(RESULT, "")
        return result if result == OK or number(claim, ATTEMPT) == self.run.attempt else ""

    def sessions(self) -> list[Claim]:
        """The processes of this run, those that are gone, too."""
        return [
            claim
            for claim in self.claims.values()
            if claim.node.startswith(SESSIONS) and claim.run == self.run.name
        ]


def number(claim: Claim | None, note: str) -> int:
    """A number that a claim notes; 0 where it notes none."""
    text = claim.notes.get(note, "") if claim is not None else ""
    return int(text[:18]) if text.isascii() and text.isdigit() else 0


def ordered(claim: Claim | None, nodes: Sequence[str]) -> list[str]:
    """The nodes in the order that the claim of a run notes, where it is one of all of them."""
    text = claim.notes.get(ORDER, "") if claim is not None else ""
    if not text:
        return list(nodes)
    try:
        places = decoded(_PLACES, text)
    except Malformed:
        return list(nodes)
    if sorted(places) != list(range(len(nodes))):
        return list(nodes)
    return [nodes[place] for place in places]


def newest(run: str, claims: Iterable[Claim]) -> View:
    """What these claims say of the last try of a run that a worker has begun; of the first one where none has."""
    claims = list(claims)
    begun = [number(claim, ATTEMPT) for claim in claims if claim.node.startswith(RUNS) and claim.run == run]
    return View.of(RunId(run, max(begun, default=1)), claims)

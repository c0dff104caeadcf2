"""Claims on nodes: one worker at a time, taken over only from one that no longer moves."""

from __future__ import annotations

from dataclasses import replace

from winboot.base.errors import ClusterConflict
from winboot.remote.cluster.claims import Claim, Claimant


class Store:
    """Leases in memory, with the API server's versions."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self._version = 0

    def read(self, node: str) -> Claim | None:
        return self.claims.get(node)

    def create(self, claim: Claim) -> Claim:
        if claim.node in self.claims:
            raise ClusterConflict(f"{claim.node} exists")
        return self._put(claim)

    def renew(self, claim: Claim) -> Claim:
        there = self.claims.get(claim.node)
        if there is None or there.version != claim.version:
            raise ClusterConflict(f"{claim.node} has changed")
        return self._put(claim)

    def delete(self, node: str) -> None:
        self.claims.pop(node, None)

    def _put(self, claim: Claim) -> Claim:
        self._version += 1
        self.claims[claim.node] = replace(claim, version=str(self._version))
        return self.claims[claim.node]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_two_workers_never_hold_one_node() -> None:
    store, clock = Store(), Clock()
    one, two = Claimant("one", clock), Claimant("two", clock)

    assert one.take(store, "n") is not None
    assert two.take(store, "n") is None
    # A second message about the same machine, in the same process.
    assert one.take(store, "n") is None
    store.delete("n")
    assert two.take(store, "n") is not None


def test_a_claim_that_still_moves_is_never_taken_over() -> None:
    store, clock = Store(), Clock()
    one, two = Claimant("one", clock), Claimant("two", clock)
    held = one.take(store, "n")
    for _ in range(5):
        assert held is not None and two.take(store, "n") is None
        clock.now += 60
        held = store.renew(held)


def test_a_claim_that_stood_still_is_taken_over_and_the_former_holder_notices() -> None:
    store, clock = Store(), Clock()
    one, two = Claimant("one", clock), Claimant("two", clock)
    old = one.take(store, "n")
    assert old is not None and two.take(store, "n") is None
    clock.now += 89
    assert two.take(store, "n") is None
    clock.now += 1

    new = two.take(store, "n")

    assert new is not None and (new.holder, new.transitions) == ("two", 1)
    try:
        store.renew(old)
    except ClusterConflict:
        return
    raise AssertionError("the former holder renewed a claim that is another's")

"""Claims by Lease have one holder at a time, also if a holder is slower, paused or killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cluster.conftest import Scene, Time
from winboot.base.errors import ClusterConflict, ClusterError, ClusterRefused
from winboot.remote.cluster.claims import NAMESPACE, RESULT, SESSION, SESSIONS, Claim, Claimant, Leases
from winboot.remote.cluster.sessions import Session

Places = Callable[[], Leases]


@pytest.fixture
def place(scene: Scene) -> Places:
    """Ways to the same claims, as two processes have them."""
    scene.admin("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return lambda: scene.cluster.leases(NAMESPACE)


def a_session(leases: Leases, time: Time, name: str = "one") -> Session:
    """A process that renews by hand."""
    return Session(
        leases, Claimant(name, time.clock, duration=60, run=name), name, time.clock, by_itself=False
    )


def test_what_is_written_is_read_and_listed(place: Places) -> None:
    written = place().create(Claim("win-1", "me", 60, run="r", notes={RESULT: "ok"}))

    assert place().read("win-1") == written
    assert list(place().all()) == [written]
    assert (written.holder, written.duration, written.run, written.notes) == ("me", 60, "r", {RESULT: "ok"})
    assert written.acquired is not None and written.version
    assert place().read("win-2") is None


def test_a_second_claim_on_a_node_is_refused(place: Places) -> None:
    place().create(Claim("win-1", "me", 60))

    with pytest.raises(ClusterConflict):
        place().create(Claim("win-1", "you", 60))


def test_only_a_writer_with_the_last_version_may_write_the_next(place: Places) -> None:
    old = place().create(Claim("win-1", "me", 60))
    new = place().renew(replace(old, holder="you", transitions=1))

    with pytest.raises(ClusterConflict):
        place().renew(old)
    assert place().read("win-1") == new


def test_a_claim_that_was_given_back_and_taken_again_is_not_its_former_holders(place: Places) -> None:
    old = place().create(Claim("win-1", "me", 60))
    place().delete("win-1")
    assert place().read("win-1") is None and list(place().all()) == []
    with pytest.raises(ClusterConflict):
        place().renew(old)
    new = place().create(Claim("win-1", "you", 60))

    with pytest.raises(ClusterConflict):
        place().renew(old)
    assert place().read("win-1") == new
    place().delete("win-2")


def test_one_of_many_concurrent_claims_on_a_node_wins(place: Places) -> None:
    """First all create it, then all replace the same version."""
    barrier, there = threading.Barrier(8), place().create(Claim("win-2", "nobody", 60))
    won: list[str] = []

    def want(number: int) -> None:
        mine = place()
        for write in (
            lambda: mine.create(Claim("win-1", str(number), 60)),
            lambda: mine.renew(replace(there, holder=str(number))),
        ):
            barrier.wait()
            try:
                won.append(write().node)
            except ClusterConflict:
                continue

    threads = [threading.Thread(target=want, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(won) == ["win-1", "win-2"]


def test_a_node_costs_two_writes_however_long_the_work_lasts(place: Places) -> None:
    time = Time()
    session = a_session(leases := Counted(place()), time)
    held = session.take("win-1")
    assert held is not None
    before = leases.writes
    for _ in range(10):
        time.wait(30)
        session.renew()
    assert leases.writes - before == 10

    assert session.give_back(held, "ok")

    assert leases.writes - before == 11
    there = place().read("win-1")
    assert there is not None and (there.holder, there.notes) == ("", {RESULT: "ok"})


def test_a_released_node_is_claimed_at_once_without_a_takeover(place: Places) -> None:
    time = Time()
    one, two = a_session(place(), time), a_session(place(), time, "two")
    held = one.take("win-1")
    assert held is not None and two.take("win-1") is None and one.take("win-1") is None
    one.give_back(held, "failed:Unreachable")

    held = two.take("win-1")

    assert held is not None and (held.claim.holder, held.claim.taken_over) == ("two", False)


def test_a_process_that_is_gone_loses_all_its_nodes_after_its_session(place: Places) -> None:
    """They are taken over one after the other, without waiting for each."""
    time = Time()
    one, two = a_session(place(), time), a_session(place(), time, "two")
    assert one.take("win-1") and one.take("win-2")
    assert two.take("win-1") is None
    time.wait(59)
    assert two.take("win-1") is None
    time.wait(1)

    taken = [two.take("win-1"), two.take("win-2")]

    assert [(held.claim.taken_over, held.claim.transitions) for held in taken if held] == [(True, 1)] * 2


def test_a_session_that_moves_keeps_its_nodes(place: Places) -> None:
    time = Time()
    one, two = a_session(place(), time), a_session(place(), time, "two")
    assert one.take("win-1")
    for _ in range(5):
        assert two.take("win-1") is None
        time.wait(50)
        one.renew()
    assert two.take("win-1") is None
    one.close()

    held = two.take("win-1")

    assert held is not None and held.claim.taken_over


def test_a_paused_worker_learns_which_nodes_are_anothers(place: Places) -> None:
    time, told = Time(), list[str]()
    one, two = a_session(place(), time), a_session(place(), time, "two")
    lost, kept = one.take("win-1"), one.take("win-2")
    assert lost is not None and kept is not None
    lost.lost = told.append
    assert two.take("win-1") is None
    time.wait(60)
    assert two.take("win-1") is not None

    one.renew()

    assert (told, lost.taken_by, kept.taken_by) == (["two"], "two", None)
    assert (one.give_back(lost, "ok"), one.give_back(kept, "ok")) == (False, True)
    there = place().read("win-1")
    assert there is not None and there.holder == "two"


def test_a_paused_worker_looks_at_its_nodes_though_its_session_is_still_there(
    place: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder that takes a node over may end before it removes the session."""
    time, others = Time(), place()
    one, two = a_session(place(), time), a_session(others, time, "two")
    held = one.take("win-1")
    assert held is not None and two.take("win-1") is None
    time.wait(60)
    monkeypatch.setattr(others, "delete", cut_off)
    with pytest.raises(ClusterError):
        two.take("win-1")

    one.renew()

    assert held.taken_by == "two"


def cut_off(node: str) -> None:
    """In place of `delete`."""
    raise ClusterError("cut off")


def test_a_worker_that_wakes_up_before_its_session_writes_does_not_release_anothers_node(
    place: Places,
) -> None:
    time = Time()
    one, two = a_session(place(), time), a_session(place(), time, "two")
    held = one.take("win-1")
    assert held is not None and two.take("win-1") is None
    time.wait(60)
    assert two.take("win-1") is not None

    assert (one.give_back(held, "ok"), held.taken_by) == (False, "two")


def test_by_force_a_node_is_taken_from_a_live_holder_and_no_other_node(place: Places) -> None:
    time = Time()
    one, two = a_session(place(), time), a_session(place(), time, "two")
    assert one.take("win-1") and one.take("win-2")

    held = two.take("win-1", by_force=True)

    assert held is not None and held.claim.taken_over
    assert two.take("win-2") is None


def test_a_session_names_its_run_and_leaves_nothing(place: Places) -> None:
    one = a_session(place(), Time())
    held = one.take("win-1", {"winboot.io/provider-id": "aws:///i-1"})
    assert held is not None
    assert {claim.node: claim.run for claim in place().all()} == {"win-1": "one", "session/one": "one"}
    assert held.claim.notes == {"winboot.io/provider-id": "aws:///i-1", SESSION: "session/one"}
    one.give_back(held, "ok", leave=False)
    one.close()

    assert list(place().all()) == []


def test_a_cluster_without_the_namespace_says_so(scene: Scene) -> None:
    with pytest.raises(ClusterRefused, match="no namespace winboot-system"):
        scene.cluster.leases(NAMESPACE).create(Claim("win-1", "me", 60))


class Counted:
    """Counts what is written."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self.writes = 0
        self.read, self.all = leases.read, leases.all

    def create(self, claim: Claim) -> Claim:
        self.writes += 1
        return self._leases.create(claim)

    def renew(self, claim: Claim) -> Claim:
        self.writes += 1
        return self._leases.renew(claim)

    def delete(self, node: str) -> None:
        self.writes += 1
        self._leases.delete(node)


def test_a_claim_of_this_sessions_own_that_it_does_not_hold_is_taken_again(place: Places) -> None:
    """The answer to a write was lost. The session lives, so that no other one would ever take it."""
    leases, time = place(), Time()
    session = a_session(leases, time)
    held = session.take("win-1")
    assert held is not None
    assert session.take("win-1") is None
    session.drop(held)

    assert a_session(leases, time, "two").take("win-1") is None
    assert session.take("win-1") is not None


def test_a_session_whose_first_answer_was_lost_is_this_ones(place: Places) -> None:
    leases = place()
    leases.create(Claim(f"{SESSIONS}one", "one", 60, run="one"))

    assert a_session(leases, Time()).take("win-1") is not None

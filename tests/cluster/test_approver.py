"""The thread that settles certificate requests survives whatever it meets, and says it once."""

from __future__ import annotations

import threading
from typing import Any

from winboot.base.errors import ClusterError, ClusterUnreachable
from winboot.remote.cluster.approver import Approver
from winboot.remote.cluster.base import ExpectedNode, Verdict


class Answers:
    """A cluster that answers from a list: verdicts, or an error to raise; the last answer stays."""

    def __init__(self, *answers: tuple[Verdict, ...] | Exception) -> None:
        self.answers = list(answers)
        self.expected: list[ExpectedNode] = []
        self.asked = threading.Semaphore(0)

    def settle_requests(self, expected: ExpectedNode) -> tuple[Verdict, ...]:
        self.expected.append(expected)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.asked.release()
        if isinstance(answer, Exception):
            raise answer
        return answer


REFUSED = Verdict("csr-1", "serving", approved=False, reasons=("no",))


def watch(cluster: Any, times: int, *nodes: ExpectedNode) -> Approver:
    """An approver that has asked so many times, and has ended."""
    wanted = iter(nodes)
    last = ExpectedNode("win-1")
    with Approver(cluster, "win-1", lambda: next(wanted, last), poll=0.001) as approver:
        for _ in range(times):
            assert cluster.asked.acquire(timeout=10)
    return approver


def test_an_unforeseen_error_is_reported_and_the_next_look_continues() -> None:
    """Once a ValueError ended the thread, and the kubelet waited for its certificate without end."""
    cluster = Answers(ValueError("not an address"), (REFUSED,))

    refusals = watch(cluster, 3).refusals

    assert len(refusals) == 2
    assert "a bug in winboot itself: ValueError: not an address" in refusals[0]
    assert refusals[1] == "serving certificate request csr-1: no"


def test_a_cluster_that_cannot_be_asked_is_reported_once() -> None:
    cluster = Answers(ClusterError("away"))

    assert watch(cluster, 4).refusals == ("winboot cannot read certificate requests: away",)


def test_what_is_expected_is_asked_each_time() -> None:
    """The machine says its address only when it is worked on."""
    cluster = Answers(())
    known = ExpectedNode("win-1", addresses=frozenset({"10.0.1.11"}))

    watch(cluster, 2, ExpectedNode("win-1"), known)

    assert cluster.expected[:2] == [ExpectedNode("win-1"), known]


def test_an_api_server_that_was_away_for_a_moment_is_not_worth_a_word() -> None:
    away = ClusterUnreachable("no answer")

    assert watch(Answers(away, ()), 3).refusals == ()
    assert watch(Answers((), away), 3).refusals == ("winboot cannot read certificate requests: no answer",)

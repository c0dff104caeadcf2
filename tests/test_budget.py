"""The budget of a run: which nodes may begin, which wait, and when no further node begins."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from winboot.base.errors import BudgetUsedUp, ClusterUnreachable, Interrupted, UsageError
from winboot.cli.pace import Pacing
from winboot.node.fleet import Budget, Share
from winboot.node.fleet.budget import Pace, cause_of
from winboot.node.run import Stop
from winboot.report.events import Problem
from winboot.report.results import Failure, NodeReport, StepReport

NODES = [f"win-{number}" for number in range(1, 11)]


@dataclass
class World:
    """A clock that stands still, the Nodes that are down, and a thread for each node that wants to begin."""

    now: float = 0.0
    down: dict[str, str] = field(default_factory=dict)
    away: bool = False
    asked: int = 0
    stop: Stop = field(default_factory=Stop)

    def unavailable(self) -> Mapping[str, str]:
        self.asked += 1
        if self.away:
            raise ClusterUnreachable("the API server does not answer")
        return dict(self.down)

    def pace(self, budget: Budget, groups: Mapping[str, str] | None = None) -> Pace:
        return Pace(budget, NODES, groups or {}, self.unavailable, self.stop, clock=lambda: self.now)


def report(node: str, *, problem: str = "", ready: bool | None = True, failure: str = "") -> NodeReport:
    step = StepReport(
        "artifacts", "failed" if problem else "ok", problem=Problem(problem, "") if problem else None
    )
    lost = Failure(failure, "", "", 69) if failure else None
    return NodeReport(node, "10.0.0.1", "2022", steps=(step,), ready=ready, failure=lost)


def waits(pace: Pace, node: str) -> str | None:
    """What the node waits for right now; None when it was let in."""
    return pace._waits_for(node)


def test_without_a_budget_no_node_waits_and_the_cluster_gets_no_request() -> None:
    world = World()
    pace = world.pace(Budget())

    for node in NODES:
        assert waits(pace, node) is None
    for node in NODES:
        pace.ended(report(node, problem="DiskFull"))

    assert (world.asked, waits(pace, NODES[0])) == (0, None)


def test_the_others_wait_for_the_canary_and_begin_when_it_is_ready() -> None:
    pace = World().pace(Budget(canary=Share(1)))

    assert waits(pace, "win-1") is None
    assert waits(pace, "win-2") == "winboot starts with the canary win-1"
    pace.ended(report("win-1"))

    assert waits(pace, "win-2") is None


def test_of_several_canaries_all_go_first() -> None:
    pace = World().pace(Budget(canary=Share(2)))
    for canary in ("win-1", "win-2"):
        assert waits(pace, canary) is None

    pace.ended(report("win-1"))
    assert waits(pace, "win-3") == "winboot starts with the canary win-1, win-2"
    pace.ended(report("win-2"))

    assert waits(pace, "win-3") is None


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (report("win-1", problem="DiskFull"), "the canary win-1 ended as failed"),
        (report("win-1", failure="LoginRefused"), "the canary win-1 ended as failed"),
        (report("win-1", ready=False), "the canary win-1 is not Ready"),
    ],
)
def test_a_canary_that_is_not_ready_ends_the_run(ended: NodeReport, reason: str) -> None:
    pace = World().pace(Budget(canary=Share(1)))
    waits(pace, "win-1")
    pace.ended(ended)

    with pytest.raises(BudgetUsedUp, match=reason) as refused:
        waits(pace, "win-2")

    assert (refused.value.exit_code, refused.value.node) == (4, "win-2")


def test_the_others_begin_once_the_canary_is_ready() -> None:
    pace = World().pace(Budget(canary=Share(10, percent=True)))
    waits(pace, "win-1")
    assert waits(pace, "win-2") == "winboot starts with the canary win-1"

    pace.ended(report("win-1"))

    assert waits(pace, "win-2") is None


def test_of_a_group_only_so_many_are_under_way_at_once() -> None:
    groups = {node: "a" if number < 5 else "b" for number, node in enumerate(NODES)}
    pace = World().pace(Budget(max_unavailable=Share(2)), groups)

    assert [waits(pace, node) is None for node in NODES] == [True, True, False, False, False] * 2
    pace.ended(report("win-1"))

    assert waits(pace, "win-3") is None
    assert waits(pace, "win-4") == "in the group a only 2 may be unavailable at once: win-2, win-3"


def test_nodes_that_are_down_already_take_the_places_of_their_group() -> None:
    """Hosts of the group that are not part of this run count, too."""
    world = World(down={"other": "cordoned", "elsewhere": "NotReady"})
    pace = world.pace(
        Budget(max_unavailable=Share(2)), {**dict.fromkeys((*NODES, "other"), "a"), "elsewhere": "b"}
    )

    assert waits(pace, "win-1") is None
    assert waits(pace, "win-2") == "in the group a only 2 may be unavailable at once: other, win-1"


def test_a_node_that_is_down_already_may_be_begun_when_the_places_are_taken() -> None:
    world = World(down={"win-1": "NotReady", "win-2": "NotReady", "win-3": "NotReady"})
    pace = world.pace(Budget(max_unavailable=Share(2)), dict.fromkeys(NODES, "a"))

    assert waits(pace, "win-1") is None
    assert waits(pace, "win-4") is not None


def test_nothing_begins_where_nodes_outside_the_run_have_all_places() -> None:
    world = World(down={"other": "NotReady"})
    pace = world.pace(Budget(max_unavailable=Share(1)), dict.fromkeys((*NODES, "other"), "a"))

    with pytest.raises(BudgetUsedUp, match="in the group a only 1 may be unavailable, and other is NotReady"):
        waits(pace, "win-1")


def test_a_node_that_ended_keeps_its_place_until_the_cluster_was_asked_again() -> None:
    """It may have become NotReady by what was done to it."""
    world = World()
    pace = world.pace(Budget(max_unavailable=Share(1)), dict.fromkeys(NODES, "a"))
    assert waits(pace, "win-1") is None
    world.now, world.down = 1, {"win-1": "NotReady"}
    pace.ended(report("win-1", ready=False))
    world.away = True

    assert waits(pace, "win-2") == "in the group a only 1 may be unavailable at once: win-1"
    world.now, world.away = 2, False
    with pytest.raises(BudgetUsedUp, match="win-1 is NotReady"):
        waits(pace, "win-2")


def test_a_share_of_unavailable_nodes_needs_a_cluster_that_answers_once() -> None:
    with pytest.raises(ClusterUnreachable):
        waits(World(away=True).pace(Budget(max_unavailable=Share(1))), "win-1")


@pytest.mark.parametrize(
    ("borne", "failures", "over"), [(0, 1, True), (1, 1, False), (1, 2, True), (2, 2, False)]
)
def test_so_many_failed_nodes_are_borne_and_no_more(borne: int, failures: int, over: bool) -> None:
    pace = World().pace(Budget(max_failed=Share(borne)))
    for number, node in enumerate(NODES[:failures]):
        waits(pace, node)
        pace.ended(report(node, problem=f"Problem{number}"))

    if over:
        with pytest.raises(BudgetUsedUp, match=f"failed, but --max-failed allows only {borne}"):
            waits(pace, "win-9")
    else:
        assert waits(pace, "win-9") is None


def test_the_same_failure_three_times_in_a_row_ends_the_run() -> None:
    pace = World().pace(Budget(max_failed=Share(100, percent=True)))
    for node in NODES[:3]:
        waits(pace, node)
        pace.ended(report(node, problem="DownloadFailed"))

    with pytest.raises(
        BudgetUsedUp, match=r"win-1, win-2, win-3 .* the same reason, artifacts: DownloadFailed"
    ):
        waits(pace, "win-4")


def test_two_causes_in_turn_are_not_the_same_failure() -> None:
    pace = World().pace(Budget(max_failed=Share(9)))
    for number, node in enumerate(NODES[:6]):
        waits(pace, node)
        pace.ended(report(node, problem="DiskFull" if number % 3 else "DownloadFailed"))

    assert waits(pace, "win-9") is None


def test_a_success_between_them_breaks_the_row() -> None:
    pace = World().pace(Budget(max_failed=Share(9)))
    for node, problem in zip(NODES, ("A", "A", "", "A"), strict=False):
        waits(pace, node)
        pace.ended(report(node, problem=problem))

    assert waits(pace, "win-9") is None


def test_after_the_deadline_nothing_new_begins_and_what_runs_continues() -> None:
    world = World()
    pace = world.pace(Budget(deadline=3600))
    assert waits(pace, "win-1") is None
    world.now = 3600

    with pytest.raises(BudgetUsedUp, match="win-2: not started: the deadline has passed"):
        waits(pace, "win-2")


def test_a_node_that_was_not_begun_ends_nothing() -> None:
    """Its own report of a budget that is used up is not one more failure."""
    pace = World().pace(Budget(max_failed=Share(0)))
    pace.ended(report("win-5", failure="BudgetUsedUp"))

    assert waits(pace, "win-1") is None


def test_what_waits_is_woken_by_what_ends() -> None:
    pace = World().pace(Budget(canary=Share(1)))
    pace.begin("win-1")
    begun = threading.Event()

    def second() -> None:
        pace.begin("win-2")
        begun.set()

    thread = threading.Thread(target=second, daemon=True)
    thread.start()
    pace.ended(report("win-1"))
    thread.join(30)

    assert begun.is_set()


def test_what_waits_ends_with_the_run() -> None:
    world = World()
    pace = world.pace(Budget(canary=Share(1)))
    pace.begin("win-1")
    world.stop.request()

    with pytest.raises(Interrupted, match="win-2: interrupted before the start of this node"):
        pace.begin("win-2")


@pytest.mark.parametrize(
    ("node", "cause"),
    [
        (report("a"), ""),
        (report("a", problem="DiskFull"), "artifacts: DiskFull"),
        (report("a", failure="LoginRefused"), "LoginRefused"),
    ],
)
def test_the_cause_is_the_step_and_its_problem_or_the_error(node: NodeReport, cause: str) -> None:
    assert cause_of(node) == cause


@pytest.mark.parametrize(
    ("share", "count", "least", "nodes"),
    [
        (Share(3), 10, 0, 3),
        (Share(25, percent=True), 10, 0, 2),
        (Share(5, percent=True), 10, 0, 0),
        (Share(5, percent=True), 10, 1, 1),
        (Share(100, percent=True), 7, 0, 7),
    ],
)
def test_parts_of_a_node_do_not_count(share: Share, count: int, least: int, nodes: int) -> None:
    assert share.of(count, least=least) == nodes


NOON = datetime(2026, 11, 24, 12, 0, 30)


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        ({}, Budget()),
        ({"canary": "1"}, Budget(canary=Share(1))),
        (
            {"max_unavailable": "10%", "max_failed": "0"},
            Budget(max_unavailable=Share(10, True), max_failed=Share(0)),
        ),
        ({"deadline": "1h30m"}, Budget(deadline=5400)),
        ({"deadline": "12:01"}, Budget(deadline=30)),
        ({"deadline": "05:30"}, Budget(deadline=17 * 3600 + 29 * 60 + 30)),
        ({"deadline": "90"}, Budget(deadline=90)),
    ],
)
def test_options_are_read_as_people_write_them(options: dict[str, str], budget: Budget) -> None:
    assert Pacing(**options).budget(NOON) == budget


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"canary": "0"}, "--canary 0"),
        ({"canary": "many"}, "--canary many"),
        ({"max_unavailable": "0%"}, "--max-unavailable 0%"),
        ({"max_failed": "101%"}, "--max-failed 101%"),
        ({"max_failed": "-1"}, "--max-failed -1"),
        ({"deadline": "25:00"}, "--deadline 25:00"),
        ({"deadline": ""}, "--deadline "),
        ({"deadline": "soon"}, "--deadline soon"),
    ],
)
def test_other_words_are_refused_by_the_name_of_their_option(options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        Pacing(**options).budget()

    assert refused.value.exit_code == 64

"""Each part of the hook without the others: what it asks of cloud, machine and cluster, and which state it leads to."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.join.fakes import FakeCluster, FakeLeases, a_node
from winboot.base.errors import CloudRefused, CloudUnreachable, UsageError
from winboot.config.annotations import CORDON, MEANWHILE, OWNED
from winboot.node.run import Stop
from winboot.operations import hook
from winboot.operations.hook.heartbeat import Heartbeat, Owner
from winboot.operations.hook.item import Next, State, WorkItem
from winboot.operations.hook.launch import Launch
from winboot.operations.hook.metrics import Log
from winboot.operations.hook.notices import Notices
from winboot.operations.hook.pace import Pace
from winboot.operations.hook.receive import Receiver
from winboot.operations.hook.scheduler import Scheduler
from winboot.operations.hook.shared import Settings, Shared
from winboot.operations.hook.termination import Termination
from winboot.operations.hook.work import Outcome, Place
from winboot.remote.cloud.base import HookAction, Message, Nothing, Stage
from winboot.remote.cluster.claims import Claim, Claimant

TODAY = datetime(2026, 11, 28, tzinfo=UTC)
LAUNCH = HookAction("launch", "i-1", "pool", "starts")
END = HookAction("terminate", "i-1", "pool", "ends")
SPOT = HookAction("drain", "i-1", "pool", "spot", final=True, until=TODAY + timedelta(minutes=2))
NODE = a_node(annotations={OWNED: "{}"})
Names = list[tuple[Any, ...]]


class Later(Pace):
    """A clock that a test moves; work that was started waits until the test runs it."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.started: list[tuple[str, Callable[[], object]]] = []

    def now(self) -> float:
        return self.time

    def today(self) -> datetime:
        return TODAY

    def spawn(self, name: str, work: Callable[[], object]) -> Any:
        self.started.append((name, work))
        return SimpleNamespace(is_alive=lambda: False, join=lambda: None)


@dataclass
class Cloud:
    """Records its calls; its fields are its answers."""

    where: Stage | Exception = "starts"
    waits: bool = True
    abandoned_ends: bool = True
    answers: list[list[Message] | Exception] = field(default_factory=list)
    asked: Names = field(default_factory=list)

    def receive(self, most: int, visibility: int) -> list[Message]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stage(self, action: HookAction) -> Stage:
        if isinstance(self.where, Exception):
            raise self.where
        return self.where

    def heartbeat(self, action: HookAction) -> bool:
        self.asked.append(("heartbeat", action.instance))
        return self.waits

    def complete(self, action: HookAction, result: str) -> bool:
        self.asked.append(("complete", result))
        return True

    def __getattr__(self, name: str) -> Any:
        """extend, delete, begin."""
        return lambda *given: self.asked.append((name, *given[1:]))

    def unfit(self, group: str, needs: Any) -> list[str]:
        return []


@dataclass
class Machines:
    """One machine, `i-1`, instead of NodeWork."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    node: Any = NODE
    why: str = ""
    outcome: Outcome = field(default_factory=lambda: Outcome(True))
    listed: bool = True
    owner: str = "ours"
    ended: bool = False
    again: float = 15.0
    join_timeout: float = 2400.0
    drain_timeout: float = 600.0
    self_registering: bool = False

    def target(self, instance: str) -> Any:
        spec = SimpleNamespace(node=SimpleNamespace(name="win-1"))
        member = SimpleNamespace(host=SimpleNamespace(id=instance))
        return SimpleNamespace(member=member, spec=spec, cluster=self.cluster) if self.listed else None

    def targets(self, instances: Iterable[str] = ()) -> list[Any]:
        return [self.target(one) for one in instances if self.listed]

    def answering(self, targets: Sequence[Any]) -> dict[str, str]:
        return {one.member.host.id: self.why for one in targets}

    def launch(self, target: Any, halt: Stop, *, take_over: bool, heard: Any) -> Outcome:
        self.cluster.calls.append(("join", take_over))
        return self.outcome

    prepare = launch

    def place(self, instance: str) -> Place | None:
        return None if self.node is None else Place(self.cluster, self.node)  # type: ignore[arg-type]

    def drain(self, place: Place, seconds: float, over: Callable[[], bool]) -> str:
        self.cluster.calls.append(("drain", seconds))
        return ""

    def whose(self, instance: str) -> str:
        return self.owner

    def has_ended(self, instance: str) -> bool:
        return self.ended

    def notes(self, target: Any) -> dict[str, str]:
        return {}


class Parts:
    """What all parts share, each side of it a fake."""

    def __init__(self, cloud: Cloud | None = None, machines: Machines | None = None, **settings: Any) -> None:
        self.cloud, self.machines = cloud or Cloud(), machines or Machines()
        self.pace, self.leases, self.said = Later(), FakeLeases(), StringIO()
        self.shared = Shared(
            queue=self.cloud,
            work=self.machines,  # type: ignore[arg-type]
            claimant=Claimant("me", self.pace.now),
            leases=lambda cluster: self.leases,
            stop=Stop(),
            settings=Settings(**settings),
            log=Log(self.said),
            pace=self.pace,
        )

    def item(self, action: HookAction = LAUNCH, state: State = "waiting", **more: Any) -> WorkItem:
        """One that is held, in this state."""
        messages = {"m1": Message("h1", action, id="m1")}
        made = WorkItem(action, messages, self.pace.now(), Stop(), **more)
        self.shared.items.add(made)
        way: dict[State, tuple[State, ...]] = {"joining": ("queued", "joining")}
        for one in () if state == "waiting" else way.get(state, (state,)):
            self.shared.items.move(made, one, "test")
        return made

    def states(self) -> list[tuple[str, str]]:
        return [(one.action.kind, one.state) for one in self.shared.items.items()]


# ---- receive -------------------------------------------------------------------------------------------------------


def a_message(action: HookAction | Nothing, id_: str = "m1") -> Message:
    return Message(f"handle of {id_}", action, id=id_)


def test_a_message_becomes_an_item_and_its_copy_joins_it() -> None:
    parts = Parts(Cloud(answers=[[a_message(LAUNCH), a_message(LAUNCH, "m2")]]))
    receiver = Receiver(parts.shared, Scheduler(parts.shared))

    for message in receiver.receive():
        receiver.accept(message)

    (item,) = parts.shared.items.items()
    assert (sorted(item.messages), item.state, parts.pace.started) == (["m1", "m2"], "waiting", [])


def test_a_termination_is_begun_as_it_is_received() -> None:
    parts = Parts()

    Receiver(parts.shared, Scheduler(parts.shared)).accept(a_message(END))

    assert (parts.states(), [name for name, _ in parts.pace.started]) == (
        [("terminate", "draining")],
        ["hook-i-1"],
    )


@pytest.mark.parametrize(("understood", "deleted"), [(True, [("delete",)]), (False, [])])
def test_a_message_without_work_is_deleted_only_if_it_is_understood(understood: bool, deleted: Names) -> None:
    parts = Parts()

    Receiver(parts.shared, Scheduler(parts.shared)).accept(a_message(Nothing("a test", understood)))

    assert (parts.cloud.asked, parts.states()) == (deleted, [])


@pytest.mark.parametrize("error", [CloudUnreachable("away", hint=""), ValueError("a bug")])
def test_a_request_that_fails_ends_nothing(error: Exception) -> None:
    parts = Parts(Cloud(answers=[error]), pause=0.0)
    receiver = Receiver(parts.shared, Scheduler(parts.shared))

    assert (receiver.receive(), receiver.receives) == ([], False)


@pytest.mark.parametrize("error", [UsageError("no such queue", hint=""), CloudRefused("denied", hint="")])
def test_a_queue_that_never_answers_is_an_error_at_the_first_request_alone(error: Exception) -> None:
    parts = Parts(Cloud(answers=[error, error]), pause=0.0)
    receiver = Receiver(parts.shared, Scheduler(parts.shared))

    with pytest.raises(type(error)):
        receiver.receive(first=True)
    assert receiver.receive() == []


# ---- heartbeat -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "more", "asked"),
    [
        (LAUNCH, {"ours": True}, ["extend", "begin", "heartbeat"]),
        (LAUNCH, {"ours": False}, ["extend"]),
        (END, {"ours": True, "busy": True}, []),
        (SPOT, {"ours": True, "busy": True}, ["extend"]),
        (LAUNCH, {"ours": True, "beat_due": 9e9}, []),
    ],
    ids=["a machine that waits", "not known to be ours", "its owner keeps it", "a notice at work", "not due"],
)
def test_a_round_keeps_what_nothing_else_keeps(
    action: HookAction, more: dict[str, Any], asked: list[str]
) -> None:
    parts = Parts(minders=1)
    parts.item(action, **more)
    over = Stop()
    over.wait = lambda seconds: over.request() or True  # type: ignore[method-assign, func-returns-value]

    Heartbeat(parts.shared).run(0, over)

    assert [name for name, *_ in parts.cloud.asked] == asked


def test_a_hook_that_no_longer_waits_ends_its_join() -> None:
    parts = Parts(Cloud(waits=False))
    item = parts.item(state="joining", busy=True)
    owner = Owner(parts.shared, item, parts.leases, parts.leases.create(Claim("win-1", "me", 90)))
    owner.lost = False

    with owner:
        owner._over.request()
        parts.pace.started[0][1]()

    assert item.halt.requested and not owner.lost


def test_an_owner_that_lost_its_claim_keeps_nothing_alive() -> None:
    parts = Parts()
    item = parts.item(state="joining", busy=True)
    mine = parts.leases.create(Claim("win-1", "me", 90))
    parts.leases.renew(replace(mine, holder="another"))
    owner = Owner(parts.shared, item, parts.leases, mine)

    assert (owner.holds(), owner.lost, item.halt.requested) == (False, True, True)
    owner._loop()
    owner.release()

    assert (parts.cloud.asked, parts.leases.kept["win-1"].holder) == ([], "another")


# ---- scheduler -----------------------------------------------------------------------------------------------------


def test_the_scheduler_gives_free_workers_to_machines_that_answer_and_to_no_more() -> None:
    parts = Parts(workers=2)
    for at in range(4):
        parts.item(replace(LAUNCH, instance=f"i-{at}"), "queued", target=parts.machines.target(f"i-{at}"))

    Scheduler(parts.shared).look()

    assert [state for _, state in parts.states()] == ["joining", "joining", "queued", "queued"]
    assert len(parts.pace.started) == 2


def test_the_scheduler_asks_machines_that_boot_and_starts_nothing_for_them() -> None:
    parts = Parts(machines=Machines(why="connection refused"))
    item = parts.item()

    Scheduler(parts.shared).look()

    assert (item.state, item.reason, parts.pace.started) == ("booting", "connection refused", [])
    assert item.due == parts.pace.now() + parts.machines.again


def test_terminations_wait_for_no_worker() -> None:
    parts = Parts(workers=0)
    parts.item(END)

    Scheduler(parts.shared).look()

    assert (parts.states(), len(parts.pace.started)) == ([("terminate", "draining")], 1)


def test_a_scheduler_that_stops_starts_nothing() -> None:
    parts = Parts()
    parts.item(END)
    parts.shared.stop.request()

    Scheduler(parts.shared).look()

    assert (parts.states(), parts.pace.started) == ([("terminate", "waiting")], [])


def test_an_item_that_fails_is_tried_again_and_then_left_to_the_queue() -> None:
    parts = Parts(Cloud(where=CloudUnreachable("away", hint="")), Machines(node=None), gone_after=2)
    item = parts.item(END)
    later = []
    for _ in range(3):
        Scheduler(parts.shared).drain(item)
        parts.pace.started.pop()[1]()
        later.append((item.state, item.due - parts.pace.now()))

    assert later == [("waiting", 1.0), ("waiting", 2.0), ("failed", 0.0)]


def test_a_bug_at_one_item_ends_that_item_alone() -> None:
    parts = Parts(Cloud(where=ValueError("a bug")))
    item = parts.item(END)

    Scheduler(parts.shared).drain(item)
    parts.pace.started.pop()[1]()

    assert (item.state, parts.states()) == ("failed", [])


# ---- launch --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cloud", "machines", "state", "after", "answered"),
    [
        ({}, {}, "joining", ("done", "continue"), "CONTINUE"),
        ({}, {"outcome": Outcome(False, "no", final=True)}, "joining", ("failed", "abandon"), "ABANDON"),
        ({}, {"outcome": Outcome(False, "no")}, "joining", ("booting", ""), ""),
        ({}, {}, "waiting", ("queued", ""), ""),
        ({}, {"why": "refused"}, "waiting", ("booting", ""), ""),
        ({"where": "stays"}, {}, "waiting", ("done", "stale"), ""),
        ({"where": "unlisted"}, {}, "waiting", ("waiting", ""), ""),
        ({}, {"listed": False, "owner": "foreign"}, "waiting", ("done", "foreign"), ""),
        ({}, {"listed": False, "owner": "ours, ended"}, "waiting", ("failed", "abandon"), "ABANDON"),
    ],
    ids=["joined", "given up", "tried again", "answers", "boots", "over", "not listed", "foreign", "ended"],
)
def test_a_launch_leads_to(
    cloud: dict[str, Any], machines: dict[str, Any], state: State, after: tuple[str, str], answered: str
) -> None:
    parts = Parts(Cloud(**cloud), Machines(**machines))
    item = parts.item(state=state, busy=True)

    found = Launch(parts.shared).work(item)

    assert (found.state, found.outcome) == after
    assert [one[1] for one in parts.cloud.asked if one[0] == "complete"] == [answered] * bool(answered)
    assert parts.leases.kept == {}
    assert ("join", False) in parts.machines.cluster.calls or state != "joining"


def test_a_machine_that_another_worker_owns_is_not_joined() -> None:
    parts = Parts()
    parts.leases.create(Claim("win-1", "another", 90))

    found = Launch(parts.shared).work(parts.item(state="joining", busy=True))

    assert (found.state, parts.machines.cluster.names) == ("waiting", [])


# ---- termination ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "machines", "after", "calls", "answered"),
    [
        ("ends", {}, ("done", "continue"), ["cordon", "cordon", "drain", "delete_node"], "CONTINUE"),
        ("ends", {"node": None}, ("done", "continue"), [], "CONTINUE"),
        ("ends", {"node": None, "listed": False}, ("done", "continue"), [], "CONTINUE"),
        ("ends", {"node": None, "owner": "foreign"}, ("done", "foreign"), [], ""),
        ("stays", {}, ("done", "stale"), [], ""),
        ("unlisted", {}, ("waiting", ""), [], ""),
        (
            "unlisted",
            {"ended": True},
            ("done", "continue"),
            ["cordon", "cordon", "drain", "delete_node"],
            "CONTINUE",
        ),
    ],
    ids=[
        "drained",
        "no Node",
        "no Node, not listed",
        "foreign",
        "called off",
        "not listed yet",
        "ended already",
    ],
)
def test_a_termination_leads_to(
    where: Stage, machines: dict[str, Any], after: tuple[str, str], calls: list[str], answered: str
) -> None:
    parts = Parts(Cloud(where=where), Machines(**machines))

    found = Termination(parts.shared).work(parts.item(END, "draining", busy=True))

    assert (found.state, found.outcome) == after
    assert parts.machines.cluster.names == calls
    assert [one[1] for one in parts.cloud.asked if one[0] == "complete"] == [answered] * bool(answered)


def test_a_silent_cloud_has_the_node_cordoned_meanwhile() -> None:
    parts = Parts(Cloud(where=CloudUnreachable("away", hint="")))

    with pytest.raises(CloudUnreachable):
        Termination(parts.shared).work(parts.item(END, "draining", busy=True))

    assert parts.machines.cluster.names == ["cordon"]


def test_a_cordon_of_meanwhile_goes_if_the_end_is_called_off() -> None:
    node = a_node(annotations={OWNED: "{}", CORDON: MEANWHILE}, unschedulable=True)
    parts = Parts(Cloud(where="stays"), Machines(node=node))

    Termination(parts.shared).work(parts.item(END, "draining", busy=True))

    assert parts.machines.cluster.names == ["uncordon"]


# ---- notices -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "machines", "after", "calls"),
    [
        (SPOT, {"ended": True}, "done", [("cordon",), ("drain", 120.0), ("delete_node", "win-1")]),
        (SPOT, {}, "waiting", [("cordon",), ("drain", 120.0)]),
        (replace(SPOT, kind="cordon", final=False), {}, "done", [("cordon",)]),
        (replace(SPOT, kind="gone"), {"ended": True}, "done", [("cordon",), ("delete_node", "win-1")]),
        (SPOT, {"node": None}, "done", []),
        (SPOT, {"node": None, "owner": "foreign"}, "done", []),
    ],
    ids=["ended", "not ended yet", "may be deleted", "gone", "no Node", "foreign"],
)
def test_a_notice_leads_to(action: HookAction, machines: dict[str, Any], after: str, calls: Names) -> None:
    parts = Parts(machines=Machines(**machines))

    found = Notices(parts.shared).work(parts.item(action, "draining", busy=True))

    assert found.state == after
    assert parts.machines.cluster.calls == calls
    assert ("delete",) in parts.cloud.asked or found != Next("done", "spot", outcome="done")


def test_a_notice_ends_the_launch_of_its_machine() -> None:
    parts = Parts()
    launch = parts.item()

    Notices(parts.shared).work(parts.item(SPOT, "draining", busy=True))

    assert (launch.halt.requested, launch.ending) == (True, "the cloud removes it: spot")


# ---- their size ----------------------------------------------------------------------------------------------------


def test_no_function_of_the_hook_has_more_than_40_lines_and_no_class_more_than_250() -> None:
    limits: dict[type[ast.AST], int] = {ast.FunctionDef: 40, ast.ClassDef: 250}
    found = [
        (f"{path.name}: {node.name}", (node.end_lineno or 0) - node.lineno + 1, limits[type(node)])
        for path in sorted(Path(hook.__path__[0]).glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]

    assert len(found) > 100
    assert [one for one in found if one[1] > one[2]] == []

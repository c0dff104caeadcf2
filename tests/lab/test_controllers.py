"""Two controllers at one node: one works, the other waits, gives up, or takes over; neither undoes the other's work."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.cluster.conftest import Time
from tests.join.fakes import FakeLeases
from tests.lab.scenes import Scenes
from tests.lab.site import Controller, Killed, Site, only, problems
from tests.lab.state import expire_lost_tokens, state
from tests.lab.writes import USUAL, Writes, usual
from winboot.node.fleet import Ownership
from winboot.node.run import Patience
from winboot.report.results import Report

FENCE: Final = r"C:\ProgramData\winboot\fence.json"
DAY: Final = 86400.0


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    return Writes(monkeypatch)


class Other(threading.Thread):
    """Another administrator's `winboot join`, on another computer."""

    def __init__(self, site: Site, **options: Any) -> None:
        super().__init__(daemon=True)
        self.controller = site.controller(holder="you@desk")
        self.report: Report | None = None
        self._options = options

    def run(self) -> None:
        self.report = self.controller.join(**self._options)

    def has_said(self, words: str) -> bool:
        """Whether its user could read this by now."""
        return any(words in line for line in self.controller.ears.said)


def fence(site: Site) -> Any:
    """Whose node it is, as the node says."""
    return json.loads(site.machine.files.text(FENCE))


def in_the_middle(
    site: Site, other: Other, until: Callable[[], bool], *, at: str = "directories"
) -> Controller:
    """A controller during whose change the other one starts; it and its node continue once `until` holds."""

    def hear(line: str) -> None:
        if other.ident is None and f'"step":"{at}"' in line and mine.pipelines[-1]["Mode"] == "Change":
            other.start()
            # Time passes for the other one, but only after its thread has begun.
            assert site.machine.wait(DAY, until=lambda: until() or not other.is_alive(), pace=0.01)

    mine = site.controller(hear=hear)
    return mine


def settled(site: Site) -> bool:
    """True if the node is Ready, nothing is left to do, and no run has left a note behind."""
    site.settle(60)
    again = site.join()
    assert (problems(again), again.changed, only(again).ready) == ([], 0, True)
    found = state(site)
    assert (found["pending requests"], found["bootstrap tokens"]) == (0, 0)
    return not site.refusals


@pytest.mark.check
def test_a_second_run_learns_the_owner_of_the_node_and_gives_up_in_time(scenes: Scenes) -> None:
    site = scenes.bare("plain")
    other = Other(site, patience=Patience(poll=5.0, held=0.0))
    mine = in_the_middle(site, other, until=lambda: False)

    report = mine.join()

    assert other.report is not None
    (told,) = problems(other.report)
    assert "NodeFailed: win-1: held by another run: me@laptop, run " in told
    assert (other.report.exit_code, other.report.changed) == (1, 0)
    assert (problems(report), only(report).ready) == ([], True)
    assert settled(site)


@pytest.mark.matrix
def test_a_waiting_run_finds_the_work_done(scenes: Scenes) -> None:
    """Both end well, and the node is joined once."""
    site = scenes.bare("plain")
    other = Other(site)
    mine = in_the_middle(site, other, until=lambda: other.has_said("held by another run (me@laptop"))

    report = mine.join()
    other.join()

    assert other.report is not None
    assert (problems(report), problems(other.report)) == ([], [])
    assert (only(report).ready, only(other.report).ready) == (True, True)
    assert site.machine.boot_count == 2
    assert settled(site)


def test_a_takeover_ends_the_older_run_at_its_next_step(scenes: Scenes) -> None:
    site = scenes.bare("plain")
    other = Other(site, take_over=True)
    mine = in_the_middle(site, other, until=lambda: fence(site)["holder"] == "you@desk", at="artifacts")

    report = mine.join()
    other.join()

    assert other.report is not None
    (told,) = problems(report)
    assert "Superseded: win-1: another run has taken over this node: you@desk, run " in told
    assert report.exit_code == 75
    assert "containerd" not in {step.name for step in only(report).steps if step.state == "changed"}
    assert (problems(other.report), only(other.report).ready) == ([], True)
    assert settled(site)


@pytest.mark.matrix
def test_a_controller_that_was_paused_is_refused_by_the_node_whose_claim_another_has(
    scenes: Scenes, writes: Writes
) -> None:
    """Only the node reports that the other controller holds the claim and has raised the fence.

    The first one would renew its session much later. Nothing is done twice."""
    site, time = scenes.bare("plain"), Time()
    leases = FakeLeases()

    def owned(controller: Controller, name: str) -> Controller:
        claims = Ownership(name, controller.run, lambda spec: leases, 4000, time.clock)
        controller.context = replace(controller.context, claims=claims)
        return controller

    other = Other(site)
    owned(other.controller, "you@desk")
    said = other.controller.ears.say

    def say(node: str, text: str) -> None:
        said(node, text)
        time.wait(4000)

    other.controller.ears.say = say  # type: ignore[method-assign]
    mine = in_the_middle(site, other, until=lambda: fence(site)["holder"] == "you@desk", at="artifacts")
    owned(mine, "me@laptop")

    report = mine.join()
    other.join()

    assert other.report is not None
    assert other.has_said("held by another run (me@laptop); waiting")
    (told,) = problems(report)
    assert "Superseded: win-1: another run has taken over this node: you@desk" in told
    assert report.exit_code == 75
    assert "containerd" not in {step.name for step in only(report).steps if step.state == "changed"}
    assert (problems(other.report), only(other.report).ready) == ([], True)
    assert settled(site)
    assert writes.too_often() == {}


@pytest.mark.nightly
def test_a_controller_that_was_away_does_not_work_against_the_one_that_took_over(
    scenes: Scenes, writes: Writes
) -> None:
    """Its shell died with its connection: the node has no holder, and the next one need not wait. Nothing is done twice."""
    site = scenes.bare("plain")
    died: list[Controller] = []

    def hear(line: str) -> None:
        if not died and '"step":"artifacts"' in line and mine.pipelines[-1]["Mode"] == "Change":
            died.append(mine)
            mine.alive = False
            assert mine.session is not None
            mine.session.interrupt()

    mine = site.controller(hear=hear)
    with pytest.raises(Killed):
        mine.join()

    report = site.controller(holder="you@desk").join()

    assert died and (problems(report), only(report).ready) == ([], True)
    assert fence(site)["holder"] == "you@desk"
    expire_lost_tokens(site)
    assert settled(site)
    assert writes.too_often() == {}


@pytest.mark.matrix
def test_while_the_network_is_rewired_the_other_one_waits_for_it_too(scenes: Scenes) -> None:
    """The run on the node depends on no session."""
    site = scenes.bare("plain")
    mine = site.controller()
    others: list[Report] = []

    def hear(line: str) -> None:
        if '"event":"detached"' in line and not others:
            others.append(Report("", "", ""))
            mine.alive = False

    mine.hear = hear
    with pytest.raises(Killed):
        mine.join()
    report = site.controller(holder="you@desk").join()

    assert others
    assert (problems(report), only(report).ready) == ([], True)
    expire_lost_tokens(site)
    assert settled(site)


@pytest.mark.matrix
def test_what_a_join_that_nothing_disturbs_writes_more_than_once_is_on_the_list(
    scenes: Scenes, writes: Writes
) -> None:
    """By which the others are measured: nothing is on it that is written once."""
    site = scenes.bare("plain")

    report = site.join()

    assert (problems(report), only(report).ready) == ([], True)
    again = writes.again()
    assert {what: times for what, times in again.items() if times != usual(what)} == {}
    assert all(any(re.search(pattern, what) for what in again) for pattern in USUAL)

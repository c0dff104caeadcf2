"""Whatever breaks a join off, the next one goes on and ends in the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from tests.lab.branches import CAN_SPLIT, Branches, told
from tests.lab.scenes import Scenes
from tests.lab.site import Controller, Killed, Site, only, problems
from tests.lab.state import changes, state

pytestmark = pytest.mark.skipif(not CAN_SPLIT, reason="this system cannot copy a process")

Strike = Callable[[Controller], None]


def _dies_and_the_script_stops(controller: Controller) -> None:
    """The controller is killed, and its shell with it."""
    controller.alive = False
    raise Killed


def _dies_and_the_script_goes_on(controller: Controller) -> None:
    """The controller is killed; the node notices only later."""
    controller.alive = False


def _cut(controller: Controller) -> None:
    """The connection breaks, and the shell dies with it; the controller lives."""
    assert controller.session is not None
    controller.session.interrupt()


def _power(controller: Controller) -> None:
    """The machine loses its power for half a minute; the controller lives."""
    machine = controller.site.machine
    machine.power_off()
    machine.after(30, machine.power_on, lasting=True)


STRIKES: dict[str, Strike] = {
    "the controller is killed and its script with it": _dies_and_the_script_stops,
    "the controller is killed and its script goes on": _dies_and_the_script_goes_on,
    "the connection breaks": _cut,
    "the machine loses its power": _power,
}


class Interrupted:
    """A join that is copied at every event, or some of them; each copy is struck there and then goes on."""

    def __init__(self, site: Site, strikes: dict[str, Strike], every: int) -> None:
        self._site = site
        self._reference = _reference(site)
        self._strikes = strikes
        self._every = every
        self._branches = Branches()
        self._heard = 0
        self._copy: Callable[[object], NoReturn] | None = None

    def run(self) -> dict[str, Any]:
        """What became of each copy: an empty list where it ended as it should."""
        controller = self._site.controller()
        controller.hear = lambda line: self._hear(controller, line)
        report = controller.join()
        if self._copy is not None:
            self._copy(told(lambda: self._end(report_of=controller, problems_now=problems(report))))
        assert not problems(report)
        return self._branches.results()

    def _hear(self, controller: Controller, line: str) -> None:
        self._heard += 1
        if self._copy is not None or self._heard % self._every:
            return
        for name, strike in self._strikes.items():
            self._copy = self._branches.split(f"{name}, at line {self._heard}: {line[:90]}")
            if self._copy is not None:
                controller.at_death = self._go_on
                strike(controller)
                return

    def _go_on(self) -> None:
        """In a copy whose controller is gone: somebody runs the same command again."""
        assert self._copy is not None
        self._copy(told(lambda: self._end(report_of=None, problems_now=[])))

    def _end(self, report_of: Controller | None, problems_now: list[str]) -> list[str]:
        site = self._site
        wrong = list(problems_now)
        if report_of is None:
            again = site.join()
            wrong += problems(again)
            if not only(again).ready:
                wrong.append("not Ready")
        site.settle(60)
        last = site.join()
        wrong += [f"another join changes {last.changed}"] if last.changed else []
        wrong += [f"the lab refuses {refusal}" for refusal in site.refusals]
        return wrong + changes(self._reference, state(site))


def _reference(site: Site) -> dict[str, Any]:
    """What a join that nobody interrupts ends in: found out by a copy of the same site."""
    branches = Branches()
    end = branches.split("reference")
    if end is not None:

        def join() -> dict[str, Any]:
            site.join()
            site.settle(60)
            site.join()
            return state(site)

        end(told(join))
    found: dict[str, Any] = branches.results()["reference"]
    assert isinstance(found, dict), found
    return found


@pytest.mark.parametrize("name", STRIKES)
def test_a_join_that_breaks_off_goes_on(name: str, scenes: Scenes) -> None:
    """At some events; all of them in the nightly run."""
    results = Interrupted(scenes.bare("plain"), {name: STRIKES[name]}, every=9).run()

    assert len(results) >= 5
    assert {where: wrong for where, wrong in results.items() if wrong} == {}


@pytest.mark.nightly
def test_a_join_that_breaks_off_anywhere_goes_on(scenes: Scenes) -> None:
    """At every event, in every way."""
    results = Interrupted(scenes.bare("plain"), STRIKES, every=1).run()

    assert {where: wrong for where, wrong in results.items() if wrong} == {}

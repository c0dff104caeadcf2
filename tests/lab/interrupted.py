"""A join that is broken off at many places, each in a copy of the lab.

    python -m tests.lab.interrupted EVERY FIRST STRIKE…     at event FIRST and every EVERYth one after it

Each further strike begins some events later than the one before it, so that the places differ.

It is a separate program because a copy is made by a fork, which copies only one thread. A lock that another thread holds
at that moment stays locked in the copy. Servers of earlier tests have such threads; a fresh process has none, and the
join of the one node runs in the main thread.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn
from unittest import mock

from winboot_lab.memory import collect_rarely

from tests.lab.branches import Branches, told
from tests.lab.scenes import Scenes
from tests.lab.site import Controller, Killed, Site, only, problems
from tests.lab.state import changes, expire_lost_tokens, state
from winboot.report.results import Report

Strike = Callable[[Controller], None]
# Events between the first places of two strikes.
_APART: Final = 3


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


def _restart(controller: Controller) -> None:
    """Restart the machine during its next operation, if one follows."""
    site = controller.site

    def strike() -> None:
        if controller is site.controllers[-1]:
            site.machine.reboot()

    site.machine.faults.at_statement(40, strike)


STRIKES: dict[str, Strike] = {
    "the controller is killed and its script with it": _dies_and_the_script_stops,
    "the controller is killed and its script continues": _dies_and_the_script_goes_on,
    "the connection breaks": _cut,
    "the machine loses its power": _power,
    "an administrator restarts the machine in mid-step": _restart,
}


class Interrupted:
    """A join that is copied at every event, or some of them; each copy is struck there and then continues.

    While a task runs on the machine, in a thread of its own, no copy can be made. For those events the join runs again
    from its beginning, in a copy of the bare site, and is struck at that event.
    """

    def __init__(self, site: Site, strikes: dict[str, Strike], every: int, first: int) -> None:
        self._site = site
        self._strikes = strikes
        self._every = every
        self._first = first
        self._branches = Branches()
        self._heard = 0
        self._copy: Callable[[object], NoReturn] | None = None
        self._reference, self._with_tasks = _undisturbed(site)

    def run(self) -> dict[str, Any]:
        """What became of each copy: an empty list where it ended as it should."""
        for number in self._with_tasks:
            self._play_again(number)
        controller = self._site.controller()
        controller.hear = lambda line: self._hear(controller, line)
        report = controller.join()
        if self._copy is not None:
            self._tell(controller, report)
        assert not problems(report), problems(report)
        return self._branches.results()

    def _hear(self, controller: Controller, line: str) -> None:
        self._heard += 1
        if self._copy is not None or _a_task_runs():
            return
        for name, strike in self._due(self._heard):
            self._copy = self._branches.split(f"{name}, at line {self._heard}: {line[:90]}")
            if self._copy is not None:
                controller.at_death = self._go_on
                strike(controller)
                return

    def _due(self, number: int) -> Iterator[tuple[str, Strike]]:
        for place, (name, strike) in enumerate(self._strikes.items()):
            since = number - self._first - _APART * place
            if since >= 0 and since % self._every == 0:
                yield name, strike

    def _play_again(self, number: int) -> None:
        for name, strike in self._due(number):
            self._copy = self._branches.split(f"{name}, at line {number}, while a task runs")
            if self._copy is not None:
                controller = self._site.controller()
                controller.at_death = self._go_on
                controller.hear = partial(self._hear_again, controller, number, strike)
                self._tell(controller, controller.join())

    def _hear_again(self, controller: Controller, number: int, strike: Strike, _: str) -> None:
        self._heard += 1
        if self._heard == number:
            strike(controller)

    def _tell(self, controller: Controller, report: Report) -> NoReturn:
        assert self._copy is not None
        self._copy(told(lambda: self._end(report_of=controller, problems_now=problems(report))))

    def _go_on(self) -> None:
        """In a copy whose controller is gone: the user runs the same command again."""
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
            expire_lost_tokens(site)
        site.settle(60)
        last = site.join()
        wrong += [f"another join changes {last.changed}"] if last.changed else []
        wrong += [f"the lab refuses {refusal}" for refusal in site.refusals]
        return wrong + changes(self._reference, state(site))


def _a_task_runs() -> bool:
    """Scheduled tasks of the lab's machines have threads of their own."""
    return any(thread.name.startswith("task ") for thread in threading.enumerate())


def _undisturbed(site: Site) -> tuple[dict[str, Any], list[int]]:
    """The final state of an undisturbed join, and the lines at which a task runs: a copy finds both."""
    branches = Branches()
    end = branches.split("undisturbed")
    if end is not None:

        def join() -> tuple[dict[str, Any], list[int]]:
            lines: list[bool] = []
            site.controller(hear=lambda _: lines.append(_a_task_runs())).join()
            site.settle(60)
            site.join()
            return state(site), [number for number, busy in enumerate(lines, 1) if busy]

        end(told(join))
    found = branches.results()["undisturbed"]
    assert isinstance(found, tuple), found
    return found


def in_this_thread(items: Sequence[Any], work: Callable[[Any], Any], **_: object) -> list[Any]:
    """What `fleet.each` does, without its pool."""
    return [work(item) for item in items]


def main(arguments: list[str]) -> None:
    """Break a join off at some of its events in the ways named, and print as JSON what became of each."""
    every, first, *names = arguments
    collect_rarely()
    with tempfile.TemporaryDirectory() as folder:
        scenes = Scenes(lambda name: Path(tempfile.mkdtemp(prefix=name, dir=folder)))
        site = scenes.bare("plain")
        with mock.patch("winboot.node.fleet.each", in_this_thread):
            strikes = {name: STRIKES[name] for name in names}
            results = Interrupted(site, strikes, int(every), int(first)).run()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])

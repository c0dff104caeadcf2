"""Many machines at once, some of them in trouble: each gets its own answer, and none waits for the slowest."""

from __future__ import annotations

import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from lab_wsman.stage import FAST, MODES, Actor, says, settings, transport
from winboot_lab.wsman.executor import Ended
from winboot_lab.wsman.faults import Drop, Silence

from winboot.base.errors import Busy, TransportError, Unreachable

QUICK = dataclasses.replace(FAST, connect=2, operation=1, read=2, open=1, resume=4)


def test_forty_machines_answer_side_by_side(farm):
    """One thread for each, all logins mixed, one machine in ten misbehaves; the rest is not held up."""
    machines = [farm.add(f"win-{number:02}", says(f"I am {number}"), settings()) for number in range(40)]
    for number in (3, 13):
        for request in range(1, 30):
            machines[number].faults.at(request, Silence())
    farm.down(machines[23])
    for number in range(1, 6):
        machines[33].faults.at(number + 2, Drop(handled=True))

    def visit(number: int) -> list[str] | TransportError:
        mode = MODES[number % len(MODES)]
        with transport(farm, machines[number], mode, timeouts=QUICK) as wire:
            try:
                return list(wire.run("which machine", {}, {}))
            except TransportError as error:
                return error

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(visit, range(40)))

    for number, answer in enumerate(answers):
        if number in (3, 13, 23):
            assert isinstance(answer, Unreachable), answer
        elif number == 33:
            assert answer == ["I am 33"] or isinstance(answer, TransportError)
        else:
            assert answer == [f"I am {number}"]
    # The silent ones were given up after a few questions, not after thirty.
    assert all(len(machines[number].requests) < 10 for number in (3, 13))


def test_a_quota_is_shared_by_waiting(farm):
    """More sessions than the machine allows: the later ones wait until one ends."""
    running = threading.Semaphore(0)

    def play(script, parameters, emit, cancelled):
        running.release()
        time.sleep(0.3)
        emit("output", "done")
        return Ended()

    machine = farm.add("win-a1", Actor(play), settings(max_shells=2))
    patient = dataclasses.replace(FAST, open=20)

    def visit(_: int) -> list[str]:
        with transport(farm, machine, timeouts=patient) as wire:
            return list(wire.run("anything", {}, {}))

    with ThreadPoolExecutor(5) as threads:
        assert list(threads.map(visit, range(5))) == [["done"]] * 5


def test_an_impatient_caller_gets_the_quota(farm):
    """Without time to wait, the refusal is the answer."""
    machine = farm.add("win-a1", says("done"), settings(max_shells=1))
    with transport(farm, machine) as first, transport(farm, machine, timeouts=QUICK) as second:
        list(first.run("anything", {}, {}))
        try:
            list(second.run("anything", {}, {}))
        except Busy as error:
            assert error.worth_retrying
        else:
            raise AssertionError("the quota did not hold")

"""Lab time waits for a script that computes, and not for one that waits for something outside of the lab."""

from __future__ import annotations

from time import monotonic

import pytest
from winboot_lab.windows.clock import LONGEST_PATIENCE, PATIENCE, SLOWEST, LabTime, Patience
from winboot_lab.windows.machine import Machine


class Scene:
    """Real time and computing time as the test says them, and the patience of one waiter."""

    def __init__(self) -> None:
        self.now = self.computed = 0.0
        self.patience = Patience(lambda: self.now, lambda: self.computed)

    def passes(self, seconds: float, *, share: float = 0.0, busy: bool = True) -> bool:
        """Whether time is still held back after so many seconds, of which this share was computed; it is looked often."""
        held = True
        for _ in range(round(seconds * 10)):
            held = self.patience.lasts(busy=busy)
            self.now += 0.1
            self.computed += 0.1 * share
        return held and self.patience.lasts(busy=busy)


def test_an_actor_that_waits_outside_of_the_lab_does_not_stop_time() -> None:
    scene = Scene()

    assert scene.passes(PATIENCE - 0.2)
    assert not scene.passes(0.5)
    assert not scene.passes(10)


def test_a_script_that_computes_slowly_on_a_loaded_machine_is_waited_for() -> None:
    """A test that shares the processor gets a tenth of it, so its script needs ten times as long."""
    assert Scene().passes(15, share=0.1)


def test_a_script_that_never_ends_is_not_waited_for_without_end() -> None:
    assert not Scene().passes(LONGEST_PATIENCE + 2 * PATIENCE, share=1.0)


def test_every_time_an_actor_is_busy_it_is_waited_for_again() -> None:
    """A startup task computes, sleeps and computes again, all within one long wait of the test."""
    scene = Scene()
    for _ in range(20):
        assert scene.passes(PATIENCE - 0.2)
        assert not scene.passes(0.1, busy=False)


class Computer:
    """Real time, and how much of it this process computes, as the test says them."""

    def __init__(self, *, held: bool = False) -> None:
        self.now = self.computed = 0.0
        self.time = LabTime(held=held, clock=lambda: self.now, computed=lambda: self.computed)

    def passes(self, seconds: float, *, share: float) -> float:
        """The lab seconds that pass in so many real ones, of which this share is computed; it is looked often."""
        before = self.time.seconds
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.computed += 0.1 * share
            _ = self.time.seconds
        return self.time.seconds - before


@pytest.mark.parametrize(
    ("actors", "share", "passed"),
    [
        (0, 0.0, 100.0),
        (1, 1.0, 100.0),
        # A controller in the same process computes, too: an actor is never given more than real time.
        (1, 1.7, 100.0),
        (40, 1.0, 2.5),
        # Load 7: this process gets a third of a processor, and forty machines share it.
        (40, 0.33, 100.0 * SLOWEST),
        (4, 0.4, 10.0),
        # An actor that uses no processor time waits for something outside the lab.
        (1, 0.0, 100.0 * SLOWEST),
    ],
)
def test_while_machines_compute_lab_time_runs_as_fast_as_each_of_them(
    actors: int, share: float, passed: float
) -> None:
    """A limit of a script means what it would on a machine of its own."""
    computer = Computer()
    for place in range(actors):
        computer.time.hand_over(place)

    assert computer.passes(100, share=share) == pytest.approx(passed)
    assert computer.time.stretch == pytest.approx(100 / passed)


def test_lab_time_runs_with_real_time_again_when_no_actor_computes() -> None:
    computer = Computer()
    computer.time.hand_over("win-1")
    assert computer.passes(10, share=0.1) == pytest.approx(1)

    with computer.time.taken_over("win-1"):
        pass

    assert computer.passes(10, share=0.1) == pytest.approx(10)


def test_whether_a_moment_has_come_is_answered_as_by_the_clock_and_asks_only_near_it_what_was_computed() -> (
    None
):
    now, asked = 100.0, 0

    def computed() -> float:
        nonlocal asked
        asked += 1
        return 0.0

    time = LabTime(clock=lambda: now, computed=computed)
    asked = 0
    assert not time.has_come(5.0)
    assert asked == 0
    now = 106.0
    assert time.has_come(5.0)
    assert asked == 1
    time.advance_to(50.0)
    assert (time.has_come(50.0), time.has_come(50.5)) == (True, False)


def test_a_moment_does_not_come_before_an_actor_has_computed_so_long() -> None:
    now = 0.0
    time = LabTime(clock=lambda: now, computed=lambda: 0.0)
    with time.acting("a machine"):
        now = 10.0
        assert not time.has_come(5.0)
        assert time.seconds < 5.0


def test_held_time_is_real_time_while_machines_compute_and_wait() -> None:
    """A cluster outside of the lab sees the machines' clocks, and its certificates are of its own time."""
    computer = Computer(held=True)
    for place in range(40):
        computer.time.hand_over(place)

    assert computer.passes(100, share=0.1) == pytest.approx(100)
    computer.time.advance_to(500)
    assert computer.time.seconds == pytest.approx(100)


def test_a_wait_in_held_time_lasts_as_long_as_it_says() -> None:
    machine = Machine(time=LabTime(held=True))
    began = monotonic()

    machine.settle(0.3)

    assert monotonic() - began >= 0.3
    assert machine.time.seconds == pytest.approx(monotonic() - began, abs=0.2)

"""Lab time waits for a script that computes, and not for one that waits for something outside of the lab."""

from __future__ import annotations

from winboot_lab.windows.clock import LONGEST_PATIENCE, PATIENCE, Patience


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
    """A tenth of a processor is what a test gets beside others; its script needs ten times as long."""
    assert Scene().passes(15, share=0.1)


def test_a_script_that_never_ends_is_not_waited_for_without_end() -> None:
    assert not Scene().passes(LONGEST_PATIENCE + 2 * PATIENCE, share=1.0)


def test_every_time_an_actor_is_busy_it_is_waited_for_again() -> None:
    """A startup task computes, sleeps and computes again, all within one long wait of the test."""
    scene = Scene()
    for _ in range(20):
        assert scene.passes(PATIENCE - 0.2)
        assert not scene.passes(0.1, busy=False)

"""The threads of a run: one result an item, and an end within seconds whatever an item does."""

from __future__ import annotations

import math
import threading

import pytest

from winboot.node.fleet import each
from winboot.node.run import Stop


def test_results_come_in_the_order_of_the_items() -> None:
    assert each([3, 1, 2], lambda item: item * 2, stop=Stop(), workers=2) == [6, 2, 4]


def test_no_item_is_no_result() -> None:
    assert each([], str, stop=Stop()) == []


def test_an_item_that_hangs_is_left_when_the_run_is_stopped() -> None:
    """The others keep their results; `late` names the one that hangs."""
    stop, hang = Stop(), threading.Event()

    def work(item: str) -> str:
        if item == "quick":
            return "done"
        stop.request()
        return str(hang.wait())

    found = each(
        ["quick", "hangs"],
        work,
        stop=stop,
        workers=1,
        late=lambda item: "left",
        grace=0.3,
    )

    hang.set()
    assert found == ["done", "left"]


def test_a_second_request_does_not_wait() -> None:
    stop, hang = Stop(), threading.Event()
    for after in (0.1, 0.2):
        threading.Timer(after, stop.request).start()

    assert each(
        ["hangs"], lambda item: str(hang.wait()), stop=stop, late=lambda item: "left", grace=math.inf
    ) == ["left"]

    hang.set()


def test_what_is_known_of_those_that_are_left_is_asked_for_side_by_side() -> None:
    """Each may wait a second for a silent cluster to delete its token: together they wait a second, too."""
    stop, hang, met = Stop(), threading.Event(), threading.Barrier(8)
    begun = threading.Semaphore(0)

    def work(item: int) -> str:
        begun.release()
        return str(hang.wait())

    def late(item: int) -> str:
        if item < 8:
            met.wait()
        return "left"

    def request() -> None:
        for _ in range(8):
            begun.acquire()
        stop.request()
        stop.request()

    threading.Thread(target=request).start()

    # The ninth and the tenth were never begun, and have nothing to wait for.
    assert each(range(10), work, stop=stop, workers=8, late=late) == ["left"] * 10

    hang.set()


def test_a_bug_in_the_work_is_raised() -> None:
    def work(item: int) -> int:
        raise ZeroDivisionError(item)

    with pytest.raises(ZeroDivisionError):
        each([1, 2], work, stop=Stop())


@pytest.mark.parametrize(("signal", "code"), [(None, 130), (2, 130), (15, 143), (1, 129)])
def test_the_exit_code_is_that_of_the_first_signal(signal: int | None, code: int) -> None:
    stop = Stop()
    stop.request(signal)
    stop.request(2)

    assert (stop.exit_code, stop.urgent) == (code, True)


def test_what_still_runs_is_helped_to_its_end_when_the_run_is_stopped() -> None:
    """So that it gives its own result; what waits for a thread is not begun for that."""
    stop, hang = Stop(), threading.Event()
    helped: list[str] = []

    def work(item: str) -> str:
        if item == "hangs":
            stop.request()
            hang.wait()
        return f"{item} done"

    def nudge(item: str) -> None:
        helped.append(item)
        hang.set()

    found = each(
        ["quick", "hangs", "waits"],
        work,
        stop=stop,
        workers=1,
        late=lambda item: "left",
        nudge=nudge,
        grace=math.inf,
    )

    assert found == ["quick done", "hangs done", "waits done"]
    assert helped == ["hangs"]

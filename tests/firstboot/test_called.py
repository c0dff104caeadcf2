"""A machine that calls: the endpoint takes its output once and in order, and a script begins once, despite lost calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.firstboot.frames import frames
from winboot.base.errors import ConnectionLost, Unreachable
from winboot.base.secret import Secret
from winboot.remote.transport import called
from winboot.remote.transport.called import CalledTransport, Job, Line


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.hang_up()


def the_job(line: Line, runner: str = "one") -> Job:
    job = line.work(runner, 5.0)
    assert job is not None
    return job


def test_a_script_travels_with_its_secrets_and_its_output_comes_back(line: Line) -> None:
    heard: list[str] = []

    def machine() -> None:
        job = the_job(line)
        heard.append(job.payload.decode())
        said = frames("one", "two")
        line.hear(job.id, "one", 0, said[:7])
        line.hear(job.id, "one", 7, said[7:], code=0)

    thread = threading.Thread(target=machine)
    thread.start()
    with CalledTransport(line, name="win-1") as transport:
        lines = list(transport.run("Get-Date", {"Mode": "Look"}, {"token": Secret("canary")}))
    thread.join()

    assert lines == ["one", "two"]
    assert '"Mode": "Look"' in heard[0] and "canary" in heard[0] and heard[0].endswith("Get-Date")


def test_a_piece_that_comes_twice_counts_once(line: Line) -> None:
    job = line.offer(b"")

    assert line.hear(job.id, "one", 0, b"abc") == 3
    assert line.hear(job.id, "one", 0, b"abcd") == 4
    assert line.hear(job.id, "one", 9, b"later") == 4, "the bytes between have not arrived yet"
    assert line.output(job, 0.0) == b"abcd"


def test_a_script_whose_answer_was_lost_is_given_again_until_it_begins(line: Line) -> None:
    line.offer(b"")

    first, again = the_job(line), the_job(line)
    line.hear(first.id, "one", 0, b"")

    assert first is again
    assert line.hear(first.id, "another", 0, b"") is None, "two processes never run one script"


def test_a_script_that_died_with_its_process_is_lost_and_not_given_again(line: Line) -> None:
    job = line.offer(b"")
    line.hear(job.id, "one", 0, b"")

    assert line.work("after the restart", 0.0) is None
    assert job.lost
    assert line.hear(job.id, "one", 0, b"late") is None


def test_the_end_of_a_dropped_script_is_not_reported(line: Line) -> None:
    job = line.offer(b"")
    line.hear(job.id, "one", 0, b"")
    line.drop(job)

    assert line.hear(job.id, "one", 0, b"more") is None


def test_output_of_a_machine_that_sends_too_much_at_once_is_taken_later(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(called, "MOST_UNREAD", 4)
    job = line.offer(b"")

    assert line.hear(job.id, "one", 0, b"12345") == 5
    assert line.hear(job.id, "one", 5, b"6") == 5
    assert line.output(job, 0.0) == b"12345"
    assert line.hear(job.id, "one", 5, b"6") == 6


def test_a_machine_that_restarts_in_the_middle_is_a_lost_connection(line: Line) -> None:
    def machine() -> None:
        line.hear(the_job(line).id, "one", 0, b"")
        line.work("after the restart", 0.0)

    thread = threading.Thread(target=machine)
    thread.start()
    with pytest.raises(ConnectionLost, match="win-1"), CalledTransport(line, name="win-1") as transport:
        list(transport.run("", {}, {}))
    thread.join()


def test_a_machine_that_does_not_call_is_unreachable(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(called, "OFFER_S", 0.0)
    monkeypatch.setattr(called, "_QUIET_S", 0.001)

    with pytest.raises(Unreachable, match="did not call"):
        list(CalledTransport(line, name="win-1").run("", {}, {}))


def test_a_wait_for_work_ends_when_no_work_will_come(line: Line) -> None:
    line.hang_up()

    assert line.work("one", 60.0) is None

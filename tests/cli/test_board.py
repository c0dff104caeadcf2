"""The live view: frames at 80 columns and 24 rows of three, forty and four hundred nodes, with a clock that stands still."""

from __future__ import annotations

import io
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from winboot.base.errors import UsageError
from winboot.base.exits import INTERRUPTED
from winboot.cli.board import Board
from winboot.cli.options import Output, View
from winboot.cli.output import progress
from winboot.cli.progress import Lines, ProgressConsole, lasted
from winboot.report.events import Detached, Event, Problem, RunStarted, StepDone
from winboot.report.notices import NodeEnded, Notice, PassBegun, Waiting
from winboot.report.results import Failure, NodeReport, StepReport

STEPS = ("computer-name", "windows-features", "directories", "artifacts", "pod-network", "kubelet")
CUT = Failure("Interrupted", "interrupted", "", INTERRUPTED)
STARTED = RunStarted("r", "b", "u", "20348.1", "WIN-1", 1)


@dataclass
class Screen:
    """A terminal of 80 columns and 24 rows, with a board on it."""

    nodes: list[str]
    now: float = 0.0
    file: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.console = ProgressConsole(self.file)
        self.console.size = (80, 24)  # type: ignore[assignment]  # rich takes a pair
        self.board = Board(self.console, self.nodes, clock=lambda: self.now)

    def tell(self, node: str, *events: Event | Notice) -> None:
        for event in events:
            self.board.event(node, event)

    def at_step(self, node: str, step: str) -> None:
        """The node has come to this step of its script."""
        self.tell(node, PassBegun(STEPS), STARTED)
        self.tell(node, *(StepDone("r", one, "ok", 1) for one in STEPS[: STEPS.index(step)]))

    def end(self, node: str, *, problem: str = "", ready: bool = True, seconds: float = 41.2) -> None:
        found = Problem(problem, "The proxy name could not be resolved.") if problem else None
        step = StepReport("artifacts", "failed" if problem else "changed", problem=found)
        report = NodeReport(node, "", "2022", steps=(step,), ready=ready, seconds=seconds)
        self.tell(node, NodeEnded(report))

    @property
    def log(self) -> list[str]:
        return self.file.getvalue().splitlines()

    def frame(self) -> list[str]:
        """What the terminal shows of the board now."""
        before = self.file.tell()
        self.console.print(self.board)
        self.file.seek(before)
        shown = self.file.read().splitlines()
        self.file.truncate(before)
        return shown


def names(count: int) -> list[str]:
    return [f"win-{number}" for number in range(1, count + 1)]


def test_three_nodes() -> None:
    screen = Screen(names(3))
    screen.at_step("win-1", "artifacts")
    screen.at_step("win-2", "computer-name")
    screen.now = 12
    screen.tell("win-2", Waiting("restarting for computer-name", 1800))
    screen.now = 47
    screen.end("win-3")

    assert screen.frame() == [
        "win-1     4/6    47 s  artifacts",
        "win-2     1/6  35 s of 30:00  restarting for computer-name",
        "1 of 3 done, 1 Ready, 1 changed, 47 s, longest wait at most 29:25 more (win-2)",
    ]
    assert screen.log == ["win-3 changed in 41 s, Ready"]


def test_forty_nodes_fit_with_what_failed_first_and_the_longest_at_work() -> None:
    """Thirty at work, six failed, four done: the board counts all and shows or announces each failed node."""
    screen = Screen(names(40))
    for number, node in enumerate(screen.nodes):
        screen.now = number
        screen.at_step(node, "pod-network" if number % 2 else "artifacts")
    screen.now = 100
    for node in screen.nodes[:6]:
        screen.end(node, problem="DownloadFailed", ready=False)
    for node in screen.nodes[6:10]:
        screen.end(node)

    frame = screen.frame()

    assert len(frame) <= 23
    assert [line for line in frame if "failed" in line][:6] == [
        f"win-{number}  failed  artifacts: DownloadFailed" for number in range(1, 7)
    ]
    assert frame[6] == "win-11     4/6    1:30  artifacts"
    assert frame[-2] == "and 15 more nodes at work"
    assert frame[-1] == "10 of 40 done, 4 Ready, 6 failed, 4 changed, 1:40"


def test_four_hundred_nodes_fit_and_failures_leave_room_for_what_runs() -> None:
    screen = Screen(names(400))
    for node in screen.nodes[:100]:
        screen.end(node, problem="DownloadFailed", ready=False)
    for node in screen.nodes[100:164]:
        screen.at_step(node, "artifacts")

    frame = screen.frame()

    assert len(frame) <= 23
    assert frame[:7] == [
        *(f"win-{number}  failed  artifacts: DownloadFailed" for number in range(95, 101)),
        "and 94 more failed nodes",
    ]
    assert sum("4/6" in line for line in frame) == 14
    assert frame[-2:] == ["and 50 more nodes at work", "100 of 400 done, 0 Ready, 100 failed, 0 s"]


def test_nodes_that_an_interrupt_ended_are_counted_as_such_and_have_no_row_of_failures() -> None:
    screen = Screen(names(3))
    screen.end("win-1", problem="DownloadFailed", ready=False)
    for node in ("win-2", "win-3"):
        screen.tell(node, NodeEnded(NodeReport(node, "", "2022", failure=CUT)))

    assert screen.frame() == [
        "win-1  failed  artifacts: DownloadFailed",
        "3 of 3 done, 0 Ready, 1 failed, 2 interrupted, 0 s",
    ]
    assert screen.log[-1] == "win-3 interrupted in 0 s"


def test_names_that_differ_at_their_ends_stay_different() -> None:
    """The text goes first, never the name."""
    long = [f"win-prod-payments-frontend-eu-west-1a-000{number}" for number in (1, 2)]
    screen = Screen(long)
    for node in long:
        screen.board.say(node, "connection lost (the machine does not answer at all any more); continuing")

    frame = screen.frame()

    assert [line.split()[0] for line in frame[:2]] == long
    assert all(len(line) <= 80 for line in frame)
    assert frame[0].endswith("…")


def test_the_longest_names_of_all_are_whole() -> None:
    name = "n" * 63
    screen = Screen([name])
    screen.at_step(name, "artifacts")

    assert screen.frame()[0].startswith(f"{name}     4/6")


def test_what_a_machine_says_cannot_turn_the_lines() -> None:
    screen = Screen(["win-1"])
    screen.board.say("win-1", "[red]no markup[/red]")

    assert "[red]no markup[/red]" in screen.frame()[0]


FORGED = "no network\nwin-2: changed in 41 s, Ready"


def test_what_a_machine_says_begins_no_line_of_another_node() -> None:
    screen = Screen(["win-1", "win-2"])
    screen.board.say("win-1", FORGED)
    assert len(screen.frame()) == 2

    screen.tell(
        "win-1", NodeEnded(NodeReport("win-1", "", "2022", failure=Failure("NodeFailed", FORGED, "", 1)))
    )
    assert [line for line in [*screen.frame(), *screen.log] if line.startswith("win-2")] == []


def test_the_log_has_a_line_a_message(tmp_path: Path) -> None:
    log = tmp_path / "join.log"
    with progress(View(Output.json, log_file=log), ["win-1"]) as listener:
        listener.event("win-1", StepDone("r", "artifacts", "failed", 1, (), Problem("x", FORGED)))

    (line,) = log.read_text(encoding="utf-8").splitlines()
    assert "win-1: artifacts: failed" in line


@pytest.mark.parametrize("place", ["link", "folder"])
def test_the_log_follows_no_link_of_another_user(place: str, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    target = tmp_path / "theirs" / "join.log"
    target.write_text("kept\n", encoding="utf-8")
    if place == "link":
        log = tmp_path / "join.log"
        log.symlink_to(target)
    else:
        (tmp_path / "logs").symlink_to(target.parent)
        log = tmp_path / "logs" / "join.log"

    with pytest.raises(UsageError, match="--log-file"), progress(View(Output.json, log_file=log), ["win-1"]):
        pass

    assert target.read_text(encoding="utf-8") == "kept\n"


def test_progress_never_runs_backwards() -> None:
    """A look counts nothing; after a restart the script begins at its first step again, and the count stays."""
    screen = Screen(["win-1"])
    screen.tell("win-1", PassBegun(STEPS, look=True), STARTED)
    screen.tell("win-1", *(StepDone("r", one, "would-change", 1) for one in STEPS))
    assert screen.frame()[0].startswith("win-1    look")
    screen.at_step("win-1", "directories")
    assert screen.frame()[0].startswith("win-1     3/6")
    screen.at_step("win-1", "kubelet")
    assert screen.frame()[0].startswith("win-1     6/6")
    screen.at_step("win-1", "windows-features")
    assert screen.frame()[0].startswith("win-1     6/6     0 s  windows-features")


class Terminal(io.StringIO):
    """What a person sees in the end: rows, with the moves of the cursor that rich writes."""

    def isatty(self) -> bool:
        return True

    def rows(self) -> list[str]:
        """The screen after all that was written. Only up, erase and the ends of lines move anything."""
        rows, at, column = [""], 0, 0
        for text, number, what in re.findall(r"([^\x1b]+)|\x1b\[([?0-9;]*)([A-Za-z])", self.getvalue()):
            if what == "A":
                at = max(0, at - int(number or 1))
            elif what == "K":
                rows[at] = ""
            for part in re.findall(r"\n|\r|[^\r\n]+", text):
                if part == "\n":
                    at, column = at + 1, 0
                    rows += [""] * (at + 1 - len(rows))
                elif part == "\r":
                    column = 0
                else:
                    rows[at] = rows[at][:column] + part + rows[at][column + len(part) :]
                    column += len(part)
        return rows


@pytest.mark.parametrize("attempt", range(6))
def test_no_line_of_nodes_that_end_together_is_written_over(
    attempt: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines and frames are written one after the other."""
    for variable in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(variable, raising=False)
    terminal, nodes = Terminal(), names(12)
    console = ProgressConsole(terminal)
    console.size = (80, 24)  # type: ignore[assignment]  # rich takes a pair
    together = threading.Barrier(len(nodes))

    def end(board: Board, node: str) -> None:
        together.wait(30)
        board.event(node, NodeEnded(NodeReport(node, "", "2022", steps=(), ready=True, seconds=41.2)))

    with Board(console, nodes) as board:
        for node in nodes:
            board.event(node, PassBegun(STEPS))
        threads = [threading.Thread(target=end, args=(board, node)) for node in nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

    seen = [row.split()[0] for row in terminal.rows() if "Ready" in row and " in " in row]
    assert sorted(seen) == sorted(nodes)


def test_a_step_that_continues_as_a_task_stays_in_its_row_while_the_controller_asks_for_it() -> None:
    """The sessions end before the network does: each question is a connection and a pass, and none of them is news."""
    screen = Screen(["win-1"])
    screen.at_step("win-1", "pod-network")
    task = Detached("r", "d1", "pod-network", 1560)
    screen.tell("win-1", task, Waiting("pod-network: continues as a task on the node", 1560))
    for second in range(10, 40, 10):
        screen.now = second
        screen.board.say("win-1", "connecting")
        screen.tell("win-1", PassBegun(STEPS))
        row = f"win-1     5/6  {second} s of 26:00  pod-network: continues as a task on the node"
        assert screen.frame()[0] == row
        screen.tell("win-1", STARTED, task)
        assert screen.frame()[0] == row

    screen.board.say("win-1", "connecting")
    screen.at_step("win-1", "windows-features")

    assert screen.frame()[0] == "win-1     5/6     0 s  windows-features"


def test_a_node_that_took_a_minute_to_look_at_was_not_waited_for_a_minute() -> None:
    screen = Screen(["win-1"])
    step = StepReport("artifacts", "would-change")
    screen.tell("win-1", NodeEnded(NodeReport("win-1", "", "2022", steps=(step,), ready=False, seconds=105)))

    assert screen.log == ["win-1 would-change in 1:45, not Ready"]


def test_after_the_last_step_the_controller_says_what_it_does() -> None:
    screen = Screen(["win-1"])
    screen.at_step("win-1", "kubelet")
    screen.tell("win-1", StepDone("r", "kubelet", "changed", 1))
    screen.now = 5
    screen.tell("win-1", Waiting("waiting for Ready", 300))
    screen.now = 20

    assert screen.frame()[0] == "win-1     6/6  15 s of 5:00  waiting for Ready"


def test_an_error_ends_a_node_with_its_name_in_the_log() -> None:
    screen = Screen(["win-1"])
    failure = Failure("LoginRefused", "win-1: the machine refused the login", "", 77)
    screen.tell("win-1", NodeEnded(NodeReport("win-1", "", "2022", failure=failure, seconds=3)))

    assert screen.log == ["win-1 failed in 3 s: LoginRefused: the machine refused the login"]
    assert screen.frame()[0] == "win-1  failed  LoginRefused"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.9, "59 s"), (60, "1:00"), (3599, "59:59"), (3727, "1:02:07")]
)
def test_times_are_read_at_a_glance(seconds: float, text: str) -> None:
    assert lasted(seconds) == text


def test_verbose_lines_show_each_step_and_a_file_gets_them_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "join.log"
    for _ in range(2):
        with progress(View(Output.json, log_file=log), ["win-1"]) as listener:
            listener.event("win-1", StepDone("r", "artifacts", "ok", 12))
    with progress(View(Output.table, verbose=True), ["win-1"]) as listener:
        listener.event("win-1", StepDone("r", "artifacts", "ok", 12))

    assert [line.split("s ", 1)[1] for line in log.read_text().splitlines()] == [
        "win-1: artifacts: ok in 12 ms"
    ] * 2
    assert log.stat().st_mode & 0o777 == 0o600
    assert "win-1: artifacts: ok in 12 ms" in capsys.readouterr().err


@pytest.mark.parametrize("everything", [False, True])
def test_steps_that_are_blocked_are_one_line_at_the_nodes_end(everything: bool) -> None:
    """Each once had a line, and the table below names them all."""
    drain, file = Problem("NeedsDrain", "pods run here"), io.StringIO()
    lines = Lines(ProgressConsole(file), everything=everything)

    for name in STEPS:
        lines.event("win-1", StepDone("r", name, "blocked", 1, problem=drain))
    steps = tuple(StepReport(name, "blocked", problem=drain) for name in STEPS)
    lines.event("win-1", NodeEnded(NodeReport("win-1", "", "2022", steps=steps, ready=True, seconds=5)))

    told = file.getvalue().splitlines()
    assert len(told) == 1 + (len(STEPS) if everything else 0)
    assert "blocked in 5 s, Ready: computer-name: NeedsDrain: pods run here (and 5 more)" in told[-1]

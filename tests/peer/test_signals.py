"""A signal ends a real `winboot` process, whatever its machines do, and their scripts with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peer.guest import Guest, a_room, conducts

ENDS: Final = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
CODES: Final = [
    pytest.param(getattr(signal, name), code, id=name) for name, code in ENDS.items() if hasattr(signal, name)
]
# The others end the command by the same way.
ONE_FIRST: Final = [
    CODES[0],
    *(pytest.param(*one.values, id=one.id, marks=pytest.mark.check) for one in CODES[1:]),
]
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no signals that another process can send"
)


@pytest.fixture(autouse=True)
def hangup() -> Iterator[None]:
    """Processes get it from their parent: these tests may themselves run under `nohup`."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


def wait_until(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """As long as it takes, while the process lives; pytest's own bound ends a test that hangs here."""
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def reported(file: Path) -> list[dict[str, Any]]:
    """The nodes of a report of JSON lines, which is whole whenever one looks."""
    if not file.exists():
        return []
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines[-1]["kind"] == "run"
    return [line for line in lines if line["kind"] == "node"]


def ended(file: Path) -> list[str]:
    """The nodes that are done by now."""
    return [node["node"] for node in reported(file) if node["outcome"] == "changed"]


def none_runs(guest: Guest) -> bool:
    """True once no script runs: a stop takes a moment."""
    left = guest.left()
    return not left["running"] and not left["shells"]


@pytest.mark.parametrize(("number", "code"), ONE_FIRST)
def test_a_signal_ends_the_command_and_the_script_on_the_machine(
    tmp_path: Path, number: signal.Signals, code: int, record_property: Callable[[str, object], None]
) -> None:
    """Else the script runs on, holds the node's lock, and the next join waits for it."""
    with a_room(tmp_path, {"n000": "silent"}) as guest:
        process = guest.winboot("plan", "-o", "json")
        wait_until(process, lambda: guest.left()["running"] == ["n000"])
        process.send_signal(number)
        begun = time.monotonic()
        out, err = process.communicate()
        record_property(f"ended after {number.name}", f"{time.monotonic() - begun:.1f} s")

        assert (process.returncode, "Traceback" in err) == (code, False), err
        assert '"interrupted"' in out
        wait_until(guest.process, lambda: none_runs(guest))


@pytest.mark.parametrize(("number", "code"), ONE_FIRST)
def test_a_signal_ends_ping_with_what_it_knows(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """A machine that takes the connection and never answers kept it, and the others' findings were lost."""
    with a_room(tmp_path, {"n000": "deaf", "n001": "gone"}) as guest:
        process = guest.winboot("ping", "-o", "json")
        wait_until(process, lambda: guest.left()["asked"] == ["n000"])
        process.send_signal(number)
        out, err = process.communicate()

    assert (process.returncode, "Traceback" in err) == (code, False), err
    assert [json.loads(line)["node"] for line in out.splitlines()] == ["n000", "n001"]
    assert '"id": "Interrupted"' in out


SIZES: Final = [
    pytest.param(12, 3, id="12"),
    pytest.param(200, 10, id="200", marks=pytest.mark.matrix),
]


@pytest.mark.parametrize(("count", "every"), SIZES)
def test_ctrl_c_in_the_middle_of_a_fleet_leaves_a_whole_report_and_nothing_else(
    count: int, every: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The silent and the chatty would go on for an hour. Tokens, shells and scripts are gone."""
    report = tmp_path / "report.jsonl"
    with a_room(tmp_path, conducts(count, ["silent", "chatty"], every)) as guest:
        process = guest.winboot("join", "-o", "json", "--report", str(report))
        wait_until(process, lambda: len(ended(report)) >= count // 4)
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        out, err = process.communicate()
        record_property(f"Ctrl-C among {count} nodes", f"ended after {time.monotonic() - begun:.1f} s")

        assert (process.returncode, "Traceback" in err) == (130, False), err
        # The lines of standard output come as nodes end, those of the file in the order of the inventory.
        assert sorted(out.splitlines()) == sorted(report.read_text(encoding="utf-8").splitlines())
        nodes = {node["node"]: node for node in reported(report)}
        assert nodes.keys() == guest.nodes.keys()
        assert {nodes[name]["outcome"] for name in guest.bad} == {"interrupted"}
        assert all(node["failure"]["hint"] for node in nodes.values() if node["outcome"] == "interrupted")
        assert len(ended(report)) >= count // 4
        wait_until(guest.process, lambda: none_runs(guest))
        assert guest.left()["tokens"] == []


@pytest.mark.check
def test_after_kill_9_the_report_has_what_was_known_and_the_next_run_continues(tmp_path: Path) -> None:
    """No code can clean up after it: the report has the results written as nodes ended."""
    report = tmp_path / "report.jsonl"
    with a_room(tmp_path, conducts(6, ["silent"], 6)) as guest:
        process = guest.winboot("join", "--report", str(report))
        wait_until(process, lambda: bool(ended(report)))
        process.kill()
        process.communicate()

        nodes = {node["node"]: node for node in reported(report)}
        assert nodes.keys() == guest.nodes.keys()
        assert nodes["n000"]["outcome"] == "interrupted"
        assert "when the report was written" in nodes["n000"]["failure"]["message"]
        known = ended(report)
        again = guest.winboot("join", "-o", "json", "--limit", ",".join(known))
        out, err = again.communicate()
        assert again.returncode == 0, err
        outcomes = [json.loads(line).get("outcome") for line in out.splitlines()]
        assert outcomes == ["ok"] * len(known) + [None]


def test_readers_that_go_away_end_nothing(tmp_path: Path) -> None:
    """`2>&1 | head`, a `tee` that was killed: with its first lost line the whole join once ended, without a report."""
    report = tmp_path / "report.jsonl"
    with a_room(tmp_path, conducts(4, ["silent"], 99)) as guest:
        process = guest.winboot("join", "--limit", "n001,n002,n003", "--report", str(report))
        assert process.stdout is not None
        assert process.stderr is not None
        assert "connecting" in process.stderr.readline()
        process.stdout.close()
        process.stderr.close()

        assert process.wait() == 0
        outcomes = {node["node"]: node["outcome"] for node in reported(report)}
        assert outcomes == dict.fromkeys(("n001", "n002", "n003"), "changed")
        assert guest.left()["changed"] == ["n001", "n002", "n003"]


def test_what_nohup_started_outlives_its_terminal(tmp_path: Path) -> None:
    with a_room(tmp_path, conducts(3, ["silent"], 99)) as guest:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = guest.winboot("join", "--limit", "n001,n002")
        assert process.stderr is not None
        assert "connecting" in process.stderr.readline()
        process.send_signal(signal.SIGHUP)
        process.communicate()

        assert process.returncode == 0

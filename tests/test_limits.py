"""Everything that a machine says is bounded: each excess ends its node by name, and docs/security.md has the number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.join.fakes import Silent
from winboot.base import limits
from winboot.base.errors import ConnectionLost, ExcessiveOutput, NodeFailed
from winboot.base.secret import Secret
from winboot.node.run import Patience, ScriptRunner, Stop
from winboot.report.events import parse
from winboot.report.journal import Journal
from winboot.script.library import Library
from winboot.script.rendering import Helpers, Script

NUMBERS: Final = {name: value for name, value in vars(limits).items() if name.isupper()}
BOOT: Final = {"boot_id": "b1", "smbios_uuid": "u", "build": "20348.1", "computer_name": "N", "fence": 1}
STEP: Final = {"event": "step", "step": "one", "state": "ok", "ms": 1}
Story = Callable[[dict[str, Any], int], Iterator[str]]


def test_the_page_of_security_has_every_bound() -> None:
    page = (Path(__file__).parent.parent / "docs" / "security.md").read_text(encoding="utf-8")

    rows = {
        name: int(number) for number, name in re.findall(r"^\| (\d+) \|.*\| `(\w+)` \|$", page, re.MULTILINE)
    }

    assert rows == NUMBERS


class Liar:
    """A machine that says what its story says; how many lines of it were taken is in `taken`."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.taken = 0
        self.passes = 0
        self.on_quiet: Callable[[], None] = lambda: None

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Secret]) -> Iterator[str]:
        self.passes += 1
        for line in self.story({"v": 1, "run": arguments.get("RunId")}, self.passes):
            self.taken += 1
            yield line

    def close(self) -> None:
        """There is nothing to give back."""

    def interrupt(self) -> None:
        """A story ends by itself."""


def _line(base: Mapping[str, Any], **fields: Any) -> str:
    return json.dumps({**base, **fields})


def endless_steps(base: dict[str, Any], number: int) -> Iterator[str]:
    yield _line(base, event="run", **BOOT)
    while True:
        yield _line(base, **STEP)


def endless_runs(base: dict[str, Any], number: int) -> Iterator[str]:
    while True:
        yield _line(base, event="run", **BOOT)


def endless_noise(base: dict[str, Any], number: int) -> Iterator[str]:
    while True:
        yield "x" * (1 << 20)


def endless_detached(base: dict[str, Any], number: int) -> Iterator[str]:
    yield _line(base, event="run", **BOOT)
    yield _line(base, event="detached", id=f"d{number}", step="one", timeout_s=60)
    yield _line(base, event="done", reason="detached")


def a_detached_run_of(seconds: int) -> Story:
    def story(base: dict[str, Any], number: int) -> Iterator[str]:
        yield _line(base, event="run", **BOOT)
        yield _line(base, event="detached", id="d", step="one", timeout_s=seconds)
        yield _line(base, event="done", reason="detached")

    return story


def endless_restarts(base: dict[str, Any], number: int) -> Iterator[str]:
    if base["run"] is None:
        # The helpers: the restart is taken, and each answer is another boot.
        yield f"b{number}"
        return
    yield _line(base, event="run", **{**BOOT, "boot_id": f"b{number}"})
    yield _line(base, event="reboot", steps=["one"])
    yield _line(base, **STEP)
    yield _line(base, event="done", reason="reboot")


def many_differences(base: dict[str, Any], number: int) -> Iterator[str]:
    yield _line(base, event="run", **BOOT)
    found = [{"what": "t", "is": None, "want": "w"}] * 20_000
    yield _line(base, **{**STEP, "state": "would-change", "differences": found})


def one_long_event(base: dict[str, Any], number: int) -> Iterator[str]:
    yield _line(base, event="run", **{**BOOT, "build": "x" * (2 << 20)})


def a_long_number(base: dict[str, Any], number: int) -> Iterator[str]:
    yield _line(base, event="run", **BOOT)
    yield _line(base, **{**STEP, "ms": 10**400})


def two_machines(base: dict[str, Any], number: int) -> Iterator[str]:
    yield _line(base, event="run", **BOOT)
    yield _line(base, event="run", **{**BOOT, "smbios_uuid": "another"})


# Each story: the words of its end, and how many lines of it may be taken.
STORIES: Final[Mapping[str, tuple[Story, str, int]]] = {
    "endless steps": (endless_steps, "more than 1010 events in one pass", 1_100),
    "endless runs": (endless_runs, "its identity twice in one pass", 2),
    "endless noise": (endless_noise, "more than 64 MiB in one pass", 65),
    "detached again and again": (endless_detached, "more than 20 detached runs", 100),
    "detached for 10^400 s": (a_detached_run_of(10**400), "timeout_s is larger than 1000000000000", 3),
    "detached for a day": (a_detached_run_of(86_400), "runs detached for 86400 s, of at most 7200", 3),
    "detached for less than nothing": (a_detached_run_of(-1), "detached for -1 s", 3),
    "restarts without an end": (endless_restarts, "not finished after 20 restarts", 200),
    "20,000 differences": (many_differences, "20000 differences, more than 1000|an event of", 2),
    "an event without an end": (one_long_event, "characters, more than 1048576", 1),
    "a number of 400 digits": (a_long_number, "ms is larger than 1000000000000", 2),
    "two machines in one": (two_machines, "its identity twice|gave two answers", 2),
}


@pytest.mark.parametrize("name", STORIES)
def test_an_excess_ends_the_node_by_name(name: str, tmp_path: Path) -> None:
    """And it ends soon: what the machine would have said after it is not even read."""
    story, words, most = STORIES[name]
    machine = Liar(story)
    runner = _runner(machine, tmp_path)

    with pytest.raises(NodeFailed, match=words) as ended:
        runner.change({}, {})

    assert isinstance(ended.value, ExcessiveOutput) or "restarts" in words
    assert ended.value.hint
    assert machine.taken <= most


def test_all_passes_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that breaks off each time says as much in each."""
    monkeypatch.setattr("winboot.node.run.LARGEST_RUN", 10_000)

    def story(base: dict[str, Any], number: int) -> Iterator[str]:
        yield "x" * 3_000
        raise ConnectionLost("gone", hint="")

    machine = Liar(story)

    with pytest.raises(ExcessiveOutput, match="MiB in one run"):
        _runner(machine, tmp_path).change({}, {})

    assert machine.passes == 4


@pytest.mark.parametrize("line", ["{" + "[" * (2 << 20), "{" + "9" * (2 << 20)])
def test_a_long_line_that_looks_like_an_event_is_not_read(line: str) -> None:
    with pytest.raises(ExcessiveOutput, match="more than 1048576"):
        parse(line)


def test_a_long_line_of_a_program_is_noise() -> None:
    assert parse("x" * (2 << 20)) is None


def _runner(machine: Liar, folder: Path) -> ScriptRunner:
    now = Patience(poll=0.0, reconnect=60.0, restart=5.0, detached_margin=5.0, held=5.0)
    return ScriptRunner(
        "n1",
        Script("node part", Library(" and library", "hash"), settings="", files=()),
        Helpers(restart="restart", boot_id="boot id"),
        lambda: machine,  # type: ignore[arg-type, return-value]  # no probe: nobody asks
        steps=["one"],
        listener=Silent(),
        journal=Journal(folder / "n1.jsonl"),
        patience=now,
        stop=Stop(),
    )

"""Any bytes from a node: no traceback, no "bug in winboot itself", and never a success without the events for it.

`make fuzz` looks for new examples; the suite takes the same few each time.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.join.fakes import Silent
from winboot.base.errors import BadEvent, WinbootError
from winboot.node.run import Patience, ScriptRunner, Stop
from winboot.report.data import json_lines, junit
from winboot.report.events import STEP_STATES, parse
from winboot.report.journal import Journal
from winboot.report.page import html
from winboot.report.results import Failure, NodeReport, Report, collect
from winboot.script.library import Library
from winboot.script.rendering import Helpers, Script

NOW: Final = Patience(poll=0.0, reconnect=0.0, restart=0.0, detached_margin=0.0, held=0.0, first=0.0)
TEXT: Final = st.text(st.characters(codec=None), max_size=20)
ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KEYS: Final = (
    "v",
    "event",
    "run",
    "seq",
    "step",
    "state",
    "ms",
    "differences",
    "problem",
    "reason",
    "message",
    "steps",
    "id",
    "timeout_s",
    "boot_id",
    "smbios_uuid",
    "build",
    "computer_name",
    "fence",
    "node_ip",
    "what",
    "is",
    "want",
)
KINDS: Final = st.sampled_from(["run", "step", "reboot", "detached", "done", "failed"])
# Whole events whose fields are right, and the same with some of them replaced by anything.
GOOD: Final = st.fixed_dictionaries(
    {
        "v": st.just(1),
        "event": KINDS,
        "run": st.just("RUN"),
        "step": st.sampled_from(["one", "two"]),
        "state": st.sampled_from(STEP_STATES),
        "ms": st.just(1),
        "differences": st.just([]),
        "reason": st.sampled_from(["complete", "reboot", "held", "superseded", "detached", "failed"]),
        "steps": st.just(["one"]),
        "id": st.just("d1"),
        "timeout_s": st.just(0),
        "boot_id": st.just("b1"),
        "smbios_uuid": st.just("u"),
        "build": st.just("1.1"),
        "computer_name": st.just("N"),
        "fence": st.just(1),
    }
)
DAMAGED: Final = st.builds(
    lambda good, bad: good | bad, GOOD, st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=3)
)
LINES: Final = st.lists(st.one_of(GOOD, DAMAGED, TEXT), max_size=8)


class Peer:
    """Says the lines, each event with the run's own id in place of RUN."""

    def __init__(self, lines: list[Any]) -> None:
        self.lines = lines

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Any) -> Iterator[str]:
        for line in self.lines:
            if isinstance(line, str):
                yield line
            else:
                yield json.dumps(line | ({"run": arguments.get("RunId")} if line.get("run") == "RUN" else {}))

    def close(self) -> None:
        """Nothing is open."""


@given(LINES)
@settings(max_examples=max(150, settings().max_examples))
def test_a_look_is_a_success_only_when_each_step_was_reported_once(lines: list[Any]) -> None:
    """Else it is an error with a name; in every form of the report."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "n1.jsonl")
        runner = ScriptRunner(
            "n1",
            Script("node part", Library(" and library", "hash"), settings="", files=()),
            Helpers("restart", "boot id"),
            lambda: Peer(lines),  # type: ignore[arg-type, return-value]  # as much as a look asks of it
            steps=("one", "two"),
            listener=Silent(),
            journal=journal,
            patience=NOW,
            stop=Stop(),
        )
        failure = None
        try:
            done = runner.look({})
            assert sorted(step.step for step in done.steps) == ["one", "two"]
        except WinbootError as error:
            failure = Failure.of(error)
        finally:
            journal.close()
    report = Report(
        "plan", "r1", "now", (NodeReport("n1", "a", "2022", collect(runner.record.steps), failure),)
    )
    for form in (html, junit, json_lines):
        form(report).encode()


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda raw: b'{"v":1,' + raw))
@settings(max_examples=max(200, settings().max_examples))
def test_any_bytes_are_noise_or_a_named_error(raw: bytes) -> None:
    try:
        parse(raw.decode("utf-8", errors="surrogateescape"))
    except BadEvent as error:
        assert error.problem

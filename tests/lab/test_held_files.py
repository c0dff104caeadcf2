"""Another program holds a file open, for a moment or for long: a run ends Ready or with a named error, and loses no file.

A virus scanner, a backup or a log shipper opens what the n-th file operation is about, just before it. The lab's files
keep to the sharing modes of CreateFile, so that a rename, a delete or a write fails as it does on Windows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.lab.scenes import Scenes
from tests.lab.site import Direct, Site, only, problems
from tests.matrix import first
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

# Longer than anybody waits for a file, and shorter than it takes to come back.
LONG = 900.0
SHARES = ("Read", "ReadWrite", "None")
# How a run says that it could not have a file, and what follows for the steps that it did not come to.
CAUSE = re.compile(r"FileInUse|DetachedFailed")
NAMED = re.compile(rf"{CAUSE.pattern}|NeedsStep|PendingReboot")
TOLD_ONCE = re.compile(r"DetachedFailed: .* is held open by another program|NeedsStep")
JOURNAL = r"C:\ProgramData\winboot\journal.jsonl"


@pytest.fixture
def reference(joined_site: Callable[[str], Site]) -> set[str]:
    """The files of an undisturbed node."""
    return paths(joined_site("plain"))


def paths(site: Site) -> set[str]:
    """The files of the machine, without what differs from one join to the next in their names: hashes and times.

    winboot records the contents of an archive for files without a known hash. This node's hashes are known, so a join that
    could not write the record does not retry it.
    """
    files = [path for path, _ in site.machine.files.walk("C:\\") if r"\winboot\placed-" not in path]
    return {re.sub(r"[0-9a-f]{8,}|\d{4}(-\d\d){5}", "*", path) for path in files}


def wrong_in_the_end(site: Site, reference: set[str]) -> list[str]:
    """What a join still finds when the file has long been let go: nothing, and every file is there.

    winboot reports the result of a detached run once. A restart comes before the last look: otherwise the startup task's
    files are missing if the only restart was before that task existed.
    """
    site.machine.faults.scan_no_more()
    site.settle(LONG)
    wrong = [told for told in problems(site.join()) if not TOLD_ONCE.search(told)]
    wrong += problems(site.join())
    site.machine.reboot(seconds=1)
    site.settle(240)
    last = site.join()
    wrong += problems(last) + ([f"another join changes {last.changed}"] if last.changed else [])
    wrong += [f"the lab refuses {refusal}" for refusal in site.refusals]
    return wrong + [f"missing: {path}" for path in sorted(reference - paths(site))]


def wrong_with_a_join(site: Site, reference: set[str]) -> list[str]:
    """What is wrong with a join whose files are held, and with what comes of it."""
    report = site.join()
    wrong = [told for told in problems(report) if not NAMED.search(told)]
    if not only(report).ready and not any(CAUSE.search(told) for told in problems(report)):
        wrong.append("neither Ready nor named")
    return wrong + wrong_in_the_end(site, reference)


def wrong_with_a_start(site: Site, reference: set[str]) -> list[str]:
    """What is wrong with a start of the machine whose startup task meets held files."""
    site.machine.reboot(seconds=1)
    site.settle(240)
    seen = only(site.plan())
    told = NAMED.search(site.machine.files.need(JOURNAL)[1].content.decode())
    wrong = (
        []
        if seen.ready or told
        else ["the startup task left a node that is not Ready, and no word in the journal"]
    )
    if not site.machine.reachable():
        wrong.append("the machine is not reachable")
    return wrong + wrong_in_the_end(site, reference)


def undo_once(site: Site) -> list[str]:
    """Run the script of `remove` until it says that it is complete or has failed; the problems it named last."""
    (spec,) = site.specs()
    text = render(make_plan(spec, STEPS), spec, undo=True).text
    transport = Direct(site.controller(), spec)
    named: dict[str, str] = {}
    for _ in range(8):
        arguments = {"Mode": "Undo", "RunId": "undo", "Facts": {"Holder": "me"}}
        events = [json.loads(line) for line in transport.run(text, arguments, {})]
        named |= {event["step"]: json.dumps(event["problem"]) for event in events if event["event"] == "step"}
        end = events[-1]
        if end["event"] != "done":
            return [f"the run ends without a word: {end}"]
        if end["reason"] in ("complete", "failed"):
            named[""] = json.dumps(end.get("problem"))
            return [told for told in named.values() if told != "null"]
        if end["reason"] == "reboot":
            site.machine.reboot()
        site.settle(200)
    return [f"not at its end after 8 rounds: {named}"]


def wrong_with_an_undo(site: Site) -> list[str]:
    """What is wrong with an undo whose files are held, and with the next one when they are free."""
    wrong = [told for told in undo_once(site) if not NAMED.search(told)]
    site.machine.faults.scan_no_more()
    site.settle(LONG)
    wrong += undo_once(site)
    site.machine.reboot(seconds=1)
    site.settle(30)
    left = [path for path, _ in site.machine.files.walk("C:\\") if re.search(r"winboot|^C:\\k\\", path, re.I)]
    wrong += [f"left: {path}" for path in left]
    return wrong + [f"the lab refuses {refusal}" for refusal in site.refusals]


def held(site: Site) -> list[tuple[str, str]]:
    """What was held; a test that held nothing proves nothing."""
    assert site.machine.faults.held
    return site.machine.faults.held


# ---- a sample, for `make check` --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "share"), first(0, [(290, "None"), (470, "Read")], daily=0))
def test_a_file_that_is_held_for_a_moment_costs_a_join_nothing(
    scenes: Scenes, reference: set[str], call: int, share: str
) -> None:
    site = scenes.bare("plain")
    site.machine.faults.scan(call, 0.4, share=share)

    report = site.join()

    assert held(site)
    assert (problems(report), only(report).ready) == ([], True)
    assert wrong_in_the_end(site, reference) == []


@pytest.mark.matrix
def test_a_join_whose_file_stays_held_ends_ready_or_named(scenes: Scenes, reference: set[str]) -> None:
    site = scenes.bare("plain")
    site.machine.faults.scan(380, LONG, share="Read")

    assert wrong_with_a_join(site, reference) == []
    assert held(site)


@pytest.mark.parametrize(("call", "share"), first(0, [(43, "ReadWrite"), (4, "Read")], daily=1))
def test_a_startup_task_whose_file_stays_held_leaves_a_ready_node_or_a_word(
    joined_site: Callable[[str], Site], reference: set[str], call: int, share: str
) -> None:
    site = joined_site("plain")
    site.machine.faults.scan(call, LONG, share=share)

    assert wrong_with_a_start(site, reference) == []
    assert held(site)


@pytest.mark.parametrize("call", first(1, [40, 90], daily=1))
def test_an_undo_whose_file_stays_held_is_named_and_finished_by_the_next_one(
    joined_site: Callable[[str], Site], call: int
) -> None:
    site = joined_site("plain")
    site.machine.faults.scan(call, LONG, share="Read")

    assert wrong_with_an_undo(site) == []
    assert held(site)


# ---- at every file operation, for `make matrix` ----------------------------------------------------------------------

# How many file operations there are at most, in how many tests.
JOIN, START, UNDO, PARTS = 660, 60, 300, 30


def share_of(call: int, seconds: float) -> str:
    """Each operation meets two of the three modes, one for a moment and one for long."""
    return SHARES[(call + (seconds == LONG)) % len(SHARES)]


@pytest.mark.matrix
@pytest.mark.parametrize("seconds", [0.4, LONG])
@pytest.mark.parametrize("part", range(PARTS))
def test_a_join_whose_file_is_held_at_any_operation_ends_ready_or_named(
    scenes: Scenes, reference: set[str], part: int, seconds: float
) -> None:
    found = {}
    for call in range(part + 1, JOIN, PARTS):
        site = scenes.bare("plain")
        site.machine.faults.scan(call, seconds, share=share_of(call, seconds))
        found[call] = wrong_with_a_join(site, reference)

    assert {call: wrong for call, wrong in found.items() if wrong} == {}


@pytest.mark.matrix
@pytest.mark.parametrize("seconds", [0.4, LONG])
@pytest.mark.parametrize("call", range(1, START))
def test_a_startup_task_whose_file_is_held_at_any_operation_leaves_a_ready_node_or_a_word(
    joined_site: Callable[[str], Site], reference: set[str], call: int, seconds: float
) -> None:
    site = joined_site("plain")
    site.machine.faults.scan(call, seconds, share=share_of(call, seconds))

    assert wrong_with_a_start(site, reference) == []


@pytest.mark.matrix
@pytest.mark.parametrize("seconds", [0.4, LONG])
@pytest.mark.parametrize("call", range(1, UNDO))
def test_an_undo_whose_file_is_held_at_any_operation_is_named_and_finished_by_the_next_one(
    joined_site: Callable[[str], Site], call: int, seconds: float
) -> None:
    site = joined_site("plain")
    site.machine.faults.scan(call, seconds, share=share_of(call, seconds))

    assert wrong_with_an_undo(site) == []

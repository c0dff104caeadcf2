"""Which versions a machine notes: what a run brings, what a rollback goes back to, what it holds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.steps.bench import Bench
from tests.steps.library import call

HASH = "0" * 64


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.machine.files.make_directory(r"C:\ProgramData\winboot")
    return made


def changes(
    bench: Bench, version: str, *, ready: bool = True, ends: bool = True, versions: str = "", steps: str = ""
) -> str:
    """One change run to a version of kubernetes, on a Node that is Ready when it begins; what ended it, if anything did."""
    artifacts = f"@(@{{ name = 'kubernetes'; version = '{version}'; sha256 = '{HASH}' }})"
    facts = f"@{{ Versions = '{versions}'; Steps = '{steps}'; Holder = 'me'; NodeIsReady = ${str(ready).lower()} }}"
    end = "Complete-VersionChange" if ends else ""
    return call(
        bench,
        f"$script:Node.artifacts = {artifacts}; $script:Run.Facts = {facts}; Start-VersionChange; {end}",
    ).id


def noted(bench: Bench) -> dict[str, str]:
    """The sets that are noted, each by its version."""
    found: dict[str, Any] = {}
    for name in ("now", "next", "before", "held"):
        said = call(
            bench,
            f"$note = Read-VersionNote; if ($note -and $note.{name}) {{ $note.{name}.artifacts[0].version }}",
        ).objects
        if said:
            found[name] = said[0]
    return found


def test_nothing_is_noted_on_a_machine_that_no_run_has_changed(bench: Bench) -> None:
    assert noted(bench) == {}


def test_the_version_before_is_the_one_with_which_the_node_was_ready(bench: Bench) -> None:
    changes(bench, "1.33.6", ready=False)
    assert noted(bench) == {"now": "1.33.6"}
    changes(bench, "1.34.2")
    assert noted(bench) == {"now": "1.34.2", "before": "1.33.6"}
    changes(bench, "1.34.3", ready=False)
    assert noted(bench) == {"now": "1.34.3", "before": "1.33.6"}, "1.34.2 never became Ready"


def test_a_run_that_stops_half_way_leaves_what_it_came_from(bench: Bench) -> None:
    changes(bench, "1.33.6", ready=False)
    changes(bench, "1.34.2", ends=False)
    assert noted(bench) == {"now": "1.33.6", "next": "1.34.2"}
    changes(bench, "1.34.2", ready=False)
    assert noted(bench) == {"now": "1.34.2", "before": "1.33.6"}


def test_some_steps_alone_note_no_versions(bench: Bench) -> None:
    changes(bench, "1.33.6")
    changes(bench, "1.34.2", steps="firewall-rules")
    assert noted(bench) == {"now": "1.33.6"}


def test_after_a_rollback_from_a_half_done_upgrade_there_is_no_version_before(bench: Bench) -> None:
    changes(bench, "1.32.9", ready=False)
    changes(bench, "1.33.6")
    changes(bench, "1.34.2", ends=False)
    assert noted(bench) == {"now": "1.33.6", "next": "1.34.2", "before": "1.32.9"}

    changes(bench, "1.33.6", versions="hold", ready=False)
    assert noted(bench) == {"now": "1.33.6", "held": "1.33.6"}, "once more would be two versions back"
    changes(bench, "1.34.2", versions="release")
    assert noted(bench) == {"now": "1.34.2", "before": "1.33.6"}


def test_what_a_rollback_brought_is_held_until_it_is_released(bench: Bench) -> None:
    changes(bench, "1.33.6", ready=False)
    changes(bench, "1.34.2")
    changes(bench, "1.33.6", versions="hold")
    assert noted(bench) == {"now": "1.33.6", "held": "1.33.6"}
    assert changes(bench, "1.34.2").rpartition(".")[2] == "RolledBack", (
        "a controller that knows nothing of it changes nothing"
    )
    assert noted(bench) == {"now": "1.33.6", "held": "1.33.6"}

    changes(bench, "1.34.2", versions="release")
    assert noted(bench) == {"now": "1.34.2", "before": "1.33.6"}


def test_a_profile_that_wants_what_is_held_is_followed_again(bench: Bench) -> None:
    changes(bench, "1.33.6", versions="hold")
    wants = f"$script:Node.artifacts = @(@{{ name = 'kubernetes'; version = '1.33.6'; sha256 = '{HASH}' }})"
    look = (
        f"{wants}; $script:Run.Facts = @{{ Versions = '' }}; Get-HeldDifference | ForEach-Object {{ $_.key }}"
    )
    assert call(bench, look).objects == ["versions:held"]
    call(bench, "Clear-HeldVersion")
    assert (call(bench, look).objects, noted(bench)) == ([], {"now": "1.33.6"})


@pytest.mark.parametrize("text", ["{", "[]", '{"now": 3}', '{"now": {"artifacts": "x"}}', "null"])
def test_a_torn_or_strange_note_does_not_count(bench: Bench, text: str) -> None:
    bench.machine.files.write(r"C:\ProgramData\winboot\versions.json", text.encode())
    changes(bench, "1.33.6")
    assert noted(bench) == {"now": "1.33.6"}

"""winboot reads a script's events exactly, or not at all."""

import json
from typing import Any

import pytest

from winboot.base.errors import BadEvent
from winboot.report.events import (
    Artifact,
    Difference,
    Problem,
    RunStarted,
    StepDone,
    VersionNote,
    VersionSet,
    parse,
)


def line(**fields: Any) -> str:
    """One event of run r1."""
    return json.dumps({"v": 1, "run": "r1", "seq": 1} | fields)


def started(**fields: Any) -> str:
    """The first event of a run."""
    usual = {"boot_id": "b1", "smbios_uuid": "u", "build": "20348.1", "computer_name": "W", "fence": 3}
    return line(event="run", **usual | fields)


def step(**fields: Any) -> str:
    """The event of a step."""
    return line(
        event="step", **{"step": "a", "state": "ok", "ms": 5, "differences": [], "problem": None} | fields
    )


def test_the_first_event_says_which_machine_this_is():
    assert parse(started()) == RunStarted("r1", "b1", "u", "20348.1", "W", 3)


@pytest.mark.parametrize("field", ["boot_id", "smbios_uuid", "build", "computer_name", "run"])
def test_null_where_a_text_is_due_is_an_error_and_never_the_word_none(field: str):
    with pytest.raises(BadEvent, match=f"missing required field `{field}`"):
        parse(started(**{field: None}))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (started(fence="3"), r"Expected `int`, got `str` - at `\$.fence`"),
        (started(fence=True), r"Expected `int`, got `bool` - at `\$.fence`"),
        (step(state="perhaps"), r"Invalid enum value 'perhaps' - at `\$.state`"),
        (step(ms=None), "missing required field `ms`"),
        (step(differences="none"), r"Expected `array`, got `str` - at `\$.differences`"),
        (step(differences=[{"what": None}]), r"missing required field `what` - at `\$.differences\[0\]`"),
        (
            step(differences=[{"what": "x", "is": 5, "want": None}]),
            r"Expected `str . null`, got `int` - at `\$.differences\[0\].is`",
        ),
        (step(problem={"id": "X", "message": None}), r"missing required field `message` - at `\$.problem`"),
        (line(event="done", reason=None), "missing required field `reason`"),
        (line(event="detached", id="d", step=None, timeout_s=5), "missing required field `step`"),
    ],
)
def test_an_event_of_another_shape_is_an_error_that_names_the_field(text: str, complaint: str):
    with pytest.raises(BadEvent, match=complaint):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: something",
        "5",
        "[]",
        "{}",
        started().replace('"v": 1', '"v": 2'),
        line(event="boot", boot_id=None),
        line(event=None),
    ],
)
def test_what_is_no_event_of_this_version_is_noise(text: str):
    assert parse(text) is None


def test_a_step_has_its_differences_and_its_problem():
    found = parse(
        step(
            state="failed",
            differences=[
                {"key": "a:b", "what": "x", "is": None, "want": "1", "reboot": True},
                {"key": "c", "what": "y", "is": "2", "want": "(known after join)", "unknown": True},
            ],
            problem={"id": "Odd", "message": "no", "hint": "try", "position": "line 1, column 2"},
        )
    )

    assert isinstance(found, StepDone)
    assert found.differences == (
        Difference("x", None, "1", reboot=True, key="a:b"),
        Difference("y", "2", "(known after join)", unknown=True, key="c"),
    )
    assert found.problem == Problem("Odd", "no", "try", "line 1, column 2")


@pytest.mark.parametrize(
    ("artifact", "read"),
    [
        ({"name": "kubernetes", "version": "1.33.6", "archive": "0" * 64}, {"kubernetes": "1.33.6"}),
        ({"name": "kubernetes", "version": "..\\evil", "archive": "0" * 64}, None),
        ({"name": "kubernetes", "version": "1.33.6", "archive": ""}, None),
        ({"name": "Kubernetes'", "version": "1.33.6", "archive": "0" * 64}, None),
    ],
)
def test_versions_that_no_winboot_has_noted_count_as_none(
    artifact: dict[str, str], read: dict[str, str] | None
):
    """A script is made of them."""
    said = parse(started(versions={"held": {"artifacts": [artifact], "at": "", "by": ""}, "now": None}))

    assert isinstance(said, RunStarted)
    assert (said.versions.held.versions if said.versions.held else None) == read


@pytest.mark.parametrize(
    ("noted", "back"),
    [
        ({"now": "1.34.2"}, None),
        ({"now": "1.34.2", "before": "1.33.6"}, "1.33.6"),
        ({"now": "1.33.6", "next": "1.34.2", "before": "1.32.9"}, "1.33.6"),
        ({"now": "1.33.6", "held": "1.33.6", "before": "1.32.9"}, "1.33.6"),
    ],
)
def test_a_rollback_goes_back_by_one_version(noted: dict[str, str], back: str | None) -> None:
    """From an upgrade that had only begun to what it came from, and from a rollback nowhere else."""
    note = VersionNote(
        **{name: VersionSet((Artifact("kubernetes", one, "0" * 64),)) for name, one in noted.items()}
    )

    assert (note.way_back.versions["kubernetes"] if note.way_back else None) == back

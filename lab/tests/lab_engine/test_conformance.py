"""The lab agrees with the recordings of the real PowerShell, or refuses by name."""

from pathlib import Path

import pytest
from winboot_lab.conformance import load, run_all

FOLDER = Path(__file__).parents[2] / "conformance"


def listed() -> set[str]:
    """The names in wrong.txt: `area/name  reason`."""
    lines = (FOLDER / "wrong.txt").read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


@pytest.mark.check
def test_only_the_listed_recordings_are_answered_wrongly_and_the_list_only_shrinks():
    results = run_all(load(FOLDER))
    wrong = {f"{result.area}/{result.name}": result.why for result in results if result.verdict == "wrong"}
    known = listed()

    news = "\n".join(f"{name}: {why}" for name, why in wrong.items() if name not in known)
    assert not news, f"answered wrongly:\n{news}"
    assert not known - set(wrong), f"no longer wrong, take them off the list: {sorted(known - set(wrong))}"


def test_every_script_that_the_engine_should_know_by_heart_is_answered():
    """Areas that templates lean on leave no case refused: the idioms and the whole grammar."""
    heart = run_all(load(FOLDER, ("idioms", "syntax-invalid")))

    assert heart
    assert [f"{r.area}/{r.name}: {r.why}" for r in heart if r.verdict == "refused"] == []

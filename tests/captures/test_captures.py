"""What machines answered about the lab's beliefs, against what the lab answers: one file a machine.

`made_by` says whether a machine or the lab answered. `differs` names the facts to which a machine answers otherwise, and why:
the belief is wrong, or the machine is another. WINBOOT_CAPTURES=write renews the files that the lab made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.windows.facts import unsourced

from tests.doctor.documents import bundle
from tests.lab.site import Site
from tools.captures import answers, differences

FOLDER = Path(__file__).parent
SCENES = {20348: "plain", 26100: "own credential"}
FILES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_capture_differs_from_the_lab_where_it_says(
    file: Path, joined_site: Callable[[str], Site], tmp_path: Path
) -> None:
    capture: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    (machine,) = capture["machine"]
    site = joined_site(SCENES[machine["build"]])

    found = answers(bundle(site, tmp_path / "lab.zip"))

    if capture["made_by"] == "the lab" and os.environ.get("WINBOOT_CAPTURES") == "write":
        capture["answers"] = found
        file.write_text(json.dumps(capture, indent=1) + "\n", encoding="utf-8")
    # A fact that is newer than the capture, or that has a source since, has one answer only.
    both = capture["answers"].keys() & found.keys()
    kept = {fact: capture["answers"][fact] for fact in both}
    answered = {fact: found[fact] for fact in both}
    assert {fact for fact, *_ in differences(kept, answered)} == set(capture["differs"]) & both
    assert not site.refusals


def test_a_capture_names_its_maker_and_answers_what_a_bundle_can_answer() -> None:
    asked = {one.id for one in unsourced() if one.bundled}

    for file in FILES:
        capture = json.loads(file.read_text(encoding="utf-8"))
        assert capture["made_by"] in ("the lab", "a machine")
        assert len(asked & capture["answers"].keys()) >= 10

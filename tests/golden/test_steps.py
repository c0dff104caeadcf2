"""What each shipped profile does otherwise than the one next to it; the whole part of flannel-host-gw stands here too.

The steps part of its script as a diff, short enough to be read when it changes: flannel-vxlan under NSSM
against flannel-vxlan, each other profile against `minimal`, and minimal against flannel-host-gw.
`WINBOOT_GOLDEN=write pytest tests/golden` writes them.
"""

import difflib
import os
from functools import cache
from pathlib import Path

import pytest

from tests.steps.builders import ROOT, a_spec_of
from winboot.config.node_spec import NodeSpec
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

FOLDER = Path(__file__).parent / "steps"
WHOLE = "flannel-host-gw"
# Every network solution has the same services under NSSM: one profile shows the difference.
NSSM = "flannel-vxlan-nssm"
PROFILES = sorted([NSSM, *(path.stem for path in (ROOT / "profiles").glob("*.yaml") if path.stem != WHOLE)])


def reference(profile: str) -> str:
    """The profile that this one is compared with."""
    if profile == NSSM:
        return "flannel-vxlan"
    return WHOLE if profile == "minimal" else "minimal"


def spec_of(profile: str) -> NodeSpec:
    """A node with this profile on a release that it supports."""
    manager = "nssm" if profile == NSSM else None
    release = "2019" if profile == "ltsc-2019" else "2022"
    return a_spec_of(profile.removesuffix("-nssm"), release, manager=manager)


@cache
def steps_part(profile: str) -> list[str]:
    """The steps of a profile's script, without opening and digest."""
    spec = spec_of(profile)
    lines = render(make_plan(spec, STEPS), spec).node_part.splitlines()
    return lines[next(at for at, line in enumerate(lines) if line.startswith("$script:Node = ")) :]


def difference(profile: str) -> str:
    """A unified diff with one line around each change."""
    other = reference(profile)
    lines = difflib.unified_diff(steps_part(other), steps_part(profile), other, profile, n=1, lineterm="")
    # Positions say nothing to a reader and move with every change elsewhere.
    return "\n".join("@@" if line.startswith("@@") else line for line in lines) + "\n"


@pytest.mark.parametrize("profile", PROFILES)
def test_the_steps_are_those_that_were_reviewed(profile: str) -> None:
    path = FOLDER / f"{profile}.diff"
    text = difference(profile)
    if os.environ.get("WINBOOT_GOLDEN") == "write":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")

    assert text == path.read_text(encoding="utf-8"), "WINBOOT_GOLDEN=write pytest tests/golden"


def test_there_is_no_file_of_a_profile_that_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("*.diff")} == set(PROFILES)

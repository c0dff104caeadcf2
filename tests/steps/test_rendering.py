"""Every shipped profile, on every Windows release it may have, gives scripts that Windows PowerShell 5.1 can run."""

from typing import Any

import pytest
from winboot_lab.language.check import check_script, check_template

from tests.every import assert_none_wrong
from tests.steps.builders import ROOT, a_spec_of
from winboot.base.errors import InvalidInput
from winboot.script.library import templates_root
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

PROFILES = sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml"))
RELEASES = ("2019", "2022", "2025")
# Profile and release that do not go together, with a part of the reason.
REFUSED = {
    ("ltsc-2019", "2022"): "wcifs-2019",
    ("ltsc-2019", "2025"): "wcifs-2019",
}


def scripts() -> list[Any]:
    """Profile, release, and whether it is taken off again. `make test` has each profile once, and one removal: releases
    differ in values, and what removes is the library."""
    good = [(p, r) for p in PROFILES for r in RELEASES if (p, r) not in REFUSED]
    now = {
        (p, RELEASES[at % 3] if (p, RELEASES[at % 3]) in good else RELEASES[0])
        for at, p in enumerate(PROFILES)
    }
    return [
        pytest.param(
            *one,
            undo,
            id="-".join(("remove" if undo else "join", *one)),
            marks=() if one in now and (not undo or one == min(now)) else pytest.mark.matrix,
        )
        for undo in (False, True)
        for one in good
    ]


@pytest.mark.parametrize(("profile", "release", "undo"), scripts())
def test_the_script_passes_the_strict_check(profile: str, release: str, undo: bool) -> None:
    spec = a_spec_of(profile, release)
    text = render(make_plan(spec, STEPS), spec, undo=undo).text

    assert [str(one) for one in check_script(text, origin="script")] == []


@pytest.mark.parametrize(("profile", "release"), REFUSED, ids="-".join)
def test_what_cannot_be_together_is_refused_with_its_reason(profile: str, release: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        a_spec_of(profile, release)

    assert REFUSED[profile, release] in "\n".join(map(str, (refused.value, *refused.value.problems)))


def test_a_template_puts_values_only_where_an_expression_may_stand() -> None:
    assert_none_wrong(
        {
            path.name: [
                str(one) for one in check_template(path.read_text(encoding="utf-8"), origin=path.name)
            ]
            for path in templates_root().rglob("*.j2")
        }
    )

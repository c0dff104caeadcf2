"""A script is one text that a person reads from top to bottom, and that every look sends to every node."""

import pytest

from tests.golden.test_steps import PROFILES, WHOLE
from tests.steps.builders import a_spec_of
from winboot.plan import make_plan
from winboot.script import render
from winboot.steps import STEPS

# One group of PSRP fragments.
LIMIT = 370 * 1000


@pytest.mark.parametrize("profile", [WHOLE, *PROFILES])
def test_the_script_of_a_profile_stays_readable_in_one_sitting(profile: str) -> None:
    spec = a_spec_of(profile, "2019" if profile == "ltsc-2019" else "2022")
    size = render(make_plan(spec, STEPS), spec).size_bytes

    assert size <= LIMIT, f"{profile}: {size:,} bytes, {size - LIMIT:,} more than {LIMIT:,}"

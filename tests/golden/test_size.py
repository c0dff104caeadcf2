"""A script is one text that travels in one piece: a second request for it would cost every look of every node."""

from xml.sax.saxutils import escape

import pytest

from tests.golden.test_steps import PROFILES, WHOLE
from tests.steps.builders import a_spec_of
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

# WinRM's MaxEnvelopeSizekb is 500 by default (MS-WSMV 3.1.4.1.14), and a fragment of PSRP travels in it as base64:
# 512,000 bytes hold 384,000, less the envelope, the parameters and the rest of the pipeline. As CLIXML a line feed is
# `_x000A_` (MS-PSRP 2.2.5.3.2) and markup is escaped.
LIMIT = 370_000


@pytest.mark.parametrize("profile", [WHOLE, *PROFILES])
def test_the_script_of_a_profile_travels_in_one_piece(profile: str) -> None:
    spec = a_spec_of(profile, "2019" if profile == "ltsc-2019" else "2022")
    text = render(make_plan(spec, STEPS), spec).text
    size = len(escape(text, {"\n": "_x000A_"}).encode())

    assert size <= LIMIT, f"{profile}: {size:,} bytes, {size - LIMIT:,} more than {LIMIT:,}"

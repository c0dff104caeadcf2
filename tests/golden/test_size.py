"""A script travels in two requests at most: each further one would cost every look of every node."""

from xml.sax.saxutils import escape

import pytest

from tests.golden.test_steps import PROFILES, WHOLE, spec_of
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

# WinRM's MaxEnvelopeSizekb is 500 by default (MS-WSMV 3.1.4.1.14), and a fragment of PSRP travels in it as base64:
# 512,000 bytes hold 384,000, less the envelope, the parameters and the rest of the pipeline. As CLIXML a line feed is
# `_x000A_` (MS-PSRP 2.2.5.3.2) and markup is escaped.
REQUEST = 370_000
# What a person reads of each node before it is approved.
LINES = 1000


def travels(text: str) -> int:
    """The bytes of a text as CLIXML."""
    return len(escape(text, {"\n": "_x000A_"}).encode())


@pytest.mark.parametrize("profile", [WHOLE, *PROFILES])
def test_the_nodes_part_of_a_profile_is_short(profile: str) -> None:
    spec = spec_of(profile)
    part = render(make_plan(spec, STEPS), spec).node_part

    assert part.count("\n") <= LINES
    assert travels(part) <= REQUEST // 5


@pytest.mark.parametrize("profile", [WHOLE, *PROFILES])
def test_the_whole_text_travels_in_two_requests_and_leaves_a_quarter_of_the_second(profile: str) -> None:
    """It is one text on the wire: where the library ends does not matter to a request."""
    spec = spec_of(profile)

    assert travels(render(make_plan(spec, STEPS), spec).text) <= REQUEST * 7 // 4

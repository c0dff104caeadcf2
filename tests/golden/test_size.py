"""A script travels in two requests at most: each further one would cost every look of every node."""

from functools import cache
from xml.sax.saxutils import escape

from tests.golden.test_steps import PROFILES, WHOLE, spec_of
from winboot.script.plan import make_plan
from winboot.script.rendering import Script, render
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


@cache
def scripts() -> dict[str, Script]:
    """The script of each profile."""
    specs = {profile: spec_of(profile) for profile in (WHOLE, *PROFILES)}
    return {profile: render(make_plan(spec, STEPS), spec) for profile, spec in specs.items()}


def test_the_nodes_part_of_a_profile_is_short() -> None:
    sizes = {
        profile: (one.node_part.count("\n"), travels(one.node_part)) for profile, one in scripts().items()
    }

    assert {
        profile: size for profile, size in sizes.items() if size[0] > LINES or size[1] > REQUEST // 5
    } == {}


def test_the_whole_text_travels_in_two_requests_and_leaves_a_quarter_of_the_second() -> None:
    """It is one text on the wire: where the library ends does not matter to a request."""
    sizes = {profile: travels(one.text) for profile, one in scripts().items()}

    assert {profile: size for profile, size in sizes.items() if size > REQUEST * 7 // 4} == {}

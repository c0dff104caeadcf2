"""A repeat run sends the library's hash: a joined machine keeps the text, and believes its own copy only while it is ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from winboot_lab.language.check import check_script

from tests.lab.site import Controller, Direct, Site
from tests.lab.strangers import alice
from winboot.script.library import library
from winboot.script.plan import make_plan
from winboot.script.rendering import Script, render
from winboot.script.steps import STEPS

PATH = rf"C:\ProgramData\winboot\library-{library().sha256}.ps1"


@pytest.fixture
def site(joined_site: Callable[[str], Site]) -> Site:
    return joined_site("plain")


def script_of(site: Site) -> Script:
    (spec,) = site.specs()
    return render(make_plan(spec, STEPS).complete, spec)


def told(site: Site, text: str, **arguments: object) -> list[dict[str, Any]]:
    """The events of one pipeline in mode Look."""
    (spec,) = site.specs()
    lines = Direct(Controller(site), spec).run(text, {"Mode": "Look", "RunId": "r", **arguments}, {})
    return [json.loads(line) for line in lines]


def short_look(site: Site) -> list[dict[str, Any]]:
    kept = script_of(site).kept
    return told(site, kept.loader, NodePart=kept.node_part)


def without_times(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        yield {name: value for name, value in event.items() if name != "ms"}


def test_the_short_form_says_what_the_whole_script_says(site: Site) -> None:
    """Also which script it is: both together are the text that was rendered."""
    script = script_of(site)

    whole, short = told(site, script.text), short_look(site)

    assert list(without_times(short)) == list(without_times(whole))
    assert short[0]["script"] == script.digest


def test_the_short_form_is_a_quarter_of_the_whole_at_most(site: Site) -> None:
    script = script_of(site)

    assert 4 * (len(script.kept.loader) + len(script.kept.node_part)) <= len(script.text)


def test_the_loader_is_one_that_windows_powershell_takes(site: Site) -> None:
    assert list(check_script(script_of(site).kept.loader, origin="loader.ps1")) == []


def gone(site: Site) -> None:
    site.machine.files.delete(PATH)


def another(site: Site) -> None:
    site.machine.files.write(PATH, site.machine.files.read(PATH).replace(b"function", b"Function", 1))


def cut_short(site: Site) -> None:
    site.machine.files.write(PATH, site.machine.files.read(PATH)[:-1])


def owned(site: Site) -> None:
    site.machine.files.need(PATH)[1].acl.owner = alice(site.machine).sid


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (gone, "is not there"),
        (another, "holds another text"),
        (cut_short, "holds another text"),
        (owned, "belongs to"),
    ],
    ids=["gone", "another", "cut short", "owned"],
)
def test_a_copy_that_is_not_ours_is_not_run(site: Site, happens: Callable[[Site], None], why: str) -> None:
    happens(site)

    (only,) = short_look(site)

    assert only["event"] == "library-missing"
    assert why in only["why"]


@pytest.mark.parametrize("happens", [gone, another], ids=["gone", "another"])
def test_the_next_join_keeps_it_again(site: Site, happens: Callable[[Site], None]) -> None:
    happens(site)

    site.join()

    assert site.machine.files.read(PATH).decode() == library().text

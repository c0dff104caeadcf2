"""A repeat run sends the library's hash: a joined machine keeps the text, and believes its own copy only while it is ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from winboot_lab.language.check import check_script

from tests.lab.site import Controller, Direct, Site
from tests.lab.strangers import alice
from tests.node.script_block_log import log_bytes, running
from winboot.script.library import functions, library
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
    return told(site, kept.loader, **kept.texts)


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

    assert 4 * (len(script.kept.loader) + sum(map(len, script.kept.texts.values()))) <= len(script.text)


def test_the_loader_is_one_that_windows_powershell_takes(site: Site) -> None:
    kept = script_of(site).kept
    define = "\n#region Reader\n"
    head, mark, rest = kept.loader.partition("Set-StrictMode")
    text = f"{head}{define}{kept.texts['Reader']}{mark}{rest}"
    assert list(check_script(text, origin="loader.ps1")) == []


def test_a_library_is_functions_and_a_start(site: Site) -> None:
    """The loader defines functions one by one, and nothing else of the library."""
    text, _, start = library().text.rpartition("\n#region Start")
    others = re.sub(r"(?ms)^function [\w-]+ \{.*?^\}\n", "", text)

    assert start
    assert re.sub(r"(?m)^#.*$", "", others).strip() == ""


def test_a_look_of_a_healthy_node_writes_60_kb_into_powershells_log_at_most(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = script_of(site).kept

    with running(monkeypatch) as blocks:
        told = short_look(site)

    assert [event["state"] for event in told if event["event"] == "step" and event["state"] != "ok"] == []
    assert any("Cryptography" in block for block in blocks), "functions are seen one by one"
    assert log_bytes([kept.loader, *blocks]) <= 60_000


def test_no_run_logs_more_of_the_library_than_its_functions_with_such_words() -> None:
    """Whatever a run calls; a function that reads the library is there twice."""
    every = sum(log_bytes([one.text]) for one in functions().values())

    assert every <= 60_000


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

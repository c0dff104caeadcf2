"""The step of docs/how-to-add-a-step.md, taken from the page and added as it says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from winboot_lab.language.check import check_script, check_template

from tests.lab import damages, difference_patterns
from tests.steps import bench as benches
from tests.steps.bench import Bench
from tests.steps.builders import ROOT, a_spec
from winboot.script import rendering as script
from winboot.script.library import functions, library_files, templates_root
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS
from winboot.script.steps.step import Step

PAGE = (ROOT / "docs" / "how-to-add-a-step.md").read_text(encoding="utf-8")
BLOCKS = dict(
    zip(
        ("value", "template", "test", "damage"),
        re.findall(r"```\w+\n(.*?)```", PAGE, flags=re.DOTALL),
        strict=True,
    )
)


def defined(text: str) -> dict[str, Any]:
    """What a Python file of the page defines."""
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(text, "how-to-add-a-step.md", "exec", dont_inherit=True), names)
    return names


VALUE: Step = next(one for one in defined(BLOCKS["value"]).values() if isinstance(one, Step))
TESTS: dict[str, Callable[[Bench], None]] = {
    name: one for name, one in defined(BLOCKS["test"]).items() if name.startswith("test_")
}


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The step among the others, its template among theirs."""
    shutil.copytree(templates_root(), tmp_path / "powershell")
    (tmp_path / "powershell" / VALUE.template).write_text(BLOCKS["template"], encoding="utf-8")
    monkeypatch.setattr(script, "templates_root", lambda: tmp_path / "powershell")
    monkeypatch.setattr(benches, "STEPS", (*STEPS, VALUE))
    # Templates that were read before this test, or in it, are not those of others.
    script._environment.cache_clear()
    yield
    script._environment.cache_clear()


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("name", TESTS)
def test_the_pages_own_tests_pass(name: str, bench: Bench) -> None:
    TESTS[name](bench)


@pytest.mark.usefixtures("added")
def test_the_pages_damage_is_all_that_the_table_of_damages_asks_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tests/lab/test_damage.py` fails while a `what` of a template has no line in the table."""
    before = {one.text for one in difference_patterns.all_whats()}
    monkeypatch.setattr(difference_patterns, "templates_root", script.templates_root)
    caches = (difference_patterns.all_whats, difference_patterns._trees, difference_patterns._calls)
    for one in caches:
        one.cache_clear()
    new = [one for one in difference_patterns.all_whats() if one.text not in before]
    for one in caches:
        one.cache_clear()
    line = eval(BLOCKS["damage"], vars(damages))

    assert [all(what.matches(said) for said in line.whats) for what in new] == [True]
    bench.run(VALUE.name)
    line.do(SimpleNamespace(machine=bench.machine))
    assert set(bench.look(VALUE.name).differences(VALUE.name)) == set(line.whats)


def test_the_pages_names_are_those_of_its_files() -> None:
    assert VALUE not in STEPS
    for path in (f"winboot/script/steps/{VALUE.stem}.py", f"templates/powershell/{VALUE.template}"):
        assert f"`{path}`" in PAGE
    assert f"`tests/steps/test_{VALUE.stem}.py`" in PAGE


@pytest.mark.usefixtures("added")
def test_the_pages_template_passes_the_strict_check() -> None:
    spec = a_spec()
    text = render(make_plan(spec, (*STEPS, VALUE), only=(VALUE.name,)), spec).text

    assert [str(one) for one in check_template(BLOCKS["template"], origin="page")] == []
    assert [str(one) for one in check_script(text, origin="page")] == []


def test_every_function_that_the_page_names_is_in_the_library() -> None:
    named = set(re.findall(r"\b(?:[A-Z][a-z]+)+-(?:[A-Z][a-z]+)+\b", PAGE))

    assert len(named) > 10
    assert named - set(functions()) == {"Restore-Thing"}


def test_every_library_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`([a-z_]+\.ps1)`", PAGE))

    assert len(named) > 5
    assert named - set(library_files()) == set()

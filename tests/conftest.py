"""How property tests choose their examples, and what a run prints at its end in addition to pytest's line."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers, text
from winboot_lab import engines
from winboot_lab.engine import programs
from winboot_lab.memory import Labs, collect_rarely
from winboot_lab.windows import forking

from tests.matrix import SAMPLE, note_sample, summary
from tests.real.transcript import Recorder
from winboot.config.compat import age, load

collect_rarely()
LABS = Labs()
# Of each script about 3 MiB, of a library 20: what the lab keeps is too much for each of several workers.
programs.KEPT = 250_000
programs.LIBRARIES = 2

# The same examples in every run, so that a failure is of the change at hand; `make fuzz` looks for new ones. How long an
# example takes says nothing on a busy machine.
settings.register_profile("everyday", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which engine runs the scripts."""
    group = parser.getgroup("winboot")
    group.addoption(
        "--engine", choices=("lab", "pwsh"), default="lab", help="what runs the scripts of the lab's machines"
    )
    group.addoption("--pwsh", default="pwsh", help="the PowerShell for --engine pwsh")
    group.addoption("--told", help="a folder for the output of each test's scripts (tests/real/both.py)")


def pytest_configure(config: pytest.Config) -> None:
    """A real engine replaces the lab's before the first test; `--told` keeps the output of scripts."""
    if config.getoption("--told"):
        engines.listen(Recorder(Path(config.getoption("--told"))))
    if config.getoption("--engine") == "pwsh":
        path = engines.find_powershell(config.getoption("--pwsh"))
        engines.use_powershell(path)
        if path is not None:
            from winboot_lab.pwsh.run import start

            start(path)  # the copies in which tests of joined sites run share it


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Hypothesis keeps its tables of characters on disk. To make them takes 200 MB for a moment: once, before there are
    workers, and in none of them."""
    if session.config.getoption("numprocesses", None):
        a_first_text()


@pytest.fixture(scope="session", autouse=True)
def the_day_of_the_data() -> Iterator[None]:
    """Ends of life and the age of the data are judged on the day of the data: a test must not fail by itself next year."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(age, "today", lambda: date.fromisoformat(load().as_of))
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a PowerShell nothing is shown by `--engine pwsh`."""
    if config.getoption("--engine") == "pwsh" and engines.powershell_in_use() is None:
        missing = f"there is no PowerShell {config.getoption('--pwsh')!r}. {engines.HOW_TO_GET}"
        for item in items:
            item.add_marker(pytest.mark.skip(reason=missing))


def pytest_collection_finish(session: pytest.Session) -> None:
    """The first property test of a process parses all local modules for constants and needs some 200 MB for a moment.

    Run one before the labs and boto3 need memory, too."""
    if any(getattr(getattr(item, "obj", None), "is_hypothesis_test", False) for item in session.items):
        a_first_example()


@settings(max_examples=1, database=None)
@given(integers())
def a_first_example(number: int) -> None:
    """Says nothing."""


@settings(max_examples=1, database=None)
@given(text(min_size=1))
def a_first_text(some: str) -> None:
    """Says nothing."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests of a matrix say which case they are (tests/matrix.py)."""
    note_sample(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """A joined machine has a task without end, whose thread would keep it, with some 15 MiB, long after its test. The
    machines of fixtures continue."""
    there = forking.living()
    try:
        return (yield)
    finally:
        for machine in forking.living() - there:
            machine.tasks.end_residents()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """A worker runs thousands of tests, and hundreds of labs."""
    LABS.forget()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Figures that tests have measured: `record_property("damage", "78 of 78")`, and which cases of each matrix have run.
    Workers cannot print them."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if getattr(report, "when", "") == "call"
    ]
    found = [one for report in reports for one in report.user_properties]
    for name, value in found:
        if name != SAMPLE:
            terminalreporter.write_line(f"{name}: {value}")
    for line in summary(found):
        terminalreporter.write_line(line)

"""How property tests choose their examples, and what a run says at its end beside pytest's own line."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The same examples in every run, so that a failure is of the change at hand; `make fuzz` looks for new ones. How long an
# example takes says nothing on a busy machine.
settings.register_profile("everyday", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Figures that tests have measured: `record_property("damage", "78 of 78")`. Workers cannot print them."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")

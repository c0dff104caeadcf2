"""A test in a copy of the process fails as any other does: with its reason, and at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.branches import CAN_SPLIT

pytestmark = pytest.mark.skipif(not CAN_SPLIT, reason="this system cannot copy a process")

ROOT = Path(__file__).parents[2]
CONFTEST = """
import pytest
from tests.lab.copies import run_in_copies

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    run_in_copies(item, nextitem)
    return True
"""
TESTS = """
def test_one():
    assert "black" == "white"

def test_another():
    pass

def test_a_third():
    import os
    os._exit(3)

def test_a_fourth():
    pass
"""


def test_a_failure_in_a_copy_is_reported_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_two.py").write_text(TESTS)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", tmp_path],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "assert 'black' == 'white'" in done.stdout
    assert "ended with status 768 and no report" in done.stdout
    assert "2 failed, 2 passed" in done.stdout

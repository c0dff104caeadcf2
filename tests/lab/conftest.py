"""Sites for the tests: bare ones, and joined ones that tests share."""

from __future__ import annotations

import pytest

from tests.lab.scenes import REGISTRY_PASSWORD, REGISTRY_VARIABLE, Scenes


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return Scenes(tmp_path_factory.mktemp)


@pytest.fixture(autouse=True)
def secrets_of_the_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REGISTRY_VARIABLE, REGISTRY_PASSWORD)

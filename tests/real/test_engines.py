"""Whole joins on the lab's engine and on a real PowerShell: the node's journal says the same (`make real PWSH=…`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from winboot_lab import engines

from tests.lab.scenes import REGISTRY_PASSWORD, REGISTRY_VARIABLE, SCENES, Scenes
from tests.lab.site import Site, problems
from tests.real.transcript import lasting


@pytest.fixture
def powershell(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.config.getoption("--engine") != "pwsh":
        pytest.skip(f"compares with a real PowerShell: --engine pwsh. {engines.HOW_TO_GET}")
    path = engines.powershell_in_use()
    assert path is not None  # without one conftest.py skips everything
    yield path
    engines.use_powershell(path)


def told(site: Site) -> list[Any]:
    """What the node's journal says after two joins, without what differs from run to run."""
    first, second = site.join(), site.join()
    assert not problems(first) + problems(second)
    assert second.changed == 0
    text = site.machine.files.read(r"C:\ProgramData\winboot\journal.jsonl").decode()
    return [lasting(json.loads(line)) for line in text.splitlines()]


@pytest.mark.parametrize("scene", SCENES)
def test_a_join_has_the_same_events_on_both_engines(
    scene: str,
    powershell: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(REGISTRY_VARIABLE, REGISTRY_PASSWORD)

    def bare() -> Site:
        return Scenes(lambda name: Path(tmp_path_factory.mktemp(name))).bare(scene)

    real = told(bare())
    engines.use_powershell(None)

    assert real == told(bare())

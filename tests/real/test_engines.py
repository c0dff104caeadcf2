"""Whole joins on the lab's engine and on a real PowerShell: the node's journal says the same (`make real PWSH=…`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from winboot_lab import engines

from tests.lab.scenes import SCENES, Scenes
from tests.lab.site import Site, problems

# What no two runs have in common: times, ids, keys made anew, and so the hashes of what holds them.
_PASSING = frozenset({"ms", "run", "at", "boot_id", "id", "timeout_s", "digest", "script"})
_MADE_ANEW = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+|\d+ seconds?|boot-[0-9a-f]{16}|sha256 [0-9a-f]{12}"
    r"|[A-Za-z0-9+/=]{40,}"  # a line of a certificate
)


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
    return [_lasting(json.loads(line)) for line in text.splitlines()]


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lasting(item) for name, item in value.items() if name not in _PASSING}
    if isinstance(value, list):
        return [_lasting(item) for item in value]
    return _MADE_ANEW.sub("*", value) if isinstance(value, str) else value


@pytest.mark.parametrize("scene", SCENES)
def test_a_join_tells_the_same_on_both_engines(
    scene: str, powershell: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def bare() -> Site:
        return Scenes(lambda name: Path(tmp_path_factory.mktemp(name))).bare(scene)

    real = told(bare())
    engines.use_powershell(None)

    assert real == told(bare())

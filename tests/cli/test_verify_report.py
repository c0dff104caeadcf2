"""`winboot verify-report`: a report's digests against what is rendered from the files now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_check import an_inventory
from tests.cli.test_rendered import TWO
from winboot.cli import run
from winboot.cli.targets import load_targets
from winboot.config.node_spec.digest import settings_digest
from winboot.operations.join import Options, prepare


def a_report(folder: Path, inventory: Path, **changed: str) -> Path:
    """A report of both nodes as they are rendered; `changed` are other digests of win-1."""
    lines = []
    for task in prepare(load_targets(inventory, ()), Options()):
        digests = {
            "settings": settings_digest(task.spec),
            "script": task.script.digest,
            "library": task.script.library.sha256,
        }
        if task.spec.node.name == "win-1":
            digests.update(changed)
        lines.append(json.dumps({"kind": "node", "node": task.spec.node.name, "digests": digests}))
    path = folder / "report.json"
    path.write_text("\n".join([*lines, json.dumps({"kind": "run"})]) + "\n", encoding="utf-8")
    return path


def test_a_report_of_what_is_rendered_now_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = an_inventory(tmp_path, TWO)

    assert run(["verify-report", str(a_report(tmp_path, inventory)), "-i", str(inventory)]) == 0
    assert capsys.readouterr().out.splitlines() == ["win-1: as rendered now", "win-2: as rendered now"]


def test_the_node_and_the_hash_that_differ_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = an_inventory(tmp_path, TWO)
    report = a_report(tmp_path, inventory, settings="0" * 64, script="0" * 64)

    assert run(["verify-report", str(report), "-i", str(inventory)]) == 2
    assert capsys.readouterr().out.splitlines() == [
        "win-1: differs: settings, script",
        "win-2: as rendered now",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "node", "node": "win-1"}', '{"kind": "run"}'])
def test_what_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(text, encoding="utf-8")

    assert run(["verify-report", str(path), "-i", str(an_inventory(tmp_path, TWO))]) == 64

"""`winboot doctor --from`: the answer for a person and for programs, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doctor.damages import DAMAGES
from tests.doctor.documents import documents
from tests.lab.site import Site
from winboot.cli import run
from winboot.operations.doctor import save


def saved(site: Site, folder: Path) -> Path:
    """The site's documents in a file."""
    file = folder / "facts.jsonl"
    file.write_bytes(save(documents(site)))
    return file


@pytest.fixture
def damaged(joined_site: Callable[[str], Site], tmp_path: Path) -> Path:
    """The documents of a node whose kubelet has no program."""
    site = joined_site("plain")
    next(one for one in DAMAGES if one.rule == "program-missing").do(site)
    return saved(site, tmp_path)


def test_a_healthy_node_is_healthy(
    joined_site: Callable[[str], Site], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(joined_site("plain"), tmp_path)

    assert run(["doctor", "--from", str(file)]) == 0
    assert capsys.readouterr().out == "win-1: healthy\n"


def test_the_first_cause_comes_with_evidence_and_the_next_command(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", "--from", str(damaged)]) == 1

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "win-1: the program of a service is missing"
    assert shown[1].startswith("  seen: kubelet lacks ")
    assert shown[3].strip() == "winboot repair --limit win-1 --only artifacts"
    assert "  consequence: a service of the node does not run (service-stopped)" in shown


def test_each_finding_is_a_line_of_json(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["doctor", "--from", str(damaged), "-o", "json"])

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["kind"], one.get("rule"), one.get("cause")) for one in lines] == [
        ("finding", "program-missing", None),
        ("finding", "service-stopped", "program-missing"),
        ("diagnosis", None, None),
    ]
    assert lines[-1]["first"] == "program-missing"

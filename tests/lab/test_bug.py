"""A bug in winboot itself at one node fails that node alone, and the report names the place to look."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.site import NodePlan, Site
from winboot.config.node_spec import NodeSpec
from winboot.remote.transport.base import Transport


def test_a_bug_at_one_node_costs_the_others_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the journal has its traceback."""
    site = Site(tmp_path, NodePlan("win-1", "2022", "10.0.1.11"), NodePlan("win-2", "2022", "10.0.1.12"))
    controller = site.controller()
    usual = controller.context.connect

    def connect(spec: NodeSpec) -> Transport:
        if spec.node.name == "win-2":
            raise LookupError("an unforeseen case")
        return usual(spec)

    monkeypatch.setattr(controller, "context", replace(controller.context, connect=connect))

    report = controller.join()

    good, bad = report.nodes
    assert (good.failure, good.ready) == (None, True)
    assert bad.failure is not None
    assert "a bug in winboot itself: LookupError: an unforeseen case" in bad.failure.message
    assert report.exit_code == 3
    journal = controller.journal / "win-2.jsonl"
    assert str(journal) in bad.failure.hint
    assert "Traceback" in journal.read_text(encoding="utf-8")

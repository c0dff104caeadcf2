"""The clocks of machine and API server, compared before the first change."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab

from tests.lab.scenes import Scenes
from tests.lab.site import Site, differences, only, problems
from tests.matrix import first
from winboot import cli

SKEWS = (-86400, -1800, -600, -10, 600, 7200)


@pytest.mark.parametrize("skew", SKEWS)
def test_a_machine_with_a_wrong_clock_is_not_changed(skew: float, scenes: Scenes) -> None:
    """It would be renamed and restarted, and get no certificate that it takes for valid."""
    site = scenes.bare("plain")
    site.machine.faults.skew(skew)

    plan = site.plan()

    if abs(skew) <= 300:
        assert problems(plan) == []
        return
    join = site.join()
    side = "behind" if skew < 0 else "ahead of"
    for report in (plan, join):
        (step,) = (one for one in only(report).steps if one.problem and one.name == "node-preflight")
        assert step.problem is not None
        assert step.problem.id == "ClockOff"
        assert f"{abs(skew)} s {side} the API server's" in step.problem.message
        assert (only(report).counts["changed"], only(report).reboots) == (0, 0)
    assert plan.exit_code == join.exit_code == 1


@pytest.mark.parametrize("skew", first(2, (7200, -86400, -1800, -600, -10, 600), daily=3))
def test_a_live_node_with_a_wrong_clock_is_reported_and_continues(
    skew: float, joined_site: Callable[[str], Site]
) -> None:
    site = joined_site("plain")
    site.machine.faults.skew(skew)

    plan, join = site.plan(), site.join()

    for report in (plan, join):
        node = only(report)
        # A day behind, the node's own certificate is not valid yet.
        assert skew == -86400 or (problems(report), differences(report)) == ([], {})
        assert (node.clock is not None) == (abs(skew) > 300)
        assert skew == -86400 or report.exit_code == (2 if node.clock else 0)


def test_repair_and_status_report_a_live_nodes_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with Lab(nodes=1) as lab:
        inventory = str(stage(lab, tmp_path).inventory)
        assert cli.run(["join", "-i", inventory, "--yes"]) == 0
        lab.nodes["win-1"].machine.faults.skew(-1800)
        capsys.readouterr()

        codes = [cli.run([*command, "-i", inventory, "-o", "json"]) for command in (["repair"], ["status"])]

        told = capsys.readouterr().out
    assert codes == [2, 2]
    # The lab's time leaps, so the measured seconds vary.
    assert len(re.findall(r"1(7[5-9]|8[0-4])[0-9] s behind the API server's", told)) >= 2

"""The commands about past runs: `runs`, `log`, `report` and `status`."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.cli.test_exit_codes import Nodes, World
from tests.join.fakes import Found, a_node
from tests.report.test_report import _full
from tests.shape import lines_of
from winboot.base.errors import UsageError
from winboot.cli import run
from winboot.remote.cluster.base import NodeFacts
from winboot.report.archive import Archive, PastRun
from winboot.report.data import json_lines, report_of


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    return World(tmp_path, monkeypatch, capsys)


def said(world: World, *words: str, code: int = 0) -> str:
    world.capsys.readouterr()
    assert run(list(words)) == code
    return world.capsys.readouterr().out


def joined(world: World) -> None:
    """A join in which one machine changes and the other fails."""
    world.at("win-1", Found("directories"))
    world.at("win-2", Found("directories"), fails_at="directories")
    assert world.winboot("join") == 3


def test_a_run_is_listed_with_how_it_ended(world: World) -> None:
    joined(world)

    head, row = said(world, "runs").splitlines()
    (line,) = lines_of(said(world, "runs", "-o", "json"))

    assert head.split() == [
        "RUN",
        "AGE",
        "COMMAND",
        "NODES",
        "READY",
        "FAILED",
        "CHANGED",
        "SECONDS",
        "CODE",
    ]
    assert row.split()[2:4] == ["join", "2"]
    assert re.fullmatch(r"[0-9]+[smhd]", row.split()[1])
    assert max(len(head), len(row)) <= 80
    assert (line["command"], line["exit_code"], line["nodes"]) == ("join", 3, ["win-1", "win-2"])
    assert line["outcomes"] == {"changed": 1, "failed": 1}
    assert said(world, "runs", "-o", "name").strip() == line["run"]
    assert said(world, "runs", "--node", "win-9") == ""


def test_what_was_interrupted_or_is_at_work_did_not_fail() -> None:
    run = PastRun("r", "join", "", 1.0, False, 0, 0, {"failed": 1, "interrupted": 39}, (), 0, "me")

    assert run.failed == 1


def test_the_report_of_a_run_comes_in_every_form(world: World) -> None:
    """Its end is what the command itself printed."""
    joined(world)
    printed = world.capsys.readouterr().out
    page = world.folder / "r.html"

    assert said(world, "report", "last") == printed
    assert [one["kind"] for one in lines_of(said(world, "report", "last", "-o", "json"))][-1] == "run"
    assert ET.fromstring(said(world, "report", "last", "-o", "junit")).find("./testsuite[@name='win-2']")
    said(world, "report", "last", "--report", str(page))
    assert "<html" in page.read_text(encoding="utf-8")


def test_a_log_has_what_each_machine_said_in_the_order_of_time(world: World) -> None:
    joined(world)

    lines = said(world, "log", "last").splitlines()
    one = said(world, "log", "last", "win-2")

    assert any("win-1" in line and "directories: changed" in line for line in lines)
    assert [line[:8] for line in lines] == sorted(line[:8] for line in lines)
    assert "directories: failed" in one
    assert "win-1" not in one
    assert {line["node"] for line in lines_of(said(world, "log", "last", "-o", "json"))} == {"win-1", "win-2"}


def test_a_run_that_was_killed_is_listed_as_not_ended(world: World) -> None:
    class Killed(BaseException):
        """Nothing of winboot sees it."""

    def die() -> None:
        raise Killed

    world.at("win-1", Found("directories"), during=die)
    with pytest.raises(BaseException):  # noqa: B017
        world.winboot("join", "--workers", "1", "--limit", "win-1")

    (line,) = lines_of(said(world, "runs", "-o", "json"))
    assert line["ended"] is False


@pytest.mark.parametrize("word", ["nosuch", ""])
def test_a_run_that_is_not_there_is_named(world: World, word: str) -> None:
    joined(world)
    world.capsys.readouterr()

    assert run(["report", word]) == 64
    assert "`winboot runs` lists them" in world.capsys.readouterr().err


def test_a_node_that_the_run_did_not_have_is_named(world: World) -> None:
    joined(world)
    world.capsys.readouterr()

    assert run(["log", "last", "win-11"]) == 64
    assert "Did you mean 'win-1'?" in world.capsys.readouterr().err


def test_a_report_that_is_read_again_is_the_same() -> None:
    """But for the reasons of steps, which JSON does not have."""
    whole = _full()

    assert report_of(json_lines(whole)) == whole


def test_the_oldest_runs_go_and_none_of_the_last_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINBOOT_KEEP_RUNS", "2")
    archive, old = Archive(tmp_path), time.time() - 2 * 24 * 3600
    for number in range(5):
        archive.keep(replace(_full(), run=f"00000000000{number}"), ended=True)
        if number < 4:
            os.utime(tmp_path / f"00000000000{number}", (old + number, old + number))
    (tmp_path / "mine").mkdir()

    assert archive.prune() == 3
    assert sorted(one.name for one in tmp_path.iterdir()) == ["000000000003", "000000000004", "mine"]


def test_a_wrong_number_of_runs_to_keep_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINBOOT_KEEP_RUNS", "many")

    with pytest.raises(UsageError, match="not a number of runs"):
        Archive(tmp_path).prune()


class Known(Nodes):
    """A cluster that lists the Nodes it has."""

    def nodes(self) -> tuple[NodeFacts, ...]:
        old = replace(
            a_node(name="win-1"),
            kubelet_version="v1.34.2",
            runtime_version="",
            labels={},
            ready=True,
            addresses=(("InternalIP", "10.0.1.11"),),
        )
        return (old,)


def test_status_shows_version_drift_and_last_run(world: World) -> None:
    joined(world)
    world.cluster = Known("win-1")

    told = said(world, "status", "-i", str(world.folder / "inventory.yaml"), "-o", "json", code=2)
    first, second = lines_of(told)

    assert (first["state"], first["kubelet"], second["state"]) == ("Ready", "v1.34.2", "no Node")
    assert first["drift"] == ["kubelet v1.34.2, wanted v1.36.5"]
    assert second["last"].endswith(": failed")


def test_status_names_the_finding_and_not_the_steps_that_wait_for_it(world: World) -> None:
    """A full disk was `25 steps`: one finding, and 24 steps that build on it."""
    joined(world)
    world.cluster = Known("win-2")

    said_of = said(world, "status", "-i", str(world.folder / "inventory.yaml"), "-o", "json", code=2)
    _, second = lines_of(said_of)
    rows = said(world, "status", "-i", str(world.folder / "inventory.yaml"), code=2).splitlines()
    (row,) = [line for line in rows if line.startswith("win-2")]

    assert [one for one in second["drift"] if "(directories) when join looked" in one]
    assert not [one for one in second["drift"] if " steps " in one]
    assert re.search(r"  join [0-9]+[smhd] ago: failed$", row)
    assert len(row) <= 80


def test_status_names_a_node_without_an_address(world: World) -> None:
    """It is Ready in that state."""

    class Bare(Known):
        def nodes(self) -> tuple[NodeFacts, ...]:
            (node,) = super().nodes()
            return (replace(node, addresses=()),)

    world.cluster = Bare("win-1")

    first, _ = lines_of(
        said(world, "status", "-i", str(world.folder / "inventory.yaml"), "-o", "json", code=2)
    )

    assert (first["state"], first["problem"]) == ("Ready", "NoNodeAddress")
    assert "address: the Node has no address" in first["drift"]


def test_the_narrow_table_names_what_drifts_and_how_many_steps(world: World) -> None:
    """A 1 stood there for three steps that a plan had found; the fourth is the startup taint's."""
    world.at("win-1", *(Found(step, what="x") for step in ("directories", "kubelet-config", "kube-proxy")))
    said(world, "plan", "-i", str(world.folder / "inventory.yaml"), code=2)
    world.cluster = Known("win-1")

    told = said(world, "status", "-i", str(world.folder / "inventory.yaml"), code=2).splitlines()

    (row,) = [line for line in told if line.startswith("win-1")]
    assert " kubelet, 4 steps " in row


@pytest.mark.parametrize("form", ["table", "wide", "yaml", "name"])
def test_status_has_each_node_in_every_form(world: World, form: str) -> None:
    world.cluster = Known("win-1")

    told = said(world, "status", "-i", str(world.folder / "inventory.yaml"), "-o", form, code=2)

    assert "win-1" in told
    assert "win-2" in told
    if form == "yaml":
        assert [one["node"] for one in yaml.safe_load(told)["nodes"]] == ["win-1", "win-2"]
    assert not json.dumps(told).count("None")

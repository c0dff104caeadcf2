"""`winboot cloud check`, `cloud policy`, `cloud demo` and `repair --by` as their user types them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab, NodePlan

from tests.cli.terminal import at_a_terminal
from tests.cloud.azure_arm import Arm
from tests.cloud.azure_fixtures import an_arm, an_azure
from winboot.cli import run
from winboot.remote import cloud
from winboot.remote.cloud.azure_policy import ACTIONS


class World:
    """One machine of the lab that is an Azure virtual machine: ARM is the stand-in, WinRM and the cluster are the lab's."""

    def __init__(self, lab: Lab, arm: Arm, inventory: Path) -> None:
        self.lab, self.arm, self.inventory = lab, arm, inventory

    def run(self, *words: str) -> int:
        return run([*words, "-i", str(self.inventory)])


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path, Path]]:
    folder = tmp_path_factory.mktemp("lab")
    with Lab(nodes=[NodePlan("win-1", "2022", "10.0.1.11")]) as lab:
        yield lab, stage(lab, folder).inventory, folder


@pytest.fixture
def world(staged: tuple[Lab, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    lab, inventory, folder = staged
    with an_arm(tmp_path) as (arm, certificate):
        azure = an_azure(arm, certificate)
        monkeypatch.setattr(cloud, "connect", lambda name, **settings: azure)
        identifier = arm.add_machine("win-1", address="10.0.1.11", computer_name="WIN-1")
        written = yaml.safe_load(inventory.read_text(encoding="utf-8"))
        (group,) = written["groups"].values()
        group["hosts"]["win-1"]["provider_id"] = f"azure://{identifier}"
        pool = folder / "with-id.yaml"
        pool.write_text(yaml.safe_dump(written), encoding="utf-8")
        monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
        yield World(lab, arm, pool)
        azure.close()


def test_check_says_each_finding_with_its_fix_and_ends_with_1_on_an_error(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.arm.resources[world.arm.path("virtualMachines", "win-1").lower()]["power"] = "deallocated"

    assert world.run("cloud", "check", "win-1") == 1
    told = capsys.readouterr().out
    assert "error  cloud-state: the cloud reports that the machine is stopped" in told and "fix: " in told

    assert world.run("cloud", "check", "win-1", "-o", "json") == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "cloud-state" in {one["id"] for one in found}
    assert all(set(one) >= {"id", "level", "reason", "fix", "nodes"} for one in found)


def test_check_ends_with_0_where_nothing_is_an_error(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.run("cloud", "check", "win-1") == 0
    # The lab's machine has no metadata service, and that is a warning.
    assert "cloud-metadata" in capsys.readouterr().out


def test_check_of_a_machine_that_is_no_clouds_names_what_is_missing(
    staged: tuple[Lab, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["cloud", "check", "win-1", "-i", str(staged[1])]) == 64
    assert "provider_id" in capsys.readouterr().err


def test_the_policy_of_each_cloud_is_what_its_own_tool_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cloud", "policy", "azure", "--scope", "/subscriptions/s/resourceGroups/g"]) == 0
    role = json.loads(capsys.readouterr().out)
    assert role["Actions"] == [one.name for one in ACTIONS]
    assert run(["cloud", "policy", "aws", "--cluster", "prod", "--queue", "arn:aws:sqs:eu-west-1:1:q"]) == 0
    assert json.loads(capsys.readouterr().out)["Version"] == "2012-10-17"
    assert run(["cloud", "policy", "gcp"]) == 64


def test_repair_contacts_nothing_without_a_terminal(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    before = len(world.arm.requests)

    assert world.run("repair", "--by", "reimage") == 64

    assert "--yes" in capsys.readouterr().err
    assert len(world.arm.requests) == before


@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("", 2), (KeyboardInterrupt, 130)])
def test_repair_at_a_terminal_shows_what_would_be_lost_and_takes_no_for_an_answer(
    answer: str | type[BaseException],
    code: int,
    world: World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_a_terminal(monkeypatch, answer)

    assert world.run("repair", "--by", "reimage") == code

    told = capsys.readouterr()
    assert "all data on it is lost" in told.err and "reimage 1 machine? [y/N]" in told.err
    assert "winboot changed nothing" in told.err and told.out == ""
    assert not any(one.get("reimaged") for one in world.arm.resources.values())


def test_repair_by_replace_of_a_machine_without_a_group_is_refused(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.run("repair", "--by", "replace", "--yes") == 2
    assert "belongs to no group" in capsys.readouterr().err


def test_repair_by_reimage_has_azure_reimage_it_and_joins_it(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab's machine has kept its disk: what the cloud does is the stand-in's, the join that follows is real."""
    joined: list[list[str]] = []

    def join(specs: Any, context: Any, options: Any, *, command: str) -> Any:
        from winboot.report.results import Report

        joined.append([spec.node.name for spec in specs])
        return Report(command, context.run, ())

    monkeypatch.setattr("winboot.operations.join.join", join)
    world.run("repair", "--by", "reimage", "--yes")

    reimaged = [key.rpartition("/")[2] for key, one in world.arm.resources.items() if one.get("reimaged")]
    assert reimaged == ["win-1"] and joined == [["win-1"]]


# The hook.


@pytest.mark.parametrize(
    ("name", "options", "missing"),
    [
        ("pool.aws.yaml", [], "--queue is missing"),
        ("pool.azure.yaml", ["--queue", "https://sqs.eu-west-1.amazonaws.com/1/q"], "for AWS alone"),
        ("inventory.yaml", [], "static inventory"),
        ("", [], "there is no inventory"),
    ],
    ids=["aws without a queue", "azure with one", "static", "none"],
)
def test_an_inventory_that_does_not_fit_the_hook_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, options: list[str], missing: str
) -> None:
    file = tmp_path / (name or "missing.aws.yaml")
    if name:
        file.write_text("{}", encoding="utf-8")
    assert run(["hook", "serve", "-i", str(file), *options]) == 64
    assert missing in capsys.readouterr().err


# The demo.


def test_the_demo_names_what_must_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "moto" else plain(name, *rest)
    )
    assert run(["cloud", "demo"]) == 64
    told = capsys.readouterr().err
    assert "moto is not installed" in told and "pip install '.[aws]' './lab[aws]'" in told

    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **group: ())
    assert run(["cloud", "demo"]) == 64
    assert "the lab and moto are not installed" in capsys.readouterr().err


@pytest.mark.nightly
def test_the_demo_shows_a_group_that_scales_out_and_in(capfd: pytest.CaptureFixture[str]) -> None:
    """Half a minute and more: three joins in the lab, `winboot hook serve` as a process of its own."""
    assert run(["cloud", "demo"]) == 0
    told = capfd.readouterr().out
    assert "5 of 5 machines answered with CONTINUE" in told and "# the group is set to 1" in told

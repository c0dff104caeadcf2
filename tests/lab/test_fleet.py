"""Many nodes by the command itself, over WinRM: one node's fault stays its own, and report and exit code show it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from winboot_lab.cli.staging import PASSWORD_VARIABLE, stage
from winboot_lab.up import Lab

from winboot.cli import run

OFF, REFUSING, FAILING = "win-1", "win-2", "win-3"
WRONG: Final = "WINBOOT_TEST_WRONG_PASSWORD"
# Without the downloads and everything after them a node costs a fraction.
FIRST_STEPS: Final = ("--only", "computer-name,windows-features,directories,firewall-rules,dynamic-ports")
# What an idle node costs: two to log in, three to open the session; the end is not waited for.
# The machine keeps the library: what is left of the script fits into one message.
FLOOR: Final = ["", "", "Create", "Receive", "Receive", "Command", "Receive", "Delete"]
# Before postboot-task it keeps none: the script is more than one envelope holds (tests/golden/test_size.py), the rest of it
# comes by Send.
FLOOR_WITHOUT_LIBRARY: Final = [*FLOOR[:6], "Send", *FLOOR[6:]]
K: Final = r"C:\k"
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class Told:
    """What a command said: its exit code, the nodes of its report by name, and the run."""

    code: int
    nodes: Mapping[str, Any]
    last: Mapping[str, Any]

    def steps(self, node: str) -> dict[str, str]:
        """A node's steps and how they ended."""
        return {step["step"]: step["state"] for step in self.nodes[node]["steps"]}


class Fleet:
    """A lab with its files, and the command on them."""

    def __init__(self, lab: Lab, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.lab = lab
        self.folder = folder
        self._capsys = capsys
        stage(lab, folder)

    def __call__(self, command: str, *words: str) -> Told:
        """Run `winboot COMMAND` as a program would, and read its answer."""
        for node in self.lab.nodes.values():
            node.endpoint.recount()
        self._capsys.readouterr()
        inventory = str(self.folder / "inventory.yaml")
        code = run([command, "-i", inventory, "-o", "json", "--report", str(self.folder / "r.html"), *words])
        lines = [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]
        nodes = {line["node"]: line for line in lines if line["kind"] == "node"}
        return Told(code, nodes, lines[-1])

    def requests(self, node: str) -> list[str]:
        """The last command's requests to the machine."""
        return [seen.action for seen in self.lab.nodes[node].endpoint.requests]

    @property
    def page(self) -> str:
        """The HTML page of the last command."""
        return (self.folder / "r.html").read_text(encoding="utf-8")

    def give_password(self, node: str, variable: str) -> None:
        """The inventory names another place for a node's password."""
        path = self.folder / "inventory.yaml"
        inventory = yaml.safe_load(path.read_text(encoding="utf-8"))
        for group in inventory["groups"].values():
            if node in group["hosts"]:
                group["hosts"][node]["connection"]["password"] = {"env": variable}
        path.write_text(yaml.safe_dump(inventory), encoding="utf-8")


@pytest.fixture
def fleet_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int], Fleet]]:
    """Makes a fleet of so many bare machines; it goes with the test."""
    labs: list[Lab] = []
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv(WRONG, "not the password")
    monkeypatch.setenv(PASSWORD_VARIABLE, "the lab sets it")

    def make(nodes: int) -> Fleet:
        labs.append(Lab(nodes=nodes))
        return Fleet(labs[-1], tmp_path, capsys)

    yield make
    for lab in labs:
        lab.close()


@pytest.mark.parametrize(
    ("nodes", "only"),
    [
        pytest.param(4, FIRST_STEPS, id="four, the first steps", marks=pytest.mark.matrix),
        pytest.param(4, (), id="four, everything", marks=pytest.mark.matrix),
        pytest.param(8, FIRST_STEPS, id="eight, the first steps", marks=pytest.mark.nightly),
        # Twenty lab machines keep two cores busy for minutes; canned ones in their numbers are in tests/peer.
        pytest.param(20, FIRST_STEPS, id="twenty, the first steps", marks=pytest.mark.nightly),
        pytest.param(20, (), id="twenty, everything", marks=pytest.mark.nightly),
    ],
)
def test_one_is_off_one_refuses_one_fails_and_the_others_join(
    fleet_of: Callable[[int], Fleet], nodes: int, only: tuple[str, ...]
) -> None:
    fleet = fleet_of(nodes)
    lab = fleet.lab
    others = [name for name in lab.nodes if name not in (OFF, REFUSING, FAILING)]
    lab.farm.down(lab.nodes[OFF].endpoint)
    fleet.give_password(REFUSING, WRONG)
    # A file of that name: the folder cannot be made, and what builds on it cannot be done.
    lab.nodes[FAILING].machine.files.write(K, b"somebody's")

    joined = fleet("join", *only)

    assert joined.code == 3 == joined.last["exit_code"]
    assert sorted(joined.nodes) == sorted(lab.nodes)
    off, refusing, failing = (joined.nodes[name] for name in (OFF, REFUSING, FAILING))
    assert (off["failure"]["name"], off["failure"]["exit_code"]) == ("Unreachable", 69)
    assert (refusing["failure"]["name"], refusing["failure"]["exit_code"]) == ("LoginRefused", 77)
    assert (failing["outcome"], failing["failure"]) == ("failed", None)
    assert joined.steps(FAILING)["directories"] == "failed"
    assert joined.steps(FAILING)["firewall-rules"] == "changed"
    # One wrong password is one failed login: more would lock an account.
    assert len(fleet.requests(REFUSING)) == 2
    for name in others:
        node = joined.nodes[name]
        assert (node["outcome"], node["failure"], node["reboots"]) == ("changed", None, 1), node["failure"]
        assert node["ready"] is (not only)
    assert all(f">{name}<" in fleet.page for name in lab.nodes)
    assert "LoginRefused" in fleet.page

    # Alone, each has its own code; the command contacts no other machine.
    assert fleet("join", "--limit", OFF, *only).code == 69
    assert fleet("join", "--limit", REFUSING, *only).code == 77
    assert fleet("join", "--limit", FAILING, *only).code == 1
    assert not any(fleet.requests(name) for name in lab.nodes if name != FAILING)

    lab.farm.up(lab.nodes[OFF].endpoint)
    fleet.give_password(REFUSING, PASSWORD_VARIABLE)
    lab.nodes[FAILING].machine.files.delete(K)
    mended = fleet("join", "--limit", f"{OFF},{REFUSING},{FAILING}", *only)
    assert mended.code == 0
    assert {node["outcome"] for node in mended.nodes.values()} == {"changed"}

    # All of them again: one look each, and nothing else.
    again = fleet("join", *only)
    assert (again.code, again.last["changed"]) == (0, 0)
    assert [node["pipelines"] for node in again.nodes.values()] == [1] * nodes
    assert {node["outcome"] for node in again.nodes.values()} == {"ok"}
    for name in lab.nodes:
        assert received_once(fleet.requests(name)) == (FLOOR_WITHOUT_LIBRARY if only else FLOOR)
    assert not [refusal for node in lab.nodes.values() for refusal in node.refusals]


def received_once(requests: list[str]) -> list[str]:
    """The requests, without repeated reads of a pipeline's output: their number depends on how long a look takes."""
    return [
        action
        for at, action in enumerate(requests)
        if action != "Receive" or requests[at - 1] != "Receive" or "Command" not in requests[:at]
    ]


@pytest.mark.matrix
def test_a_plan_finds_changes_before_the_join_and_none_after_it(fleet_of: Callable[[int], Fleet]) -> None:
    fleet = fleet_of(1)

    before = fleet("plan")
    joined = fleet("join")
    sent = sum(seen.received for seen in fleet.lab.nodes["win-1"].endpoint.requests)
    after = fleet("plan")
    again = fleet("join")

    assert (before.code, joined.code, after.code, again.code) == (2, 0, 0, 0)
    assert (joined.nodes["win-1"]["outcome"], joined.nodes["win-1"]["ready"]) == ("changed", True)
    assert (again.last["changed"], again.nodes["win-1"]["pipelines"]) == (0, 1)
    assert received_once(fleet.requests("win-1")) == FLOOR
    assert sum(seen.received for seen in fleet.lab.nodes["win-1"].endpoint.requests) < sent / 3


def a_process(fleet: Fleet, *words: str) -> subprocess.Popen[str]:
    """`winboot join` as a person starts it."""
    command = [sys.executable, "-m", "winboot", "join", "-i", str(fleet.folder / "inventory.yaml"), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.matrix
def test_two_commands_at_once_join_a_node_once(fleet_of: Callable[[int], Fleet]) -> None:
    """The second command waits, and finds it done; both succeed."""
    fleet = fleet_of(1)

    two = [a_process(fleet) for _ in range(2)]
    told = [process.communicate(timeout=240) for process in two]

    assert [process.returncode for process in two] == [0, 0], told
    assert fleet.lab.nodes["win-1"].machine.boot_count == 2
    again = fleet("join")
    assert (again.code, again.last["changed"], again.nodes["win-1"]["ready"]) == (0, 0, True)


@pytest.mark.matrix
@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C of one process alone is POSIX's")
def test_ctrl_c_reports_every_node_and_the_next_join_continues(fleet_of: Callable[[int], Fleet]) -> None:
    fleet = fleet_of(2)
    report = fleet.folder / "stopped.jsonl"
    process = a_process(fleet, "--report", str(report))
    assert process.stderr is not None

    for line in process.stderr:
        if "directories: changed" in line:
            process.send_signal(signal.SIGINT)
            break
    said, _ = process.communicate(timeout=120)

    assert process.returncode == 130, said
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    stopped = {line["node"]: line["failure"]["name"] for line in lines if line["kind"] == "node"}
    assert stopped == dict.fromkeys(fleet.lab.nodes, "Interrupted")
    again = fleet("join")
    assert (again.code, {node["ready"] for node in again.nodes.values()}) == (0, {True})

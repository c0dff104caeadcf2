"""Everything that winboot writes as JSON lines is of one published shape."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lab_wsman.stage import PASSWORD, USER, node, says
from winboot_lab.wsman.farm import Farm

from tests.cli.test_check import an_inventory
from tests.cli.test_rendered import TWO
from tests.config.scene import GOOD
from tests.join.fakes import Found, Scene
from tests.report.test_report import _full
from tests.shape import lines_of
from winboot.cli import run
from winboot.report.data import json_lines
from winboot.report.finding import CloudFinding, Finding
from winboot.report.line import VERSION, json_line, json_text
from winboot.report.schema import ANSWERS, JOURNAL

CLI = Path(__file__).parents[2] / "winboot" / "cli"


def test_a_report_is_of_the_published_shape() -> None:
    """Failed steps, failed nodes, findings and the run."""
    finding, cloud = (
        kind("clock", "error", "it is late", "set it", ("win-1",), skipped=True)
        for kind in (Finding, CloudFinding)
    )

    lines = lines_of(json_line(finding) + json_lines(_full()) + json_line(cloud))

    assert [line["kind"] for line in lines] == ["preflight", "node", "node", "run", "cloud"]
    assert {line["version"] for line in lines} == {VERSION}


def test_a_journal_is_of_the_published_shape(tmp_path: Path) -> None:
    """A join that changes something, and says something that is no event."""
    scene = Scene(tmp_path, Found("directories"))
    scene.join()

    (journal,) = tmp_path.rglob("win-1.jsonl")
    kinds = {line["kind"] for line in lines_of(journal.read_text(encoding="utf-8"))}
    assert {"script", "pass", "event"} <= kinds


def test_what_check_says_is_of_the_published_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each complaint with its place, and how many there are."""
    inventory = an_inventory(tmp_path, "groups: {p: {profile: profile.yaml, os: '2016', hosts: {win-1: {}}}}")

    assert run(["check", str(inventory), "-o", "json"]) == 64

    *complaints, last = lines_of(capsys.readouterr().out)
    assert {line["kind"] for line in complaints} == {"complaint"}
    assert last["kind"] == "checked"
    assert last["errors"] == sum(line["level"] == "error" for line in complaints) > 0


def test_a_good_file_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A program that reads no line cannot distinguish a good file from a check that never ran."""
    assert run(["check", str(an_inventory(tmp_path, TWO)), "-o", "json"]) == 0

    assert lines_of(capsys.readouterr().out)[-1]["errors"] == 0


def test_what_ping_says_is_of_the_published_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine that refuses the login, with its public data."""
    monkeypatch.setenv("WINBOOT_TEST_PASSWORD", f"not {PASSWORD}")
    with Farm() as farm:
        machine = node(farm, says())
        host = f"{{address: 127.0.0.1, connection: {{port: {machine.http_port}, scheme: http, auth: ntlm}}}}"
        text = (
            "groups: {p: {profile: profile.yaml, os: '2022', "
            f"connection: {{user: {USER}, password: {{env: WINBOOT_TEST_PASSWORD}}}}, hosts: {{win-1: {host}}}}}}}"
        )
        profile = GOOD.replace("  kubeconfig: {file: kubeconfig}\n", "")
        code = run(["ping", "-i", str(an_inventory(tmp_path, text, profile)), "-o", "json"])

    (line,) = lines_of(capsys.readouterr().out)
    assert (line["kind"], line["node"], line["exit_code"]) == ("ping", "win-1", code)
    assert line["findings"][0]["id"] == "LoginRefused"


def test_the_catalogue_of_steps_is_of_the_published_shape(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["steps", "-o", "json"]) == 0

    assert {line["kind"] for line in lines_of(capsys.readouterr().out)} == {"step"}


def test_no_command_writes_json_in_a_shape_of_its_own() -> None:
    """Exceptions: another program defines the form (Ansible inventories, cloud policies), and `init` writes YAML.

    A first-boot script reads its secrets from a file next to it."""
    found = {
        file.name
        for file in CLI.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Attribute) and ast.unparse(call) == "json.dumps"
    }

    assert found == {"cloud.py", "first_boot.py", "init.py", "inventory.py", "schema.py"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.pop("version"),
        lambda line: line.update(version=2),
        lambda line: line.update(kind="other"),
        lambda line: line.update(unheard_of=1),
        lambda line: line.pop("outcome"),
        lambda line: line.update(outcome="well"),
        lambda line: line["steps"][0].update(ms="3"),
    ],
)
def test_another_shape_is_found(damage: Callable[[dict[str, Any]], object]) -> None:
    """The schema is not one that everything fits."""
    line = json.loads(json_lines(_full()).splitlines()[0])
    damage(line)

    with pytest.raises(AssertionError):
        lines_of(json.dumps(line))


def test_a_kind_means_one_thing() -> None:
    names = [kind.__struct_config__.tag for kind in (*ANSWERS, *JOURNAL)]

    assert len(names) == len(set(names))
    assert json.loads(json_text("step", {"a": 1})) == {"version": 1, "kind": "step", "a": 1}

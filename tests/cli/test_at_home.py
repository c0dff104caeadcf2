"""What stands around the commands: manual page, hook for pre-commit, GitHub Action, systemd units."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.scene import GOOD
from tools import manual
from winboot.cli import run
from winboot.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "docs" / "examples" / "systemd" / "winboot-repair.service"
ACTION = ROOT / ".github" / "actions" / "check" / "action.yml"


def test_the_manual_page_has_every_command_and_every_option_of_join(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = manual.manual().replace("\\-", "-")
    assert run(["join", "--help"]) == 0
    options = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help"}

    assert [one.name for one in COMMANDS if f".SS winboot {one.name}" not in page] == []
    assert "--take-over" in options
    section = page.partition(".SS winboot join\n")[2].partition(".SS ")[0]
    assert [one for one in options if one not in section] == []


@pytest.mark.parametrize(
    ("text", "escaped"),
    [(r".\name", r"\&.\ename"), ("--only", r"\-\-only"), ("'x'", r"\(aqx\(aq"), ("`x`", r"\(gax\(ga")],
)
def test_no_text_of_a_command_is_a_request_to_the_formatter(text: str, escaped: str) -> None:
    assert manual._text(text) == escaped


def test_a_commit_with_a_wrong_profile_is_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The hook's pattern means the files that `init` writes and those of examples; its entry is a command that refuses."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    pattern = re.compile(hook["files"])
    wrong = tmp_path / "profile.yaml"
    wrong.write_text(GOOD.replace("flannel", "flanel"), encoding="utf-8")
    program, *words = shlex.split(hook["entry"])

    named = ("profile.yaml", "a/inventory.yaml", "inventory-prod.yml", "clusters/x/profile.2022.yaml")
    assert all(map(pattern.search, named))
    assert not any(
        map(pattern.search, ("values.yaml", "my-profile.json", "profile.yaml.bak", "chart/x.yaml"))
    )
    assert program == "winboot"
    assert run([*words, str(wrong)]) == 64
    assert "profile.yaml:" in capsys.readouterr().err


def _unit() -> dict[str, list[str]]:
    lines = (line.partition("=") for line in UNIT.read_text(encoding="utf-8").splitlines())
    found: dict[str, list[str]] = {}
    for name, equals, value in lines:
        if equals and not name.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_nightly_unit_says_what_repair_understands_and_keeps_its_state_to_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (command,) = _unit()["ExecStart"]
    program, word, *options = shlex.split(command)
    assert run([word, "--help"]) == 0
    told = capsys.readouterr().out

    assert program == "/opt/winboot/bin/winboot"
    assert word == "repair"
    assert [one for one in options if one.startswith("--") and one not in told] == []
    assert "WINBOOT_STATE=/var/lib/winboot" in _unit()["Environment"]
    assert _unit()["StateDirectory"] == ["winboot"]
    assert _unit()["StateDirectoryMode"] == ["0700"]
    assert _unit()["User"] == ["winboot"]


@pytest.mark.parametrize(("profile", "code"), [(GOOD, 0), (GOOD.replace("flannel", "flanel"), 64)])
def test_the_action_passes_what_check_says(profile: str, code: int, tmp_path: Path) -> None:
    """Its last step in a shell, with this environment's program where the action has installed one."""
    action: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    (tmp_path / "profile.yaml").write_text(profile, encoding="utf-8")
    (tmp_path / "winboot" / "bin").mkdir(parents=True)
    (tmp_path / "winboot" / "bin" / "winboot").symlink_to(Path(sys.executable).parent / "winboot")
    step = action["runs"]["steps"][-1]
    assert step["env"] == {"FILES": "${{ inputs.files }}"}

    ended = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={**os.environ, "RUNNER_TEMP": str(tmp_path), "FILES": "profile.yaml"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == code, ended.stderr
    assert (ACTION.parent / "../../.." / "pyproject.toml").exists()

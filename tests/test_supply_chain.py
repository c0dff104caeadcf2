"""What is fetched is named by a hash; what an auditor reads names tests that exist."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.every import assert_none_wrong, untrue

ROOT = Path(__file__).parent.parent
WORKFLOWS = [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/*/action.yml")]
ACTION = ROOT / ".github" / "actions" / "check" / "action.yml"
THREATS = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
# Where dependencies are installed.
INSTALLS = [ROOT / "Makefile", ROOT / "docs" / "examples" / "hook" / "Containerfile", *WORKFLOWS]
TOOLS = (
    "'ansible-core>=2.17' 'pypsrp>=0.9.1'",
    "'pip-audit>=2.7'",
)  # development tools in environments of their own


def test_every_action_is_named_by_a_commit() -> None:
    used = [one for path in WORKFLOWS for one in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))]
    used = [one for one in used if not one.startswith("OWNER/")]

    assert len(used) > 3
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)] == []


def pinned(line: str) -> bool:
    """Whether a line that installs something names it by hash or by version; true for any other line."""
    if "Install-Module" in line and "-RequiredVersion" not in line:
        return False
    if line.startswith("INSTALL :=") or any(tool in line for tool in TOOLS):
        return True
    installs = re.search(r"pip\"? install|\$\(INSTALL\)", line)
    return not installs or "--require-hashes" in line or "--no-deps" in line


def test_every_install_of_dependencies_wants_hashes() -> None:
    assert_none_wrong(
        {
            str(path.relative_to(ROOT)): [
                line for line in path.read_text(encoding="utf-8").splitlines() if not pinned(line)
            ]
            for path in INSTALLS
        }
    )


@pytest.mark.skipif(os.name == "nt", reason="the action's step is a script of bash")
@pytest.mark.parametrize("code", [0, 64])
def test_no_line_of_the_action_is_a_workflow_command(code: int, tmp_path: Path) -> None:
    """`::stop-commands::` (docs.github.com, workflow commands): until its token comes back, the runner obeys no line."""
    program = tmp_path / "winboot" / "bin" / "winboot"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho "$2: complaint"\nexit {code}\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    step = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"][-1]["run"]
    hostile = "::error::pwned.yaml"
    bin_folder = str(Path(sys.executable).parent)
    environment = {
        "RUNNER_TEMP": str(tmp_path),
        "FILES": hostile,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
    }

    done = subprocess.run(
        ["bash", "-e", "-c", step], env=environment, capture_output=True, text=True, check=False
    )

    first, told, last = done.stdout.splitlines()
    assert told == f"{hostile}: complaint"
    assert re.fullmatch(r"::stop-commands::[0-9a-f]{32}", first)
    assert last == f"::{first.rpartition(':')[2]}::"
    assert done.returncode == code


def test_an_sbom_has_each_distribution_of_the_lock_with_its_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    command = [sys.executable, str(ROOT / "tools" / "sbom.py"), str(ROOT / "requirements.lock")]
    made = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert len({one["bom-ref"] for one in made["components"]}) == len(
        re.findall("(?m)^[A-Za-z0-9].*==", lock)
    )
    digests = {one["content"] for component in made["components"] for one in component["hashes"]}
    assert digests == set(re.findall("sha256:([0-9a-f]{64})", lock))


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    file = ROOT / path
    return file.is_file() and f"def {name}(" in file.read_text(encoding="utf-8")


def test_the_threat_model_names_tests_that_exist() -> None:
    named = set(re.findall(r"`(tests/[^`]+\.py::\w+)`", THREATS))

    assert_none_wrong({test: untrue(exists=exists(test)) for test in sorted(named)})


def test_each_row_of_the_boundaries_names_a_test() -> None:
    rows = THREATS.split("## Boundaries")[1].split("\n## ")[0].splitlines()
    rows = [row for row in rows if row.startswith("| ")][1:]

    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`tests/[^`]+::\w+`", row) and "---" not in row] == []

"""One host's script in a file, for where there is no endpoint: its secrets are beside it and nowhere else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.join.fakes import FakeCluster
from tests.steps.builders import a_spec_of
from winboot.base.errors import InvalidInput
from winboot.cli import run
from winboot.operations.join.secrets import BOOTSTRAP, own_secrets
from winboot.powershell.parser import parse
from winboot.script.first_boot import alone
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

ROOT = Path(__file__).parents[2]
SPEC = a_spec_of("flannel-host-gw")


def test_the_script_of_the_host_is_in_it_whole() -> None:
    text = alone(SPEC, secrets="win-a1.secrets.json")
    script = render(make_plan(SPEC, STEPS, only=(), skip=()).complete, SPEC).text

    parse(text)
    assert script.replace("'", "''") in text
    assert "win-a1.secrets.json" in text


def test_a_token_is_minted_for_the_time_that_the_file_may_lie() -> None:
    cluster = FakeCluster()

    found = own_secrets(SPEC, cluster, timedelta(hours=24))

    assert set(found) == {BOOTSTRAP}
    assert found[BOOTSTRAP].reveal() not in alone(SPEC, secrets="s.json")
    with pytest.raises(InvalidInput, match="a token must be minted"):
        own_secrets(SPEC, None, timedelta(hours=24))


@pytest.mark.parametrize(
    "options", [["--for", "ec2", "--host", "win-a1"], ["--for", "file", "--group", "ltsc2022"]], ids=str
)
def test_it_is_for_a_file_and_one_host(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    path = tmp_path / "win.ps1"
    inventory = ROOT / "inventories" / "canonical.yaml"

    assert run(["userdata", *options, "--inline", str(path), "-i", str(inventory)]) == 64
    capsys.readouterr()
    assert not path.exists()
    assert list(tmp_path.glob("win*")) == []

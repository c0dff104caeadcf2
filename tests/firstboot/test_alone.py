"""One host's script in a file, for sites without an endpoint: its secrets are in a second file and nowhere else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from winboot_lab.console import run_command, silent_powershell
from winboot_lab.language.parser import parse
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.session import StandardStreams

from tests.join.fakes import FakeCluster
from tests.steps.builders import a_spec_of
from winboot.base.errors import InvalidInput
from winboot.cli import run
from winboot.operations.join.secrets import BOOTSTRAP, own_secrets
from winboot.script.first_boot import alone, marked
from winboot.script.plan import make_plan
from winboot.script.rendering import render, small_script
from winboot.script.steps import STEPS

ROOT = Path(__file__).parents[2]
SPEC = a_spec_of("flannel-host-gw")


def test_the_script_of_the_host_is_in_it_whole() -> None:
    text = alone(SPEC, secrets="win-a1.secrets.json")
    script = render(make_plan(SPEC, STEPS, only=(), skip=()).complete, SPEC).text

    parse(text)
    assert script.replace("'", "''") in text
    assert "win-a1.secrets.json" in text


def test_its_files_are_read_as_utf8_where_a_value_has_other_letters() -> None:
    assert alone(SPEC, secrets="").isascii()
    assert marked("'Zürich'") == "\ufeff'Zürich'"
    assert marked("'Zurich'") == "'Zurich'"


def test_a_token_is_minted_for_the_time_that_the_file_may_lie() -> None:
    cluster = FakeCluster()

    found = own_secrets(SPEC, cluster, timedelta(hours=24))

    assert set(found) == {BOOTSTRAP}
    assert found[BOOTSTRAP].reveal() not in alone(SPEC, secrets="s.json")
    with pytest.raises(InvalidInput, match="winboot cannot mint a token, because"):
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


def test_an_option_that_inline_would_ignore_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    inventory = ROOT / "inventories" / "canonical.yaml"
    command = ["userdata", "--for", "file", "--host", "win-a1", "--inline", str(tmp_path / "win.ps1")]

    assert run([*command, "--endpoint", "b", "--by-hand", "-i", str(inventory)]) == 64
    assert "takes no --endpoint, --by-hand" in capsys.readouterr().err


# ---- on the machine ------------------------------------------------------------------------------------------------

FOLDER = r"C:\ProgramData\winboot-first-boot"
# A node's script that never gets anywhere: each change wants a restart.
STUBBORN = """param($Mode, $Secrets, $RunId)
'{"event":"run","boot_id":"b"}'
'{"event":"step","step":"features","state":"would-change"}'
if ($Mode -eq 'Change') { '{"event":"reboot"}' }
"""
COUNTED = "param($Reason, $BootId)\n[IO.File]::AppendAllText('C:\\restarts', '.')"


def runs(machine: Machine, path: str) -> tuple[int, str]:
    """What PowerShell says of a file, and its exit code."""
    said: list[bytes] = []
    code = run_command(
        machine, f"powershell.exe -File {path}", StandardStreams(b"", said.append, said.append)
    )
    return code, b"".join(said).decode()


def test_restarts_that_change_nothing_end_and_the_console_says_so() -> None:
    machine = Machine("WIN-1")
    runner = small_script("_first_boot_alone.ps1.j2", node="win-a1", folder=FOLDER)
    with machine.lock:
        machine.files.make_directory(FOLDER)
        for name, text in (
            ("first-boot.ps1", runner),
            ("node.ps1", STUBBORN),
            ("restart.ps1", COUNTED),
            ("restarts", "18"),
        ):
            machine.files.write(rf"{FOLDER}\{name}", text.encode())

    for _ in range(4):
        assert runs(machine, rf"{FOLDER}\first-boot.ps1") == (0, "")

    assert machine.files.read(r"C:\restarts") == b".."
    assert "is not the node win-a1 after 20 restarts" in (machine.serial or [])[-1]


def sets_up(machine: Machine, secrets: bytes | None) -> tuple[int, str]:
    """One run of the file that an administrator has, with or without its file of secrets."""
    text = small_script(
        "_first_boot_setup.ps1.j2",
        folder=FOLDER,
        files=[("first-boot.ps1", "exit 0")],
        secrets="s.json",
        failed=1,
    )
    machine.run_powershell = silent_powershell
    with machine.lock:
        machine.files.make_directory(r"C:\boot")
        machine.files.write(r"C:\boot\win.ps1", text.encode())
        if secrets is not None:
            machine.files.write(r"C:\boot\s.json", secrets)
    return runs(machine, r"C:\boot\win.ps1")


def test_secrets_are_moved_into_a_new_file_and_a_second_run_of_the_script_continues_without_them() -> None:
    machine = Machine("WIN-1")
    assert sets_up(machine, b"{}") == (0, "")
    machine.accounts.add("alice", administrator=False)
    own = rf"{FOLDER}\secrets.json"
    machine.files.need(own)[1].acl.owner = machine.accounts.token("alice").sid

    assert sets_up(machine, b'{"a":"b"}') == (0, "")
    assert machine.files.read(own) == b'{"a":"b"}'
    assert machine.files.need(own)[1].acl.owner != machine.accounts.token("alice").sid
    assert not machine.files.exists(r"C:\boot\s.json")
    assert sets_up(machine, None) == (0, "")
    assert machine.files.read(own) == b'{"a":"b"}'


def test_secrets_that_never_were_beside_the_script_are_named() -> None:
    code, said = sets_up(Machine("WIN-1"), None)

    assert code == 1
    assert "s.json is not in the folder of this script" in said

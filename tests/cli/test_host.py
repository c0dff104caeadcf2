"""Machines for an inventory that exists, one or many."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.config.scene import an_inventory
from winboot.base.errors import InvalidInput
from winboot.cli import run
from winboot.config.host_list import Listed, read_hosts
from winboot.config.inventory import load_inventory

INVENTORY = """\
# Of the two halls.
groups:
  old:
    profile: profile.yaml
    os: "2019"
    hosts:
      win-1: {address: 10.0.1.11}   # the first
  new:
    profile: profile.yaml
    os: "2022"
    hosts: {win-2: {address: 10.0.1.12}}
"""
GOVC = {
    "virtualMachines": [
        {
            "name": "WIN-7",
            "guest": {"ipAddress": "10.0.1.17", "guestFullName": "Microsoft Windows Server 2022 (64-bit)"},
        },
        {"name": "db-1", "guest": {"ipAddress": "10.0.1.30", "guestFullName": "Debian GNU/Linux 12"}},
        {"name": "win-off", "guest": {"guestFullName": "Microsoft Windows Server 2025 (64-bit)"}},
    ]
}
TERRAFORM = {
    "nodes": {"sensitive": False, "type": ["map", "string"], "value": {"win-7": "10.0.1.17"}},
    "password": {"sensitive": True, "type": "string", "value": "not shown"},
}
OBJECTS = {
    "machines": {
        "sensitive": False,
        "type": ["tuple", []],
        "value": [{"name": "win-7", "private_ip": "10.0.1.17", "os": "2022"}],
    }
}


@pytest.mark.parametrize(
    ("text", "machines"),
    [
        ("win-7 10.0.1.17 2022\n", [("win-7", "10.0.1.17", "2022")]),
        ("win-7=10.0.1.17,2022 # x\n\n# y\nwin-8\n", [("win-7", "10.0.1.17", "2022"), ("win-8", "", "")]),
        (json.dumps(GOVC), [("win-7", "10.0.1.17", "2022")]),
        (json.dumps(TERRAFORM), [("win-7", "10.0.1.17", "")]),
        (json.dumps(OBJECTS), [("win-7", "10.0.1.17", "2022")]),
        ('[{"Name": "win-7", "PrivateIpAddress": "10.0.1.17"}]', [("win-7", "10.0.1.17", "")]),
        ('{"win-7": {"ip": "10.0.1.17", "os": "2025"}}', [("win-7", "10.0.1.17", "2025")]),
    ],
)
def test_a_list_of_another_program_is_read(text: str, machines: list[tuple[str, str, str]]) -> None:
    assert list(read_hosts(text, "list")) == [Listed(*one) for one in machines]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "list:1:1"),
        ("# nothing\n", "list:1:1"),
        ("null\n", "list:1:1"),
        ("win-1 10.0.0.1 2022\nwin-2 10.0.0.2 2016\n", "list:2:1"),
        ("win-1 10.0.0.1 2022 more\n", "list:1:1"),
        ('{"a": ', "list:1:7"),
        ("[]", "list:1:1"),
        ("[" * 100_000, "list:1:1"),
    ],
)
def test_a_value_that_is_not_a_list_has_its_place(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_hosts(text, "list")

    assert str(caught.value.problems[0]).startswith(place)


@pytest.mark.parametrize(
    ("words", "group", "os"),
    [
        (["win-9", "10.0.1.19", "--os", "2019"], "old", "2019"),
        (["win-9", "10.0.1.19", "--os", "2022"], "new", "2022"),
        (["win-9", "10.0.1.19", "--group", "new"], "new", "2022"),
        (["win-9", "--group", "old", "--os", "2025"], "old", "2025"),
        (["win-9", "--group", "old"], "old", "2019"),
    ],
)
def test_a_machine_is_added_and_nothing_else_changes(
    words: list[str], group: str, os: str, tmp_path: Path
) -> None:
    path = an_inventory(tmp_path, INVENTORY)

    assert run(["host", "add", *words, "-i", str(path)]) == 0

    machine = load_inventory(path)["win-9"]
    assert (machine.group, machine.os, machine.name) == (group, os, "win-9")
    text = path.read_text(encoding="utf-8")
    assert all(line in text for line in INVENTORY.splitlines() if "win-2" not in line)


def given(data: bytes) -> io.TextIOWrapper:
    """Standard input with these bytes, as in a UTF-8 locale."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")


def test_bytes_that_are_no_text_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, INVENTORY)
    monkeypatch.setattr("sys.stdin", given(b"win-9 10.0.1.19 # B\xfcro\n"))

    assert run(["host", "add", "--from", "-", "-i", str(path), "--yes"]) == 64
    assert "standard input is not UTF-8 text" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_many_come_from_standard_input(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PowerShell writes the last two."""
    path = an_inventory(tmp_path, INVENTORY)
    monkeypatch.setattr("sys.stdin", given(json.dumps(GOVC).encode(encoding)))

    assert run(["host", "add", "--from", "-", "-i", str(path), "--yes"]) == 0
    assert load_inventory(path)["win-7"].address == "10.0.1.17"


def test_a_list_is_shown_and_written_after_a_yes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, INVENTORY)
    source = tmp_path / "list.json"
    source.write_text(json.dumps(GOVC), encoding="utf-8")
    words = ["host", "add", "--from", str(source), "-i", str(path)]

    assert run(words) == 64
    told = capsys.readouterr().err
    assert "win-7  10.0.1.17  2022" in told
    assert "--yes" in told
    monkeypatch.setattr("winboot.cli.host.at_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert run(words) != 0
    assert "Write 1 machine to" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == INVENTORY
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(words) == 0
    assert "win-7" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["win-9"], "the host's group is missing"),
        (["win-9", "--group", "nosuch"], "there is no group nosuch"),
        (["win-1", "--group", "new"], "win-1 is already in the group old"),
        (["WIN_9", "--group", "new"], "WIN_9"),
        (["win-9", "10.0.1.11", "--group", "old"], "have the same address"),
        (["win-9", "--os", "2016", "--group", "old"], "2016"),
        ([], "takes a NAME, or --from FILE"),
    ],
)
def test_what_check_would_refuse_is_not_written(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, INVENTORY)

    assert run(["host", "add", *words, "-i", str(path)]) == 64
    assert said in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == INVENTORY

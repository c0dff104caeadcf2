"""`winboot inventory import` runs ansible-inventory, and no other command does."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.config.scene import CA, FILE, GOOD
from winboot.cli import run
from winboot.config.inventory import load_inventory

needs_ansible = pytest.mark.skipif(
    importlib.util.find_spec("ansible") is None, reason="ansible-core is not installed"
)
HOST: dict[str, Any] = {
    "ansible_connection": "psrp",
    "ansible_psrp_host": "10.0.0.1",
    "ansible_port": 5985,
    "ansible_user": "CORP\\svc",
    "winboot_os": 2022,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a profile, in which Ansible finds its vault's password and its own program."""
    (tmp_path / FILE).write_text(GOOD, encoding="utf-8")
    (tmp_path / "ca.crt").write_text(CA, encoding="utf-8")
    (tmp_path / "vault-password").write_text("open sesame")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "vault-password"))
    monkeypatch.setenv("ANSIBLE_LOCAL_TEMP", str(tmp_path / ".ansible"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_script(path: Path, variables: Mapping[str, Any]) -> Path:
    """An inventory program with one host in a group."""
    answer = {
        "rack_a": {"hosts": ["w1"]},
        "windows": {"children": ["rack_a"]},
        "_meta": {"hostvars": {"w1": variables}},
    }
    path.write_text(f"#!{sys.executable}\nprint({json.dumps(answer)!r})\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def encrypted(text: str) -> str:
    """A text as `ansible-vault encrypt` writes it."""
    from ansible.parsing.vault import VaultLib, VaultSecret

    secret = VaultSecret(b"open sesame")
    made: bytes = VaultLib([("default", secret)]).encrypt(text, secret=secret)
    return made.decode("ascii")


@needs_ansible
def test_a_script_becomes_an_inventory_of_winboots(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = a_script(folder / "hosts.py", HOST)
    words = ["inventory", "import", str(source), "--password-env", "PW"]

    assert run(words) == 64
    assert "w1  winrm 10.0.0.1:5985  CORP\\svc  2022" in capsys.readouterr().err
    assert not (folder / "inventory.yaml").exists()
    assert run([*words, "--yes"]) == 0

    (machine,) = load_inventory(folder / "inventory.yaml")
    way = machine.connection
    assert (machine.name, machine.address, machine.os, machine.groups) == (
        "w1",
        "10.0.0.1",
        "2022",
        ("windows", "rack_a"),
    )
    assert (way.port_number, way.https, way.user, str(way.password)) == (5985, False, "CORP\\svc", "env PW")
    assert run(["check", str(folder / "inventory.yaml")]) == 0
    assert run([*words, "--yes"]) == 64
    assert "exists" in capsys.readouterr().err


@needs_ansible
def test_a_folder_is_read_as_one_inventory(folder: Path) -> None:
    site = folder / "site"
    (site / "group_vars").mkdir(parents=True)
    a_script(site / "1.py", {"ansible_psrp_host": "10.0.0.1"})
    (site / "2.ini").write_text("[rack_b]\nw2 ansible_host=10.0.0.2\n[windows:children]\nrack_b\n")
    (site / "group_vars" / "windows.yml").write_text(
        "ansible_connection: psrp\nansible_user: a\nwinboot_os: 2019\n"
    )

    assert run(["inventory", "import", str(site), "--password-env", "PW", "--yes"]) == 0

    inventory = load_inventory(folder / "inventory.yaml")
    assert {one.name: (one.address, one.os) for one in inventory} == {
        "w1": ("10.0.0.1", "2019"),
        "w2": ("10.0.0.2", "2019"),
    }


def a_vaulted(folder: Path, vaulted: str, plain: str = "") -> Path:
    (folder / "group_vars" / "windows").mkdir(parents=True)
    (folder / "group_vars" / "windows" / "vault.yml").write_text(encrypted(vaulted))
    (folder / "group_vars" / "windows" / "plain.yml").write_text(
        f"ansible_connection: psrp\nwinboot_os: 2022\nansible_become: false\n{plain}"
    )
    source = folder / "hosts.ini"
    source.write_text("[windows]\nw1 ansible_host=10.0.0.1\n")
    return source


@needs_ansible
def test_a_password_of_a_vault_is_never_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inline = encrypted("hunter3").strip().replace("\n", "\n  ")
    source = a_vaulted(folder, "ansible_password: hunter2\n", f"ansible_user: a\napp: !vault |\n  {inline}\n")

    assert run(["inventory", "import", str(source), "--yes"]) == 64
    told = capsys.readouterr()
    assert "ansible_password: Ansible Vault encrypts the value" in told.err
    assert run(["inventory", "import", str(source), "--yes", "--password-env", "PW"]) == 0

    told = capsys.readouterr()
    written = (folder / "inventory.yaml").read_text(encoding="utf-8")
    assert not any(
        secret in text for secret in ("hunter2", "hunter3") for text in (told.err, told.out, written)
    )


@needs_ansible
def test_another_value_of_a_vault_is_refused_by_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = a_vaulted(folder, "ansible_user: hidden-admin\n")

    assert run(["inventory", "import", str(source), "--yes", "--password-env", "PW"]) == 64

    told = capsys.readouterr()
    assert "host w1" in told.err
    assert "ansible_user: Ansible Vault encrypts the value" in told.err
    assert "hidden-admin" not in told.err + told.out
    assert not (folder / "inventory.yaml").exists()


@needs_ansible
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("windows: {hosts: [a]}\n", "ansible-inventory ended with exit code"),
        ("$ANSIBLE_VAULT;1.1;AES256\n66\n", "encrypted"),
    ],
)
def test_a_source_that_cannot_be_read_is_an_error(
    folder: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "hosts.yml").write_text(text)

    assert run(["inventory", "import", "hosts.yml", "--yes"]) == 64
    assert said in capsys.readouterr().err


def a_marker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another ansible-inventory, which leaves a mark."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "ansible-inventory"
    program.write_text(f"#!/bin/sh\n: > {folder}/started\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    return folder / "started"


def test_files_of_others_start_nothing_without_trust(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = a_marker(folder, monkeypatch)
    source = a_script(folder / "hosts.py", HOST)
    (folder / "group_vars").mkdir()
    (folder / "group_vars" / "all.yml").write_text("x: 1\n")
    (folder / "group_vars" / "all.yml").chmod(0o666)

    assert run(["inventory", "import", str(source), "--yes"]) == 64
    assert "everybody may write" in capsys.readouterr().err
    assert not started.exists()
    assert run(["inventory", "import", str(source), "--yes", "--trust"]) == 64  # its answer is no JSON
    assert started.exists()


def test_no_other_command_starts_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = a_marker(folder, monkeypatch)
    source = folder / "hosts.ini"
    source.write_text(
        "w1 ansible_connection=psrp ansible_host=10.0.0.1 winboot_os=2022 ansible_user=a winboot_password_env=P\n"
    )

    for words in (["check", str(source)], ["inventory", "-i", str(source)], ["render", "-i", str(source)]):
        assert run(words) == 0
    assert not started.exists()


def test_a_computer_without_ansible_gets_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = a_script(folder / "hosts.py", HOST)
    monkeypatch.setenv("PATH", str(folder / "nowhere"))

    assert run(["inventory", "import", str(source), "--yes"]) == 64
    assert "ansible-inventory is not installed" in capsys.readouterr().err

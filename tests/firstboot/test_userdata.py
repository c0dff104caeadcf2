"""What a machine is given: small, the same whatever the profile becomes, and without any secret but its voucher."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from winboot_lab.language.parser import parse

from tests.powershell.style import remarks
from winboot.base.errors import InvalidInput
from winboot.base.secret import Secret
from winboot.cli import run
from winboot.operations.firstboot.carrier import Carrier
from winboot.operations.firstboot.store import Store
from winboot.operations.firstboot.userdata import LARGEST, user_data
from winboot.script.first_boot import FOLDER, boot_script, client, stub
from winboot.script.literals import literal
from winboot.script.rendering import small_script

ROOT = Path(__file__).parents[2]
PIN = "ab" * 32


def text_of(carrier: Carrier, **changed: str) -> str:
    given = {"address": "boot.example.com", "pin": PIN, **changed}
    return user_data(carrier, port=9443, voucher=Secret("1a2b3c.canary"), **given).text  # type: ignore[arg-type]


@pytest.mark.parametrize("carrier", Carrier)
def test_each_form_is_small_and_ascii(carrier: Carrier) -> None:
    text = text_of(carrier)

    assert text.isascii()
    assert len(text) <= LARGEST


def test_ec2_has_its_tags_and_cloudbase_its_first_line() -> None:
    assert re.fullmatch(r"<powershell>\n.*\n</powershell>\n", text_of(Carrier.EC2), re.DOTALL)
    assert text_of(Carrier.CLOUDBASE).startswith("#ps1_sysnative\n")
    assert text_of(Carrier.FILE).startswith("# winboot")


def test_one_that_grows_beyond_its_bound_is_refused() -> None:
    with pytest.raises(InvalidInput, match="more than 8,192"):
        text_of(Carrier.FILE, address="a" * 1000)


def test_all_texts_parse_and_keep_the_house_style() -> None:
    whole, inner = (make(address="a", port=1, pin=PIN) for make in (stub, boot_script))

    alone = small_script("_first_boot_alone.ps1.j2", node="win-1", folder=FOLDER)
    for text in (whole, inner, client(), alone):
        parse(text)
        assert remarks(text) == []


@pytest.mark.parametrize("evil", ["a'; whoami; '", "$(whoami)", "`n", "'@", "'@\nwhoami"])
def test_no_value_leaves_its_quotes(evil: str) -> None:
    whole, inner = (make(address="a", port=1, pin=PIN, host=evil) for make in (stub, boot_script))

    assert f"Host = {literal(evil)}" in inner
    assert literal(inner) in whole
    for text in (whole, inner):
        parse(text)
        assert remarks(text) == []


def test_a_dry_run_of_a_voucher_or_an_approval_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    inventory = ROOT / "inventories" / "canonical.yaml"
    group = _first_group(inventory)
    kept = Store(tmp_path / "state" / "first-boot.json")
    id_ = kept.voucher("group", group).reveal().partition(".")[0]
    before = kept.read()

    for command in (
        ["voucher", "--group", group, "-i", str(inventory)],
        ["voucher", "--revoke", id_],
        ["approve", "win-1", "6f3bd0a8-5f0e-4f5e-9d55-7a1f4a2cf5b1"],
    ):
        assert run(["hook", *command, "--dry-run"]) == 0
        assert " would be " in capsys.readouterr().out
    assert kept.read() == before


def test_the_command_prints_the_same_whatever_the_profile_becomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    for name in ("profiles", "inventories"):
        shutil.copytree(ROOT / name, tmp_path / name)
    inventory = tmp_path / "inventories" / "canonical.yaml"
    group = _first_group(inventory)
    voucher = tmp_path / "voucher"

    assert run(["hook", "voucher", "--group", group, "-i", str(inventory)]) == 0
    voucher.write_text(capsys.readouterr().out, encoding="utf-8")
    command = ["userdata", "--for", "ec2", "--endpoint", "boot.example.com", "--group", group]
    command += ["--voucher-file", str(voucher), "-i", str(inventory)]
    assert run(command) == 0
    before = capsys.readouterr()
    for profile in (tmp_path / "profiles").glob("*.yaml"):
        profile.write_text(profile.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    assert run(command) == 0

    assert capsys.readouterr().out == before.out
    assert voucher.read_text(encoding="utf-8").strip() in before.out
    assert "16,384 that ec2 takes" in before.err


def test_a_file_with_anything_but_a_voucher_is_not_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    secret = tmp_path / "secret"
    inventory = ROOT / "inventories" / "canonical.yaml"
    group = _first_group(inventory)
    for text in (
        "a password of two words",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n",
        "token",
        "ab.c d",
        "x." + "y" * 200,
    ):
        secret.write_text(text, encoding="utf-8")
        command = [
            "userdata",
            "--for",
            "file",
            "--endpoint",
            "b",
            "--group",
            group,
            "--voucher-file",
            str(secret),
        ]

        assert run([*command, "-i", str(inventory)]) == 64
        said = capsys.readouterr()
        assert said.out == ""
        assert "holds no voucher" in said.err


def _first_group(inventory: Path) -> str:
    from winboot.config.inventory import load_inventory

    return next(iter(load_inventory(inventory))).groups[0]


@pytest.mark.parametrize(
    ("address", "authority", "family"),
    [
        ("boot.lab", "boot.lab", "InterNetwork"),
        ("10.0.0.9", "10.0.0.9", "InterNetwork"),
        ("fd00::9", "[fd00::9]", "InterNetworkV6"),
    ],
)
def test_the_client_has_the_family_of_its_endpoints_address(
    address: str, authority: str, family: str
) -> None:
    text = boot_script(address=address, port=9443, pin="ab" * 32)

    assert f"Authority = '{authority}'" in text
    assert f"[Net.Sockets.AddressFamily]'{family}')" in text

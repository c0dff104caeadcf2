"""User data of every example profile and every carrier: small, without a secret, and read as its carrier reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hcl2
import pytest
import yaml
from winboot_lab.language.parser import parse

from tests.every import assert_none_wrong, untrue
from tests.firstboot.ec2launch import powershell_of
from winboot.base.secret import Secret
from winboot.cli import run
from winboot.config.node_spec import STARTUP_TAINT
from winboot.config.profile.sections import Boot
from winboot.operations.firstboot.carrier import Carrier
from winboot.operations.firstboot.userdata import AGAIN_AT_NEXT_START, LARGEST, planted_secrets, user_data
from winboot.script.first_boot import stub

ROOT = Path(__file__).parents[2]
PROFILES = sorted((ROOT / "profiles").glob("*.yaml"))
PIN, VOUCHER = "ab" * 32, "1a2b3c.Zm9yLWEtdGVzdC1vZi10aGUtdXNlci1kYXRh"

# Twenty things that must not be in user data, each as people hand it on.
SECRETS = {
    "a PEM key": "-----BEGIN RSA PRIVATE KEY-----",
    "a PKCS #8 key": "-----BEGIN ENCRYPTED PRIVATE KEY-----",
    "an OpenSSH key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "a bootstrap token": "abcdef.0123456789abcdef",
    "an AWS key id": "AKIAIOSFODNN7EXAMPLE",
    "a temporary AWS key id": "ASIAIOSFODNN7EXAMPLE",
    "an AWS secret key": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "a service account's token": "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl",
    "a bearer header": "Authorization: Bearer 0123456789abcdef",
    "a basic header": "Authorization: Basic dXNlcjpwYXNzd29yZA==",
    "a URL with a login": "https://user:pass@mirror.example.com/",
    "a password in words": "password=hunter2hunter2",
    "a password of PowerShell": "$password = 'hunter2hunter2'",
    "a secure string in the clear": "ConvertTo-SecureString -String 'hunter2hunter2' -AsPlainText -Force",
    "a kubeconfig's key": "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo=",
    "a kubeconfig's token": "token: 0123456789abcdef0123456789abcdef",
    "an Azure connection": "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==",
    "an Azure signature": "https://a.blob.core.windows.net/c/f?sv=2022&sig=abcdefghijklmnop%3D",
    "a GitHub token": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "an S3 signature": "https://b.s3.amazonaws.com/f?X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027",
}


# Cluster API asks for keys of the profile: tests/firstboot/test_capi.py.
@pytest.mark.parametrize("carrier", sorted(set(Carrier) - {Carrier.CAPI}))
def test_every_example_profile_and_carrier(
    carrier: Carrier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The profile changes no byte: the command prints what is made without one."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    inventory, voucher = tmp_path / "inventory.yaml", tmp_path / "voucher"
    groups: Any = {
        profile.stem: {
            "profile": str(profile),
            "hosts": {
                f"win-{at}": {"address": f"10.0.0.{at}", "os": "2019" if "2019" in profile.stem else "2022"}
            },
        }
        for at, profile in enumerate(PROFILES, 1)
    }
    inventory.write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    voucher.write_text(VOUCHER, encoding="utf-8")
    made = user_data(carrier, address="boot.example.com", port=9443, pin=PIN, voucher=Secret(VOUCHER)).text
    command = ["userdata", "--for", carrier.value, "--endpoint", "boot.example.com", "--pin", PIN]
    told = {}
    for group in groups:
        assert run([*command, "--group", group, "--voucher-file", str(voucher), "-i", str(inventory)]) == 0
        told[group] = capsys.readouterr()

    assert_none_wrong(
        {
            group: untrue(text=out == made, size=f"{len(made):,} bytes" in err)
            for group, (out, err) in told.items()
        }
    )
    assert len(made) <= LARGEST
    assert planted_secrets(made) == ()


def test_there_are_twenty_secrets_and_each_is_found() -> None:
    assert len(SECRETS) == 20
    for carrier in Carrier:
        text = user_data(
            carrier, address="boot.example.com", port=9443, pin=PIN, voucher=Secret(VOUCHER)
        ).text
        assert {
            what: planted_secrets(f"{text}\n{one}\n") != () for what, one in SECRETS.items()
        } == dict.fromkeys(SECRETS, True)


@pytest.mark.parametrize("what", ["a bootstrap token", "a URL with a login", "a GitHub token"])
def test_what_is_shaped_like_a_secret_is_refused_and_not_shown(
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    voucher = tmp_path / "voucher"
    voucher.write_text(SECRETS[what], encoding="utf-8")
    command = ["userdata", "--for", "file", "--endpoint", "b", "--pin", PIN, "--group", "windows"]

    code = run([*command, "--voucher-file", str(voucher), "-i", str(ROOT / "inventories" / "canonical.yaml")])
    said = capsys.readouterr()

    assert (code, said.out) == (64, "")
    assert SECRETS[what] not in said.err


def test_ec2launch_runs_the_stub_and_nothing_else() -> None:
    text = user_data(Carrier.EC2, address="b", port=9443, pin=PIN, voucher=Secret(VOUCHER)).text

    read = powershell_of(text)
    assert read.strip() == stub(address="b", port=9443, pin=PIN, voucher=VOUCHER).strip()
    parse(read)


@pytest.mark.parametrize(
    "text",
    [
        "<powershell>a</powershell><persist>true</persist>",
        "<powershell>a</powershell>\n<powershell>b</powershell>",
        "# a\n<powershell>a</powershell>",
        "version: 1.1\ntasks: []",
        "<powershell>'<script>'</powershell>",
        "<powershell>a",
    ],
)
def test_the_model_of_ec2launch_takes_nothing_that_an_agent_may_read_otherwise(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        powershell_of(text)


# ---- cloudbase-init itself -----------------------------------------------------------------------------------------


@pytest.fixture
def cloudbase() -> Any:
    return pytest.importorskip(
        "cloudbaseinit.plugins.common.userdata",
        reason="the package cloudbase-init is not installed (pip install cloudbase-init; docs/contributing.md)",
    )


@pytest.mark.parametrize(
    ("code", "again", "restarts"),
    [
        (0, False, False),
        (1, False, False),
        (1001, False, True),
        (AGAIN_AT_NEXT_START, True, False),
        (1003, True, True),
    ],
)
def test_cloudbase_init_runs_the_stub_and_takes_its_exit_code(
    cloudbase: Any, code: int, again: bool, restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cloudbaseinit.plugins.common import base, execcmd

    text = user_data(Carrier.CLOUDBASE, address="b", port=9443, pin=PIN, voucher=Secret(VOUCHER)).text
    ran: list[str] = []

    def execute(command: Any) -> tuple[bytes, bytes, int]:
        ran.append(Path(command._target_path).read_text(encoding="ascii"))
        return b"", b"", code

    monkeypatch.setattr(execcmd.PowershellSysnative, "execute", execute)
    status, reboot = cloudbase.UserDataPlugin()._process_user_data(text.encode(), None)

    assert ran == [text]
    assert reboot is restarts
    assert (status == base.PLUGIN_EXECUTE_ON_NEXT_BOOT) is again


# ---- docs/first-boot.md --------------------------------------------------------------------------------------------


def test_the_files_to_copy_are_what_they_say() -> None:
    """Terraform and Packer parse, manifests are manifests, and the profile's keys are keys of the profile."""
    text = (ROOT / "docs" / "first-boot.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(hcl|yaml)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)

    hcls = [hcl2.loads(body) for kind, body in blocks if kind == "hcl"]
    yamls = [yaml.safe_load(body) for kind, body in blocks if kind == "yaml"]
    assert len(hcls) == 2 and len(yamls) == 3
    assert yamls[0]["spec"]["metadataOptions"]["httpPutResponseHopLimit"] == 1
    for profile in yamls[1:]:
        assert Boot.model_validate(profile["boot"]).taints
    assert f"{{key: {STARTUP_TAINT}, value: " in text

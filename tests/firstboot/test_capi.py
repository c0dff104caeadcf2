"""A KubeadmConfigTemplate whose machines winboot joins: a step that fails ends the script before `kubeadm join`."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.language.parser import parse

from tests.config.scene import GOOD, an_inventory
from winboot.cli import run
from winboot.operations.firstboot.capi import READY_FILE, SCRIPT, TAINT, template

BOOT = f"boot: {{taints: ['{TAINT}'], ready_file: '{READY_FILE}'}}\n"
PIN = "ab" * 32
INVENTORY = """
groups:
  pool: {profile: profile.yaml, os: "2022", hosts: {win-a1: {address: 10.0.1.11}}}
"""


def bootstrap_data(objects: list[dict[str, Any]]) -> str:
    """The cloud-config that Cluster API makes of it (bootstrap/kubeadm/pkg/cloudinit/node.go)."""
    secret, config = objects
    spec = config["spec"]["template"]["spec"]
    (file,) = spec["files"]
    source = file["contentFrom"]["secret"]
    assert source["name"] == secret["metadata"]["name"]
    written = {
        "path": file["path"],
        "encoding": file["encoding"],
        "content": secret["stringData"][source["key"]],
    }
    join = "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml && echo success > /run/done"
    commands = [*spec["preKubeadmCommands"], join, *spec.get("postKubeadmCommands", [])]
    return "## template: jinja\n#cloud-config\n" + yaml.safe_dump(
        {"write_files": [written], "runcmd": commands}
    )


@pytest.fixture
def objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    inventory = an_inventory(
        tmp_path, INVENTORY, profile=f"{GOOD}{BOOT}kubelet: {{flags: {{cloud-provider: external}}}}\n"
    )
    command = ["userdata", "--for", "capi", "--endpoint", "boot.example.com", "--host", "win-a1", "--by-hand"]
    assert run([*command, "--pin", PIN, "-i", str(inventory)]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_the_script_is_in_a_secret_and_parses(objects: list[dict[str, Any]]) -> None:
    (content,) = objects[0]["stringData"].values()

    assert objects[1]["kind"] == "KubeadmConfigTemplate"
    assert "boot.example.com" not in yaml.safe_dump(objects[1])
    parse(base64.b64decode(content).decode())


def test_kubeadm_never_runs_and_a_failure_is_the_code_of_the_script(objects: list[dict[str, Any]]) -> None:
    commands = yaml.safe_load(bootstrap_data(objects))["runcmd"]
    first, second, third = commands

    assert first.endswith(f"-File {SCRIPT}")
    # Read when the line runs, so it is the code of the line before.
    assert second == "exit /b %ERRORLEVEL%"
    assert third.startswith("kubeadm join")


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("kubelet: {flags: {cloud-provider: external}}\n", "boot.ready_file: Cluster API waits for"),
        (BOOT, "the Node gets no provider id"),
    ],
)
def test_a_profile_that_cluster_api_would_wait_for_is_refused(
    profile: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = an_inventory(tmp_path, INVENTORY, profile=GOOD + profile)
    command = ["userdata", "--for", "capi", "--endpoint", "b", "--host", "win-a1", "--by-hand", "--pin", PIN]

    assert run([*command, "-i", str(inventory)]) == 64
    said = capsys.readouterr()
    assert told in said.err
    assert said.out == ""


def test_no_brace_of_the_script_is_jinjas() -> None:
    secret, config = template("pool", "'{{ evil }}' # {% if %}").split("---\n")

    assert not re.search(r"\{\{|\{%", secret + config)


def test_cloudbase_init_writes_the_file_and_runs_the_commands_as_one_script(
    objects: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "the package cloudbase-init is not installed (pip install cloudbase-init; docs/contributing.md)"
    cloudconfig = pytest.importorskip(
        "cloudbaseinit.plugins.common.userdataplugins.cloudconfig", reason=reason
    )
    from cloudbaseinit import constant
    from cloudbaseinit.plugins.common import execcmd
    from cloudbaseinit.plugins.common.userdataplugins.cloudconfigplugins import runcmd, write_files

    class Windows:
        def get_default_script_exec_header(self) -> str:
            return str(constant.SCRIPT_HEADER_CMD)

    ran: list[str] = []
    wrote: dict[str, bytes] = {}

    def execute(command: Any) -> tuple[bytes, bytes, int]:
        ran.append(Path(command._target_path).read_text(encoding="ascii"))
        return b"", b"", 1

    monkeypatch.setattr(runcmd.factory, "get_os_utils", Windows)
    monkeypatch.setattr(execcmd.Shell, "execute", execute)
    monkeypatch.setattr(write_files.os.path, "abspath", lambda path: path)
    monkeypatch.setattr(
        write_files, "_write_file", lambda path, content, *rest: wrote.update({path: content})
    )
    reboot = cloudconfig.CloudConfigPluginExecutor.from_yaml(bootstrap_data(objects)).execute()

    (script,) = ran
    lines = script.splitlines()
    assert lines.index("exit /b %ERRORLEVEL%") < next(
        at for at, line in enumerate(lines) if "kubeadm join" in line
    )
    assert wrote == {SCRIPT: base64.b64decode(next(iter(objects[0]["stringData"].values())))}
    assert not reboot

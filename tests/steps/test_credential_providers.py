"""Image credential providers: where the program is, what the kubelet reads of it, and what ends a kubelet."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.mirror import program, sha256_of
from winboot_lab.programs.base import Run
from winboot_lab.programs.goflags import pflags
from winboot_lab.programs.kubelet_providers import ProviderError, register_providers
from winboot_lab.programs.settings import Settings
from winboot_lab.windows.accounts import USERS
from winboot_lab.windows.acl import WRITE, Rule
from winboot_lab.windows.machine import Machine

from tests.config.scene import a_spec
from tests.lab.actions import Hand, delete, write
from tests.lab.site import Site
from tests.steps.nodes import Node
from winboot.config.node_spec import NodeSpec

PROGRAM = r"C:\k\credential-providers\ecr-credential-provider.exe"
CONFIG = r"C:\k\credential-providers.yaml"
PROVIDER = """
kubernetes: {version: "%s"}
kubelet:
  credential_providers:
    ecr-credential-provider:
      url: https://files.corp.example/1.0.0/ecr-credential-provider.exe
      sha256: %s
      images: ["*.dkr.ecr.*.amazonaws.com"]
      environment: {AWS_REGION: eu-west-1}
"""


def spec_at(folder: Path, version: str) -> NodeSpec:
    return a_spec(folder, profile=PROVIDER % (version, "a" * 64))


@pytest.mark.parametrize(("version", "form"), [("1.36.5", "v1"), ("1.26.15", "v1"), ("1.25.16", "v1beta1")])
def test_the_configuration_is_in_the_form_that_the_version_reads(
    tmp_path: Path, version: str, form: str
) -> None:
    spec = spec_at(tmp_path, version)

    assert spec.kubelet.credentials == {
        "apiVersion": f"kubelet.config.k8s.io/{form}",
        "kind": "CredentialProviderConfig",
        "providers": [
            {
                "name": "ecr-credential-provider.exe",
                "matchImages": ["*.dkr.ecr.*.amazonaws.com"],
                "defaultCacheDuration": "12h",
                "apiVersion": f"credentialprovider.kubelet.k8s.io/{form}",
                "args": [],
                "env": [{"name": "AWS_REGION", "value": "eu-west-1"}],
            }
        ],
    }
    assert spec.kubelet.arguments["image-credential-provider-bin-dir"] == PROGRAM.rpartition("\\")[0]
    assert spec.kubelet.arguments["image-credential-provider-config"] == CONFIG


def test_a_profile_without_a_provider_sets_no_flag(tmp_path: Path) -> None:
    assert not [one for one in a_spec(tmp_path).kubelet.arguments if one.startswith("image-credential")]


@pytest.mark.parametrize(
    ("hand", "step", "what"),
    [
        (delete(PROGRAM), "artifacts", f"file {PROGRAM}: sha256"),
        (write(PROGRAM, "another program"), "artifacts", f"file {PROGRAM}: sha256"),
        (delete(CONFIG), "kubelet-config", f"file {CONFIG}: content"),
    ],
    ids=["no program", "another program", "no configuration"],
)
def test_a_change_of_the_files_is_a_difference_and_is_repaired(
    joined: Any, hand: Any, step: str, what: str
) -> None:
    node: Node = joined("everything").after(hand)

    assert set(node.look(step).differences(step)) == {what}
    node.change(step)
    assert not node.look(step).differences(step)


def test_a_program_that_a_user_may_write_is_not_believed(joined: Any) -> None:
    node: Node = joined("everything").after(writable(PROGRAM))

    found = node.look("directories").differences("directories")

    assert set(found) == {r"folder C:\k\credential-providers: files of others"}


def test_a_second_program_takes_the_place_of_the_first_and_stays(joined: Any) -> None:
    """It has one place for all its versions: what drops old versions leaves the file that is wanted now."""
    node: Node = joined("everything")
    first = next(one for one in node.spec.artifacts if one.name == "ecr-credential-provider")
    for version in ("2.0.0", "3.0.0", "4.0.0"):
        node.spec = with_program(node.spec, first.url.replace("1.0.0", version))
        assert node.change("artifacts").states == {"artifacts": "changed"}
        node.site.settle(10)

    assert b"4.0.0" in node.machine.files.read(PROGRAM)
    assert not node.look("artifacts").differences("artifacts")


def writable(path: str) -> Hand:
    def hand(site: Site) -> None:
        rules = site.machine.files.need(path)[1].acl.copy()
        rules.explicit.append(Rule(USERS, WRITE))
        site.machine.files.set_acl(path, rules)

    return hand


def with_program(spec: NodeSpec, url: str) -> NodeSpec:
    sha256 = sha256_of(url)
    artifacts = tuple(
        one
        if one.name != "ecr-credential-provider"
        else replace(one, url=url, sha256=sha256, members=(replace(one.members[0], sha256=sha256),))
        for one in spec.artifacts
    )
    return replace(spec, artifacts=artifacts)


# What ends the kubelet, and a part of what it says: RegisterCredentialProviderPlugins and validateCredentialProviderConfig.
BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"folder": r"C:\none"}, "plugin binary directory"),
    ({"config": None}, "unable to access path"),
    ({"config": {"kind": "KubeletConfiguration"}}, "error decoding config"),
    ({"config": {"apiVersion": "kubelet.config.k8s.io/v2"}}, "error decoding config"),
    ({"config": {"providers": []}}, "at least 1 item in plugins"),
    ({"provider": {"name": "other.exe"}}, "plugin binary executable"),
    ({"provider": {"name": "a/b"}}, "providers.name"),
    ({"provider": {"apiVersion": "v9"}}, "providers.apiVersion"),
    ({"provider": {"matchImages": []}}, "providers.matchImages"),
    ({"provider": {"defaultCacheDuration": None}}, "providers.defaultCacheDuration"),
]


@pytest.mark.parametrize(("change", "says"), [({}, ""), *BROKEN])
def test_the_labs_kubelet_ends_where_the_real_one_does(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    config: Any = json.loads(json.dumps(spec_at(tmp_path, "1.36.5").kubelet.credentials))
    config["providers"][0] |= change.get("provider", {})
    machine = Machine("WIN-1")
    machine.files.make_directory(PROGRAM.rpartition("\\")[0])
    machine.files.write(PROGRAM, b"MZ")
    if change.get("config", {}) is not None:
        machine.files.write(CONFIG, json.dumps({**config, **change.get("config", {})}).encode())
    folder = change.get("folder", PROGRAM.rpartition("\\")[0])
    flags = [f"--image-credential-provider-bin-dir={folder}", f"--image-credential-provider-config={CONFIG}"]
    run = a_kubelet(machine)

    if not says:
        register_providers(run, Settings(pflags(flags, lambda name: "text"), {}))
        return
    with pytest.raises(ProviderError, match=says):
        register_providers(run, Settings(pflags(flags, lambda name: "text"), {}))


def a_kubelet(machine: Machine) -> Run:
    machine.files.write(r"C:\k\kubelet.exe", program("kubelet", "1.36.5"))
    return Run(machine, machine.processes.spawn(r"C:\k\kubelet.exe"), [], {})

"""What the data knows, asked by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shape import lines_of
from winboot.cli import run
from winboot.config.profile.checks.components import OWNED_FLAGS
from winboot.script.glossary import EXIT_CODES, FLAGS

QUESTIONS = [
    (
        ["network"],
        ["L2Bridge", "L2Tunnel", "Overlay", "Transparent", "NAT", "flannel-host-gw", "never for Kubernetes"],
    ),
    (["network", "l2tunnel"], ["Azure"]),
    (["network", "flannel-vxlan"], ["UDP 4789"]),
    (["flag", "pod-infra-container-image"], ["1.35"]),
    (["field", "cgroupsPerQOS"], ["Windows"]),
    (["gate", "WinDSR"], ["1.34"]),
    (["build", "20348"], ["Windows Server 2022"]),
    (["version", "1.34"], ["1.34"]),
    # As people write or copy them.
    (
        ["flag", "--hostname-override=win-1"],
        ["kubelet --hostname-override", "kube-proxy --hostname-override"],
    ),
    (["flag", "resolv_conf"], ["resolvConf"]),
    (["network", "calico-vxlan-node"], ["artifacts.calico: its version"]),
    (["network", "flannel"], ["flannel-host-gw (", "flannel-vxlan ("]),
    (["network", "Win_Overlay"], ["win-overlay ("]),
    (["build", "10.0.20348.2762"], ["Windows Server 2022"]),
    (["build", "ltsc2025"], ["26100"]),
    (["build", "1809"], ["17763"]),
    (["build", "Windows Server 2019"], ["17763"]),
    (["version", "v1.36.5"], ["containerd 2."]),
    (["problem", "NeedsDrain"], ["this would disturb a live node", "--drain"]),
    (["problem", "proxy"], ["wants a login (407)", "mirrors in runtime.registries"]),
    (["problem", "loginrefused"], ["exit code 77", "password"]),
    # As a report shows them.
    (["NoPodCidr"], ["--allocate-node-cidrs"]),
    (["Unreachable"], ["exit code 69", "winboot ping"]),
    # Names of winboot's own.
    (["pod-network"], ["a step", "after"]),
    (["kubelet-config"], ["a step"]),
    (["step", "pod_network"], ["a step"]),
    (["runtime.registries"], ["a key of the profile"]),
    (["field", "network.cni"], ["a key of the profile"]),
    (["key", "network.cni"], ["a key of the profile"]),
    (["windows.time_servers"], ["a key of the profile"]),
    (["connection.port"], ["a key of the inventory", "5986"]),
    (["69"], ["exit code 69", "unreachable"]),
    (["exit-code", "3"], ["some nodes failed"]),
    (["containerd"], ["a step"]),
    (["proxy"], ["a key of the profile"]),
    (["kubelet"], ["a key of the profile", "a step"]),
    (["network", "flannel:host-gw"], ["flannel-host-gw ("]),
    (["flannel:host-gw"], ["flannel-host-gw ("]),
    (["--node-ip"], ["kubelet --node-ip"]),
    (["maxPods"], ["kubelet maxPods"]),
    (["WinDSR"], ["feature gate WinDSR"]),
    (["1.36"], ["Kubernetes 1.36"]),
    (["20348"], ["Windows Server 2022"]),
    (["ltsc2025"], ["26100"]),
]
ODD = [
    (["flag"], "for example: winboot explain flag"),
    (["flag", "--"], "needs a name"),
    (["flag", "--system-reserve=memory=2Gi"], "system-reserved"),
    (["gate", "windsr"], "windsr"),
    (["field", "MaxPods"], "maxpods"),
    (["build", "2016r2"], "no build"),
    (["version", "latest"], "1.36.5"),
    (["version", "1.13"], "begins with 1.14"),
    (["network", "flanel"], "flannel"),
    (["networks"], "network"),
    (["problem"], "for example: winboot explain problem"),
    (["problem", "NeedDrain"], "did you mean 'needsdrain'"),
    (["colour", "red"], "one of flag"),
    (["colour"], "one of flag"),
    (["DownloadFaild"], "did you mean 'downloadfailed'"),
    (["hns"], "docs/glossary.md"),
    (["pod-netwrk"], "did you mean 'pod-network'"),
    (["runtime.registrys"], "did you mean 'runtime.registries'"),
    (["step", "kublet"], "did you mean 'kubelet'"),
    (["exit-code", "5"], "docs/exit-codes.md"),
    (["key", "network.cnii"], "did you mean 'network.cni'"),
    (["word", "zzz"], "one of flag"),
]


@pytest.mark.parametrize(("words", "expected"), QUESTIONS, ids=[" ".join(row[0]) for row in QUESTIONS])
def test_explain_answers_with_what_matters(
    words: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kind of name has an answer."""
    assert run(["explain", *words]) == 0
    told = capsys.readouterr().out
    for part in expected:
        assert part in told


@pytest.mark.parametrize(("words", "told"), ODD, ids=[" ".join(row[0]) for row in ODD])
def test_what_cannot_be_explained_is_wrong_use_with_a_way_on(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 64, never a traceback, and a word on what could be meant."""
    assert run(["explain", *words]) == 64
    assert told in capsys.readouterr().err.lower()


def test_an_answer_comes_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each kind of thing that is called so."""
    assert run(["explain", "kubelet", "-o", "json"]) == 0

    assert {line["what"] for line in lines_of(capsys.readouterr().out)} >= {"step", "key"}


def test_every_build_has_a_valid_base_image(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "build", "2016"]) == 0

    assert "None" not in capsys.readouterr().out


def test_the_exit_codes_are_those_of_their_page() -> None:
    page = Path(__file__).parents[2] / "docs" / "exit-codes.md"
    rows = re.findall(r"^\| (\d+) \|", page.read_text(encoding="utf-8"), re.MULTILINE)

    assert set(EXIT_CODES) == {*map(int, rows), 129, 143}


def test_a_flag_that_winboot_writes_says_what_it_does_and_where_its_value_is_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["explain", "flag", "--node-ip"]) == 0

    told = capsys.readouterr().out
    assert "InternalIP" in told
    assert "node_ip in the inventory" in told
    owned = {name for flags in OWNED_FLAGS.values() for name in flags}
    assert owned == set(FLAGS)

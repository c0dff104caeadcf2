"""What the data knows, asked by name."""

from __future__ import annotations

import pytest

from winboot.cli import run

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
    (["problem", "loginrefused"], ["exit code 77", "password"]),
    # As a report shows them.
    (["NoPodCidr"], ["--allocate-node-cidrs"]),
    (["Unreachable"], ["exit code 69", "winboot ping"]),
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

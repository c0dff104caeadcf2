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

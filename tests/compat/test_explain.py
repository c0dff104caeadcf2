"""`winboot explain`: everything the data knows about one name."""

from __future__ import annotations

import pytest

from winboot.base.errors import UsageError
from winboot.config.compat import explain, load

FACTS = load()


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("flag", "--network-plugin", "removed in 1.24"),
        ("flag", "max-pods", "maxPods (from 1.14 on)"),
        ("flag", "windows_priorityclass", "only for Windows"),
        ("flag", "housekeeping-interval", "the program does not start"),
        ("flag", "windows-service", "windowsRunAsService (from 1.31 on); stays a flag"),
        ("field", "cgroupsPerQOS", "must be off on Windows"),
        ("field", "winkernel.enableDSR", "kube-proxy winkernel.enableDSR"),
        ("gate", "WinDSR", "from 1.34   ga         on, locked"),
        ("gate", "IPv6DualStack", "removed in 1.25"),
        ("build", "2019", "10.0.17763.1432 (KB4571748)"),
        ("build", "10.0.26100", "Kubernetes 1.35  supported"),
        ("version", "1.34", "pause image     registry.k8s.io/pause:3.10.1"),
        ("version", "1.40", "newer than winboot's data"),
    ],
)
def test_a_name_is_explained(kind: str, name: str, says: str) -> None:
    """Since when, until when, what it does on Windows, what to write instead."""
    assert says in explain(FACTS, kind, name)


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        ("flag", "max-pod", "max-pods"),
        ("flag", "system-reserve", "system-reserved"),
        ("gate", "WinDRS", "WinDSR"),
        ("field", "evictionHardd", "evictionHard"),
        ("build", "20349", "20348"),
        ("kind", "x", "One of flag"),
        ("version", "x.y", "1.36"),
    ],
)
def test_an_unknown_name_is_wrong_use_with_a_guess(kind: str, name: str, meant: str) -> None:
    """Exit 64, and the nearest name."""
    with pytest.raises(UsageError) as caught:
        explain(FACTS, kind, name)

    assert meant in caught.value.hint

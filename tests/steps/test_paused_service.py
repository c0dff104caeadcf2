"""A service that NSSM shows as paused, because its program dies at once, comes back when the reason is gone."""

from __future__ import annotations

from tests.lab.actions import SERVICES, sc
from tests.steps.nodes import Node

STEP = "flanneld"
KEY = rf"HKEY_LOCAL_MACHINE\{SERVICES}\flanneld\Parameters"


def test_what_is_paused_is_stopped_before_it_is_started(node: Node):
    """Windows calls a paused service already started, and Start-Service waits for nothing."""
    node.machine.registry.set(KEY, "AppParameters", "ExpandString", "--no-such-flag=1")
    node.after(sc("stop", "kube-proxy"), sc("stop", "flanneld"), sc("start", "flanneld"))
    node.site.settle(3)
    service = node.machine.services.find("flanneld")
    assert service is not None
    assert service.status == "Paused"

    assert node.look(STEP).differences(STEP)["service flanneld: state"] == ("Paused", "Running")
    assert node.change(STEP).states == {STEP: "changed"}

    assert service.status == "Running"
    assert node.look(STEP).states == {STEP: "ok"}

"""What the library reads of the Host Network Service."""

from __future__ import annotations

from collections.abc import Callable

from winboot_lab.engine.types import hns
from winboot_lab.programs import hcn

from tests.lab.actions import guard_away, sc
from tests.steps.library import call
from tests.steps.nodes import Node
from winboot.script.library import templates_root

STEP = "pod-network"


def test_an_endpoint_without_a_name_is_passed_over(node: Node):
    """kube-proxy makes such ones for the pods of other nodes."""
    found = hcn.endpoint(node.machine, "cbr0_ep")
    assert found is not None
    remote = {key: value for key, value in found.items() if key != "Name"} | {
        "ID": "REMOTE",
        "IPAddress": "10.244.9.9",
    }
    node.machine.hns.endpoints["REMOTE"] = remote

    assert node.look(STEP).states == {STEP: "ok"}


def test_endpoints_of_kube_proxy_are_no_pods(node: Node):
    """A start would leave undone what a pod must not be cut off by."""
    made = [one["Name"] for one in node.machine.hns.endpoints.values() if one["IsRemoteEndpoint"]]

    late = call(node, "$script:Run['Mode'] = 'Guard'; Test-LateWithPod -Network 'cbr0' -Own 'cbr0_ep'")

    assert set(made) == {""}
    assert late.objects == [False]


def test_a_service_that_does_not_run_is_started_before_anything_is_made_again(joined: Callable[[str], Node]):
    """Its networks persist: made a second time, they would be two of one name."""
    node = joined("own network")
    before = list(node.machine.hns.networks)
    node.after(guard_away, sc("stop", "hns"))
    assert node.machine.services.running("hns") is False

    assert node.change(STEP).states == {STEP: "ok"}

    assert list(node.machine.hns.networks) == before
    assert node.machine.services.running("hns")


def test_a_look_waits_for_hns_once_and_not_for_long(node: Node):
    """HNS hangs at times; every step that needs it reports that within seconds."""
    node.machine.hns.hang("GET", "/networks/")
    began = node.machine.time.seconds

    seen = node.look(STEP)

    assert node.machine.time.seconds - began < 20
    assert seen.step(STEP)["problem"]["id"] == "HnsHangs"
    both = (
        "$script:Run.Mode = 'Look'; foreach ($kind in 'networks', 'endpoints') "
        "{ try { Get-HnsObject -Kind $kind } catch { 'no answer' } }"
    )
    node.machine.hns.hang("GET", "/networks/")
    assert call(node, both).objects == ["no answer", "no answer"]


def test_an_agent_is_stopped_although_its_note_is_held(node: Node):
    """A held file must not let the agent make the network again."""
    node.machine.files.write(r"C:\ProgramData\winboot\held.json", b"{}")
    node.machine.faults.hold(r"C:\ProgramData\winboot\held.json", share="Read")

    failed = call(node, "Disable-NetworkAgent -Name 'flanneld' -Why 'a test'")

    flanneld = node.machine.services.need("flanneld")
    assert failed.id.endswith("FileInUse")
    assert (flanneld.status, flanneld.start) == ("Stopped", 4)


def test_the_last_network_of_an_adapter_is_removed_by_a_guarded_run_alone(node: Node):
    """With it the switch goes, and a static address with the switch."""
    every = "$script:Run.Mode = 'Change'; Assert-SwitchLeft -Networks @(Get-HnsObject -Kind networks)"

    assert call(node, every).id.endswith("LastNetwork")
    assert call(node, f"$script:Run.Snapshot = 'a record of the settings'; {every}").id == ""
    assert call(node, every.replace("networks)", "networks -Name 'External')")).id == ""


def test_the_lab_knows_exactly_the_declaration_of_the_library():
    text = (templates_root() / "lib" / "hns.ps1").read_text(encoding="utf-8")
    declaration = text.split("@'\n")[1].split("\n'@")[0]

    assert hns.digest(declaration) == hns.DECLARATION
    assert hns.digest(declaration.replace("IsBackground = true", "IsBackground = false")) != hns.DECLARATION

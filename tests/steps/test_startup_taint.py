"""The startup taint goes last: when the node is Ready, and everything before it is done."""

from __future__ import annotations

from typing import Any

from tests.lab.actions import CLIENT, delete, delete_node, patch_node, stop, taints, wait
from tests.lab.site import Site, only
from tests.steps.nodes import Node
from winboot.report.results import StepReport
from winboot.script.steps import STEPS

STEP = "startup-taint"
TAINT = {"key": "winboot.io/starting", "value": "true", "effect": "NoSchedule"}


def step(report: Any) -> StepReport:
    return next(one for one in only(report).steps if one.name == STEP)


def look(node: Node) -> StepReport:
    """`winboot plan --only startup-taint`."""
    return step(node.site.controller().plan(only=(STEP,)))


def change(node: Node, **options: Any) -> StepReport:
    """`winboot join --only startup-taint`."""
    return step(node.site.join(only=(STEP,), **options))


def whats(told: StepReport) -> dict[str, tuple[str | None, str | None]]:
    return {one.what: (one.is_, one.want) for one in told.differences}


def tainted(site: Site) -> None:
    """As a kubelet registers."""
    patch_node({"spec": {"taints": [*taints(site), TAINT]}})(site)


def test_it_is_the_last_of_all_steps():
    assert STEPS[-1].name == STEP


def test_a_kubelet_registers_with_it(node: Node):
    assert {
        "key": "winboot.io/starting",
        "value": "true",
        "effect": "NoSchedule",
    } in node.spec.kubelet.config["registerWithTaints"]


def test_a_node_that_is_done_has_it_no_more(node: Node):
    assert look(node).state == "ok"
    assert TAINT not in taints(node.site)


def test_without_a_node_it_is_ready_that_is_still_to_come(node: Node):
    node.after(delete_node)

    assert whats(look(node)) == {"node win-1: Ready": (None, "True")}


def test_it_is_lifted_once_from_a_ready_node(node: Node):
    node.after(tainted)

    assert whats(look(node)) == {
        "node taint winboot.io/starting": ("winboot.io/starting=true:NoSchedule", None)
    }
    assert change(node).state == "changed"
    assert change(node).state == "ok"
    assert node.differs == []


def test_a_node_that_does_not_become_ready_keeps_it_and_the_reason_is_reported(node: Node):
    node.after(tainted, delete(r"C:\etc\cni\net.d\10-flannel.conflist"), wait(60))

    told = change(node, ready=30.0)

    assert told.state == "failed"
    assert told.problem is not None
    assert told.problem.message.startswith("not Ready after 30 s: KubeletNotReady: ")
    assert "cni" in told.problem.message
    assert "kubectl describe node win-1" in told.problem.hint
    assert TAINT in taints(node.site)


def test_a_cordon_of_ours_that_was_left_behind_goes_and_one_of_others_stays(node: Node):
    node.after(patch_node({"spec": {"unschedulable": True}}))
    assert look(node).state == "ok"
    assert node.node_object["spec"]["unschedulable"] is True

    node.after(patch_node({"metadata": {"annotations": {"winboot.io/cordoned": "true"}}}))
    assert whats(look(node)) == {"node win-1: cordon": ("by winboot", None)}
    assert change(node).state == "changed"
    assert node.differs == []


def test_while_a_step_before_it_is_not_done_nothing_is_lifted(node: Node):
    node.after(tainted, stop("kubelet"))
    node.machine.files.delete(CLIENT)
    node.site.internet.close("10.0.0.10", 6443)

    told = step(node.site.join(only=("kubelet", STEP)))

    assert (told.state, told.problem is not None and told.problem.id) == ("blocked", "NeedsStep")
    assert told.problem is not None
    assert "the node is not done: " in told.problem.message
    assert TAINT in taints(node.site)

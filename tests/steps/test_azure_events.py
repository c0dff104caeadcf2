"""An Azure machine writes into its own Node what Azure is going to do to it, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from winboot_lab.windows.sockets import Request, Response

from tests.lab.actions import delete
from tests.steps.bench import Bench
from tests.steps.nodes import Node
from winboot.config.annotations import EVENTS
from winboot.remote.cloud.metadata import reported_events

STEP = "azure-events"
SCRIPT = r"C:\ProgramData\winboot\events.ps1"
WHEN = "Mon, 19 Sep 2026 18:29:47 GMT"


class Azure:
    """The metadata service of one machine, `pool_1`."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def answer(self, request: Request) -> Response:
        """A name, or the document of all events."""
        assert dict(request.headers).get("Metadata") == "true"
        if "/instance/compute/name" in request.path:
            return Response(200, b"pool_1")
        return Response(200, json.dumps({"DocumentIncarnation": 1, "Events": self.events}).encode())

    def plan(self, kind: str, *machines: str) -> None:
        """Something is going to happen."""
        self.events.append(
            {
                "EventId": f"E-{len(self.events)}",
                "EventType": kind,
                "EventStatus": "Scheduled",
                "Resources": list(machines),
                "NotBefore": WHEN,
            }
        )


@pytest.fixture
def azure() -> Azure:
    return Azure()


@pytest.fixture
def telling(node: Node, azure: Azure) -> Node:
    node.machine.world.serve("169.254.169.254", 80, azure.answer)
    node.spec = replace(node.spec, node=replace(node.spec.node, scheduled_events=True))
    return node


def told(node: Node) -> str | None:
    annotations: dict[str, str] = node.node_object["metadata"].get("annotations") or {}
    return annotations.get(EVENTS)


def test_only_a_profile_that_asks_for_the_task_gets_it(bench: Bench):
    assert STEP not in bench.look(STEP).states


@pytest.mark.matrix
def test_the_node_says_what_azure_does_to_its_machine_from_a_second_after_on(telling: Node, azure: Azure):
    assert set(telling.look(STEP).differences(STEP)) == {
        f"file {SCRIPT}: content",
        r"task \winboot\events: command",
    }
    assert telling.change(STEP).states == {STEP: "changed"}
    assert telling.look(STEP).states == {STEP: "ok"}
    azure.plan("Freeze", "pool_0")
    azure.plan("Preempt", "pool_0", "pool_1")

    telling.site.settle(10)

    assert told(telling) == f"Preempt|Scheduled|E-1|{WHEN}"
    azure.events.clear()
    telling.site.settle(10)
    assert told(telling) is None
    telling.after(delete(SCRIPT))
    assert telling.change(STEP).states == {STEP: "changed"}

    assert telling.undo(STEP).states == {STEP: "changed"}
    assert not any(one.name == "events" for one in telling.machine.tasks.all())
    assert telling.differs == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (f"Preempt|Scheduled|E-1|{WHEN}", ["Preempt"]),
        (f"Preempt|Scheduled|E-1|{WHEN};Freeze|Started|E-2|", ["Preempt", "Freeze"]),
        ("", []),
        ("Preempt", []),
        ("Preempt|Scheduled|../../x|", []),
        (f"Preempt|Scheduled|{'E' * 65}|", []),
        ("Preempt|Scheduled|E|tomorrow", []),
        ("Preempt|Scheduled|E|Mon, 19 Sep 99999999999 18:29:47 GMT", []),
        ("Freeze|Scheduled|E|;" * 100_000, ["Freeze"] * 204),
    ],
)
def test_an_annotation_of_another_form_reports_nothing(text: str, kinds: list[str]) -> None:
    assert [one.kind for one in reported_events(text)] == kinds

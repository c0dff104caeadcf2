"""Tell the cluster what Azure is going to do to the machine, while there is time."""

from __future__ import annotations

from winboot.script.steps.step import Step

AZURE_EVENTS = Step(
    name="azure-events",
    why="Azure reports scheduled events only to the machine; a task copies them to the Node for `winboot hook serve`",
    needs=("registration",),
    wanted=lambda spec: spec.node.scheduled_events,
    leaves=lambda spec: {"scheduled tasks": [r"\winboot\events (always, asks Azure once a second)"]},
)

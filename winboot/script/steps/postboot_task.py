"""Run at each start of the machine: note the boot, put back what a restart removes."""

from __future__ import annotations

from winboot.script.steps.step import Step

POSTBOOT_TASK = Step(
    name="postboot-task",
    why="after a restart, routes are missing and address leases are stale; the machine repairs them without winboot's host",
    needs=("directories",),
    leaves=lambda spec: {
        "scheduled tasks": [
            r"\winboot\boot (at each start of the machine)",
            r"\winboot\guard (while networks are made)",
        ]
    },
)

"""Run at each start of the machine: note the boot, put back what a restart removes."""

from __future__ import annotations

from winboot.script.steps.step import Step

POSTBOOT_TASK = Step(
    name="postboot-task",
    why="a restart loses routes and leaves stale leases, and there may be no controller to fix them",
    needs=("directories",),
    leaves=lambda spec: {
        "scheduled tasks": [
            r"\winboot\boot (at each start of the machine)",
            r"\winboot\guard (while networks are made)",
        ]
    },
)

"""A command that fails ends its step, also one that is a function of a module."""

from __future__ import annotations

import json

from winboot_lab.engines import run_script
from winboot_lab.windows.machine import Machine

from tests.steps.test_detached import a_text

WORKS = "Change = { New-NetRoute -DestinationPrefix 10.9.0.0/24 -NextHop 10.0.0.1 -InterfaceIndex 9999; 'went on' }"


def test_a_network_command_that_fails_ends_the_step_in_a_session_over_winrm():
    """The script has a scope of its own there, and functions of modules see the global preference alone."""
    text = a_text("").replace(
        next(one for one in a_text("").splitlines() if one.startswith("Change = ")), WORKS
    )
    output: list[str] = []
    with Machine().session() as session:
        run_script(
            session,
            text,
            {"Mode": "Change", "RunId": "r1"},
            emit=lambda stream, value: output.append(str(value)) if stream == "output" else None,
            local_scope=True,
        )

    done = next(event for event in map(json.loads, output) if event["event"] == "step")

    assert done["state"] == "failed"
    assert done["problem"]["id"] == "ChangeFailed"
    assert "went on" not in done["problem"]["message"]

"""The script of `remove`, run to its end."""

from __future__ import annotations

import json
from typing import Any

from tests.lab.site import Direct, Site
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS


def undo(site: Site) -> dict[str, str]:
    """Run the script of `remove` to its end; how each step ended last."""
    (spec,) = site.specs()
    text = render(make_plan(spec, STEPS), spec, undo=True).text
    transport = Direct(site.controller(), spec)
    states: dict[str, str] = {}
    for _ in range(8):
        arguments = {"Mode": "Undo", "RunId": "undo", "Facts": {"Holder": "me"}}
        events: list[dict[str, Any]] = [json.loads(line) for line in transport.run(text, arguments, {})]
        states |= {
            e["step"]: f"{e['state']} {e['problem'] or ''}".strip() for e in events if e["event"] == "step"
        }
        match events[-1]["reason"]:
            case "complete":
                return states
            case "reboot":
                site.machine.reboot()
        site.settle(200)
    raise AssertionError(states)

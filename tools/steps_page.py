"""docs/steps.md, written from STEPS (`python -m tools.pages`)."""

from __future__ import annotations

from typing import Final

from winboot.script.steps import STEPS
from winboot.script.steps.step import Step

_HEAD: Final = """\
# Steps

    winboot steps                  # this list
    winboot join --only NAME       # one step and the steps that it needs

winboot applies these steps to a node, in this order. `make golden` writes this page. A step marked ○ carries
`identity: no`: it does not depend on the node's identity, so it also runs on machines of a [warm pool](clouds.md#warm-pools).
To add a step, see [how-to-add-a-step.md](how-to-add-a-step.md).

| step | why | builds on |
| --- | --- | --- |
"""


_SEEN: Final = """
## What has been seen to work, and where

"lab" means that the lab's engine ran the step's script against the lab's model of that Windows build. Recordings of the real
PowerShell check every answer of that engine. It does **not** mean that a real Windows machine has run it; "seen on
Windows" means that. The page [real-programs.md](real-programs.md) describes what kubelet.exe, kube-proxy.exe, flanneld.exe, the
CNI plug-ins and containerd.exe did with the rendered files and flags.

"""
# Where the lab has run a step's script; "seen on Windows" takes its place when a real machine has.
SEEN: Final = "lab"
RELEASES: Final = ("2019", "2022", "2025")


def steps_page() -> str:
    """The whole page as Markdown."""
    return _HEAD + "".join(f"{_row(step)}\n" for step in STEPS) + _SEEN + _support_table()


def _support_table() -> str:
    """Every step of the node on every Windows build, and where it has been seen to work."""
    heads = "".join(f" Windows Server {release} |" for release in RELEASES)
    lines = [f"| step |{heads}", "| --- |" + " --- |" * len(RELEASES)]
    node_side = [step for step in STEPS if step.side == "node"]
    lines += [f"| `{step.name}` |" + f" {SEEN} |" * len(RELEASES) for step in node_side]
    return "\n".join(lines) + "\n"


def _row(step: Step) -> str:
    where = " (by the controller, through the Kubernetes API)" if step.side == "cluster" else ""
    needs = ", ".join(f"`{name}`" for name in step.needs) or "—"
    free = "" if step.identity else " ○"
    return f"| `{step.name}` |{free} {step.why}{where} | {needs} |"

"""docs/steps.md, written from STEPS: `python -m winboot.script.steps > docs/steps.md`."""

from __future__ import annotations

from typing import Final

from winboot.script.steps import STEPS
from winboot.script.steps.step import Step

_HEAD: Final = """\
# Steps

What winboot does to a node, in order. Written from `winboot/script/steps` by
`python -m winboot.script.steps`; do not edit it here.
`--only` and `--skip` take these names. A step marked ○ carries `identity: no`: nothing in it tells one node from another, so
that it runs on machines of a [warm pool](clouds.md#warm-pools), too. How to add one:
[how-to-add-a-step.md](how-to-add-a-step.md).

| step | why | builds on |
| --- | --- | --- |
"""


_SEEN: Final = """
## What has been seen to work, and where

"lab" means: the step's script was executed by the lab's engine against the lab's model of that Windows build, and every
answer of that engine is held against recordings of the real PowerShell. It does **not** mean that a real Windows machine
has run it. "seen on Windows" means that it has. What kubelet.exe, kube-proxy.exe, flanneld.exe, the CNI plug-ins and
containerd.exe did with the rendered files and flags stands in [real-programs.md](real-programs.md).

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

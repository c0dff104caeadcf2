"""docs/steps.md, written from STEPS: `python -m winboot.steps > docs/steps.md`."""

from __future__ import annotations

from typing import Final

from winboot.steps import STEPS
from winboot.steps.step import Step

_HEAD: Final = """\
# Steps

What winboot does to a node, in order. Written from `winboot/steps` by `python -m winboot.steps`; do not edit it here.
`--only` and `--skip` take these names. How to add one: [how-to-add-a-step.md](how-to-add-a-step.md).

| step | why | builds on |
| --- | --- | --- |
"""


def steps_page() -> str:
    """The whole page as Markdown."""
    return _HEAD + "".join(f"{_row(step)}\n" for step in STEPS)


def _row(step: Step) -> str:
    where = " (by the controller, through the Kubernetes API)" if step.side == "cluster" else ""
    needs = ", ".join(f"`{name}`" for name in step.needs) or "—"
    return f"| `{step.name}` | {step.why}{where} | {needs} |"

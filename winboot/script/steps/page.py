"""docs/steps.md, written from STEPS: `python -m winboot.script.steps > docs/steps.md`."""

from __future__ import annotations

from typing import Final

from winboot.script.steps import STEPS
from winboot.script.steps.step import Step

_HEAD: Final = """\
# Steps

What winboot does to a node, in order. Written from `winboot/script/steps` by
`python -m winboot.script.steps`; do not edit it here.
`--only` and `--skip` take these names. How to add one: [how-to-add-a-step.md](how-to-add-a-step.md).

| step | why | builds on |
| --- | --- | --- |
"""


def steps_page() -> str:
    """The whole page as Markdown."""
    return _HEAD + "".join(f"{_row(step)}\n" for step in STEPS)


# Where the lab has run a step's script; "seen on Windows" takes its place when a real machine has.
SEEN: Final = "lab"
RELEASES: Final = ("2019", "2022", "2025")
TABLE_BEGINS: Final = (
    "<!-- support table: written by `python -m winboot.script.steps readme`, checked by a test -->\n"
)
TABLE_ENDS: Final = "<!-- end of support table -->"


def support_table() -> str:
    """The README's table: every step of the node on every Windows build, and where it has been seen to work."""
    heads = "".join(f" Windows Server {release} |" for release in RELEASES)
    lines = [f"| step |{heads}", "| --- |" + " --- |" * len(RELEASES)]
    node_side = [step for step in STEPS if step.side == "node"]
    lines += [f"| `{step.name}` |" + f" {SEEN} |" * len(RELEASES) for step in node_side]
    return "\n".join(lines) + "\n"


def with_table(readme: str) -> str:
    """The README with its table as it should be now."""
    head, _, rest = readme.partition(TABLE_BEGINS)
    _, end, tail = rest.partition(TABLE_ENDS)
    return head + TABLE_BEGINS + support_table() + end + tail


def _row(step: Step) -> str:
    where = " (by the controller, through the Kubernetes API)" if step.side == "cluster" else ""
    needs = ", ".join(f"`{name}`" for name in step.needs) or "—"
    return f"| `{step.name}` | {step.why}{where} | {needs} |"

"""The report as one self-contained HTML page: no script, no font, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from winboot.report.causes import causes, followers
from winboot.report.differences import difference_text
from winboot.report.results import NodeReport, Report, StepReport
from winboot.report.table import NUMBERS, summary
from winboot.report.totals import in_all, totals_of

_OPEN: Final = 4
# A shorter pause is not a wait.
_WAIT_S: Final = 1.0


def html(report: Report) -> str:
    """The whole page as text; every value is escaped by the template engine."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8"))
    attention = [node for node in report.nodes if node.outcome not in ("ok", "changed")]
    return template.render(
        report=report,
        summary=summary(report),
        causes=causes(report.nodes),
        followers=tuple(followers(report.nodes)),
        # Of many nodes none is open: the causes above say what they share.
        few=len(attention) <= _OPEN,
        worst_first=_worst_first,
        line=difference_text,
        totals_of=totals_of,
        in_all=in_all,
        timeline=timeline,
        bar=bar,
        counted=counted,
        numbers=[(name, count) for name, count in NUMBERS if any(map(count, report.nodes))],
    )


@dataclass(frozen=True, slots=True)
class Timed:
    """A part of a node's time, in seconds from its beginning: a step, or a wait before one."""

    name: str
    state: str
    begin: float
    seconds: float


def timeline(node: NodeReport) -> list[Timed]:
    """The steps that were not as wanted, in the order in which they ended, and the waits between them: for a restart, a task
    on the node or the cluster."""
    ended = [(step.ended, step) for step in node.steps if step.ended is not None]
    parts: list[Timed] = []
    last = 0.0
    for end, step in sorted(ended, key=lambda one: one[0]):
        begin = max(last, end - step.ms / 1000)
        if begin - last >= _WAIT_S:
            parts.append(Timed(f"wait before {step.name}", "wait", last, begin - last))
        parts.append(Timed(step.name, step.state, begin, end - begin))
        last = end
    if parts and node.seconds - last >= _WAIT_S:
        parts.append(Timed("wait after the last step", "wait", last, node.seconds - last))
    return parts


def counted(number: int, noun: str) -> str:
    """`1 pipeline`, `2 pipelines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def bar(begin: float, length: float, whole: float) -> str:
    """Where a part of a time lies in it, and how long it is, in percent as CSS says it; nothing is thinner than half of one."""
    whole = max(whole, begin + length, 0.001)
    width = min(100.0, max(0.5, 100 * length / whole))
    return f"margin-left:{min(100.0 - width, max(0.0, 100 * begin / whole)):.2f}%;width:{width:.2f}%"


def _worst_first(steps: Sequence[StepReport]) -> list[StepReport]:
    """What failed, what waits for it, what differed, then the others; each in running order."""
    order = {"failed": 0, "blocked": 1, "would-change": 2, "changed": 3}
    return sorted(steps, key=lambda step: order.get(step.state, 4))

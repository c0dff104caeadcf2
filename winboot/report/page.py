"""The report as one self-contained HTML page: no script, no font, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from winboot.report.causes import causes, followers
from winboot.report.differences import difference_text
from winboot.report.results import NodeReport, Report, StepReport
from winboot.report.table import summary
from winboot.report.totals import in_all, totals_of

_OPEN: Final = 4


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
    )


def timeline(node: NodeReport) -> list[StepReport]:
    """The steps that were not as wanted, in the order in which that was told or mended."""
    told = [step for step in node.steps if step.ended is not None]
    return sorted(told, key=lambda step: step.ended or 0.0)


def bar(begin: float, length: float, whole: float) -> str:
    """Where a part of a time lies in it, and how long it is, in percent as CSS says it; nothing is thinner than half of one."""
    whole = max(whole, begin + length, 0.001)
    width = min(100.0, max(0.5, 100 * length / whole))
    return f"margin-left:{min(100.0 - width, max(0.0, 100 * begin / whole)):.2f}%;width:{width:.2f}%"


def _worst_first(steps: Sequence[StepReport]) -> list[StepReport]:
    """What failed, what waits for it, what differed, then the others; each in running order."""
    order = {"failed": 0, "blocked": 1, "would-change": 2, "changed": 3}
    return sorted(steps, key=lambda step: order.get(step.state, 4))

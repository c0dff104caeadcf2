"""The report as one self-contained HTML page: no script, no font, nothing fetched."""

from __future__ import annotations

from pathlib import Path

from winboot.report.differences import difference_text
from winboot.report.results import Report
from winboot.report.table import summary
from winboot.report.totals import in_all, totals_of


def html(report: Report) -> str:
    """The whole page as text; every value is escaped by the template engine."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        report=report, summary=summary(report), line=difference_text, totals_of=totals_of, in_all=in_all
    )

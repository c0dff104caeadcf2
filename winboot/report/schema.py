"""All kinds of JSON lines, and their schema."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Final

from winboot.report import shape
from winboot.report.archive import PastRun
from winboot.report.events import Difference
from winboot.report.finding import CloudFinding, Finding
from winboot.report.flows import FlowRow
from winboot.report.line import Line, schema_of
from winboot.report.results import NodeReport

ANSWERS: Final[tuple[type[Line], ...]] = (
    FlowRow,
    shape.Flows,
    shape.WorkItem,
    shape.Complaint,
    shape.Checked,
    shape.DoctorFinding,
    shape.Diagnosis,
    shape.Ping,
    Finding,
    CloudFinding,
    NodeReport,
    shape.Run,
    PastRun,
    shape.Status,
    shape.Fleet,
    shape.Request,
    shape.Rendered,
    shape.Explained,
    shape.Step,
)
JOURNAL: Final[tuple[type[Line], ...]] = (
    shape.Script,
    shape.Pass,
    shape.Event,
    shape.Noise,
    shape.Error,
    shape.Failed,
    shape.Skipped,
    shape.Bug,
)


def lines_schema() -> dict[str, Any]:
    """The JSON Schema of a line."""
    return schema_of(reduce(or_, (*ANSWERS, *JOURNAL)), "winboot JSON lines", (Difference, *JOURNAL))

"""The report as plain data: JSON lines for programs, JUnit for CI."""

from __future__ import annotations

import json
from typing import Final, cast
from xml.etree import ElementTree as ET

from winboot.base.foreign import converted, ready
from winboot.report.finding import Finding
from winboot.report.line import json_line
from winboot.report.results import NodeReport, Report
from winboot.report.shape import Run

_LINE: Final = Finding | NodeReport | Run
ready(_LINE)


def json_lines(report: Report) -> str:
    """One object a finding of preflight, one a node, and a last one for the run."""
    return "".join([*map(json_line, report.preflight), *map(node_line, report.nodes), run_line(report)])


def node_line(node: NodeReport) -> str:
    """The line of a node: `failure` is null where `skipped` says why it was left alone."""
    return json_line(node, {} if node.skipped is None else {"failure": None})


def run_line(report: Report) -> str:
    """The line of the run as a whole, which comes last."""
    return json_line(
        Run(
            command=report.command,
            run=report.run,
            started=report.started,
            seconds=round(report.seconds, 3),
            changed=report.changed,
            exit_code=report.exit_code,
            winboot=report.winboot,
            by=report.by,
            plan=report.plan or None,
            asked=report.asked,
        )
    )


def report_of(text: str) -> Report:
    """The report that `json_lines` gave. Raises ValueError where it is something else."""
    lines = [
        converted(json.loads(line), cast("type[Finding | NodeReport | Run]", _LINE))
        for line in text.splitlines()
    ]
    (run,) = (line for line in lines if isinstance(line, Run))
    return Report(
        command=run.command,
        run=run.run,
        started=run.started,
        nodes=tuple(line for line in lines if isinstance(line, NodeReport)),
        seconds=run.seconds,
        preflight=tuple(line for line in lines if isinstance(line, Finding)),
        winboot=run.winboot,
        by=run.by,
        plan=run.plan or "",
        asked=run.asked,
    )


def junit(report: Report) -> str:
    """A test suite a node, a test case a step; a failed or blocked step is a failure with its hint.

    ASCII, with references for other characters: it means the same in whichever encoding it is written.
    """
    root = ET.Element("testsuites", name=f"winboot {report.command}")
    if report.preflight:
        suite = ET.SubElement(root, "testsuite", name="preflight", tests=str(len(report.preflight)))
        for finding in report.preflight:
            case = ET.SubElement(suite, "testcase", classname="preflight", name=finding.id)
            if finding.stops:
                ET.SubElement(case, "failure", message=finding.reason, type=finding.id).text = finding.fix
            else:
                ET.SubElement(case, "skipped", message=finding.reason)
    for node in report.nodes:
        suite = ET.SubElement(root, "testsuite", name=node.node, tests=str(len(node.steps) or 1))
        for step in node.steps:
            case = ET.SubElement(
                suite, "testcase", classname=node.node, name=step.name, time=f"{step.ms / 1000:.3f}"
            )
            if step.problem is not None and step.state in ("failed", "blocked"):
                failure = ET.SubElement(case, "failure", message=step.problem.message, type=step.problem.id)
                failure.text = step.problem.hint
        if node.failure is not None:
            case = ET.SubElement(suite, "testcase", classname=node.node, name="reach the node")
            if node.outcome == "skipped":
                ET.SubElement(case, "skipped", message=f"{node.failure.message} {node.failure.hint}".strip())
                continue
            error = ET.SubElement(case, "error", message=node.failure.message, type=node.failure.name)
            error.text = node.failure.hint
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode", xml_declaration=True)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"

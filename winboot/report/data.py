"""The report as plain data: JSON lines for programs, JUnit for CI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from winboot.report.events import Difference, Problem
from winboot.report.finding import Finding
from winboot.report.results import Digests, Failure, NodeReport, Report, StepReport
from winboot.report.shape import FLAGS, json_line


def difference_data(difference: Difference) -> dict[str, Any]:
    """A difference with the names it has on the wire."""
    data: dict[str, Any] = {
        "key": difference.key,
        "what": difference.what,
        "is": difference.is_,
        "want": difference.want,
    }
    texts = {name: text for name in ("was", "will") if (text := getattr(difference, name)) is not None}
    return data | texts | {flag: True for flag in FLAGS if getattr(difference, flag)}


def difference_of(data: Mapping[str, Any]) -> Difference:
    """The difference that `difference_data` gave."""
    flags = {flag: bool(data.get(flag)) for flag in FLAGS}
    return Difference(
        data["what"],
        data["is"],
        data["want"],
        key=data["key"],
        was=data.get("was"),
        will=data.get("will"),
        **flags,
    )


def _problem_data(problem: Problem | None) -> dict[str, str] | None:
    if problem is None:
        return None
    return {"id": problem.id, "message": problem.message, "hint": problem.hint, "position": problem.position}


def step_data(step: StepReport) -> dict[str, Any]:
    """One step of one node."""
    return {
        "step": step.name,
        "state": step.state,
        "ms": step.ms,
        "differences": [difference_data(d) for d in step.differences],
        "problem": _problem_data(step.problem),
        **({} if step.ended is None else {"ended": round(step.ended, 3)}),
    }


def node_data(node: NodeReport) -> dict[str, Any]:
    """One node, with its steps."""
    left = node.outcome == "skipped"
    return {
        "node": node.node,
        "address": node.address,
        "os": node.os,
        "outcome": node.outcome,
        "ready": node.ready,
        "steps": [step_data(step) for step in node.steps],
        "failure": None if left else _failure_data(node.failure),
        "skipped": _failure_data(node.failure) if left else None,
        "reboots": node.reboots,
        "detached": node.detached,
        "reconnects": node.reconnects,
        "pipelines": node.pipelines,
        "began": round(node.began, 3),
        "seconds": round(node.seconds, 3),
        "notes": list(node.notes),
        "digests": {
            "settings": node.digests.settings,
            "script": node.digests.script,
            "library": node.digests.library,
        },
        "live": node.live,
        "needs": [{"flag": flag, "why": why} for flag, why in node.needs],
    }


def _failure_data(failure: Failure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return {
        "name": failure.name,
        "message": failure.message,
        "hint": failure.hint,
        "exit_code": failure.exit_code,
    }


def finding_data(finding: Finding) -> dict[str, Any]:
    """One finding of preflight; `nodes` is empty where it concerns all of the cluster."""
    return {
        "id": finding.id,
        "level": finding.level,
        "reason": finding.reason,
        "fix": finding.fix,
        "nodes": list(finding.nodes),
        "skipped": finding.skipped,
    }


def json_lines(report: Report) -> str:
    """One object a finding of preflight, one a node, and a last one for the run."""
    return "".join([*map(finding_line, report.preflight), *map(node_line, report.nodes), run_line(report)])


def finding_line(finding: Finding) -> str:
    """The line of a finding of preflight."""
    return json_line("preflight", finding_data(finding))


def node_line(node: NodeReport) -> str:
    """The line of a node."""
    return json_line("node", node_data(node))


def run_line(report: Report) -> str:
    """The line of the run as a whole, which comes last."""
    data = {
        "command": report.command,
        "run": report.run,
        "started": report.started,
        "seconds": round(report.seconds, 3),
        "changed": report.changed,
        "exit_code": report.exit_code,
        "winboot": report.winboot,
        "by": report.by,
        "plan": report.plan or None,
        "asked": dict(report.asked),
    }
    return json_line("run", data)


def report_of(text: str) -> Report:
    """The report that `json_lines` gave. Raises ValueError, KeyError or TypeError where it is something else."""
    lines = [json.loads(line) for line in text.splitlines()]
    (run,) = (line for line in lines if line["kind"] == "run")
    return Report(
        command=run["command"],
        run=run["run"],
        started=run["started"],
        nodes=tuple(_node_of(line) for line in lines if line["kind"] == "node"),
        seconds=run["seconds"],
        preflight=tuple(_finding_of(line) for line in lines if line["kind"] == "preflight"),
        winboot=run["winboot"],
        by=run["by"],
        plan=run["plan"] or "",
        # A report of an earlier winboot says nothing of it.
        asked=run.get("asked", {}),
    )


def _finding_of(data: Mapping[str, Any]) -> Finding:
    nodes = tuple(data["nodes"])
    return Finding(data["id"], data["level"], data["reason"], data["fix"], nodes, skipped=data["skipped"])


def _node_of(data: Mapping[str, Any]) -> NodeReport:
    failure = data["failure"] or data["skipped"]
    return NodeReport(
        node=data["node"],
        address=data["address"],
        os=data["os"],
        steps=tuple(_step_of(step) for step in data["steps"]),
        failure=None if failure is None else Failure(**failure),
        reboots=data["reboots"],
        detached=data["detached"],
        reconnects=data["reconnects"],
        pipelines=data["pipelines"],
        began=data.get("began", 0.0),
        seconds=data["seconds"],
        ready=data["ready"],
        notes=tuple(data["notes"]),
        digests=Digests(**data["digests"]),
        needs=tuple((need["flag"], need["why"]) for need in data["needs"]),
        live=data["live"],
    )


def _step_of(data: Mapping[str, Any]) -> StepReport:
    problem = data["problem"]
    return StepReport(
        name=data["step"],
        state=data["state"],
        ms=data["ms"],
        differences=tuple(difference_of(one) for one in data["differences"]),
        problem=None if problem is None else Problem(**problem),
        ended=data.get("ended"),
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

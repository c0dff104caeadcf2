"""Findings in Prometheus' text format, for the textfile collector of windows_exporter or node_exporter.

Names and labels: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Sequence

from winboot.operations.doctor.judge import Verdict


def metrics(verdicts: Sequence[Verdict]) -> str:
    """One sample for each finding, and the time of each node's facts in seconds since 1970."""
    lines = [
        "# HELP winboot_doctor_finding 1 if this rule has a finding on this node.",
        "# TYPE winboot_doctor_finding gauge",
    ]
    for one in verdicts:
        for finding in one.findings:
            first = "true" if finding is one.first else "false"
            labels = {
                "node": one.node,
                "rule": finding.rule.id,
                "severity": finding.rule.severity,
                "first": first,
            }
            lines.append(f"winboot_doctor_finding{{{_labels(labels)}}} 1")
    lines += [
        "# HELP winboot_doctor_facts_seconds Unix time at which winboot read the node's facts.",
        "# TYPE winboot_doctor_facts_seconds gauge",
    ]
    lines += [
        f"winboot_doctor_facts_seconds{{{_labels({'node': one.node})}}} {one.document.taken_seconds:.0f}"
        for one in verdicts
    ]
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""docs/verify.md, `winboot verify --help` and the code name the same flows in the same words."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console

from winboot.cli.verify import _help
from winboot.node.probes import PROBES
from winboot.operations.verify.flows import FLOWS, LIMITATIONS
from winboot.report.flows import FlowReport, FlowRow, flows_junit, one_document, print_flows

PAGE = Path(__file__).parents[2] / "docs" / "verify.md"


def test_the_page_has_each_flow_and_probe_with_the_words_of_the_code() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (.+?) \|(?: (.+?) \|)?$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )

    told = {id: (what, expected) for id, what, expected in rows if id != "pod-start` fails"}
    assert told == {
        **{one.id: (one.what, one.expected) for one in FLOWS},
        **{id: (what, "") for id, what in PROBES.items()},
        **{id: (what, "") for id, what in LIMITATIONS.items()},
    }


def test_the_help_lists_each_of_them_on_a_line_of_its_own() -> None:
    lines = {line.partition(" ")[0]: line for line in _help().splitlines()}

    for id, what in [*((one.id, one.what) for one in FLOWS), *PROBES.items(), *LIMITATIONS.items()]:
        assert lines[id].endswith(f" {what}"), id


def test_two_reports_are_one_document_for_a_program() -> None:
    row = FlowRow("egress", "win-1", "pod on win-1", "a:443", "failed", "a connection", "no answer")
    flows = flows_junit(FlowReport("run", "now", (row,)))
    run = '<?xml version="1.0"?><testsuites name="winboot join"><testsuite name="win-1" tests="0"/></testsuites>'

    root = ET.fromstring(one_document(run, flows))

    assert [suite.get("name") for suite in root] == ["win-1", "win-1"]
    assert root.find(".//failure") is not None


def test_on_a_terminal_of_80_columns_a_flow_is_one_line_and_what_failed_is_reported_below() -> None:
    """Sixty flows were three hundred lines, of words of ten letters."""
    long = "web.winboot-verify-4386cbc894cd-e3f9.svc.cluster.local"
    rows = (
        FlowRow("dns-full", "n1", "pod on n1", long, "passed", "an address", "the name was resolved"),
        FlowRow("ping-outside", "", "", "", "limitation", "not on this OS", "no ICMP leaves the network"),
        FlowRow(
            "egress", "n1", "pod on n1", "h:443", "failed", "a connection", "refused", "a firewall", "open it"
        ),
    )
    out = io.StringIO()

    print_flows(FlowReport("r", "t", rows, seconds=1), Console(file=out, width=80), passed=True)

    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert len(lines) == 1 + 3 + 4 + 1
    assert all(len(line) <= 80 for line in lines)
    assert [line.split()[0] for line in lines[1:4]] == ["dns-full", "ping-outside", "egress"]
    assert lines[4:8] == [
        "ping-outside: no ICMP leaves the network",
        "egress, pod on n1 to h:443: refused",
        "  probable cause: a firewall",
        "  next: open it",
    ]

"""On a terminal of 80 columns nothing of a site of twelve nodes is wider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab

from tests.cli.terminal import as_wide_as
from tests.cli.test_exit_codes import INVENTORY
from tests.config.scene import GOOD, an_inventory
from winboot.cli import run
from winboot.cli.output import columns, console
from winboot.cli.ping import Finding, Pinged, show_wrong
from winboot.report.flows import FlowReport, FlowRow, print_flows
from winboot.report.results import Failure, NodeReport, Report
from winboot.report.table import print_report

WIDTH = 80
NODES = 12
LOOKS = (
    "ping",
    "ping -v",
    "preflight",
    "plan",
    "plan --limit win-1 --only directories --diff",
    "status",
    "runs",
    "report last",
    "log last win-1",
    "inventory",
    "csr list",
    "check",
    "steps",
    "manifests",
    "lab break",
    "remove --cluster-only --dry-run",
    "explain kubelet",
)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with Lab(nodes=NODES) as lab:
        yield stage(lab, tmp_path_factory.mktemp("twelve")).inventory


def test_no_row_of_a_command_is_wider_than_the_terminal(
    inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_wide_as(monkeypatch, WIDTH)
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path))
    # Relative: the length of the temporary folder's path must not count.
    monkeypatch.chdir(inventory.parent)
    monkeypatch.setenv("WINBOOT_INVENTORY", inventory.name)
    wide = {}
    for look in LOOKS:
        run(look.split())
        shown = capsys.readouterr().out
        assert shown, look
        # A word alone may be longer: a path, a hash, an address.
        wide[look] = [line for line in shown.splitlines() if len(line) > WIDTH and " " in line.strip()]

    assert {look: lines for look, lines in wide.items() if lines} == {}


def test_a_wide_table_wraps_its_longest_cells_at_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_wide_as(monkeypatch, WIDTH)
    drift = "kubelet, runtime, build, DiskTooSmall, address, unschedulable"
    columns(
        [
            {
                "node": f"win-{n}",
                "state": "NotReady (NodeStatusUnknown)",
                "drift": drift,
                "last": "join 5m ago",
            }
            for n in range(NODES)
        ]
    )

    rows = capsys.readouterr().out.splitlines()
    assert max(map(len, rows)) <= WIDTH
    assert rows[1].startswith("win-0 ") and rows[2].startswith(" ")
    assert len(" ".join(rows).split("DiskTooSmall")) == NODES + 1


def test_a_pipe_gets_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    columns([{"node": "win-1", "why": "word " * 50}])

    assert len(capsys.readouterr().out.splitlines()) == 2


def test_verify_counts_what_passed_and_names_each_cause_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_wide_as(monkeypatch, WIDTH)
    passed = [FlowRow("dns", f"win-{n}", f"pod on win-{n}", "a", "passed", "an address") for n in range(360)]
    failed = [
        FlowRow(
            "egress", f"win-{n}", f"pod on win-{n}", "h:443", "failed", "", "refused", "a firewall", "open it"
        )
        for n in range(3)
    ]
    report = FlowReport("run", "now", (*passed, *failed), seconds=1)

    print_flows(report, console())
    assert capsys.readouterr().out.splitlines() == [
        "egress, pod on win-0, pod on win-1, pod on win-2 to h:443: refused",
        "  probable cause: a firewall",
        "  next: open it",
        "verify: 360 passed, 3 failed in 1.0 s; -v shows each",
    ]
    print_flows(report, console(), passed=True)
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) > 360
    assert max(map(len, rows)) <= WIDTH


def test_ping_names_what_is_wrong_once_and_counts_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    late = Finding("error", "clock", "-1800 s from the cluster's", "w32tm /resync")
    right = Finding("ok", "token", "administrator")

    show_wrong(
        [Pinged(f"win-{n}", "", (right, late) if n < 2 else (right,), int(n < 2)) for n in range(NODES)]
    )

    assert capsys.readouterr().out.splitlines() == [
        "win-0, win-1: error: clock: -1800 s from the cluster's",
        "  fix: w32tm /resync",
        "ping: 10 of 12 machines ok; 12 checks passed (-v shows them)",
    ]


def test_a_warning_about_a_file_is_printed_once_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    profile = f"{GOOD}artifacts: {{source: 'http://mirror.lan'}}\n"
    inventory = an_inventory(tmp_path, INVENTORY, profile)

    def warned() -> bool:
        assert run(["render", "-i", str(inventory), "--limit", "win-1", "--digest"]) == 0
        return "downloads are not encrypted; only the" in capsys.readouterr().err

    assert [warned(), warned()] == [True, False]
    an_inventory(tmp_path, INVENTORY, profile + "# changed\n")
    assert [warned(), warned()] == [True, False]


def test_prose_of_a_report_wraps_at_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_wide_as(monkeypatch, WIDTH)
    hint = "Run again with --drain: winboot cordons and evicts first, and lifts its own cordon afterwards."
    failed = NodeReport("win-1", "", "2022", failure=Failure("NeedsDrain", "word " * 40, hint, 2))

    print_report(Report("join", "run", "now", (failed,)), console())

    rows = capsys.readouterr().out.splitlines()
    assert max(map(len, rows)) <= WIDTH
    assert " ".join(" ".join(rows).split()).count(hint) == 1

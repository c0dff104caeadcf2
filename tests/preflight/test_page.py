"""docs/preflight.md names every check with its reason."""

from __future__ import annotations

from pathlib import Path

from winboot.node.preflight import CHECKS
from winboot.report.hints import HINTS

PAGE = Path(__file__).parents[2] / "docs" / "preflight.md"


def test_the_page_has_every_check_and_no_other() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    of_the_cluster = [f"| `{check.id}` | {check.why} |" for check in CHECKS]

    assert rows[: len(of_the_cluster)] == of_the_cluster
    # The machine checks the rest, in the step download-sources.
    of_the_machine = [line.split("`")[1] for line in rows[len(of_the_cluster) :]]
    assert of_the_machine == ["proxy", "artifact-source", "registry"]
    assert set(of_the_machine) <= set(HINTS)

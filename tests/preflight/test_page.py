"""docs/preflight.md names every check with its reason."""

from __future__ import annotations

from pathlib import Path

from winboot.node.preflight import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "preflight.md"


def test_the_page_has_every_check_and_no_other() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]

    assert rows == [f"| `{check.id}` | {check.why} |" for check in CHECKS]

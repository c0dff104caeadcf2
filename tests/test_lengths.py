"""Long files."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONG = 800


def test_a_file_of_more_than_800_lines_has_its_reason_at_its_head() -> None:
    places = (ROOT / "winboot", ROOT / "lab" / "winboot_lab", ROOT / "tools")
    texts = {path: path.read_text(encoding="utf-8") for place in places for path in place.rglob("*.py")}
    long = [path for path, text in texts.items() if text.count("\n") > LONG]

    assert long
    assert [
        str(path)
        for path in long
        if f"More than {LONG} lines: " not in (ast.get_docstring(ast.parse(texts[path])) or "")
    ] == []

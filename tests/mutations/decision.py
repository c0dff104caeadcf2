"""A decision of the tool or its lab, the text that makes it, and where that text is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_SOURCES: Final = (
    ("winboot", "*.py"),
    ("lab/winboot_lab/programs", "*.py"),
    ("templates/powershell", "*.ps1"),
    ("templates/powershell", "*.j2"),
)


@dataclass(frozen=True, slots=True)
class Decision:
    """`right` is a text that occurs once in the tool, whatever file it is in by now; `wrong` takes its place.

    `tests` are the files and folders (below `tests`) that are expected to notice.
    """

    name: str
    right: str
    wrong: str
    tests: tuple[str, ...]


def sources(root: Path = ROOT) -> Mapping[Path, str]:
    """The Python and PowerShell of the tool and of the lab's programs: path below `root` → text."""
    return {
        path.relative_to(root): path.read_text(encoding="utf-8")
        for folder, pattern in _SOURCES
        for path in sorted((root / folder).rglob(pattern))
    }


def places(decision: Decision, texts: Mapping[Path, str]) -> list[Path]:
    """Where the decision is made: one path, or as many as its text occurs times."""
    return [path for path, text in texts.items() for _ in range(text.count(decision.right))]

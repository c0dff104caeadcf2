"""The example of a how-to page, applied to a copy of the repository as the page says it.

A block of code whose first line names a file (```python PATH, ```diff PATH) is written to that file, or added to it. In
a diff the lines with a plus go below the lines before them; the file has those lines exactly once, in that order.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_BLOCK: Final = re.compile(r"^```(python|diff) (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COPIED: Final = (
    "winboot",
    "templates",
    "tests/config",
    "tests/networks",
    "lab/winboot_lab",
    "lab/tests/lab_windows",
)


def apply(page: str, folder: Path) -> list[str]:
    """A copy of what the page changes, in `folder`, with its changes; the paths of the files it names."""
    for part in _COPIED:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests" / "__init__.py").touch()
    shutil.copy(ROOT / "tests" / "every.py", folder / "tests")
    paths = []
    for kind, path, text in _BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")):
        file = folder / path
        if kind == "python":
            assert not file.exists(), f"{path} is there already"
            file.write_text(text, encoding="utf-8")
        else:
            file.write_text(_edited(file.read_text(encoding="utf-8"), text), encoding="utf-8")
        paths.append(path)
    return paths


def _edited(text: str, diff: str) -> str:
    above, last = "", " "
    for mark, line in ((one[:1], f"{one[1:]}\n") for one in diff.splitlines()):
        if mark == "+":
            assert text.count(above) == 1, f"not there once: {above}"
            text = text.replace(above, above + line)
        elif last == "+":
            above = ""
        # What comes next goes below what was added; both together are there once.
        above += line
        last = mark
    return text


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, which sees the copy and nothing else of the repository."""
    path = os.pathsep.join(str(folder / one) for one in ("", "lab", "lab/tests"))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def tested(folder: Path, file: str) -> str:
    """What pytest says at the end of a test file of the copy."""
    ended = run(
        folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", file
    )
    return ended.stdout + ended.stderr

"""Tests on the lab's engine and on a real PowerShell: do their scripts tell the same?

    python -m tests.real.both PWSH [argument of pytest ...]

runs the tests that the arguments choose once on each engine. Writes how many told the same and what differs; exits with 1
where something does, or where a test failed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.real.transcript import recorded


def run(folder: Path, arguments: list[str]) -> bool:
    """Whether the tests pass; what their scripts tell goes into `folder`."""
    words = [sys.executable, "-m", "pytest", "-q", "--told", str(folder), *arguments]
    return subprocess.run(words, check=False).returncode == 0


def differences(lab: dict[str, list[Any]], real: dict[str, list[Any]]) -> list[str]:
    """Where two engines' tests do not tell the same: the test, and the first that differs."""
    return [
        f"{test}: {_first(lab.get(test, []), real.get(test, []))}"
        for test in sorted({*lab, *real})
        if lab.get(test) != real.get(test)
    ]


def _first(lab: list[Any], real: list[Any]) -> str:
    for place, (one, other) in enumerate(zip(lab, real, strict=False)):
        if one != other:
            return f"{place + 1}: the lab {one}, PowerShell {other}"
    return f"the lab told {len(lab)}, PowerShell {len(real)}"


def main(words: list[str]) -> int:
    """0 when both engines tell the same."""
    powershell, *arguments = words
    with tempfile.TemporaryDirectory(prefix="winboot-told-") as folder:
        lab, real = Path(folder) / "lab", Path(folder) / "real"
        passed = run(lab, arguments)
        passed &= run(real, ["--engine", "pwsh", "--pwsh", powershell, *arguments])
        return report(recorded(lab), recorded(real), passed=passed)


def report(lab: dict[str, list[Any]], real: dict[str, list[Any]], *, passed: bool) -> int:
    """Writes what was found, and says how to exit."""
    found = differences(lab, real)
    for one in found:
        print(one)
    tests = {*lab, *real}
    print(
        f"{len(tests)} tests ran a script: {len(tests) - len(found)} tell the same on both engines, {len(found)} do not"
    )
    return 0 if passed and tests and not found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

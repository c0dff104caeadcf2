"""Compare the script output of tests on the lab's engine and on a real PowerShell.

    python -m tests.real.both PWSH [argument of pytest ...]

runs the tests that the arguments choose once on each engine. Prints how many tests have the same output and the
differences; exits with 1 on a difference or a failed test.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.real.transcript import recorded


def run(folder: Path, arguments: list[str]) -> bool:
    """True if the tests pass; the output of their scripts goes into `folder`."""
    words = [sys.executable, "-m", "pytest", "-q", "--told", str(folder), *arguments]
    return subprocess.run(words, check=False).returncode == 0


def differences(lab: dict[str, list[Any]], real: dict[str, list[Any]]) -> list[str]:
    """The tests whose output differs between two engines, with the first difference."""
    return [
        f"{test}: {_first(lab.get(test, []), real.get(test, []))}"
        for test in sorted({*lab, *real})
        if lab.get(test) != real.get(test)
    ]


def _first(lab: list[Any], real: list[Any]) -> str:
    for place, (one, other) in enumerate(zip(lab, real, strict=False)):
        if one != other:
            return f"{place + 1}: the lab {one}, PowerShell {other}"
    return f"the lab sent {len(lab)} events, PowerShell {len(real)}"


def main(words: list[str]) -> int:
    """0 when the output is the same on both engines."""
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
        f"{len(tests)} tests ran a script: {len(tests) - len(found)} have the same output on both engines, {len(found)} do not"
    )
    return 0 if passed and tests and not found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

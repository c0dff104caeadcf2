"""`make mutate`: make each decision wrong in a copy of the repository, and run the tests that are to hold it.

    python -m tests.mutations.runner [WORD …]      those whose names contain one of the words; all without any

Ends with 1 where a mutation survives that survivors.txt does not name, where one that it names is noticed by now (take the
line out), and where the tests fail without any mutation. As long as all tests of all decisions take: run it by hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from tests.mutations.decision import ROOT, Decision, places, sources
from tests.mutations.table import DECISIONS

SURVIVORS: Final = Path(__file__).with_name("survivors.txt")
# Seconds: a wrong decision may also make its tests wait for ever.
LONGEST: Final = 900
# What `make test` runs of an entry's tests; where none of these notices, what `make check` runs of them.
QUICK: Final = "not nightly and not matrix and not check"
DAILY: Final = "not nightly and not matrix and check"
# How pytest ends: all tests passed, some failed, or none was chosen. Anything else (wrong use) is no answer.
PASSED, FAILED, NONE = 0, 1, 5

Answer = Literal["noticed", "survived", "no answer"]


def known_survivors() -> set[str]:
    """The names in survivors.txt."""
    lines = SURVIVORS.read_text(encoding="utf-8").splitlines()
    return {line.split("#")[0].strip() for line in lines} - {""}


def main(words: Sequence[str]) -> int:
    """Try the decisions, and compare what survives with survivors.txt."""
    chosen = [one for one in DECISIONS if not words or any(word in one.name for word in words)]
    with a_copy() as copy:
        tests = sorted({test for one in chosen for test in one.tests})
        if _pytest(copy, tests, QUICK) not in (PASSED, NONE):
            print("The tests fail without any mutation: put them right first.")
            return 1
        answers = {one.name: _told(one, _tried(copy, one)) for one in chosen}
    return _verdict(answers)


def _verdict(answers: dict[str, Answer]) -> int:
    survivors = {name for name, answer in answers.items() if answer == "survived"}
    noticed = {name for name, answer in answers.items() if answer == "noticed"}
    known = known_survivors()
    print(f"{len(noticed)} of {len(answers)} mutations noticed, {len(survivors)} survived")
    complaints = [f"survives, and is not in survivors.txt: {name}" for name in sorted(survivors - known)]
    complaints += [
        f"is noticed by now, take it out of survivors.txt: {name}" for name in sorted(noticed & known)
    ]
    complaints += [f"no answer: {name}" for name, answer in answers.items() if answer == "no answer"]
    for line in complaints:
        print(line)
    return 1 if complaints else 0


def _told(decision: Decision, answer: Answer) -> Answer:
    print(f"{answer:>9}  {decision.name}", flush=True)
    return answer


@contextmanager
def a_copy() -> Iterator[Path]:
    """The files of the repository, as they are in the working tree."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    with tempfile.TemporaryDirectory(prefix="winboot-mutate-") as folder:
        copy = Path(folder)
        for name in names:
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).write_bytes((ROOT / name).read_bytes())
        yield copy


def _tried(copy: Path, decision: Decision) -> Answer:
    """`make test` first: what it notices need not be asked of dearer tests, and these must pass without the mutation."""
    quick = _mutated(copy, decision, QUICK)
    if quick not in ("survived", "no answer"):
        return quick
    without = _pytest(copy, decision.tests, DAILY)
    if without == NONE:
        return quick
    return _mutated(copy, decision, DAILY) if without == PASSED else "no answer"


def _mutated(copy: Path, decision: Decision, which: str) -> Answer:
    (path,) = places(decision, sources(copy))
    text = (copy / path).read_text(encoding="utf-8")
    try:
        (copy / path).write_text(text.replace(decision.right, decision.wrong), encoding="utf-8", newline="")
        code = _pytest(copy, decision.tests, which)
    except subprocess.TimeoutExpired:
        return "noticed"
    finally:
        (copy / path).write_text(text, encoding="utf-8", newline="")
    return {PASSED: "survived", FAILED: "noticed"}.get(code, "no answer")  # type: ignore[return-value]


def _pytest(copy: Path, tests: Sequence[str], which: str) -> int:
    """How pytest ends; everything is imported from the copy, nothing from the tree that is worked on."""
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-x",
        "-q",
        "-m",
        which,
        "-p",
        "no:cacheprovider",
        *(f"tests/{one}" for one in tests),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'lab'}",
        # Not in a program that a test starts, either: a mutation may be as long as what it replaces.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ended = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, timeout=LONGEST, check=False
    )
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

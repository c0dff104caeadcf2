"""Record the output of a test's scripts, for a comparison of two engines."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Final

# Values that differ in each run: times, ids, new keys, and so the hashes of the values that hold them.
_PASSING: Final = frozenset({"ms", "run", "at", "boot_id", "id", "timeout_s", "digest", "script"})
_MADE_ANEW: Final = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z?|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]+|\d+ seconds?|boot-[0-9a-f]{16}|sha256 [0-9a-f]{12}"
    r"|[A-Za-z0-9+/=]{40,}|[A-Za-z0-9+/=]+(?=\n-----END )"  # a line of a certificate, its last one
    r"|(?<=-)[0-9a-f]{8}\b|(?<= at )0x[0-9a-f]+"  # the end of a detached run's id, Python's own text of an object
)

# PowerShell 7 breaks the line there; Windows PowerShell 5.1 and the lab have a space.
_BROKEN_LINE: Final = re.compile(r"(?<=or operable program\.)\n(?=Check the spelling of the name)")


class Recorder:
    """Writes the output of scripts, a file for each test; a copy of the process (tests/lab/copies.py) continues it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, stream: str, value: Any) -> None:
        """One value of one stream."""
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        if not test:
            return  # a join whose site several tests share
        line = json.dumps({"test": test, "stream": stream, "value": str(value)})
        name = hashlib.sha256(test.encode()).hexdigest()[:16]
        with (self._folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def recorded(folder: Path) -> dict[str, list[Any]]:
    """The output of each test's scripts, without the values that differ in each run."""
    found: dict[str, list[Any]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            found.setdefault(one["test"], []).append([one["stream"], lasting(_event(one["value"]))])
    return found


def lasting(value: Any) -> Any:
    """A JSON value without what differs from run to run."""
    if isinstance(value, dict):
        return {name: lasting(item) for name, item in value.items() if name not in _PASSING}
    if isinstance(value, list):
        return [lasting(item) for item in value]
    return _MADE_ANEW.sub("*", _BROKEN_LINE.sub(" ", value)) if isinstance(value, str) else value


def _event(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

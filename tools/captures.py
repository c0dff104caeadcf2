"""Compare what two machines answered about the lab's beliefs, or keep the answers of one: `tests/captures`.

python -m tools.captures real.zip lab.zip
python -m tools.captures real.zip --keep tests/captures/NAME.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from winboot.operations.doctor.bundle import facts

PREFIX = "unsourced-"
Answers = Mapping[str, Any]


def answers(bundle: Path) -> dict[str, Any]:
    """What the first node of a bundle answered, by fact."""
    items = _items(bundle)
    return {name.removeprefix(PREFIX): rows for name, rows in items.items() if name.startswith(PREFIX)}


def _items(bundle: Path) -> Mapping[str, Any]:
    """The items of the first node. Exits where no machine answered."""
    found = next(iter(facts(bundle).values()), None)
    if not found or "machine" not in found:
        sys.exit(f"{bundle} has no facts of a machine: collect again, from a machine that answers")
    return found


def _timeless(rows: Any) -> Any:
    """The rows of an answer without the times of events: they differ on every machine."""
    if not isinstance(rows, list):
        return rows
    return [
        {key: value for key, value in one.items() if key != "TimeCreated"} if isinstance(one, dict) else one
        for one in rows
    ]


def differences(real: Answers, lab: Answers) -> Iterator[tuple[str, Any, Any]]:
    """Each fact to which the two answered differently, with both answers; None: no answer."""
    for fact in sorted({*real, *lab}):
        if _timeless(real.get(fact)) != _timeless(lab.get(fact)):
            yield fact, real.get(fact), lab.get(fact)


def main(words: list[str]) -> int:
    """Exits with 1 if an answer differs."""
    match words:
        case [bundle, "--keep", file]:
            items = _items(Path(bundle))
            kept = {
                "made_by": "a machine",
                "machine": items["machine"],
                "differs": {},
                "answers": answers(Path(bundle)),
            }
            Path(file).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            return 0
        case [real, lab]:
            found = list(differences(answers(Path(real)), answers(Path(lab))))
            for fact, one, other in found:
                print(f"{fact}\n  {real}: {json.dumps(one)}\n  {lab}: {json.dumps(other)}")
            return int(bool(found))
        case _:
            print(__doc__, file=sys.stderr)
            return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Copy from logs of the real programs the lines that a contract quotes, without times, process ids and names of machines.

    python lab/contracts/copy_recordings.py PROGRAM FOLDER

For each row of PROGRAM.yaml that names a recording, FOLDER holds its log as `<recording>.txt` or `.jsonl`, at any depth.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

import yaml

HERE: Final = Path(__file__).parent
_MASKS: Final = (
    (re.compile(r"^([IWEF])\d{4} [\d:.]+ +\d+ "), r"\1 "),
    (re.compile(r"\bcsr-[a-z0-9]{5}\b"), "csr-NAME5"),
    (re.compile(r"\b(?:w-fhg|VM)\b"), "NODE"),
    (re.compile(r"\s*logger=\S+$"), ""),
)


def masked(line: str) -> str:
    """A line without what differs from run to run."""
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return line


def quoted(log: Path, quote: str) -> str:
    """The first line of a log that contains a quote. Raises LookupError without such a line."""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if quote in masked(line):
            return masked(line)
    raise LookupError(f"{log}: no line says {quote!r}")


def main(program: str, folder: str) -> None:
    """Write `recordings/PROGRAM.yaml` again."""
    logs = {path.stem: path for path in Path(folder).rglob("*") if path.suffix in (".txt", ".jsonl")}
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for row in yaml.safe_load((HERE / f"{program}.yaml").read_text(encoding="utf-8")):
        name = row["source"].get("recording")
        line = quoted(logs[name], row["source"]["quote"]) if name else ""
        if line and line not in lines[name]:
            lines[name].append(line)
    text = yaml.safe_dump(dict(lines), allow_unicode=True, width=1000)
    (HERE / "recordings").mkdir(exist_ok=True)
    path = HERE / "recordings" / f"{program}.yaml"
    path.write_text("# Made by copy_recordings.py.\n" + text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

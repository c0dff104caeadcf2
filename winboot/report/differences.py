"""A difference as people read it: one line where both sides are short, else in full, one below the other; a file as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from winboot.report.events import Difference

# A file that is new and longer is shown by its lines and its hash: there is nothing to compare it with.
# Configurations are shorter; winboot's own scripts are not. `winboot render` has all texts.
NEW: Final = 100
# What fits on a terminal of 80 columns, behind the indentation of a step.
LINE: Final = 76
FLAGS: Final = (
    ("reboot", "reboots"),
    ("disrupts", "network blip"),
    ("disturbs", "disturbs pods"),
    ("policy", "held by policy or another owner"),
)


def difference_text(difference: Difference) -> str:
    """In the manner of a Terraform plan: `~ what: is -> want (flags)`; nothing of the two sides is cut."""
    flags = ", ".join(text for name, text in FLAGS if getattr(difference, name))
    suffix = f"  ({flags})" if flags else ""
    mark = "+" if difference.is_ is None else "-" if difference.want is None else "~"
    is_, want = _shown(difference.is_), _shown(difference.want)
    sides = {"+": want, "-": is_, "~": f"{is_} -> {want}"}[mark]
    line = f"{mark} {difference.what}: {sides}{suffix}"
    diff = list(_file_diff(difference))
    if len(line) <= LINE or (mark != "~" and len(sides) <= LINE):
        return "\n".join([line, *diff])
    rows = {"+": [f"+ {want}"], "-": [f"- {is_}"], "~": [f"- {is_}", f"+ {want}"]}[mark]
    return "\n".join([f"{mark} {difference.what}:{suffix}", *(f"    {row}" for row in rows), *diff])


def line_counts(difference: Difference) -> tuple[int, int] | None:
    """How many lines of a file are added and removed; None where the difference carries no text."""
    if difference.will is None:
        return None
    was, will = (difference.was or "").splitlines(), difference.will.splitlines()
    changes = [line[0] for line in list(difflib.unified_diff(was, will, n=0, lineterm=""))[2:]]
    return changes.count("+"), changes.count("-")


def _shown(text: str | None) -> str:
    return " ".join((text or "").split()) or "(none)"


def _file_diff(difference: Difference) -> Iterator[str]:
    """The lines in which a file differs, with two lines around each place."""
    if difference.will is None:
        return
    if difference.was is None and difference.will.count("\n") > NEW:
        return
    lines = difflib.unified_diff(
        (difference.was or "").splitlines(), difference.will.splitlines(), n=2, lineterm=""
    )
    for line in list(lines)[2:]:
        yield f"    {'…' if line.startswith('@@') else line}"

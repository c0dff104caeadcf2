"""docs/unsourced.md: what the lab assumes about Windows without a source, each with the command that answers it."""

from __future__ import annotations

from typing import Final

from winboot_lab.windows.facts import Fact, facts, unsourced

_HEAD: Final = """\
# What the lab assumes without a source

The lab models Windows. {all} of its assumptions decide behaviour and have a row in `lab/winboot_lab/windows/facts.toml`.
{sourced} of them have a source. The other {open} are below. Each has a read-only command of Windows PowerShell that answers it
on a real machine. If an answer differs from the row, open an issue with the command's output. `make golden` writes this page.

`winboot collect` runs the {run} commands that are marked with \\*: one bundle of a real machine answers them.

1. `winboot collect NODE --out real.zip`. Read the files in it before you send it: names, addresses and versions are in it, and
   no text of logs without `--logs`.
2. `winboot lab up --like real.zip` models the machine. Join it, and `winboot collect NODE --out lab.zip`.
3. `python -m tools.captures real.zip lab.zip` prints each answer that differs. Open an issue with real.zip and this output.
4. `python -m tools.captures real.zip --keep tests/captures/NAME.json` makes a capture; tests compare it with the lab.

| fact | the lab assumes | when | command |
| --- | --- | --- | --- |
"""


def facts_page() -> str:
    """docs/unsourced.md."""
    known, missing = facts(), unsourced()
    head = _HEAD.format(
        all=len(known),
        sourced=len(known) - len(missing),
        open=len(missing),
        run=sum(one.bundled for one in missing),
    )
    return head + "".join(map(_row, missing))


def _row(one: Fact) -> str:
    command = one.command.replace("|", "\\|")
    mark = r" \*" if one.bundled else ""
    return f"| `{one.id}`{mark} | {one.fact} | {one.when or 'at any time'} | `{command}` |\n"

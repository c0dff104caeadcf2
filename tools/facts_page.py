"""docs/unsourced.md: what the lab believes of Windows without a source, each with the command that answers it."""

from __future__ import annotations

from typing import Final

from winboot_lab.windows.facts import Fact, facts, unsourced

_HEAD: Final = """\
# What the lab believes without a source

The lab models Windows. {all} of its beliefs decide behaviour and have a row in `lab/winboot_lab/windows/facts.toml`.
{sourced} of them have a source. The other {open} are below. Each has a read-only command of Windows PowerShell that answers it
on a real machine. If an answer differs from the row, open an issue with the command's output. `make golden` writes this page.

| fact | the lab believes | when | command |
| --- | --- | --- | --- |
"""


def facts_page() -> str:
    """docs/unsourced.md."""
    known, missing = facts(), unsourced()
    head = _HEAD.format(all=len(known), sourced=len(known) - len(missing), open=len(missing))
    return head + "".join(map(_row, missing))


def _row(one: Fact) -> str:
    command = one.command.replace("|", "\\|")
    return f"| `{one.id}` | {one.fact} | {one.when or 'at any time'} | `{command}` |\n"

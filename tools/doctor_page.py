"""docs/doctor.md: the rules of `winboot doctor`, as a page."""

from __future__ import annotations

from winboot.operations.doctor.rules import RULES

_HEAD = """# doctor

    winboot doctor                      # all nodes of the inventory
    winboot doctor win-1 -o json        # one node, for programs
    winboot doctor --api-only           # without a login: the cluster's view only
    winboot doctor --out facts.jsonl    # write the facts, too
    winboot doctor --from facts.jsonl   # judge saved facts; contacts nothing
    winboot doctor --textfile w.prom    # for the textfile collector of windows_exporter
    winboot doctor --fix cni-missing    # repair the step of one rule where it fired

`winboot doctor` reads facts about the cluster, and about the machine with one script that changes nothing. Rules judge these
facts. It prints the first cause with its evidence and the next command, then this cause's consequences and other findings.
It also works on nodes that winboot did not join: describe them in an inventory.

- **Limits**: the script stops reading after 60 seconds. If a fact cannot be read, the answer names it and has the others.
- **Secrets**: facts contain no log line, key, token, environment or command line. In logs, winboot counts known texts.
- **Exit codes**: 1 if a node has a fault or something degraded, or if neither machine nor cluster answered; 0 for warnings.
- **Without a login**: `--api-only` counts the known texts in the logs that the kubelet gives (NodeLogQuery): set
  `enableSystemLogQuery: true` in `kubelet.config`, before 1.36 also the gate `NodeLogQuery`. You need `get` on `nodes/proxy`.
- **Siblings**: rules compare a node with the other nodes of the same command, so run it for the whole pool.

## Collect

    winboot collect win-1               # winboot-<date>.zip: doctor's facts, hardware, programs, allowed settings
    winboot collect --since 2h --logs   # events of two hours, and the text of logs
    winboot doctor --from winboot-20261128-120000.zip

`winboot collect` runs the same script, with further items, as a task on each node. It fetches the answer in parts, continues
after a lost link, and removes task and files. With the default `--since 24h`, `doctor`
finds the same in the bundle as on the machine.

- **Manifest**: `manifest.json` names each item with its command, size, SHA-256, error, and whether it was cut off.
- **Limits**: if an item exceeds its time, winboot ends it, names it and continues. Doctor's facts have 60 seconds together.
  An item has at most 4 MiB, a log 1 MiB, a node 64 MiB.
- **Secrets**: settings and variables come from lists (`winboot/operations/doctor/items.py`). winboot does not read keys,
  tokens, credentials, command lines, or any other setting. `--logs` adds the text of logs as it is, and `manifest.json` has
  `"logs": true`; read it before you send it.
- **Versions**: `doctor --from` reads bundles and facts in this version of their format and in the previous one.

## Rules

Causes come before their consequences; [troubles.md](troubles.md) lists troubles with their rules.
`tests/doctor/damages.py` has a damage for each rule.

| rule | severity | what is wrong | next | repair | source |
| --- | --- | --- | --- | --- | --- |
"""


def doctor_page() -> str:
    """The page."""
    rows = (
        f"| `{one.id}` | {one.severity} | {one.title} | {one.fix} | {_step(one.step, drain=one.drain)} | {one.source} |"
        for one in RULES
    )
    return _HEAD + "\n".join(row.replace("||", "|") for row in rows) + "\n"


def _step(step: str, *, drain: bool) -> str:
    if not step:
        return "-"
    return ("all" if step == "*" else f"`{step}`") + (", `--drain`" if drain else "")

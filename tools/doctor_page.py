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

`winboot doctor` reads facts of the machine with one script that changes nothing, and of the cluster. Rules judge these facts.
It prints the first cause with its evidence and the next command; other findings are listed as its consequences or after it.
It also works on nodes that winboot did not join: describe them in an inventory.

- **Limits**: the script stops reading after 60 seconds. A fact that cannot be read hides no other; the answer lists it.
- **Secrets**: a document holds no log line, key, token, environment or command line. Of logs it counts known texts only.
- **Exit codes**: 1 if a node has a fault or something degraded, or if neither machine nor cluster answered; 0 for warnings.
- **Siblings**: rules compare a node with the other nodes of the same command, so run it for the whole pool.

## Rules

Causes come before their consequences. `tests/doctor/damages.py` has a damage for each rule.

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

"""Which command lines of the pages run against a small lab, and why the others do not."""

from __future__ import annotations

import re
from typing import Final

# The first words of a line, and why it does not run here; the longest that fits counts.
NOT_RUN: Final[dict[str, str]] = {
    "-": "options alone are mentions",
    "bake": "tests/lab/test_bake.py runs it; it needs a machine that is no node",
    "check hosts.ini": "the user's Ansible inventory",
    "check pool.aws.yaml": "a cloud's account",
    "cloud": "a cloud's account",
    "cloud policy ": "",
    "collect --since 2h --logs": "tests/doctor runs it; it reads every log of each machine",
    "compat learn": "starts the programs of a new version on a machine",
    "csr approve": "no request waits",
    "csr watch": "does not end",
    "doctor --fix": "nothing is broken",
    "doctor --from winboot-": "a file of a former run",
    "fleet": "a Job in a cluster",
    "fleet render": "",
    "hook serve": "a cloud's queue, or does not end",
    "hook status": "no hook runs",
    "hook voucher --revoke": "the id of a voucher",
    "init": "tests/cli/test_init.py runs it; it asks at a terminal, and fetches",
    "inventory --refresh": "a cloud's account",
    "inventory -i pool": "a cloud's account",
    "inventory import": "tests/config/test_ansible_core.py runs it, where ansible-core is installed",
    "join --adopt": "a node of another tool",
    "join -l win-3 --adopt": "a node of another tool",
    "join --plan": "a plan without differences approves nothing",
    "join --processes": "tests/fleet runs it; it starts processes",
    "lab": "tests/lab runs it; it does not end, or breaks machines",
    "manifests gmsa": "the profile has no gmsa",
    "manifests hook": "an image of the user's",
    "plan -i hosts.ini": "the user's Ansible inventory",
    "plan -l win-3 --adopt": "a node of another tool",
    "remove": "asks at a terminal",
    "remove win-3 --dry-run": "",
    "remove -l win-3 --dry-run": "",
    "remove -l win-3 --yes": "the last line of all",
    "remove win-3 --yes": "the last line of all",
    "render --diff": "the folder of an approved text",
    "repair --by": "a cloud's account",
    "repair -l win-1 --by": "a cloud's account",
    "report 3f2a": "the id of a user's run",
    "log 3f2a": "the id of a user's run",
    "rollback": "no upgrade went before it",
    "schema profile --out .winboot": "the folder that init makes",
    "schema inventory --out .winboot": "the folder that init makes",
    "show": "a plan of the user's",
    "userdata": "vouchers and secrets of the user's",
    "verify-report": "the name of a trial",
    "verify": "tests/verify runs it; its trials take minutes of the lab's time",
    "why": "no machine called",
}
# Lines whose placeholders mean other things than a run, which `last` is (tests/docs_commands.py).
_MEANT: Final = {
    "cloud policy aws --cluster last": "cloud policy aws --cluster prod",
    "collect last --out lab.zip": "collect win-1 --out lab.zip",
    "collect last --out real.zip": "collect win-1 --out real.zip",
    "explain last": "explain maxPods",
    "explain network last": "explain network flannel",
    "host add": "host add win-9 10.0.1.19 --os 2022",
    "host add --from hosts.txt": "host add --from hosts.txt --yes",
    "host add --from machines.json --os 2022": "host add --from machines.json --os 2022 --yes",
    "hook approve last last": "hook approve win-1 6f3bd0a8-5f0e-4f5e-9d55-7a1f4a2cf5b1",
    "inventory --limit last": "inventory --limit win-1",
    "join --only last": "join --only kubelet",
    "join --skip-preflight last": "join --skip-preflight node-name",
    "plan --out last": "plan --out plan.json",
    "plan --report last": "plan --report plan.html",
    "report last --report last": "report last --report run.html",
    "upgrade -l group": "upgrade -l windows-2019",
}
# Commands with commands of their own: a page that shows one alone means all of them.
_MENTIONS: Final = ("cloud policy", "csr", "hook", "schema")
_NODE: Final = re.compile(r"^win-a?[1-8]$")


def why_not(words: list[str]) -> str:
    """Why a line does not run; empty where it runs."""
    line = " ".join(words)
    if line in _MENTIONS:
        return "all of its commands are meant"
    fits = [start for start in NOT_RUN if line.startswith(start)]
    return NOT_RUN[max(fits, key=len)] if fits else ""


def on_the_lab(words: list[str]) -> list[str]:
    """The line with the nodes and files of the test's lab."""
    line = _MEANT.get(" ".join(words), " ".join(words))
    line = re.sub(r"--deadline \S+", "", line)
    line = re.sub(r"\bwindows(-2022)?$", "windows-2019", line)
    return ["win-1" if _NODE.fullmatch(word) else word for word in line.split()]

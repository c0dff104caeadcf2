"""Everything that can go wrong by a name, for docs/problems.md (`tools/problems_page.py`) and `winboot explain`.

The problems of a script and their messages come from the calls of `Stop-Step` and `New-Fault` in the library, so the page
lists none that no script reports. The next step comes from `winboot.report.hints`. The problems of the controller are the
classes of `winboot.base.errors`, each with its docstring.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from winboot.base.errors import (
    AccessDenied,
    BadEvent,
    BudgetUsedUp,
    Busy,
    CertificateNotTrusted,
    ClaimRefused,
    CloudError,
    CloudRefused,
    CloudUnreachable,
    ClusterBusy,
    ClusterConflict,
    ClusterError,
    ClusterRefused,
    ClusterUnreachable,
    ConnectionLost,
    Declined,
    ExcessiveOutput,
    ForeignFolder,
    HostKeyNotTrusted,
    IncompleteRun,
    InternalError,
    Interrupted,
    InvalidInput,
    LoginRefused,
    NodeFailed,
    NoNodeYet,
    NoSuchHost,
    NotDone,
    NoVersionBefore,
    OtherThanPlanned,
    PreflightFailed,
    ProtocolError,
    QuietNode,
    ReportNotWritten,
    RestartForbidden,
    RestrictedEndpoint,
    ScriptError,
    ScriptFailed,
    Superseded,
    TransportError,
    Unreachable,
    UsageError,
    VersionsHeld,
    WinbootError,
    WrongMachine,
)
from winboot.config.source import nearest
from winboot.report.hints import hint_for
from winboot.script.library import functions

# The report has a next step for the very case; this is what holds for all of a kind.
NEXT_STEPS: Final[Mapping[type[WinbootError], str]] = {
    UsageError: "Correct the command line: `--help`, and `winboot steps` for the names of steps.",
    ForeignFolder: "Make the folder your own and writable only by you (`chmod 700`), or set WINBOOT_STATE to such a "
    "folder.",
    InvalidInput: "Correct each place in the message (file:line:column); winboot has not contacted any machine.",
    ScriptError: "If the error is in a step of your profile, correct the step; otherwise report a bug.",
    TransportError: "`winboot ping` shows how winboot can connect to the machine, and what prevents the connection.",
    Unreachable: "Check that the machine is on, its address is right, and port 5985 or 5986 is open. `winboot ping` "
    "shows where the connection fails.",
    ConnectionLost: "Run the same command again: it continues where it stopped.",
    Busy: "Run the same command again in a minute; if it fails again, raise the WinRM quota.",
    LoginRefused: "Check `user` (a local account is written .\\name) and the reference to the password.",
    AccessDenied: "Use an account of the local group Administrators; a local account other than Administrator also "
    "needs LocalAccountTokenFilterPolicy.",
    CertificateNotTrusted: "Name the CA or the fingerprint under `connection` in the inventory.",
    HostKeyNotTrusted: "Compare the fingerprint with the machine's console, then set `host_key` in the inventory.",
    ProtocolError: "Check that WinRM listens at this address and port: a proxy or another service may answer instead.",
    RestrictedEndpoint: "Use the endpoint Microsoft.PowerShell with an account that no policy restricts.",
    ClusterError: "Read the API server's message; `winboot check` shows which rights and objects a join needs.",
    ClusterUnreachable: "Check the kubeconfig's server address and the network path to it, then run the same command again.",
    ClusterBusy: "Run the same command again when the API server has less load, or when it has started.",
    ClusterConflict: "Run the same command again: it starts from the present state.",
    ClusterRefused: "Give the kubeconfig's user the missing right: `winboot manifests operator` prints all rights.",
    CloudError: "Read the cloud's message; `winboot cloud policy azure`, or `winboot cloud policy aws "
    "--cluster NAME`, prints the rights that winboot needs.",
    CloudUnreachable: "Check the network, wait if the cloud limits requests, then run the same command again.",
    CloudRefused: "Log in to the cloud again, or give this identity the rights that `winboot cloud policy "
    "azure`, or `winboot cloud policy aws --cluster NAME`, prints.",
    NoSuchHost: "Run `winboot inventory --refresh`: the machine may have been replaced.",
    NodeFailed: "Fix the problem in the report, then run the same command again: winboot does not repeat finished steps.",
    BadEvent: "If a step of your profile printed this line, correct the step; otherwise report a bug. The journal "
    "has the line.",
    ExcessiveOutput: "Check the machine: winboot's scripts never send so much output. docs/security.md lists the limits.",
    QuietNode: "Look on the machine for a hanging DISM, WMI or download, then run the same command again.",
    IncompleteRun: "Run the same command again; if it fails again, report a bug with the node's journal.",
    PreflightFailed: "Follow the next step of each finding, or skip a check with `--skip-preflight`; "
    "docs/preflight.md lists all checks.",
    WrongMachine: "Correct the address or the name in the inventory, or delete the Node if its machine no longer exists.",
    ClaimRefused: "If the machine's report is right, write its values into the inventory (`node_ip`, "
    "`certificate_names`); otherwise check the machine.",
    ScriptFailed: "Run the same command again; if it fails again, report a bug with the node's journal.",
    NotDone: "Read the reason in the report, fix it, and run the same command again.",
    NoNodeYet: "Run `winboot join`, which makes the machine a node.",
    NoVersionBefore: "Set the versions in the profile, renew the hashes, and run `winboot join --drain` for that node.",
    VersionsHeld: "Run `winboot upgrade` to give the node the profile's versions, or set the node's versions "
    "in the profile.",
    BudgetUsedUp: "Look at the nodes that the reason names; the same command continues with the remaining nodes.",
    OtherThanPlanned: "Make a new plan with `winboot plan --out FILE`, review it, and run it.",
    RestartForbidden: "When the machine may restart, run the same command again without `--no-restart`.",
    Declined: "Run the same command again; without a terminal, add `--yes`.",
    Superseded: "Wait until the other run ends; then `winboot plan` shows the remaining differences.",
    ReportNotWritten: "Free disk space; `winboot plan --report FILE` writes a report of the nodes' present state.",
    Interrupted: "Run the same command again: it continues where it stopped.",
    InternalError: "Report a bug, with the node's journal.",
}

# What the driver calls any other error; no call could be read.
_DRIVER: Final = {
    "ChangeFailed": "the error that ended the changing part of a step",
    "LookFailed": "the error that ended the reading part of a step",
    "RunFailed": "an error outside any step, which ended the run",
}


# A value in a double-quoted string; parentheses and quotes inside `$( )` nest twice at the most.
_SUBEXPRESSION: Final = r"\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_VALUE: Final = re.compile(rf"{_SUBEXPRESSION}|\$\{{\w+\}}|\$\w+(?:(?<=script):\w+)?")
_DOUBLE_QUOTED: Final = rf'\(?"((?:{_SUBEXPRESSION}|`.|""|[^"])*)"'
# The style test holds that calls write both names.
_CALL: Final = re.compile(r"(?:Stop-Step|New-Fault) -Id '(?P<id>[\w-]+)' -Message (?P<message>\$\w+|.+)")


@dataclass(frozen=True, slots=True)
class Problem:
    """What a step can fail with: its message, with `…` for what was found, and what to do next."""

    id: str
    message: str
    hint: str


@functools.cache
def problems() -> tuple[Problem, ...]:
    """All problems that a script can report, each once."""
    found = dict(_DRIVER)
    for function in functions().values():
        for id_, message in _reported(function.text):
            found[id_] = found.get(id_) or message
    return tuple(Problem(id_, message, hint_for(id_, "")) for id_, message in sorted(found.items()))


def failures() -> tuple[type[WinbootError], ...]:
    """All failures of the controller."""
    return tuple(NEXT_STEPS)


def explain_problem(name: str) -> str:
    """A problem or failure by its name. Raises UsageError for an unknown name, with the nearest one."""
    known = {one.id.lower(): one for one in problems()}
    named = {one.__name__.lower(): one for one in failures()}
    if name.lower() in known:
        problem = known[name.lower()]
        return f"{problem.id}: a reason why a step failed or is blocked\n  says  {problem.message}\n  next  {problem.hint}"
    if name.lower() in named:
        failure = named[name.lower()]
        return (
            f"{failure.__name__}: a reason why a node or the whole command ends with exit code {failure.exit_code}\n  "
            f"says  {meaning(failure)}\n  next  {NEXT_STEPS[failure]}"
        )
    names = [one.id for one in problems()] + [one.__name__ for one in failures()]
    meant = nearest(name, names)
    raise UsageError(
        f"there is no problem {name!r}" + (f"; did you mean {meant!r}?" if meant else ""),
        hint="docs/problems.md lists all of them.",
    )


def meaning(failure: type[WinbootError]) -> str:
    """The first sentence of the class's docstring."""
    return (failure.__doc__ or "").partition("\n")[0].partition(". ")[0].rstrip(".") + "."


def _reported(function: str) -> Iterator[tuple[str, str]]:
    """Ids and messages of the problems that a function names; none for a call that passes on its own parameters."""
    for call in _CALL.finditer(function):
        message = call["message"]
        if message.startswith("$"):
            assigned = re.search(rf"^ *{re.escape(message)} = (.+)$", function, re.MULTILINE)
            message = assigned[1] if assigned else ""
        yield call["id"], _text(message)


def _text(expression: str) -> str:
    """The text of a quoted string, with `…` where a value stands; "" for any other expression."""
    if single := re.match(r"'((?:[^']|'')*)'", expression):
        return single[1].replace("''", "'")
    if not (double := re.match(_DOUBLE_QUOTED, expression)):
        return ""
    return _VALUE.sub("…", double[1]).replace('`"', '"').replace('""', '"')

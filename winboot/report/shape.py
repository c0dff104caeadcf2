"""The one shape of everything that winboot writes as JSON lines: answers of commands, reports, journals.

Each line is an object with `version` and `kind`. What else it has is in KINDS alone: the schema
(`winboot schema lines`) and docs/json.md are made of it, and tests hold the commands to it. Within a version
kinds and keys may be added; none goes, is renamed or changes its type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

VERSION: Final = 1

Json = Mapping[str, Any]
Said = tuple[Json, str]  # the schema of a value, and what it says

TEXT: Final[Json] = {"type": "string"}
MAYBE: Final[Json] = {"type": ["string", "null"]}
FLAG: Final[Json] = {"type": "boolean"}
NUMBER: Final[Json] = {"type": "number"}
COUNT: Final[Json] = {"type": "integer", "minimum": 0}
TEXTS: Final[Json] = {"type": "array", "items": TEXT}
SHA: Final[Json] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
# Empty where nothing was rendered.
SHA_OR_NOTHING: Final[Json] = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
FLAGS: Final = ("unknown", "reboot", "disrupts", "disturbs", "policy")


def json_line(kind: str, data: Json) -> str:
    """One line of this shape. What JSON has no form for (a date) is written as its text."""
    return json.dumps({"version": VERSION, "kind": kind, **data}, default=str) + "\n"


def an_object(required: Json, optional: Json | None = None) -> dict[str, Any]:
    """The schema of an object that has these keys and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def difference_schema(flags: tuple[str, ...] = FLAGS) -> dict[str, Any]:
    """The schema of a difference; a flag is there where it is true."""
    return an_object(
        {"key": TEXT, "what": TEXT, "is": MAYBE, "want": MAYBE},
        {**dict.fromkeys(flags, FLAG), "was": TEXT, "will": TEXT},
    )


def _one_of(*words: str) -> Json:
    return {"enum": list(words)}


def _or_null(name: str) -> Json:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}


def _list_of(name: str) -> Json:
    return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}


_LEVELS: Final = _one_of("error", "warning")
_STATES: Final = ("ok", "would-change", "changed", "failed", "blocked")
_OUTCOMES: Final = ("ok", "changed", "would-change", "blocked", "skipped", "failed", "interrupted")
DEFINITIONS: Final[Json] = {
    "difference": difference_schema(),
    "problem": an_object(dict.fromkeys(("id", "message", "hint", "position"), TEXT)),
    "failure": an_object({"name": TEXT, "message": TEXT, "hint": TEXT, "exit_code": COUNT}),
    "step": an_object(
        {"step": TEXT, "state": _one_of(*_STATES), "ms": COUNT}
        | {"differences": _list_of("difference"), "problem": _or_null("problem")},
        {"ended": NUMBER},
    ),
    "answer": an_object(
        {"id": TEXT, "level": _one_of("ok", "warning", "error"), "reason": TEXT, "fix": TEXT}
    ),
    "digests": an_object(dict.fromkeys(("settings", "script", "library"), SHA_OR_NOTHING)),
    "need": an_object({"flag": TEXT, "why": TEXT}),
}
_WHERE_IN_A_FILE: Final[Mapping[str, Said]] = {
    "file": (TEXT, "the file that it is about"),
    "line": ({"type": ["integer", "null"]}, "from 1; null where the file as a whole is meant"),
    "column": ({"type": ["integer", "null"]}, "from 1"),
}
_FINDING: Final[Mapping[str, Said]] = {
    "id": (TEXT, "stable; what `--skip-preflight` takes"),
    "level": (_LEVELS, "an error stops a join"),
    "reason": (TEXT, "what is wrong"),
    "fix": (TEXT, "what to do next"),
    "nodes": (TEXTS, "which nodes it concerns; none means all of the cluster"),
    "skipped": (FLAG, "whether `--skip-preflight` let it pass"),
}
_REQUEST: Final[Mapping[str, Said]] = {
    "request": (TEXT, "the name of the CertificateSigningRequest"),
    "certificate": (TEXT, "what it asks for: `serving` or `client`"),
    "node": (MAYBE, "whose it is; null or empty where no machine of the inventory asks"),
    "decision": (_one_of("approve", "refuse", "leave", "approved", "refused"), "what winboot does, or did"),
    "reasons": (TEXTS, "why it is refused or left"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of line: who writes it, and what it has besides `version` and `kind`. Not every one has what is `optional`."""

    name: str
    where: str
    says: str
    keys: Mapping[str, Said]
    optional: Mapping[str, Said] | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of such a line."""
        head = {"version": {"const": VERSION}, "kind": {"const": self.name}}
        return an_object(
            {**head, **{key: schema for key, (schema, _) in self.keys.items()}},
            {key: schema for key, (schema, _) in (self.optional or {}).items()},
        )


ANSWERS: Final = (
    Kind(
        "flow",
        "`verify`",
        "one flow between two ends",
        {
            "flow": (TEXT, "the id of the flow"),
            "node": (TEXT, "the node that it is about; empty where it is about all"),
            "from": (TEXT, "where it begins"),
            "to": (TEXT, "where it ends; empty for a probe of a node"),
            "state": (
                _one_of("passed", "failed", "untried", "left-out", "limitation"),
                "untried: something before it failed; left-out: no such pair; limitation: Windows does not have it",
            ),
            "expected": (TEXT, "what a healthy node gives"),
            "seen": (TEXT, "what was seen"),
            "cause": (TEXT, "the probable cause"),
            "next": (TEXT, "what to do next"),
        },
    ),
    Kind(
        "flows",
        "`verify`",
        "the run as a whole, the last line",
        {
            "run": (TEXT, "the id of the run"),
            "started": (TEXT, "when it began, in UTC"),
            "seconds": (NUMBER, "how long it took"),
            "nodes": (TEXTS, "the nodes that took part"),
            "notes": (TEXTS, "where the Linux ends are, what was left"),
            "exit_code": (COUNT, "that of the command"),
        },
    ),
    Kind(
        "work-item",
        "`hook status`",
        "a work item of the running hook",
        {
            "machine": (TEXT, "the cloud's id of the machine"),
            "group": (TEXT, "the group that it belongs to; empty where the message names none"),
            "action": (
                _one_of("launch", "terminate", "drain", "cordon", "gone"),
                "what the cloud asks for",
            ),
            "node": (TEXT, "the Node's name; empty where it is not known yet"),
            "state": (_one_of("waiting", "booting", "queued", "joining", "draining"), "see clouds.md"),
            "reason": (TEXT, "why it is in this state"),
            "seconds": (COUNT, "since its message was received"),
        },
    ),
    Kind(
        "complaint",
        "`check`",
        "something that is wrong with a file, or worth a warning",
        {
            **_WHERE_IN_A_FILE,
            "level": (
                _one_of("error", "warning", "info"),
                "a warning changes no exit code; info: what the file has this computer run or read",
            ),
            "path": (TEXT, "the key, such as `kubernetes.version`; empty where there is none"),
            "wrong": (MAYBE, "what is wrong"),
            "expected": (MAYBE, "what would be right"),
            "did_you_mean": (MAYBE, "the nearest word that is allowed"),
            "instead": (MAYBE, "what to use in its place"),
            "source": (MAYBE, "where this is known from"),
        },
    ),
    Kind(
        "checked",
        "`check`",
        "the last line of each file",
        {
            "file": (TEXT, "an inventory or a profile"),
            "errors": (COUNT, "how many complaints are errors"),
            "warnings": (COUNT, "how many are warnings"),
        },
    ),
    Kind(
        "ping",
        "`ping`",
        "one machine, and what is in the way",
        {
            "node": (TEXT, "the host of the inventory"),
            "address": (TEXT, "where it was looked for"),
            "exit_code": (COUNT, "what this machine alone would make the command exit with"),
            "findings": (_list_of("answer"), "each thing that was asked, with its fix where it is not `ok`"),
        },
    ),
    Kind(
        "preflight", "`preflight`, `plan`, `join`, `repair`", "a finding before anything is changed", _FINDING
    ),
    Kind("cloud", "`cloud check`", "a finding about a node and its cloud", _FINDING),
    Kind(
        "node",
        "`plan`, `join`, `repair`, `preflight`, and their `--report`",
        "one node, when it has ended",
        {
            "node": (TEXT, "the host of the inventory"),
            "address": (TEXT, "where it was reached"),
            "os": (TEXT, "the release of Windows Server that the inventory says"),
            "outcome": (_one_of(*_OUTCOMES), "the node in one word: the worst that happened to it"),
            "ready": ({"type": ["boolean", "null"]}, "whether its Node is Ready; null where nobody looked"),
            "steps": (_list_of("step"), "in running order, each with its differences and its problem"),
            "failure": (_or_null("failure"), "why it stopped, apart from a failed step"),
            "skipped": (_or_null("failure"), "why it was left alone"),
            "reboots": (COUNT, "restarts of the machine"),
            "detached": (COUNT, "runs that rewired its network"),
            "reconnects": (COUNT, "connections that were lost and made again"),
            "pipelines": (COUNT, "how often a script was sent"),
            "seconds": (NUMBER, "wall time here"),
            "notes": (TEXTS, "worth knowing; they changed nothing"),
            "digests": ({"$ref": "#/$defs/digests"}, "the SHA-256 of settings, script and library"),
            "live": ({"type": ["boolean", "null"]}, "whether pods may run there; null where nobody looked"),
            "needs": (_list_of("need"), "flags without which a join would refuse"),
        },
        {"began": (NUMBER, "how many seconds after the run it began")},
    ),
    Kind(
        "run",
        "`plan`, `join`, `repair`, `preflight`, and their `--report`",
        "the run as a whole: the last line",
        {
            "command": (TEXT, "what was called"),
            "run": (TEXT, "its id, the name of its folder of journals"),
            "started": (TEXT, "ISO 8601, UTC"),
            "seconds": (NUMBER, "wall time"),
            "changed": (COUNT, "how many steps were changed, over all nodes"),
            "exit_code": (
                COUNT,
                "what the nodes give ([exit-codes.md](exit-codes.md)); where a signal came, the process ends with the signal's",
            ),
            "winboot": (TEXT, "its version"),
            "by": (TEXT, "who ran it"),
            "plan": (MAYBE, "the SHA-256 of the plan that was run, if there was one"),
        },
        optional={
            "asked": (
                {"type": "object", "additionalProperties": TEXT},
                "what was asked for, in words: `inventory`, `profile` with its version, `limit`, `only`, `skip`",
            )
        },
    ),
    Kind(
        "past",
        "`runs`",
        "an earlier run",
        {
            "run": (TEXT, "its id: what `log` and `report` take"),
            "command": (TEXT, "what was called"),
            "started": (TEXT, "ISO 8601, UTC"),
            "seconds": (NUMBER, "wall time"),
            "ended": (FLAG, "false while it runs, and where winboot was killed"),
            "exit_code": (COUNT, "what its nodes give"),
            "changed": (COUNT, "how many steps were changed, over all nodes"),
            "outcomes": ({"type": "object", "additionalProperties": COUNT}, "how many nodes ended how"),
            "nodes": (TEXTS, "their names"),
            "ready": (COUNT, "how many Nodes were Ready"),
            "by": (TEXT, "who ran it"),
        },
    ),
    Kind(
        "status",
        "`status`",
        "a node as the cluster has it now, and as it was left",
        {
            "node": (TEXT, "the host of the inventory"),
            "group": (TEXT, "the group that defines it"),
            "os": (TEXT, "the release of Windows Server that the inventory says"),
            "address": (TEXT, "where it is reached"),
            "state": (TEXT, "Ready, NotReady (with the reason), no Node, or unknown"),
            "kubelet": (MAYBE, "the kubelet's version, by the Node"),
            "runtime": (MAYBE, "the container runtime and its version, by the Node"),
            "build": (MAYBE, "Windows' build, by the Node's label"),
            "wanted": (TEXT, "the Kubernetes version of the profile"),
            "drift": (TEXTS, "what is not as wanted, as far as the cluster and the last look tell"),
            "problem": (MAYBE, "NoNodeAddress or OtherNodeAddress (only where the inventory names node_ip)"),
            "unschedulable": (
                {"type": ["boolean", "null"]},
                "whether it is cordoned; null where there is no Node",
            ),
            "last": (MAYBE, "the last run over it; null where there is none here"),
        },
    ),
    Kind(
        "fleet",
        "`fleet status`",
        "a node of a run that workers share",
        {
            "node": (TEXT, "the host of the inventory"),
            "wave": (COUNT, "its place in the order of the run, from 1 on"),
            "state": (TEXT, "ok, failed (with the cause), working, next (it may begin), or waits"),
            "holder": (TEXT, "the worker that has it"),
        },
    ),
    Kind(
        "request",
        "`csr`",
        "a certificate request of a kubelet",
        _REQUEST,
        {
            "made": (MAYBE, "`csr list`: ISO 8601"),
            "user": (TEXT, "`csr list`: who asks"),
            "state": (TEXT, "`csr list`: pending, approved, denied, issued …"),
        },
    ),
    Kind(
        "explained",
        "`explain`",
        "what is known of a name",
        {
            "name": (TEXT, "what was asked for"),
            "what": (TEXT, "of which kind it is: flag, step, word …"),
            "text": (TEXT, "what is known, in lines for a person"),
        },
    ),
    Kind(
        "step",
        "`steps`",
        "a step of the catalogue",
        {
            "step": (TEXT, "its name"),
            "why": (TEXT, "why it exists"),
            "needs": (TEXTS, "the steps that come before it"),
            "side": (TEXT, "where it is done: on the machine, or here"),
        },
    ),
)
_AT: Final[dict[str, Said]] = {"at": (NUMBER, "seconds since 1970")}
_WHOSE: Final[dict[str, Said]] = {"node": (TEXT, "`log -o json`: whose journal it is from")}
_ERROR: Final[dict[str, Said]] = _AT | {
    "name": (TEXT, "the class of the error"),
    "problem": (TEXT, "its sentence"),
}
_KINDS: Final = (
    Kind(
        "script",
        "journal",
        "what is about to run on the node",
        _AT
        | {
            "settings": (SHA, "SHA-256 of the node's merged settings"),
            "script": (SHA, "SHA-256 of its script"),
            "library": (SHA, "SHA-256 of the library in it"),
            "winboot": (TEXT, "its version"),
            "by": (TEXT, "who ran it"),
            "plan": (MAYBE, "the SHA-256 of the plan, if there was one"),
        },
    ),
    Kind(
        "pass",
        "journal",
        "the script is sent",
        _AT | {"mode": (TEXT, "`Look`, `Change` …"), "run": (TEXT, "the id that its events carry")},
    ),
    Kind(
        "event",
        "journal",
        "an event of the script",
        _AT | {"line": (TEXT, "the line as it came: a JSON object with `v` 1, see architecture.md")},
    ),
    Kind("noise", "journal", "a line that is no event of this run", _AT | {"line": (TEXT, "its beginning")}),
    Kind("error", "journal", "a session ended", _ERROR),
    Kind("failed", "journal", "the node has failed", _ERROR),
    Kind("skipped", "journal", "the node was left alone", _ERROR),
    Kind("bug", "journal", "a bug in winboot itself", _AT | {"traceback": (TEXT, "for its report")}),
)
JOURNAL: Final = tuple(replace(kind, optional=_WHOSE) for kind in _KINDS)


def lines_schema() -> dict[str, Any]:
    """The JSON Schema of a line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "winboot JSON lines",
        "oneOf": [kind.schema for kind in (*ANSWERS, *JOURNAL)],
        "$defs": dict(DEFINITIONS),
    }

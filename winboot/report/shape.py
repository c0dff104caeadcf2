"""The kinds of JSON lines that commands and journals write, and that are not values elsewhere (`winboot.report.schema`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Struct

from winboot.report.line import Count, Line, Sha, says

Action = Literal["launch", "terminate", "drain", "cordon", "gone"]
ItemState = Literal["waiting", "booting", "queued", "joining", "draining", "done", "failed"]


class Flows(Line, frozen=True, kw_only=True, tag="flows"):
    """The run as a whole, the last line."""

    where = "`verify`"
    run: Annotated[str, says("the id of the run")]
    started: Annotated[str, says("the time when the run began, in UTC")]
    seconds: Annotated[float, says("the duration of the run")]
    nodes: Annotated[tuple[str, ...], says("the nodes that took part")]
    notes: Annotated[tuple[str, ...], says("the nodes of the Linux ends; objects that verify left behind")]
    exit_code: Annotated[Count, says("the exit code of the command")]


class WorkItem(Line, frozen=True, kw_only=True, tag="work-item"):
    """A work item of the running hook."""

    where = "`hook status`"
    machine: Annotated[str, says("the cloud's id of the machine")]
    group: Annotated[str, says("the group of the machine; empty if the message names no group")]
    action: Annotated[Action, says("what the cloud asks for")]
    node: Annotated[str, says("the Node's name; empty while winboot does not know it")]
    state: Annotated[ItemState, says("see clouds.md")]
    reason: Annotated[str, says("the reason of the state")]
    seconds: Annotated[Count, says("seconds since the message of this machine was received")]


class Complaint(Line, frozen=True, kw_only=True, tag="complaint"):
    """Something that is wrong with a file, or worth a warning."""

    where = "`check`"
    file: Annotated[str, says("the file that the finding is about")]
    line: Annotated[int | None, says("the line, from 1; null for a finding about the whole file")]
    column: Annotated[int | None, says("from 1")]
    level: Annotated[
        Literal["error", "warning", "info"],
        says("a warning changes no exit code; info: a command or file that this file makes winboot use"),
    ]
    path: Annotated[str, says("the key, such as `kubernetes.version`; empty for a finding without a key")]
    wrong: Annotated[str | None, says("what is wrong")]
    expected: Annotated[str | None, says("the correct form of the value")]
    did_you_mean: Annotated[str | None, says("the allowed word that is most similar")]
    instead: Annotated[str | None, says("what to use instead")]
    source: Annotated[str | None, says("the source of the rule")]


class Checked(Line, frozen=True, kw_only=True, tag="checked"):
    """The last line of each file."""

    where = "`check`"
    file: Annotated[str, says("an inventory or a profile")]
    errors: Annotated[Count, says("how many findings are errors")]
    warnings: Annotated[Count, says("how many findings are warnings")]


class Answer(Struct, frozen=True):
    """What came of one thing that `ping` asks."""

    id: str
    level: Literal["ok", "warning", "error"]
    reason: str
    fix: str


class Ping(Line, frozen=True, kw_only=True, tag="ping"):
    """One machine, and what is in the way."""

    where = "`ping`"
    node: Annotated[str, says("the host of the inventory")]
    address: Annotated[str, says("the address that winboot tried")]
    exit_code: Annotated[Count, says("the exit code for this machine alone")]
    findings: Annotated[tuple[Answer, ...], says("each check, with a fix if the check is not `ok`")]


class DoctorFinding(Line, frozen=True, kw_only=True, tag="finding"):
    """One rule that found something on a node."""

    where = "`doctor`"
    node: Annotated[str, says("the node")]
    rule: Annotated[str, says("the id of the rule ([doctor.md](doctor.md))")]
    severity: Annotated[Literal["fault", "degraded", "warning"], says("fault: the node cannot work")]
    title: Annotated[str, says("what is wrong")]
    evidence: Annotated[tuple[str, ...], says("the facts that show the fault")]
    cause: Annotated[str | None, says("the rule of the finding that causes this one; null without a cause")]
    next: Annotated[str, says("what to do next")]
    command: Annotated[str | None, says("the command that repairs the fault; null if you must act yourself")]
    source: Annotated[str, says("the source of the rule")]


class Diagnosis(Line, frozen=True, kw_only=True, tag="diagnosis"):
    """A node as a whole, after its findings."""

    where = "`doctor`"
    node: Annotated[str, says("the node")]
    first: Annotated[str | None, says("the rule of the first cause; null for a healthy node")]
    findings: Annotated[Count, says("how many rules have findings")]
    not_read: Annotated[tuple[str, ...], says("facts that could not be read, with the reason")]
    taken: Annotated[str, says("when the facts were read")]


class Run(Line, frozen=True, kw_only=True, tag="run"):
    """The run as a whole: the last line."""

    where = "`plan`, `join`, `repair`, `preflight`, and their `--report`"
    command: Annotated[str, says("the command")]
    run: Annotated[str, says("the run's id, which is also the name of its folder of journals")]
    started: Annotated[str, says("ISO 8601, UTC")]
    seconds: Annotated[float, says("wall time")]
    changed: Annotated[Count, says("how many steps were changed, over all nodes")]
    exit_code: Annotated[
        Count,
        says(
            "the code of the nodes' results ([exit-codes.md](exit-codes.md)); a signal changes the exit code"
        ),
    ]
    winboot: Annotated[str, says("winboot's version")]
    by: Annotated[str, says("the user who ran winboot")]
    plan: Annotated[str | None, says("the SHA-256 of the plan that was run, if there was one")]
    asked: Annotated[
        Mapping[str, str],
        says("the request in words: `inventory`, `profile` with winboot's version, `limit`, `only`, `skip`"),
    ]


class LastRun(Struct, frozen=True):
    """The newest run over a node."""

    run: str
    command: str
    started: str
    outcome: str


class Status(Line, frozen=True, kw_only=True, tag="status"):
    """A node as the cluster has it now, and as it was left."""

    where = "`status`"
    node: Annotated[str, says("the host of the inventory")]
    group: Annotated[str, says("the group that defines it")]
    os: Annotated[str, says("the release of Windows Server in the inventory")]
    address: Annotated[str, says("the address of the host")]
    state: Annotated[str, says("Ready, NotReady (with the reason), no Node, or unknown")]
    kubelet: Annotated[str | None, says("the kubelet's version, as the Node reports it")]
    runtime: Annotated[str | None, says("the container runtime with its version, as the Node reports it")]
    build: Annotated[str | None, says("the build of Windows in the Node's label")]
    wanted: Annotated[str, says("the Kubernetes version of the profile")]
    drift: Annotated[tuple[str, ...], says("differences from the profile, from the cluster or the last run")]
    problem: Annotated[
        str | None, says("NoNodeAddress or OtherNodeAddress (only where the inventory names node_ip)")
    ]
    unschedulable: Annotated[bool | None, says("whether the Node is cordoned; null without a Node")]
    last: Annotated[
        str | None, says("the last run on this host as a sentence; null without a run on this computer")
    ]
    last_run: Annotated[
        LastRun | None,
        says("the last run as fields; `outcome` is the node's outcome or `not ended`; null without a run"),
    ] = None


class Fleet(Line, frozen=True, kw_only=True, tag="fleet"):
    """A node of a run that workers share."""

    where = "`fleet status`"
    node: Annotated[str, says("the host of the inventory")]
    wave: Annotated[Count, says("the host's place in the order of the run, from 1")]
    state: Annotated[str, says("ok, failed (with the cause), working, next (may begin), or waits")]
    holder: Annotated[str, says("the worker that works on this host")]


class Request(Line, frozen=True, kw_only=True, tag="request"):
    """A certificate request of a kubelet."""

    where = "`csr`"
    request: Annotated[str, says("the name of the CertificateSigningRequest")]
    certificate: Annotated[str, says("the kind of certificate: `serving` or `client`")]
    node: Annotated[str | None, says("the node of the request; null or empty for other requesters")]
    decision: Annotated[
        Literal["approve", "refuse", "leave", "approved", "refused"], says("the decision on the request")
    ]
    reasons: Annotated[tuple[str, ...], says("why winboot refuses or skips the request")]
    made: Annotated[str | None, says("`csr list`: ISO 8601")] = None
    user: Annotated[str, says("`csr list`: the requesting user")] = ""
    state: Annotated[str, says("`csr list`: pending, approved, denied, issued …")] = ""


class RenderedFile(Struct, frozen=True):
    """A file that a script writes."""

    path: str
    text: str


class Rendered(Line, frozen=True, kw_only=True, tag="rendered"):
    """A node's script."""

    where = "`render`"
    node: Annotated[str, says("the host of the inventory")]
    settings: Annotated[Sha, says("SHA-256 of the node's merged settings")]
    script: Annotated[Sha, says("SHA-256 of the node's script")]
    library: Annotated[Sha, says("SHA-256 of the library in the script")]
    text: Annotated[str, says("the whole script")]
    files: Annotated[tuple[RenderedFile, ...], says("the files that the script writes, by paths on the node")]


class Explained(Line, frozen=True, kw_only=True, tag="explained"):
    """What is known of a name."""

    where = "`explain`"
    name: Annotated[str, says("the requested name")]
    what: Annotated[str, says("the kind of the name: flag, step, word …")]
    text: Annotated[str, says("the explanation, in lines of text")]


class Step(Line, frozen=True, kw_only=True, tag="step"):
    """A step of the catalogue."""

    where = "`steps`"
    step: Annotated[str, says("the step's name")]
    why: Annotated[str, says("why the step exists")]
    needs: Annotated[tuple[str, ...], says("the steps that must run before this step")]
    side: Annotated[str, says("where the step runs: on the machine, or on winboot's computer")]


class Record(Line, frozen=True, kw_only=True):
    """A line of a node's journal."""

    where = "journal"
    at: Annotated[float, says("seconds since 1970")]
    node: Annotated[str, says("`log -o json`: the node whose journal has this event")] = ""


class Script(Record, frozen=True, kw_only=True, tag="script"):
    """What is about to run on the node."""

    settings: Annotated[Sha, says("SHA-256 of the node's merged settings")]
    script: Annotated[Sha, says("SHA-256 of the node's script")]
    library: Annotated[Sha, says("SHA-256 of the library in the script")]
    winboot: Annotated[str, says("winboot's version")]
    by: Annotated[str, says("the user who ran winboot")]
    plan: Annotated[str | None, says("the SHA-256 of the plan that was run, if there was one")]


class Pass(Record, frozen=True, kw_only=True, tag="pass"):
    """The script is sent."""

    mode: Annotated[str, says("`Look`, `Change` …")]
    run: Annotated[str, says("the id in the events of this script")]


class Event(Record, frozen=True, kw_only=True, tag="event"):
    """An event of the script."""

    line: Annotated[str, says("the machine's line, unchanged: a JSON object with `v` 1, see architecture.md")]


class Noise(Record, frozen=True, kw_only=True, tag="noise"):
    """A line that is not an event of this run."""

    line: Annotated[str, says("the beginning of the line")]


class Error(Record, frozen=True, kw_only=True, tag="error"):
    """A session ended."""

    name: Annotated[str, says("the class of the error")]
    problem: Annotated[str, says("the error message")]


class Failed(Error, frozen=True, kw_only=True, tag="failed"):
    """The node has failed."""


class Skipped(Error, frozen=True, kw_only=True, tag="skipped"):
    """The node was left alone."""


class Bug(Record, frozen=True, kw_only=True, tag="bug"):
    """A bug in winboot itself."""

    traceback: Annotated[str, says("the failure in the report's form")]

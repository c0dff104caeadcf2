"""A machine's own metadata service, asked through a session on the machine: nothing else reaches 169.254.169.254.

`Run` is a transport's `run` without its secrets: a script and its arguments, and the lines it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from winboot.base.errors import CloudError, CloudUnreachable

Run = Callable[[str, Mapping[str, object]], Iterable[str]]

ADDRESS: Final = "169.254.169.254"
# The first version with Terminate events (azure-compute-docs: virtual-machine-scale-sets-terminate-notification.md).
EVENTS_URL: Final = f"http://{ADDRESS}/metadata/scheduledevents?api-version=2019-01-01"
# "You can expect a delayed response in your first call of up to two minutes" (the same page).
FIRST_ANSWER_S: Final = 130
PROBE_S: Final = 5
MOST_TOLD: Final = 4096
_EVENT_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")

REQUEST_SCRIPT: Final = r"""
param([string]$Url, [string]$Method, [hashtable]$Header, [string]$Content, [int]$Seconds)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

function Read-Text {
    # The body of an answer as text.
    param($Response)
    $reader = [IO.StreamReader]::new($Response.GetResponseStream())
    try { $reader.ReadToEnd() } finally { $reader.Dispose() }
}

$answer = @{ status = 0; problem = ''; body = '' }
$request = [Net.WebRequest]::Create($Url)
$request.Method = $Method
$request.Timeout = 1000 * $Seconds
# The service does not answer requests that come through a proxy.
$request.Proxy = $null
foreach ($name in $Header.Keys) { $request.Headers.Add($name, $Header[$name]) }
try {
    if ($Content) {
        $bytes = [Text.Encoding]::UTF8.GetBytes($Content)
        $stream = $request.GetRequestStream()
        $stream.Write($bytes, 0, $bytes.Length)
        $stream.Close()
    }
    $response = $request.GetResponse()
}
catch [Net.WebException] {
    # An answer that is an error is an answer; without one the status has the name of the reason.
    $response = $_.Exception.Response
    $answer.problem = "$($_.Exception.Status)"
}
if ($null -ne $response) {
    $answer.status = [int]$response.StatusCode
    $answer.body = Read-Text -Response $response
    $response.Close()
}
ConvertTo-Json -InputObject $answer -Compress
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answered; `status` 0 where nothing did, and `problem` the .NET name of the reason."""

    status: int
    body: str = ""
    problem: str = ""

    @property
    def reached(self) -> bool:
        """Whether anything answered; a refusal is an answer, too."""
        return self.status > 0


@dataclass(frozen=True, slots=True)
class ScheduledEvent:
    """Something that Azure will do to machines. `not_before` is None once it has started; `machines` are names
    as in `ResourceId.machine_name`.
    """

    id: str
    kind: str
    status: str
    machines: tuple[str, ...]
    not_before: datetime | None

    def names(self, machine: str) -> bool:
        """Whether it is about this machine. Names in events have no case that one may rely on."""
        return machine.lower() in {one.lower() for one in self.machines}


def probe(run: Run) -> Answer:
    """Does anything answer at the metadata address? No header is sent: each cloud refuses, and that is enough."""
    return _ask(run, f"http://{ADDRESS}/", seconds=PROBE_S)


def scheduled_events(run: Run) -> tuple[ScheduledEvent, ...]:
    """What Azure has planned for this machine and those of its set. The first question enrols the machine."""
    document = _document(_ask(run, EVENTS_URL, header={"Metadata": "true"}, seconds=FIRST_ANSWER_S))
    events = document.get("Events")
    if not isinstance(events, list):
        raise CloudError("Azure's metadata service sent no list of events", hint="See the journal.")
    return tuple(_event(one) for one in events)


def told_events(text: str, machine: str) -> tuple[ScheduledEvent, ...]:
    """What a machine itself wrote into its Node, as lib/events.ps1 writes it; what is no such line is left out: it is the
    machine's word, and about itself alone."""
    found = []
    for line in text[:MOST_TOLD].split(";"):
        kind, *rest = line.split("|")
        if len(rest) != 3 or not _EVENT_ID.fullmatch(rest[1]):
            continue
        status, identifier, when = rest
        try:
            not_before = parsedate_to_datetime(when).astimezone(UTC) if when else None
        except (ValueError, OverflowError):
            continue
        found.append(ScheduledEvent(identifier, kind, status, (machine,), not_before))
    return tuple(found)


def approve(run: Run, event: ScheduledEvent) -> None:
    """Let Azure go ahead with this event now. CloudError where it refuses."""
    content = json.dumps({"StartRequests": [{"EventId": event.id}]})
    answer = _ask(
        run, EVENTS_URL, method="POST", header={"Metadata": "true"}, content=content, seconds=FIRST_ANSWER_S
    )
    if not answer.reached:
        raise _unreached(answer)
    if answer.status >= 400:
        raise CloudError(
            f"Azure's metadata service refused to start the event {event.id} (HTTP {answer.status})",
            hint="It may have started already; the machine is deleted when its time is over.",
        )


def _document(answer: Answer) -> dict[str, Any]:
    if not answer.reached:
        raise _unreached(answer)
    if answer.status != 200:
        raise CloudError(f"Azure's metadata service answered HTTP {answer.status}", hint="Try again later.")
    document = json.loads(answer.body)
    return document if isinstance(document, dict) else {}


def _unreached(answer: Answer) -> CloudUnreachable:
    return CloudUnreachable(
        f"the machine does not reach its metadata service at {ADDRESS} ({answer.problem})",
        hint="`winboot cloud check NODE` shows whether its route is lost.",
    )


def _event(one: Mapping[str, Any]) -> ScheduledEvent:
    when = one.get("NotBefore")
    return ScheduledEvent(
        id=str(one["EventId"]),
        kind=str(one["EventType"]),
        status=str(one["EventStatus"]),
        machines=tuple(str(name) for name in one.get("Resources", ())),
        not_before=parsedate_to_datetime(when).astimezone(UTC) if when else None,
    )


def _ask(
    run: Run,
    url: str,
    *,
    method: str = "GET",
    header: Mapping[str, str] | None = None,
    content: str = "",
    seconds: int,
) -> Answer:
    arguments = {
        "Url": url,
        "Method": method,
        "Header": dict(header or {}),
        "Content": content,
        "Seconds": seconds,
    }
    for line in run(REQUEST_SCRIPT, arguments):
        if line.startswith("{"):
            found = json.loads(line)
            return Answer(int(found["status"]), str(found["body"]), str(found["problem"]))
    raise CloudError(
        "the machine's answer about its metadata service is no JSON object", hint="See the journal."
    )

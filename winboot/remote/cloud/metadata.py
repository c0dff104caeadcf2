"""A machine's own metadata service, asked through a session on the machine: nothing else reaches 169.254.169.254.

`Run` is a transport's `run` without its secrets: a script and its arguments, and the lines it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from winboot.base.errors import CloudError, CloudUnreachable
from winboot.base.foreign import Malformed, decoded

Run = Callable[[str, Mapping[str, object]], Iterable[str]]

ADDRESS: Final = "169.254.169.254"
# The first version with Terminate events (azure-compute-docs: virtual-machine-scale-sets-terminate-notification.md).
EVENTS_URL: Final = f"http://{ADDRESS}/metadata/scheduledevents?api-version=2019-01-01"
# "You can expect a delayed response in your first call of up to two minutes" (the same page).
FIRST_ANSWER_S: Final = 130
PROBE_S: Final = 5
LONGEST_REPORT: Final = 4096
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
    """What the service answered, one line of REQUEST_SCRIPT; `status` 0 where nothing did, and `problem` the .NET name of the
    reason."""

    status: int
    body: str = ""
    problem: str = ""

    @property
    def reached(self) -> bool:
        """Whether anything answered; a refusal is an answer, too."""
        return self.status > 0


@dataclass(frozen=True, slots=True)
class ScheduledEvent:
    """Something that Azure will do to the machine that reported it. `not_before` is None once it has started."""

    id: str
    kind: str
    status: str
    not_before: datetime | None


class _Listed(msgspec.Struct, frozen=True, rename="pascal"):
    """An event as the service lists it (azure-compute-docs: windows/scheduled-events.md). Resources are machines' names."""

    event_id: str
    event_status: str
    resources: tuple[str, ...]


class _Document(msgspec.Struct, frozen=True, rename="pascal"):
    events: tuple[_Listed, ...]


_ANSWER: Final = msgspec.json.Decoder(Answer)
_DOCUMENT: Final = msgspec.json.Decoder(_Document)


def probe(run: Run) -> Answer:
    """Does anything answer at the metadata address? No header is sent: each cloud refuses, and that is enough."""
    return _ask(run, f"http://{ADDRESS}/", seconds=PROBE_S)


def reported_events(text: str) -> tuple[ScheduledEvent, ...]:
    """The events in a Node's annotation, as lib/events.ps1 writes it. They concern this Node's machine only; what is no such
    line is left out."""
    found = []
    for line in text[:LONGEST_REPORT].split(";"):
        kind, *rest = line.split("|")
        if len(rest) != 3 or not _EVENT_ID.fullmatch(rest[1]):
            continue
        status, identifier, when = rest
        try:
            not_before = parsedate_to_datetime(when).astimezone(UTC) if when else None
        except (ValueError, OverflowError):
            continue
        found.append(ScheduledEvent(identifier, kind, status, not_before))
    return tuple(found)


def approve(run: Run, event: str, machine: str) -> bool:
    """Let Azure go ahead with this event of this machine now; False where its own metadata service lists no such event that
    still waits. CloudError where it answers anything else.

    The id comes from an annotation: it may be the id of another machine's event, which this must not start.
    """
    header = {"Metadata": "true"}
    listed = _document(_ask(run, EVENTS_URL, header=header, seconds=FIRST_ANSWER_S))
    if not any(_waits(one, event, machine) for one in listed.events):
        return False
    content = json.dumps({"StartRequests": [{"EventId": event}]})
    answer = _ask(run, EVENTS_URL, method="POST", header=header, content=content, seconds=FIRST_ANSWER_S)
    if not answer.reached:
        raise _unreached(answer)
    if answer.status >= 400:
        raise CloudError(
            f"Azure's metadata service refused to start the event {event} (HTTP {answer.status})",
            hint="It may have started already; Azure goes ahead when the event's notice is over.",
        )
    return True


def _waits(one: _Listed, event: str, machine: str) -> bool:
    # Names in events have no case that one may rely on.
    named = machine.lower() in {name.lower() for name in one.resources}
    return named and one.event_id == event and one.event_status == "Scheduled"


def _document(answer: Answer) -> _Document:
    if not answer.reached:
        raise _unreached(answer)
    if answer.status != 200:
        raise CloudError(f"Azure's metadata service answered HTTP {answer.status}", hint="Try again later.")
    try:
        return decoded(_DOCUMENT, answer.body)
    except Malformed as error:
        raise CloudError(
            f"Azure's metadata service sent no list of events: {error}",
            hint=f"Something else may answer at {ADDRESS} on this machine: a proxy, an agent, or a pod.",
        ) from error


def _unreached(answer: Answer) -> CloudUnreachable:
    return CloudUnreachable(
        f"the machine does not reach its metadata service at {ADDRESS} ({answer.problem})",
        hint="`winboot cloud check NODE` shows whether its route is lost.",
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
        with suppress(Malformed):
            return decoded(_ANSWER, line)
    raise CloudError(
        "the machine's answer about its metadata service is not a JSON object of the script's form",
        hint="See the journal, and what else runs in the sessions of the account that winboot logs in with.",
    )

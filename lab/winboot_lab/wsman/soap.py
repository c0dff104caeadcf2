"""SOAP envelopes: what a request asks for, and the answers in the form that Windows gives them.

Element names, order, prefixes and header fields of the answers are those of recordings of Windows Server 2016 and
2019 (pypsrp's test data). Prefixes matter only to a reader; they are kept so that a trace looks familiar.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

NAMESPACES: Final = {
    "s": "http://www.w3.org/2003/05/soap-envelope",
    "a": "http://schemas.xmlsoap.org/ws/2004/08/addressing",
    "w": "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd",
    "p": "http://schemas.microsoft.com/wbem/wsman/1/wsman.xsd",
    "x": "http://schemas.xmlsoap.org/ws/2004/09/transfer",
    "rsp": "http://schemas.microsoft.com/wbem/wsman/1/windows/shell",
    "pwsh": "http://schemas.microsoft.com/powershell",
}
_ANONYMOUS: Final = "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous"
_SHELL: Final = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell"
POWERSHELL: Final = "http://schemas.microsoft.com/powershell/"
TERMINATE: Final = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell/signal/terminate"
DONE: Final = f"{_SHELL}/CommandState/Done"

# Faults by code: subcode, and the sentence that Windows says. The codes are what clients decide by.
OPERATION_TIMEOUT: Final = 2150858793
NO_SUCH_SHELL: Final = 2150858843
TOO_MANY_SHELLS: Final = 2150859173
TOO_MANY_OPERATIONS: Final = 2150859174
OPERATION_ABORTED: Final = 995
ACCESS_DENIED: Final = 5
INVALID_REQUEST: Final = 2150858778
_FAULTS: Final[Mapping[int, tuple[str, str, str]]] = {
    OPERATION_TIMEOUT: (
        "s:Receiver",
        "w:TimedOut",
        "The WS-Management service cannot complete the operation within the time specified in"
        " OperationTimeout.  ",
    ),
    NO_SUCH_SHELL: (
        "s:Sender",
        "w:InvalidSelectors",
        "The WS-Management service cannot process the request because the request contained invalid selectors"
        " for the resource. ",
    ),
    TOO_MANY_SHELLS: (
        "s:Receiver",
        "w:QuotaLimit",
        "The WS-Management service cannot process the request. The maximum number of concurrent shells for"
        " this user has been exceeded. Close existing shells or raise the quota for this user. ",
    ),
    TOO_MANY_OPERATIONS: (
        "s:Receiver",
        "w:QuotaLimit",
        "The WS-Management service cannot process the request. The maximum number of concurrent operations"
        " for this user has been exceeded. Close existing operations for this user, or raise the quota for"
        " this user. ",
    ),
    OPERATION_ABORTED: (
        "s:Receiver",
        "w:InternalError",
        "The I/O operation has been aborted because of either a thread exit or an application request. ",
    ),
    ACCESS_DENIED: ("s:Sender", "w:AccessDenied", "Access is denied. "),
    INVALID_REQUEST: (
        "s:Sender",
        "w:SchemaValidationError",
        "The SOAP XML in the message does not match the corresponding XML schema definition. ",
    ),
}


class NotSoap(Exception):
    """The body is no WS-Management envelope."""


class Fault(Exception):
    """The operation ends with this fault; `code` is one of those above."""

    def __init__(self, code: int, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Envelope:
    """One request. `action` is the last part of the action's address: Create, Receive, Command …"""

    action: str
    address: str
    message_id: str
    resource: str
    timeout_s: float
    options: Mapping[str, str]
    shell_id: str | None
    body: ElementTree.Element

    def find(self, path: str) -> ElementTree.Element | None:
        """The element at `path` below the body, with the prefixes of NAMESPACES."""
        return self.body.find(path, NAMESPACES)

    def text(self, path: str) -> str:
        """The text of the element at `path`, or ''."""
        element = self.find(path)
        return (element.text or "") if element is not None else ""


def parse(data: bytes) -> Envelope:
    """Read a request. Raises NotSoap."""
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise NotSoap(str(error)) from error
    header = root.find("s:Header", NAMESPACES)
    body = root.find("s:Body", NAMESPACES)
    if root.tag != f"{{{NAMESPACES['s']}}}Envelope" or header is None or body is None:
        raise NotSoap("not an envelope with header and body")

    def text(path: str) -> str:
        return header.findtext(path, "", NAMESPACES)

    selectors = {
        each.get("Name", ""): each.text for each in header.iterfind("w:SelectorSet/w:Selector", NAMESPACES)
    }
    options = {
        each.get("Name", ""): each.text or "" for each in header.iterfind("w:OptionSet/w:Option", NAMESPACES)
    }
    address = text("a:Action")
    return Envelope(
        action=address.rpartition("/")[2],
        address=address,
        message_id=text("a:MessageID"),
        resource=text("w:ResourceURI"),
        timeout_s=seconds(text("w:OperationTimeout")),
        options=options,
        shell_id=selectors.get("ShellId"),
        body=body,
    )


def seconds(text: str) -> float:
    """A duration such as PT20S; a minute where it is missing or in another form."""
    match = re.fullmatch(r"PT(\d+(?:\.\d+)?)S", text)
    return float(match.group(1)) if match else 60.0


def answer(request: Envelope, body: str) -> bytes:
    """The answer to `request` around `body`."""
    used = [
        "s",
        "a",
        *(prefix for prefix in ("x", "w", "rsp") if f"<{prefix}:" in body or prefix == "w"),
        "p",
    ]
    return _envelope(request.message_id, f"{request.address}Response", body, used)


def fault(relates_to: str, code: int, detail: str = "", machine: str = "127.0.0.1") -> bytes:
    """The fault with this code, in answer to the message with this id."""
    outer, inner, sentence = _FAULTS.get(code, ("s:Receiver", "w:InternalError", "The operation failed. "))
    text = escape(detail or sentence)
    body = (
        f"<s:Fault><s:Code><s:Value>{outer}</s:Value><s:Subcode><s:Value>{inner}</s:Value></s:Subcode></s:Code>"
        f'<s:Reason><s:Text xml:lang="en-US">{text}</s:Text></s:Reason><s:Detail>'
        '<f:WSManFault xmlns:f="http://schemas.microsoft.com/wbem/wsman/1/wsmanfault"'
        f' Code="{code}" Machine={quoteattr(machine)}><f:Message>{text}</f:Message></f:WSManFault>'
        "</s:Detail></s:Fault>"
    )
    return _envelope(
        relates_to, "http://schemas.dmtf.org/wbem/wsman/1/wsman/fault", body, ["s", "a", "x", "w", "p"]
    )


def _envelope(relates_to: str, action: str, body: str, prefixes: Iterable[str]) -> bytes:
    declared = " ".join(f'xmlns:{prefix}="{NAMESPACES[prefix]}"' for prefix in prefixes)
    return (
        f'<s:Envelope xml:lang="en-US" {declared}><s:Header><a:Action>{action}</a:Action>'
        f"<a:MessageID>uuid:{_new_id()}</a:MessageID><p:ActivityId>{_new_id()}</p:ActivityId>"
        f"<a:To>{_ANONYMOUS}</a:To><a:RelatesTo>{escape(relates_to)}</a:RelatesTo></s:Header>"
        f"<s:Body>{body}</s:Body></s:Envelope>"
    ).encode()


def _new_id() -> str:
    return str(uuid.uuid4()).upper()


def created(url: str, resource: str, shell_id: str, shell: str) -> str:
    """The body of a CreateResponse; `shell` is what `shell_state` gives."""
    return (
        f"<x:ResourceCreated><a:Address>{escape(url)}</a:Address><a:ReferenceParameters>"
        f"<w:ResourceURI>{escape(resource)}</w:ResourceURI><w:SelectorSet>"
        f'<w:Selector Name="ShellId">{escape(shell_id)}</w:Selector></w:SelectorSet>'
        f"</a:ReferenceParameters></x:ResourceCreated>{shell}"
    )


def shell_state(fields: Mapping[str, str]) -> str:
    """The rsp:Shell element that describes a shell."""
    inside = "".join(f"<rsp:{name}>{escape(value)}</rsp:{name}>" for name, value in fields.items())
    return f'<rsp:Shell xmlns:rsp="{_SHELL}">{inside}</rsp:Shell>'


def connected(fragments: bytes) -> str:
    """The body of a ConnectResponse."""
    data = base64.b64encode(fragments).decode()
    return (
        f'<rsp:ConnectResponse><pwsh:connectResponseXml xmlns:pwsh="{NAMESPACES["pwsh"]}">{data}'
        "</pwsh:connectResponseXml></rsp:ConnectResponse>"
    )


def command_created(command_id: str) -> str:
    """The body of a CommandResponse."""
    return f"<rsp:CommandResponse><rsp:CommandId>{escape(command_id)}</rsp:CommandId></rsp:CommandResponse>"


def received(fragments: Iterable[str], command_id: str | None, *, done: bool) -> str:
    """The body of a ReceiveResponse: one Stream for each fragment (base64), and the end of the command."""
    owner = f" CommandId={quoteattr(command_id)}" if command_id is not None else ""
    streams = "".join(f'<rsp:Stream Name="stdout"{owner}>{data}</rsp:Stream>' for data in fragments)
    state = f'<rsp:CommandState{owner} State="{DONE}"><rsp:ExitCode>0</rsp:ExitCode></rsp:CommandState>'
    return f"<rsp:ReceiveResponse>{streams}{state if done else ''}</rsp:ReceiveResponse>"

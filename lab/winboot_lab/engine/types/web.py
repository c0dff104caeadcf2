"""System.Net.WebRequest and its kin: HTTP as .NET Framework speaks it, through the machine's network."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import OBJECT, Runtime, dotnet, named
from winboot_lab.engine.exceptions import (
    AggregateException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
    DotNetException,
    IOException,
    NotSupportedException,
    WebException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.streams import STREAM, MemoryStream
from winboot_lab.engine.uri import Uri
from winboot_lab.engine.values import EnumValue, Instance, enum_value

Value = Any

DEFAULT_TIMEOUT_MS = 100_000


class WebProxy(Instance):
    """A proxy by its address."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address


PROXY = dotnet("System.Net.WebProxy", WebProxy, base=OBJECT)
PROXY.constructor("string Address")(WebProxy)
PROXY.prop(
    "Address", "uri", lambda self: None if self.address is None else Uri.parse(self.address, absolute=True)
)


class HttpRequest(Instance):
    """A request that has not been sent."""

    def __init__(self, address: Uri) -> None:
        self.address = address
        self.timeout = DEFAULT_TIMEOUT_MS
        self.method = "GET"
        self.proxy: WebProxy | None = None
        self.ranges: list[int] = []
        self.headers = RequestHeaders()
        self.content: MemoryStream | None = None


class RequestHeaders(Instance):
    """The headers that a caller adds to a request."""

    def __init__(self) -> None:
        self.added: dict[str, str] = {}


HEADERS = dotnet("System.Net.WebHeaderCollection", RequestHeaders, base=OBJECT)
# Of HttpWebRequest's own headers most can be set by their properties alone: ArgumentException "The '…' header must be
# modified using the appropriate property or method." (learn.microsoft.com/dotnet/api/system.net.webheadercollection).
_RESTRICTED = frozenset(
    {"accept", "connection", "content-length", "content-type", "date", "expect", "host", "if-modified-since"}
    | {"range", "referer", "transfer-encoding", "user-agent", "proxy-connection"}
)


@HEADERS.method("void Add(string name, string value)")
def _add_header(self: RequestHeaders, name: str, value: str) -> None:
    if name.lower() in _RESTRICTED:
        raise Refusal("member", f"WebHeaderCollection.Add('{name}'), a restricted header")
    if name in self.added:
        raise Refusal("member", "WebHeaderCollection.Add of a second value")
    self.added[name] = value


REQUEST = dotnet("System.Net.WebRequest", kind="abstract")
HTTP_REQUEST = dotnet("System.Net.HttpWebRequest", HttpRequest, base=REQUEST)


def _create(address: Uri) -> HttpRequest:
    if address is None:
        raise ArgumentNullException("requestUri")
    if address.scheme not in ("http", "https"):
        raise NotSupportedException("The URI prefix is not recognized.")
    return HttpRequest(address)


REQUEST.static_method("Create(string requestUriString)")(lambda text: _create(Uri.parse(text, absolute=True)))
REQUEST.static_method("Create(uri requestUri)")(_create)
for _name, _type, _attribute in (
    ("Timeout", "int", "timeout"),
    ("Method", "string", "method"),
    ("Proxy", "System.Net.WebProxy", "proxy"),
):
    HTTP_REQUEST.prop(
        _name,
        _type,
        lambda self, _attribute=_attribute: getattr(self, _attribute),
        lambda self, value, _attribute=_attribute: setattr(self, _attribute, value),
    )
HTTP_REQUEST.prop("Headers", "System.Net.WebHeaderCollection", lambda self: self.headers)


@HTTP_REQUEST.method("void AddRange(int range)", "void AddRange(long range)")
def _add_range(self: HttpRequest, start: int) -> None:
    if start < 0:
        raise Refusal("member", "HttpWebRequest.AddRange with a negative number")
    self.ranges.append(int(start))


@HTTP_REQUEST.method("GetRequestStream()")
def _get_request_stream(self: HttpRequest) -> MemoryStream:
    if self.method in ("GET", "HEAD"):
        raise Refusal("member", "HttpWebRequest.GetRequestStream()", "of a request without a body")
    self.content = self.content or MemoryStream(b"", writable=True)
    return self.content


@HTTP_REQUEST.method("GetResponse()", effect=True)
def _get_response(runtime: Runtime, self: HttpRequest) -> HttpResponse:
    if self.timeout < -1:
        raise ArgumentOutOfRangeException("value")
    headers = dict(self.headers.added)
    if self.ranges:
        headers["Range"] = f"bytes={self.ranges[-1]}-"
    record = ask_one(
        runtime,
        "http.get",
        url=self.address.absolute_uri,
        headers=headers,
        proxy=None if self.proxy is None else self.proxy.address,
        milliseconds=self.timeout,
        method=self.method,
        body=b"" if self.content is None else bytes(self.content.data),
    )
    response = HttpResponse(self.address, record)
    if response.status >= 400:
        text = f"The remote server returned an error: ({response.status}) {_phrase(response.status)}."
        raise WebException(text, response=response, status="ProtocolError")
    return response


class Answered(Instance):
    """A Task that works while the script waits for it: `work` gets the milliseconds, and returns None for "not yet"."""

    def __init__(self, work: Callable[[Runtime, int], Value]) -> None:
        self.work = work
        self.value: Value = None

    def wait(self, runtime: Runtime, milliseconds: int) -> bool:
        """Whether it is done; AggregateException when it failed."""
        if self.value is None:
            try:
                self.value = self.work(runtime, milliseconds)
            except DotNetException as failure:
                raise AggregateException("One or more errors occurred.", failure) from failure
        return self.value is not None


TASK = dotnet("System.Threading.Tasks.Task`1[System.Object]", Answered)
TASK.method("Wait(int millisecondsTimeout)", effect=True)(lambda runtime, self, ms: self.wait(runtime, ms))
TASK.prop("Result", "object", lambda self: self.value)
HTTP_REQUEST.method("GetResponseAsync()")(
    lambda self: Answered(lambda runtime, _milliseconds: _get_response(runtime, self))
)
HTTP_REQUEST.method("void Abort()")(lambda self: None)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


class HttpResponse(Instance):
    """An answer with its body."""

    def __init__(self, address: Uri, record: Any) -> None:
        self.address = address
        self.status = int(record["status"])
        self.reason = str(record["reason"])
        self.headers = {str(k).lower(): str(v) for k, v in dict(record["headers"]).items()}
        self.content = bytes(record["content"])
        self.complete = bool(record["complete"])
        self.pace = float(record["pace"])


class BodyStream(MemoryStream):
    """The body as it arrives; one that broke off fails where it ends."""

    def __init__(self, content: bytes, *, complete: bool, pace: float) -> None:
        super().__init__(content, writable=False)
        self.complete = complete
        self.pace = pace

    def soon(self, runtime: Runtime, milliseconds: int, count: int) -> bytes | None:
        """What has come after so long, at most `count` bytes; None when that is nothing yet."""
        if not self.pace:
            return self.read(runtime, count)
        ask(runtime, "clock.sleep", milliseconds=milliseconds)
        return self.read(runtime, min(count, int(self.pace * milliseconds / 1000))) or None

    def read(self, runtime: Runtime, count: int) -> bytes:
        """Up to `count` bytes; raises where the connection was lost."""
        found = super().read(runtime, count)
        if not found and not self.complete:
            raise IOException("Unable to read data from the transport connection: The connection was closed.")
        return found


BODY = dotnet("System.Net.ConnectStream", BodyStream, base=STREAM)


@BODY.method("ReadAsync(byte[] buffer, int offset, int count)")
def _read_async(self: BodyStream, buffer: Value, offset: int, count: int) -> Answered:
    def work(runtime: Runtime, milliseconds: int) -> Value:
        piece = self.soon(runtime, milliseconds, count)
        if piece is None:
            return None
        buffer[offset : offset + len(piece)] = piece
        return len(piece)

    return Answered(work)


RESPONSE = dotnet("System.Net.WebResponse", kind="abstract")
HTTP_RESPONSE = dotnet("System.Net.HttpWebResponse", HttpResponse, base=RESPONSE)


def _status(self: HttpResponse) -> EnumValue:
    return EnumValue(named("System.Net.HttpStatusCode"), self.status)


HTTP_RESPONSE.prop("StatusCode", "System.Net.HttpStatusCode", _status)
HTTP_RESPONSE.method("GetResponseStream()")(
    lambda self: BodyStream(self.content, complete=self.complete, pace=self.pace)
)
HTTP_RESPONSE.method("GetResponseHeader(string headerName)")(
    lambda self, name: self.headers.get(name.lower(), "")
)
HTTP_RESPONSE.method("void Close()", "void Dispose()")(lambda self: None)

# -- ServicePointManager: process-wide settings, kept with the session


SERVICE_POINT = dotnet("System.Net.ServicePointManager", kind="static")
# By default, .NET Framework on Windows Server 2019 leaves the choice to the system.
_DEFAULT_PROTOCOL = "SystemDefault"


def _protocol(runtime: Runtime) -> EnumValue:
    kept = runtime.session.state.get("security-protocol")  # type: ignore[attr-defined]  # the evaluator's scope
    if isinstance(kept, EnumValue):
        return kept
    return enum_value("System.Net.SecurityProtocolType", _DEFAULT_PROTOCOL)


def _set_protocol(runtime: Runtime, value: EnumValue) -> None:
    runtime.session.state["security-protocol"] = value  # type: ignore[attr-defined]  # the evaluator's scope


SERVICE_POINT.static_prop(
    "SecurityProtocol", "System.Net.SecurityProtocolType", _protocol, _set_protocol, effect=True
)

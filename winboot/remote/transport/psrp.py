"""Scripts over WinRM: one session (runspace pool) on the machine, one pipeline for each run, output as it
streams.

What happens to a lost answer is decided by what it was an answer to:

    Create, opening      nothing has run: the session is deleted by its id, which we chose, and another one is
                         opened
    Command              a Receive for its id, which we chose, shows whether the pipeline runs or never arrived
    Send (not the last)  an incomplete script cannot run: it is terminated and sent again
    Send (the last)      output proves that it runs; silence proves nothing, so it is stopped: ConnectionLost
    Receive              the same Receive again, on a new connection; the machine repeats its answer
    Signal, Delete       nothing: a session that we could not end, ends by itself

Output is numbered by the machine. A number that comes twice is dropped, one that is missing ends the run. So
a script never runs twice in one `run`, and its output arrives exactly once or not at all.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from xml.etree import ElementTree

from pypsrp.complex_objects import ErrorRecord, PSInvocationState, RunspacePoolState
from pypsrp.exceptions import WinRMTransportError, WSManFaultError
from pypsrp.messages import MessageType
from pypsrp.powershell import Fragment, PowerShell, RunspacePool
from pypsrp.serializer import TaggedValue
from pypsrp.shell import CommandState, SignalCode
from pypsrp.wsman import NAMESPACES, SelectorSet, WSManAction
from spnego.exceptions import SpnegoError

from winboot.base.errors import (
    Busy,
    ConnectionLost,
    ExcessiveOutput,
    ProtocolError,
    RestrictedEndpoint,
    ScriptFailed,
    Unreachable,
    UsageError,
    WinbootError,
)
from winboot.base.limits import LARGEST_MESSAGE
from winboot.base.retry import retried
from winboot.base.secret import Secret
from winboot.remote.transport.base import Endpoint, Probe, Transport, nobody_waits
from winboot.remote.transport.failures import (
    ALL_ERRORS,
    HTTP_TOO_LARGE,
    NO_SUCH_SHELL,
    OPERATION_TIMEOUT,
    translate,
)
from winboot.remote.transport.probe import PROBE_SCRIPT, read_probe, visible_from_outside
from winboot.remote.transport.wire import Connection, quieten

_INT32: Final = range(-(2**31), 2**31)
_MOST_STARTS: Final = 5
# What a message may have where the 500 KB of PSRP are refused, in bytes: WinRM's own default (150 KB, MaxEnvelopeSizekb in
# https://learn.microsoft.com/en-us/windows/win32/winrm/installation-and-configuration-for-windows-remote-management), and
# what even a much smaller setting takes.
_SMALLER: Final = (150 << 10, 32 << 10)
# How long each request may take that interrupts a script, in seconds.
_INTERRUPT_S: Final = 1
_STREAMS: Final = {
    MessageType.ERROR_RECORD: ("error", "error"),
    MessageType.WARNING_RECORD: ("warning", "warning"),
    MessageType.VERBOSE_RECORD: ("verbose", "verbose"),
    MessageType.DEBUG_RECORD: ("debug", "debug"),
    MessageType.INFORMATION_RECORD: ("information", "information"),
    MessageType.PROGRESS_RECORD: ("progress", None),
}
# What PowerShell says where scripts or .NET are not allowed (JEA, Constrained Language).
_RESTRICTED: Final = frozenset(
    {
        "ScriptsNotAllowed",
        "CannotUseScriptblocks",
        "MethodInvocationNotSupportedInConstrainedLanguage",
        "PropertySetterNotSupportedInConstrainedLanguage",
        "CannotConvertTypeInConstrainedLanguage",
        "ConversionSupportedOnlyToCoreTypes",
    }
)
# RemoteStreamOptions ([MS-PSRP] 2.2.3.8) asks for where each record was written. With a warning that is the text of the
# whole script (CommandInfo_Definition), every time, and winboot shows the message alone. What ends a script has its place
# without it: an error record always carries its InvocationInfo (ToPSObjectForRemoting of ErrorRecord and of
# InformationalRecord in PowerShell's engine/ErrorPackage.cs and engine/hostifaces/InformationalRecord.cs).
_NO_PLACES: Final = 0
# [MS-PSRP] 2.2.4: object id, fragment id, flags and length stand before each piece of a message.
_FRAGMENT_HEADER: Final = 21
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")
_CONTROLS: Final = {code: f"_x{code:04X}_" for code in (*range(0x20), *range(0x7F, 0xA0))}
_PAIR: Final = re.compile("[\U00010000-\U0010ffff]")
_AGAIN: Final = "Run the command again: it continues where it stopped."

quieten()


class _NotStarted(Exception):
    """The pipeline has certainly not run, and never will."""


class _TooLarge(_NotStarted):
    """The machine refused a message for its size; the session is as it was, and the next ones are smaller."""


def decoded(value: str | None) -> str:
    """A text of the machine without its escapes ([MS-PSRP] 2.2.5.3.2). Half of a surrogate pair, which Windows allows in
    names and pypsrp refuses as bytes that are not UTF-16, stays what it is: `clean` shows it."""
    units = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value or "")
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def encoded(text: str | None) -> str | None:
    """A text with the escapes of [MS-PSRP] 2.2.5.3.2: what pypsrp makes of it, which calls a function for each line's end of a
    script that has ten thousand."""
    if text is None:
        return None
    marked = text.replace("_x", "_x005F_x").replace("_X", "_x005F_X")
    # Ends of lines first: what is left is nearly always plain ASCII, of which `translate` makes short work.
    escaped = marked.replace("\n", "_x000A_").translate(_CONTROLS)
    return escaped if escaped.isascii() else _PAIR.sub(_escaped_pair, escaped)


def _escaped_pair(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex().upper()
    return f"_x{units[:4]}__x{units[4:]}_"


class _Pool(RunspacePool):
    """pypsrp's pool. After a repeated Receive it drops output that comes twice, and notices output that is
    missing.

    Only then: Windows numbers the messages of a pool one by one, but it may send the pool messages that we never ask
    for. That is not a reason to end a healthy run.
    """

    def __init__(self, connection: Connection, idle_s: int, name: str) -> None:
        super().__init__(connection, no_profile=True, idle_timeout=idle_s)
        self.link = connection
        self._wire = connection.wire
        self._name = name
        self._expected = (1, 0)
        # Its own refuses half of a surrogate pair, and takes a tenth of a look's time.
        setattr(self._serializer, "_deserialize_string", decoded)  # noqa: B010 - mypy takes it for a slip
        setattr(self._serializer, "_serialize_string", encoded)  # noqa: B010 - the same
        # Bytes of the message whose last piece has not come: pypsrp keeps them without a bound.
        self._unfinished = 0

    def take_smaller(self) -> bool:
        """From now on send smaller messages; False when there are no smaller ones."""
        size = next((one for one in _SMALLER if one < self.link.max_envelope_size), None)
        if size is None:
            return False
        self.link.update_max_payload_size(size)
        self._fragmenter.max_size = self.link.max_payload_size - _FRAGMENT_HEADER
        return True

    def _receive(self, id: str | None = None, timeout: int | None = None) -> list[tuple[int, Any]]:
        pipeline = self.pipelines.get(id) if id is not None else None
        state, _, streams = self.shell.receive("stdout", command_id=id, timeout=timeout)
        said = self._parse_responses(streams["stdout"], pipeline)
        if (
            state == CommandState.DONE
            and pipeline is not None
            and pipeline.state == PSInvocationState.RUNNING
        ):
            # There will be no more, and how it ended was not among it: asking again would never end.
            raise self._lost()
        return said

    def _parse_responses(self, responses: bytes, pipeline: PowerShell | None = None) -> list[tuple[int, Any]]:
        fresh = b""
        while responses:
            fragment, rest = Fragment.unpack(responses)
            if not self._wire.repeated or self._is_new(fragment):
                fresh += responses[: len(responses) - len(rest)]
                self._bound(fragment)
                number, part = fragment.object_id, fragment.fragment_id
                self._expected = (number + 1, 0) if fragment.end else (number, part + 1)
            responses = rest
        if fresh:
            self._wire.repeated = False
        parsed: list[tuple[int, Any]] = super()._parse_responses(fresh, pipeline)
        return parsed

    def _bound(self, fragment: Fragment) -> None:
        self._unfinished += len(fragment.data)
        if self._unfinished > LARGEST_MESSAGE:
            raise ExcessiveOutput(
                f"{self._name}: the machine sends one message of more than {LARGEST_MESSAGE >> 20} MiB",
                hint="winboot's scripts never do this: check the machine. docs/security.md lists all limits.",
                node=self._name,
            )
        if fragment.end:
            self._unfinished = 0

    def _is_new(self, fragment: Fragment) -> bool:
        this = (fragment.object_id, fragment.fragment_id)
        if this > self._expected:
            raise self._lost()
        return this == self._expected

    def _lost(self) -> ConnectionLost:
        return ConnectionLost(
            f"{self._name}: output of the script was lost with the connection", hint=_AGAIN, node=self._name
        )


class _Pipeline(PowerShell):
    """pypsrp's pipeline, started so that a lost answer leaves no doubt whether it runs."""

    def __init__(self, pool: _Pool) -> None:
        super().__init__(pool)
        self.early: list[tuple[int, Any]] = []
        self._pool = pool

    def _invoke(self, msg: Any) -> None:
        pool = self._pool
        first, *rest = pool._fragmenter.fragment(msg, pool.id, self.id)
        pool.pipelines[self.id] = self
        self._command_id = self.id
        self.state = PSInvocationState.RUNNING
        # Its message is made, and pypsrp has no more use for the text.
        self.clear_commands()
        try:
            pool.shell.command("", [base64.b64encode(first).decode()], command_id=self.id)
        except ConnectionLost as error:
            self._settle_command(error, complete=not rest)
        except WinRMTransportError as error:
            self._settle_size(error)
        except WSManFaultError as fault:
            if fault.code == NO_SUCH_SHELL:
                raise _NotStarted from fault
            raise
        for number, fragment in enumerate(rest, 1):
            try:
                pool.shell.send("stdin", fragment, command_id=self.id)
            except WinRMTransportError as error:
                self._settle_size(error)
            except ConnectionLost as error:
                self._settle_send(error, last=number == len(rest))

    def poll(self, timeout: int | None = None) -> list[tuple[int, Any]]:
        """What the machine has to say now: message types and values, in order. Nothing after a quiet while."""
        try:
            said: list[tuple[int, Any]] = self._pool._receive(self.id, timeout=timeout)
        except WSManFaultError as fault:
            if fault.code == OPERATION_TIMEOUT:
                return []
            raise
        return said

    def terminate(self, timeout: int) -> None:
        """Stop the script and let the machine forget it. Best effort, within `timeout` seconds."""
        pool = self._pool
        pool.link.try_once(
            WSManAction.SIGNAL, pool.shell.resource_uri, _signal(self.id), _selector(pool), timeout
        )
        pool.pipelines.pop(self.id, None)

    def _settle_size(self, error: WinRMTransportError) -> None:
        """A message that is refused whole has not been looked at: what it began is forgotten, and begun again."""
        if error.code != HTTP_TOO_LARGE or not self._pool.take_smaller():
            raise error
        self.terminate(2)
        raise _TooLarge from error

    def _settle_command(self, error: ConnectionLost, *, complete: bool) -> None:
        if not complete:
            self.terminate(2)
            raise _NotStarted from error
        try:
            self.early = self.poll()
        except WSManFaultError as fault:
            if fault.code == NO_SUCH_SHELL and self._session_lives():
                raise _NotStarted from error
            # The session went away meanwhile, and the script may have run in it.
            raise error from fault

    def _settle_send(self, error: ConnectionLost, *, last: bool) -> None:
        if not last:
            self.terminate(2)
            raise _NotStarted from error
        self.early = self.poll()
        if not self.early:
            self.terminate(2)
            raise error

    def _session_lives(self) -> bool:
        try:
            self._pool.shell._get_shell()
        except WSManFaultError:
            return False
        return True


def _signal(command_id: str) -> ElementTree.Element:
    rsp = NAMESPACES["rsp"]
    signal = ElementTree.Element(f"{{{rsp}}}Signal", attrib={"CommandId": command_id})
    ElementTree.SubElement(signal, f"{{{rsp}}}Code").text = SignalCode.TERMINATE
    return signal


def _selector(pool: RunspacePool) -> SelectorSet:
    selectors = SelectorSet()
    selectors.add_option("ShellId", pool.id)
    return selectors


class PsrpTransport(Transport):
    """One machine over WinRM."""

    def __init__(self, endpoint: Endpoint, *, name: str) -> None:
        if endpoint.auth == "basic" and not _is_loopback(endpoint.address):
            raise UsageError(
                f"{name}: Basic sends the password as it is, so it is allowed to this host only,"
                f" not to {endpoint.address}",
                hint="Use `auth: negotiate`, which also works for local accounts.",
                node=name,
            )
        self._endpoint = endpoint
        self._name = name
        self._connection: Connection | None = None
        self._pool: _Pool | None = None
        self._finished: _Pipeline | None = None
        self.on_quiet = nobody_waits

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        """See `Transport.run`."""
        parameters = {name: _value(each) for name, each in arguments.items()}
        with self._named_failures():
            pipeline = self._finished = self._start(script, parameters, secrets)
            # It may run for half an hour, and the text is half a megabyte.
            del script
            try:
                yield from self._stream(pipeline)
            except GeneratorExit:
                self._finish()
                raise

    def probe(self) -> Probe:
        """See `Transport.probe`."""
        outside = visible_from_outside(self._endpoint, self._name)
        with self._named_failures():
            self._session()
        return read_probe(lambda: self.run(PROBE_SCRIPT, {}, {}), outside, self._name)

    def close(self) -> None:
        """See `Transport.close`."""
        self._drop_session()

    def interrupt(self) -> None:
        """See `Transport.interrupt`. The open connection belongs to the thread that waits on it, so this logs in once
        more. A stopped script runs its `finally` blocks, and one that hangs ends with its session.
        """
        pool, pipeline = self._pool, self._finished
        if pool is None:
            return
        short = replace(self._endpoint.timeouts, connect=_INTERRUPT_S, read=_INTERRUPT_S)
        try:
            connection = Connection(replace(self._endpoint, timeouts=short), self._name)
        except WinbootError:
            return  # the password's reference can no longer be read
        if pipeline is not None:
            connection.try_once(
                WSManAction.SIGNAL,
                pool.shell.resource_uri,
                _signal(pipeline.id),
                _selector(pool),
                _INTERRUPT_S,
            )
        self._delete(connection, pool)
        connection.wire.forget()

    @contextmanager
    def _named_failures(self) -> Iterator[None]:
        """Let every failure be a winboot error and carry the machine's name; a broken session is not used again."""
        try:
            yield
        except ScriptFailed:
            raise
        except ALL_ERRORS as error:
            self._drop_session()
            ours = translate(error, self._name, self._endpoint.user)
            if ours is error:
                raise
            raise ours from error

    def _start(self, script: str, parameters: dict[str, object], secrets: Mapping[str, Secret]) -> _Pipeline:
        for _ in range(_MOST_STARTS):
            pool = self._session()
            self._finish()
            try:
                if secrets:
                    self._exchange_keys(pool)
                    parameters["Secrets"] = {name: _secure(each) for name, each in secrets.items()}
                pipeline = _Pipeline(pool)
                pipeline.add_script(script, use_local_scope=True).add_parameters(parameters)
                pipeline.begin_invoke(remote_stream_options=_NO_PLACES)
            except _TooLarge:
                continue
            except _NotStarted:
                self._drop_session()
            else:
                return pipeline
        raise ConnectionLost(
            f"{self._name}: the connection broke {_MOST_STARTS} times while the script was sent",
            hint=_AGAIN,
            node=self._name,
        )

    def _exchange_keys(self, pool: _Pool) -> None:
        """Agree on a key for SecureStrings; needs two requests, once in a session."""
        try:
            pool.exchange_keys()
        except ConnectionLost as error:
            raise _NotStarted from error
        except WSManFaultError as fault:
            if fault.code == NO_SUCH_SHELL:
                raise _NotStarted from fault
            raise

    def _finish(self) -> None:
        """Let the machine forget the last pipeline: it keeps them until then, and takes a thousand."""
        last, self._finished = self._finished, None
        if last is not None:
            last.terminate(self._endpoint.timeouts.close)

    def _stream(self, pipeline: _Pipeline) -> Iterator[str]:
        said = pipeline.early
        while True:
            yield from self._lines(pipeline, said)
            if pipeline.state != PSInvocationState.RUNNING:
                break
            said = self._poll(pipeline)
            if not said:
                self.on_quiet()
        if pipeline.state == PSInvocationState.FAILED:
            raise self._script_failed(_last_error(pipeline, self._name))
        if pipeline.state != PSInvocationState.COMPLETED:
            raise ConnectionLost(f"{self._name}: the script did not complete", hint=_AGAIN, node=self._name)

    def _poll(self, pipeline: _Pipeline) -> list[tuple[int, Any]]:
        try:
            return pipeline.poll()
        except Unreachable as error:
            # Our question did not get there, but the script did.
            raise ConnectionLost(error.problem, hint=_AGAIN, node=self._name) from error

    def _lines(self, pipeline: _Pipeline, said: list[tuple[int, Any]]) -> Iterator[str]:
        for kind, value in said:
            if kind == MessageType.PIPELINE_OUTPUT:
                yield _text(value.data.data)
            elif kind in _STREAMS:
                stream, label = _STREAMS[kind]
                record = getattr(pipeline.streams, stream).pop(0)
                if label is not None:
                    yield f"{label}: {_record(stream, record)}"

    def _script_failed(self, record: Any) -> WinbootError:
        error_id = str(record.fq_error or "")
        message = str(record)
        if error_id.partition(",")[0] in _RESTRICTED:
            return RestrictedEndpoint(
                f"{self._name}: the session is restricted (JEA or Constrained Language): {message}",
                hint="winboot needs a full PowerShell session; use an account that gets one.",
                node=self._name,
            )
        info = record.invocation_info
        # A record that crossed another session has texts here.
        position = getattr(info, "adapted_properties", {}).get("PositionMessage")
        return ScriptFailed(
            f"{self._name}: {message}",
            node=self._name,
            error_id=error_id,
            position=str(position or ""),
            stack=str(record.script_stacktrace or ""),
        )

    def _session(self) -> _Pool:
        """The open session, or a new one. Opening is tried again while that can help, for `timeouts.open` seconds."""
        if self._pool is not None:
            return self._pool
        self._drop_session()
        timeouts = self._endpoint.timeouts
        connection = self._connection = Connection(self._endpoint, self._name)
        try:
            pool = self._pool = retried(
                lambda: self._open(connection), timeouts.open, Unreachable, ConnectionLost, Busy
            )
        except ConnectionLost as error:
            if connection.wire.answered:
                raise
            # It took the connection and then said nothing: for the caller that is a machine out of reach.
            raise Unreachable(
                error.problem,
                hint="Check that WinRM runs. In `connection`, port 5985 is plain HTTP, and 5986 is HTTPS.",
                node=self._name,
            ) from error
        connection.wire.patience = float(timeouts.resume)
        return pool

    def _open(self, connection: Connection) -> _Pool:
        pool = _Pool(connection, self._endpoint.timeouts.idle, self._name)
        try:
            pool.open()
        except ALL_ERRORS as error:
            # The machine may have made the session although we do not know of it; its id is ours.
            strange = isinstance(error, ProtocolError) and connection.wire.logged_in
            if (
                strange
                or pool.shell.opened
                or isinstance(error, ConnectionLost | SpnegoError | ElementTree.ParseError)
            ):
                self._delete(connection, pool)
            raise translate(error, self._name, self._endpoint.user) from error
        return pool

    def _delete(self, connection: Connection, pool: _Pool) -> None:
        """End a session on the machine. Best effort, in bounded time."""
        connection.try_once(
            WSManAction.DELETE, pool.shell.resource_uri, None, _selector(pool), self._endpoint.timeouts.close
        )

    def _drop_session(self) -> None:
        pool, self._pool = self._pool, None
        connection, self._connection = self._connection, None
        self._finished = None
        if connection is not None:
            if pool is not None and pool.state == RunspacePoolState.OPENED:
                self._delete(connection, pool)
            connection.wire.forget()


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _secure(secret: Secret) -> TaggedValue:
    return TaggedValue("SS", secret.reveal())


def _value(value: object) -> object:
    """An argument in the form that keeps its type on the machine. Raises TypeError for what has none."""
    match value:
        case None | bool() | str() | bytes():
            return value
        case int():
            return value if value in _INT32 else TaggedValue("I64", value)
        case float():
            return TaggedValue("Db", value)
        case Mapping():
            return {str(key): _value(each) for key, each in value.items()}
        case list() | tuple():
            return [_value(each) for each in value]
        case _:
            raise TypeError(f"an argument of type {type(value).__name__}")


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _last_error(pipeline: _Pipeline, name: str) -> ErrorRecord:
    """What ended a failed pipeline: the machine says it last."""
    last = pipeline.streams.error[-1] if pipeline.streams.error else None
    if not isinstance(last, ErrorRecord):
        raise ProtocolError(f"{name}: the script failed; the machine gave no reason", hint="", node=name)
    return last


def _record(stream: str, record: Any) -> str:
    if isinstance(record, str):
        return record  # pypsrp gives the text of a record that it cannot read
    if stream == "error":
        return f"{record} [{record.fq_error}]"
    if stream == "information":
        return str(record.message_data)
    return str(record.message)

"""The server's side of one runspace pool: what the client's messages ask for, and our messages cut into
fragments.

psrpcore reads the client's messages and keeps the session key. It does not write ours: it adds a Running
state, leaves out the byte order mark and joins messages, none of which Windows does.
"""

from __future__ import annotations

import base64
import logging
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final
from xml.etree import ElementTree

from psrpcore import PSRPPayload, ServerPipeline, ServerRunspacePool, StreamType
from psrpcore._events import (
    ConnectRunspacePoolEvent,
    CreatePipelineEvent,
    GetAvailableRunspacesEvent,
    InitRunspacePoolEvent,
    PSRPEvent,
    PublicKeyEvent,
    ResetRunspaceStateEvent,
    SessionCapabilityEvent,
    SetMaxRunspacesEvent,
    SetMinRunspacesEvent,
)
from psrpcore._exceptions import PSRPCoreError
from psrpcore._payload import PSRPMessage
from psrpcore.types import EncryptedSessionKey, PSSecureString

from winboot_lab.wsman import clixml
from winboot_lab.wsman.executor import SecureText

FRAGMENT: Final = 32_768
_HEADER: Final = 21
_NOBODY: Final = uuid.UUID(int=0)
_TO_CLIENT: Final = 1
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

# At DEBUG it logs every message whole: scripts, and secrets in the form that the wire has.
logging.getLogger("psrpcore").setLevel(logging.CRITICAL + 1)


class MessageType(IntEnum):
    """The messages that a server sends."""

    SESSION_CAPABILITY = 0x00010002
    ENCRYPTED_SESSION_KEY = 0x00010006
    RUNSPACEPOOL_STATE = 0x00021005
    RUNSPACE_AVAILABILITY = 0x00021004
    APPLICATION_PRIVATE_DATA = 0x00021009
    RUNSPACEPOOL_INIT_DATA = 0x0002100B
    PIPELINE_OUTPUT = 0x00041004
    ERROR_RECORD = 0x00041005
    PIPELINE_STATE = 0x00041006
    DEBUG_RECORD = 0x00041007
    VERBOSE_RECORD = 0x00041008
    WARNING_RECORD = 0x00041009
    PROGRESS_RECORD = 0x00041010
    INFORMATION_RECORD = 0x00041011


class BrokenMessage(Exception):
    """The client's fragments do not make a message that this server knows."""


@dataclass(frozen=True, slots=True)
class Say:
    """Send this message. An `apart` message comes in an answer of its own: Windows splits the opening so."""

    kind: MessageType
    xml: str
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Run this script. `problem` says why it cannot be run here, if so; `places` are the streams whose records say where
    they were written, as psrpcore's RemoteStreamOptions.
    """

    script: str
    parameters: Mapping[str, object]
    problem: str | None = None
    places: int = 0


class Pool:
    """One runspace pool."""

    def __init__(self, ps_version: str) -> None:
        self._inbound = _Inbound()
        self._ps_version = ps_version
        self._messages = 0

    @property
    def id(self) -> uuid.UUID:
        """The pool's id, chosen by the client."""
        value: uuid.UUID = self._inbound.runspace_pool_id
        return value

    def expect(self, command_id: uuid.UUID) -> None:
        """The fragments that follow may be of this pipeline."""
        ServerPipeline(self._inbound, command_id)

    def forget(self, command_id: uuid.UUID) -> None:
        """The pipeline is over."""
        self._inbound.pipeline_table.pop(command_id, None)

    def receive(self, data: bytes, command_id: uuid.UUID | None = None) -> list[Say | Run]:
        """Read fragments; gives what there is to do. Raises BrokenMessage."""
        try:
            self._inbound.receive_data(PSRPPayload(data, StreamType.default, command_id))
            done: list[Say | Run] = []
            while (event := self._inbound.next_event()) is not None:
                done += self._react(event)
        except (PSRPCoreError, ElementTree.ParseError, struct.error, ValueError) as error:
            raise BrokenMessage(str(error)) from error
        return done

    def fragments(self, say: Say, command_id: uuid.UUID | None = None) -> Iterator[bytes]:
        """Cut a message into fragments; messages are counted over the whole pool, as Windows does."""
        self._messages += 1
        pool = _NOBODY if say.kind is MessageType.SESSION_CAPABILITY else self.id
        head = struct.pack("<II", _TO_CLIENT, say.kind)
        message = (
            head + pool.bytes_le + (command_id or _NOBODY).bytes_le + _BYTE_ORDER_MARK + say.xml.encode()
        )
        size = FRAGMENT - _HEADER
        for number, start in enumerate(range(0, len(message), size)):
            part = message[start : start + size]
            edges = (1 if start == 0 else 0) | (2 if start + size >= len(message) else 0)
            yield struct.pack(">QQBI", self._messages, number, edges, len(part)) + part

    def _react(self, event: PSRPEvent[Any, Any]) -> list[Say | Run]:
        answers = self._inbound.take()
        match event:
            case SessionCapabilityEvent():
                return [Say(MessageType.SESSION_CAPABILITY, clixml.session_capability())]
            case InitRunspacePoolEvent():
                data = clixml.application_private_data(self._ps_version)
                return [
                    Say(MessageType.APPLICATION_PRIVATE_DATA, data),
                    Say(MessageType.RUNSPACEPOOL_STATE, clixml.runspacepool_state(2), apart=True),
                ]
            case ConnectRunspacePoolEvent():
                pool = self._inbound
                data = clixml.runspacepool_init_data(pool.min_runspaces, pool.max_runspaces)
                return [Say(MessageType.RUNSPACEPOOL_INIT_DATA, data)]
            case PublicKeyEvent():
                keys = [each for each in answers if isinstance(each, EncryptedSessionKey)]
                return [
                    Say(
                        MessageType.ENCRYPTED_SESSION_KEY,
                        clixml.encrypted_session_key(each.EncryptedSessionKey),
                    )
                    for each in keys
                ]
            case SetMaxRunspacesEvent() | SetMinRunspacesEvent() | ResetRunspaceStateEvent():
                return [self._available(event.ci, True)]
            case GetAvailableRunspacesEvent():
                return [self._available(event.ci, int(self._inbound.max_runspaces))]
            case CreatePipelineEvent():
                return [_pipeline(event)]
        return []

    def _available(self, call_id: int, answer: bool | int) -> Say:
        self._inbound.runspace_availability_response(call_id, answer)
        self._inbound.take()
        return Say(MessageType.RUNSPACE_AVAILABILITY, clixml.runspace_availability(call_id, answer))


class _Inbound(ServerRunspacePool):
    """psrpcore's pool with two changes: its answers are kept aside, and `CI` may be written in any case."""

    def __init__(self) -> None:
        self._aside: list[Any] = []
        super().__init__()

    def take(self) -> list[Any]:
        """The answers that psrpcore would have sent since the last call."""
        aside, self._aside = self._aside, []
        return aside

    def prepare_message(self, message: Any, *_: object, **__: object) -> None:
        self._aside.append(message)

    def _process_message(self, message: PSRPMessage) -> PSRPEvent[Any, Any]:
        # PowerShell compares property names without case. psrpcore does not, and clients write CI.
        data = bytearray(message.data.replace(b' N="CI"', b' N="ci"'))
        return super()._process_message(
            PSRPMessage(
                message.message_type, data, message.runspace_pool_id, message.pipeline_id, message.object_id
            )
        )


def _pipeline(event: CreatePipelineEvent) -> Run:
    commands: Sequence[Any] = event.pipeline.commands
    if len(commands) != 1 or not commands[0].is_script:
        names = ", ".join(str(each.command_text) for each in commands)
        return Run("", {}, f"this lab runs one script a pipeline, not the commands {names}")
    script = str(commands[0].command_text)
    parameters: dict[str, object] = {}
    for name, value in commands[0].parameters:
        if name is None:
            return Run(script, {}, "this lab takes named parameters only")
        parameters[str(name).removeprefix("-").removesuffix(":")] = plain(value)
    return Run(script, parameters, places=int(event.pipeline.remote_stream_options))


def plain(value: object) -> object:
    """A value of psrpcore as a plain Python value; SecureStrings come decrypted as SecureText."""
    match value:
        case None | bool():
            return value
        case PSSecureString():
            return SecureText(str.__str__(value.decrypt()))
        case int():
            return int(value)
        case float():
            return float(value)
        case str():
            return str.__str__(value)
        case bytes():
            return bytes(value)
        case Mapping():
            return {plain(key): plain(each) for key, each in value.items()}
        case Sequence():
            return [plain(each) for each in value]
        case _:
            raise BrokenMessage(f"a parameter of type {type(value).__name__}")


def decode(text: str) -> bytes:
    """The fragments inside an element of an envelope. Raises BrokenMessage."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise BrokenMessage("not base64") from error
    if not data:
        raise BrokenMessage("no fragments")
    return data

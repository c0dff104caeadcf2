"""System.Net.Security.SslStream: TLS over a connection, as a client. Below it is TLS of this host, on a real socket."""

from __future__ import annotations

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import InvalidOperationException, SystemException, declare_exception
from winboot_lab.engine.types.crypto import Certificate
from winboot_lab.engine.types.delegates import Delegate
from winboot_lab.engine.types.sockets import NetworkStream
from winboot_lab.engine.types.streams import STREAM, Stream

AuthenticationException = declare_exception(
    "System.Security.Authentication.AuthenticationException", SystemException
)


class SslStream(Stream):
    """Asks its callback about the certificate, whatever it is."""

    can_seek = False

    def __init__(
        self, inner: NetworkStream, leave_open: bool = False, callback: Delegate | None = None
    ) -> None:
        super().__init__()
        self.client = inner.client
        self.leave_open = leave_open
        self.callback = callback
        self.certificate: Certificate | None = None

    def read(self, runtime: Runtime, count: int) -> bytes:
        """Some of what came; nothing at the end."""
        _need(self)
        record = self.client.record
        waits = self.client.timeouts["ReceiveTimeout"]
        return bytes(
            ask_one(runtime, "socket.receive", handle=record["handle"], count=count, milliseconds=waits)
        )

    def write(self, runtime: Runtime, data: bytes) -> None:
        """Send it."""
        _need(self)
        ask(runtime, "socket.send", handle=self.client.record["handle"], data=data)


SSL = dotnet("System.Net.Security.SslStream", SslStream, base=STREAM)
SSL.constructor(
    "System.IO.Stream innerStream, bool leaveInnerStreamOpen, "
    "System.Net.Security.RemoteCertificateValidationCallback userCertificateValidationCallback"
)(SslStream)


def _need(self: SslStream) -> None:
    if self.certificate is None:
        raise InvalidOperationException(
            "This operation is only allowed using a successfully authenticated context."
        )

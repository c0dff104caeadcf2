"""System.Net.Security.SslStream: TLS over a connection, as a client. Below it is TLS of this host, on a real socket."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import InvalidOperationException, SystemException, declare_exception
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.crypto import Certificate
from winboot_lab.engine.types.delegates import Delegate
from winboot_lab.engine.types.sockets import NetworkStream
from winboot_lab.engine.types.streams import STREAM, Stream
from winboot_lab.engine.values import EnumValue

AuthenticationException = declare_exception(
    "System.Security.Authentication.AuthenticationException", SystemException
)


class SslStream(Stream):
    """Asks its callback about the certificate, whatever it is."""

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
SSL.constructor("System.IO.Stream innerStream, bool leaveInnerStreamOpen")(SslStream)
SSL.constructor(
    "System.IO.Stream innerStream, bool leaveInnerStreamOpen, "
    "System.Net.Security.RemoteCertificateValidationCallback userCertificateValidationCallback"
)(SslStream)


@SSL.method(
    "void AuthenticateAsClient(string targetHost, object clientCertificates, "
    "System.Security.Authentication.SslProtocols enabledSslProtocols, bool checkCertificateRevocation)",
    effect=True,
)
def _authenticate(
    runtime: Runtime, self: SslStream, host: str, certificates: Any, protocols: EnumValue, revocation: bool
) -> None:
    if certificates is not None or str(protocols) != "Tls12":
        raise Refusal(
            "value", str(protocols), "TLS with client certificates, or with another version than 1.2"
        )
    raw = ask_one(runtime, "socket.secure", handle=self.client.record["handle"], host=host)
    certificate = Certificate(bytes(raw))
    # Errors of the chain come as a value that no script here reads.
    if self.callback is None:
        raise Refusal("member", SSL.name, "a certificate that Windows is to judge")
    if not self.callback.call(runtime, [self, certificate, None, None]):
        raise AuthenticationException(
            "The remote certificate is invalid according to the validation procedure."
        )
    self.certificate = certificate


def _need(self: SslStream) -> None:
    if self.certificate is None:
        raise InvalidOperationException(
            "This operation is only allowed using a successfully authenticated context."
        )


SSL.prop("RemoteCertificate", "object", lambda self: self.certificate)

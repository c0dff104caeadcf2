"""System.Net.Sockets.TcpClient: connecting, and which local address that goes out from.

A client has one family, as in .NET Framework; the default is IPv4 alone (microsoft/referencesource,
System/net/System/Net/Sockets/TCPClient.cs: "public TcpClient() : this(AddressFamily.InterNetwork)"). For a host without
an address of its family the task fails with ArgumentException ("net_invalidAddressList").
"""

from __future__ import annotations

import ipaddress
from typing import Any

from winboot_lab.engine.door import ask, failure_of
from winboot_lab.engine.dotnet import OBJECT, Runtime, dotnet
from winboot_lab.engine.exceptions import (
    AggregateException,
    ArgumentException,
    DotNetException,
    InvalidOperationException,
    ObjectDisposedException,
)
from winboot_lab.engine.types.net import EndPoint
from winboot_lab.engine.types.streams import STREAM, Stream
from winboot_lab.engine.values import EnumValue, Instance, IPAddress

Value = Any
_VERSIONS = {"InterNetwork": 4, "InterNetworkV6": 6}


class TcpClient(Instance):
    """A client that is not connected yet, or is."""

    def __init__(self, version: int = 4) -> None:
        self.version = version
        self.record: Any = None
        self.disposed = False
        # Milliseconds; 0 waits without end.
        self.timeouts = {"ReceiveTimeout": 0, "SendTimeout": 0}


class Socket(Instance):
    """The socket below a client."""

    def __init__(self, client: TcpClient) -> None:
        self.client = client


class Connecting(Instance):
    """The task of ConnectAsync: it connects while the script waits for it, in one wait or in several."""

    def __init__(self, client: TcpClient, host: str, port: int) -> None:
        self.client = client
        self.host = host
        self.port = port
        self.spent = 0


CLIENT = dotnet("System.Net.Sockets.TcpClient", TcpClient, base=OBJECT)
SOCKET = dotnet("System.Net.Sockets.Socket", Socket, base=OBJECT)
TASK = dotnet("System.Threading.Tasks.Task+Connect", Connecting, base=OBJECT)

CLIENT.constructor("")(TcpClient)


@CLIENT.constructor("System.Net.Sockets.AddressFamily family")
def _of_family(family: EnumValue) -> TcpClient:
    if str(family) not in _VERSIONS:
        raise ArgumentException("'TcpClient' only accepts 'InterNetwork' or 'InterNetworkV6'.", "family")
    return TcpClient(_VERSIONS[str(family)])


def _check_family(runtime: Runtime, client: TcpClient, host: str) -> None:
    found = runtime.machine.invoke("dns.resolve", {"name": host})
    if not found.errors and not any(
        ipaddress.ip_address(one).version == client.version for one in found.objects
    ):
        raise ArgumentException(
            "None of the discovered or specified addresses match the socket address family.", "context"
        )


def _connect(
    runtime: Runtime, client: TcpClient, host: str, port: int, milliseconds: int, spent: int = 0
) -> bool:
    """Connect; false when it took longer than `milliseconds`, after `spent` of before. Raises what the socket says."""
    if client.disposed:
        raise ObjectDisposedException("System.Net.Sockets.TcpClient", "Cannot access a disposed object.")
    _check_family(runtime, client, host)
    result = runtime.machine.invoke(
        "socket.connect", {"host": host, "port": port, "milliseconds": milliseconds, "spent": spent}
    )
    if result.errors:
        if result.errors[0].exception.endswith("TimeoutException"):
            return False
        raise failure_of(result.errors[0])
    client.record = result.objects[0]
    return True


CLIENT.method("ConnectAsync(string host, int port)")(Connecting)
CLIENT.prop("Client", "object", Socket)


@CLIENT.method("void Dispose()", "void Close()", effect=True)
def _close(runtime: Runtime, self: TcpClient) -> None:
    if self.record is not None and not self.disposed:
        ask(runtime, "socket.close", handle=self.record["handle"])
    self.disposed = True


class NetworkStream(Stream):
    """The bytes of a connection as they are on the wire."""

    def __init__(self, client: TcpClient) -> None:
        super().__init__()
        self.client = client


def _timeout(name: str) -> None:
    def put(self: TcpClient, value: int) -> None:
        self.timeouts[name] = value

    CLIENT.prop(name, "int", lambda self: self.timeouts[name], put)


for _name in ("ReceiveTimeout", "SendTimeout"):
    _timeout(_name)
NETWORK = dotnet("System.Net.Sockets.NetworkStream", NetworkStream, base=STREAM)


@CLIENT.method("GetStream()")
def _stream(self: TcpClient) -> NetworkStream:
    if self.record is None:
        raise InvalidOperationException("The operation is not allowed on non-connected sockets.")
    return NetworkStream(self)


@TASK.method("Wait(int millisecondsTimeout)", effect=True)
def _wait(runtime: Runtime, self: Connecting, milliseconds: int) -> bool:
    if self.client.record is not None:
        return True
    try:
        connected = _connect(runtime, self.client, self.host, self.port, milliseconds, self.spent)
    except DotNetException as failure:
        raise AggregateException("One or more errors occurred.", failure) from failure
    self.spent += milliseconds
    return connected


def _end_point(side: str) -> Any:
    def get(self: Socket) -> Value:
        if self.client.record is None:
            return None
        text = str(self.client.record[side])
        host, _, port = text.rpartition(":") if text.count(":") == 1 else (text, "", "0")
        return EndPoint(IPAddress(ipaddress.ip_address(host)), int(port))

    return get


SOCKET.prop("LocalEndPoint", "object", _end_point("local_address"))
SOCKET.prop("RemoteEndPoint", "object", _end_point("remote_address"))

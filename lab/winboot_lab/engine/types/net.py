"""System.Uri, UriBuilder, System.Net.IPAddress and endpoints, WebUtility: addresses as values."""

from __future__ import annotations

import ipaddress

from winboot_lab.engine import parsing
from winboot_lab.engine.dotnet import dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
)
from winboot_lab.engine.values import (
    IP_ADDRESS,
    ByteArray,
    EnumValue,
    Instance,
    Int64,
    IPAddress,
    Value,
    enum_value,
)

# -- IPAddress


def _v4(self: IPAddress) -> ipaddress.IPv4Address | None:
    return self.address if isinstance(self.address, ipaddress.IPv4Address) else None


def _family(self: IPAddress) -> EnumValue:
    return enum_value("System.Net.Sockets.AddressFamily", "InterNetwork" if _v4(self) else "InterNetworkV6")


def _number(self: IPAddress) -> Value:
    if _v4(self) is None:
        return None
    return Int64(int.from_bytes(self.address.packed, "little"))


IP_ADDRESS.prop("AddressFamily", "System.Net.Sockets.AddressFamily", _family)
IP_ADDRESS.prop("Address", "long", _number)
IP_ADDRESS.method("ToString()")(str)
IP_ADDRESS.method("GetAddressBytes()")(lambda self: ByteArray(self.address.packed))
IP_ADDRESS.method("Equals(object comparand)")(
    lambda self, other: isinstance(other, IPAddress) and self == other
)


IP_ADDRESS.constructor("byte[] address")(lambda data: _from_bytes(bytes(data)))


@IP_ADDRESS.constructor("long newAddress")
def _from_number(number: int) -> IPAddress:
    if not 0 <= number <= 0xFFFFFFFF:
        raise ArgumentOutOfRangeException("newAddress")
    return IPAddress(ipaddress.IPv4Address(int(number).to_bytes(4, "little")))


def _from_bytes(data: bytes) -> IPAddress:
    if len(data) not in (4, 16):
        raise ArgumentException("An invalid IP address was specified.", "address")
    return IPAddress(ipaddress.ip_address(data))


def _parse(text: str) -> IPAddress:
    if text is None:
        raise ArgumentNullException("ipString")
    return parsing.parse_ip(text)


IP_ADDRESS.static_method("Parse(string ipString)")(_parse)


class EndPoint(Instance):
    """System.Net.IPEndPoint."""

    def __init__(self, address: IPAddress, port: int) -> None:
        self.address = address
        self.port = port

    def __str__(self) -> str:
        host = f"[{self.address}]" if _v4(self.address) is None else str(self.address)
        return f"{host}:{self.port}"


END_POINT = dotnet("System.Net.IPEndPoint", EndPoint, accelerators=["ipendpoint"])
END_POINT.prop(
    "Address", "ipaddress", lambda self: self.address, lambda self, value: setattr(self, "address", value)
)
END_POINT.prop("Port", "int", lambda self: self.port, lambda self, value: setattr(self, "port", value))
END_POINT.prop("AddressFamily", "System.Net.Sockets.AddressFamily", lambda self: _family(self.address))
END_POINT.method("ToString()")(str)

WEB_UTILITY = dotnet("System.Net.WebUtility", kind="static")

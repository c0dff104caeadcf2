"""System.Uri, UriBuilder, System.Net.IPAddress and endpoints, WebUtility: addresses as values."""

from __future__ import annotations

import html
import ipaddress
import re
from urllib.parse import quote, unquote

from winboot_lab.engine import parsing
from winboot_lab.engine.dotnet import Reference, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
    DotNetException,
    FormatException,
)
from winboot_lab.engine.uri import DEFAULT_PORTS, Uri, UriFormatException
from winboot_lab.engine.values import (
    IP_ADDRESS,
    STRING,
    URI,
    Array,
    ByteArray,
    EnumValue,
    Instance,
    Int16,
    Int64,
    IPAddress,
    Value,
    enum_value,
)

# -- Uri


def _of_absolute(name: str) -> Value:
    """A property that a relative address does not have; PowerShell shows $null then."""

    def read(self: Uri) -> Value:
        return getattr(self, name) if self.absolute else None

    return read


def _host(self: Uri) -> Value:
    return self.host if self.absolute else None


for _name, _attribute, _type in (
    ("Scheme", "scheme", "string"),
    ("Host", "host", "string"),
    ("DnsSafeHost", "host", "string"),
    ("IdnHost", "host", "string"),
    ("Port", "port", "int"),
    ("AbsolutePath", "absolute_path", "string"),
    ("AbsoluteUri", "absolute_uri", "string"),
    ("LocalPath", "local_path", "string"),
    ("Query", "query", "string"),
    ("Fragment", "fragment", "string"),
    ("UserInfo", "user_info", "string"),
    ("Authority", "authority", "string"),
    ("IsDefaultPort", "is_default_port", "bool"),
):
    URI.prop(_name, _type, _of_absolute(_attribute))
URI.prop("PathAndQuery", "string", lambda self: self.absolute_path + self.query if self.absolute else None)
URI.prop("Segments", "string[]", lambda self: Array(self.segments, STRING) if self.absolute else None)
URI.prop("OriginalString", "string", lambda self: self.original)
URI.prop("IsAbsoluteUri", "bool", lambda self: self.absolute)
URI.prop("IsFile", "bool", lambda self: self.scheme == "file" if self.absolute else None)
URI.prop("IsUnc", "bool", lambda self: self.scheme == "file" and bool(self.host) if self.absolute else None)
URI.prop(
    "IsLoopback",
    "bool",
    lambda self: self.host in ("localhost", "127.0.0.1", "[::1]") if self.absolute else None,
)
URI.prop("UserEscaped", "bool", lambda self: False)


def _host_kind(self: Uri) -> Value:
    if not self.absolute:
        return None
    if not self.host:
        kind = "Basic"
    else:
        try:
            address = ipaddress.ip_address(self.host.strip("[]"))
            kind = "IPv4" if address.version == 4 else "IPv6"
        except ValueError:
            kind = (
                "Dns"
                if re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?", self.host)
                else "Unknown"
            )
    return enum_value("System.UriHostNameType", kind)


URI.prop("HostNameType", "System.UriHostNameType", _host_kind)


def _new(text: str, kind: EnumValue | None = None) -> Uri:
    if text is None:
        raise ArgumentNullException("uriString")
    wanted = 1 if kind is None else kind.number
    made = Uri.parse(text, absolute=wanted == 1)
    if wanted == 2 and made.absolute:
        raise UriFormatException(
            "A relative URI cannot be created because the 'uriString' parameter represents an absolute URI."
        )
    return made


URI.constructor("string uriString")(_new)
URI.constructor("string uriString, System.UriKind uriKind")(_new)
URI.constructor("uri baseUri, string relativeUri")(lambda base, relative: base.joined(relative))
URI.constructor("uri baseUri, uri relativeUri")(lambda base, relative: base.joined(relative.original))
URI.method("ToString()")(str)
URI.static_method("EscapeDataString(string stringToEscape)")(lambda text: quote(text, safe="-_.~"))
URI.static_method("UnescapeDataString(string stringToUnescape)")(unquote)
URI.static_method("EscapeUriString(string stringToEscape)")(
    lambda text: quote(text, safe="-_.~!*'();:@&=+$,/?#[]%")
)


@URI.static_method("IsWellFormedUriString(string uriString, System.UriKind uriKind)")
def _well_formed(text: str, kind: EnumValue) -> bool:
    try:
        made = _new(text, kind)
    except UriFormatException:
        return False
    escaped = quote(text, safe="-_.~!*'();:@&=+$,/?#[]%")
    return escaped == text and (made.absolute or kind.number != 1)


@URI.static_method("TryCreate(string uriString, System.UriKind uriKind, out uri result)")
def _try_create(text: str, kind: EnumValue, out: Reference) -> bool:
    try:
        out.value = _new(text, kind)
    except DotNetException:
        out.value = None
        return False
    return True


URI.static_method("TryCreate(uri baseUri, string relativeUri, out uri result)")(
    lambda base, relative, out: _set(out, base.joined(relative))
)


def _set(out: Reference, value: Value) -> bool:
    out.value = value
    return True


URI.method("IsBaseOf(uri uri)")(
    lambda self, other: other.absolute_uri.startswith(self.absolute_uri.rpartition("/")[0] + "/")
)


@URI.method("GetLeftPart(System.UriPartial part)")
def _left_part(self: Uri, part: EnumValue) -> str:
    start = f"{self.scheme}://"
    authority = start + self.authority
    return [start, authority, authority + self.absolute_path, authority + self.absolute_path + self.query][
        part.number
    ]


for _name in DEFAULT_PORTS:
    URI.static_field(f"UriScheme{_name.capitalize()}", "string", _name)
URI.static_field("SchemeDelimiter", "string", "://")
URI.static_method("CheckHostName(string name)")(lambda name: _host_kind(Uri("", True, host=name)))
URI.static_method("CheckSchemeName(string schemeName)")(lambda name: bool(name) and name[0].isalpha())
URI.refuses(
    "GetComponents GetHashCode MakeRelativeUri MakeRelative IsWellFormedOriginalString Compare HexEscape HexUnescape FromHex "
    "IsHexDigit IsHexEncoding GetObjectData"
)


class UriBuilder(Instance):
    """System.UriBuilder."""

    def __init__(
        self, scheme: str = "http", host: str = "localhost", port: int = -1, path: str = "/"
    ) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path if path.startswith("/") else "/" + path
        self.query = ""
        self.fragment = ""
        self.user = ""
        self.password = ""

    def __str__(self) -> str:
        user = self.user + (f":{self.password}" if self.password else "")
        place = (f"{user}@" if user else "") + self.host + (f":{self.port}" if self.port >= 0 else "")
        return f"{self.scheme}://{place}{self.path}{self.query}{self.fragment}"


BUILDER = dotnet("System.UriBuilder", UriBuilder)
BUILDER.constructor("")(UriBuilder)


@BUILDER.constructor("string uri")
def _builder_of(text: str) -> UriBuilder:
    made = Uri.parse(text)
    return _builder(made if made.absolute else Uri.parse("http://" + text, absolute=True))


@BUILDER.constructor("uri uri")
def _builder(uri: Uri) -> UriBuilder:
    made = UriBuilder(uri.scheme, uri.host, uri.port, uri.absolute_path)
    made.query, made.fragment = uri.query, uri.fragment
    made.user, _, made.password = uri.user_info.partition(":")
    return made


BUILDER.constructor("string schemeName, string hostName")(UriBuilder)
BUILDER.constructor("string scheme, string host, int portNumber")(UriBuilder)
BUILDER.constructor("string scheme, string host, int port, string pathValue")(UriBuilder)


def _prefixed(mark: str, value: str) -> str:
    return mark + value if value else ""


def _set_port(self: UriBuilder, port: int) -> None:
    if not -1 <= port <= 65535:
        raise ArgumentOutOfRangeException("value")
    self.port = port


for _name, _attribute, _mark in (
    ("Scheme", "scheme", ""),
    ("Host", "host", ""),
    ("UserName", "user", ""),
    ("Password", "password", ""),
    ("Query", "query", "?"),
    ("Fragment", "fragment", "#"),
):
    BUILDER.prop(
        _name,
        "string",
        lambda self, _attribute=_attribute: getattr(self, _attribute),
        lambda self, value, _attribute=_attribute, _mark=_mark: setattr(
            self, _attribute, _prefixed(_mark, value) if _mark else value or ""
        ),
    )
BUILDER.prop("Port", "int", lambda self: self.port, _set_port)
BUILDER.prop(
    "Path",
    "string",
    lambda self: self.path,
    lambda self, value: setattr(
        self, "path", value if (value or "").startswith("/") else "/" + (value or "")
    ),
)
BUILDER.prop("Uri", "uri", lambda self: Uri.parse(str(self), absolute=True))
BUILDER.method("ToString()")(str)
BUILDER.complete()

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
IP_ADDRESS.prop("IPAddressToString", "string", str)
IP_ADDRESS.prop("Address", "long", _number)
IP_ADDRESS.prop("ScopeId", "long", lambda self: Int64(self.scope) if _v4(self) is None else None)
for _name, _test in (
    ("IsIPv4MappedToIPv6", lambda address: address.ipv4_mapped is not None),
    ("IsIPv6LinkLocal", lambda address: address.is_link_local),
    ("IsIPv6Multicast", lambda address: address.is_multicast),
    ("IsIPv6SiteLocal", lambda address: address.is_site_local),
    ("IsIPv6Teredo", lambda address: address.teredo is not None),
):
    IP_ADDRESS.prop(
        _name,
        "bool",
        lambda self, _test=_test: (
            isinstance(self.address, ipaddress.IPv6Address) and bool(_test(self.address))
        ),
    )
IP_ADDRESS.method("ToString()")(str)
IP_ADDRESS.method("GetAddressBytes()")(lambda self: ByteArray(self.address.packed))
IP_ADDRESS.method("Equals(object comparand)")(
    lambda self, other: isinstance(other, IPAddress) and self == other
)


@IP_ADDRESS.method("MapToIPv4()")
def _to_v4(self: IPAddress) -> IPAddress:
    return IPAddress(ipaddress.IPv4Address(self.address.packed[-4:]))


@IP_ADDRESS.method("MapToIPv6()")
def _to_v6(self: IPAddress) -> IPAddress:
    if _v4(self) is None:
        return self
    return IPAddress(ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + self.address.packed))


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


@IP_ADDRESS.static_method("TryParse(string ipString, out ipaddress address)")
def _try_parse(text: str, out: Reference) -> bool:
    try:
        out.value = parsing.parse_ip(text or "")
    except FormatException:
        out.value = None
        return False
    return True


IP_ADDRESS.static_method("IsLoopback(ipaddress address)")(lambda address: address.address.is_loopback)
for _name, _text in (
    ("Any", "0.0.0.0"),
    ("Loopback", "127.0.0.1"),
    ("Broadcast", "255.255.255.255"),
    ("None", "255.255.255.255"),
    ("IPv6Any", "::"),
    ("IPv6Loopback", "::1"),
    ("IPv6None", "::"),
):
    IP_ADDRESS.static_field(_name, "ipaddress", IPAddress(ipaddress.ip_address(_text)))


def _swap(value: int, size: int, make: type) -> Value:
    return make(int.from_bytes(int(value).to_bytes(size, "little", signed=True), "big", signed=True))


for _name in ("HostToNetworkOrder", "NetworkToHostOrder"):
    IP_ADDRESS.static_method(f"{_name}(int host)")(lambda value: _swap(value, 4, int))
    IP_ADDRESS.static_method(f"{_name}(long host)")(lambda value: _swap(value, 8, Int64))
    IP_ADDRESS.static_method(f"{_name}(int16 host)")(lambda value: _swap(value, 2, Int16))
IP_ADDRESS.refuses("GetHashCode")


class EndPoint(Instance):
    """System.Net.IPEndPoint."""

    def __init__(self, address: IPAddress, port: int) -> None:
        self.address = address
        self.port = port

    def __str__(self) -> str:
        host = f"[{self.address}]" if _v4(self.address) is None else str(self.address)
        return f"{host}:{self.port}"


END_POINT = dotnet("System.Net.IPEndPoint", EndPoint, accelerators=["ipendpoint"])
END_POINT.constructor("ipaddress address, int port")(EndPoint)
END_POINT.prop(
    "Address", "ipaddress", lambda self: self.address, lambda self, value: setattr(self, "address", value)
)
END_POINT.prop("Port", "int", lambda self: self.port, lambda self, value: setattr(self, "port", value))
END_POINT.prop("AddressFamily", "System.Net.Sockets.AddressFamily", lambda self: _family(self.address))
END_POINT.method("ToString()")(str)
END_POINT.static_field("MaxPort", "int", 65535)
END_POINT.static_field("MinPort", "int", 0)
END_POINT.refuses("Create Serialize GetHashCode")

WEB_UTILITY = dotnet("System.Net.WebUtility", kind="static")
WEB_UTILITY.static_method("UrlEncode(string value)")(
    lambda text: quote(text, safe="-_.!*()").replace("%20", "+").replace("~", "%7E")
)
WEB_UTILITY.static_method("UrlDecode(string encodedValue)")(lambda text: unquote(text.replace("+", " ")))
WEB_UTILITY.static_method("HtmlEncode(string value)")(
    lambda text: html.escape(text, quote=False).replace('"', "&quot;").replace("'", "&#39;")
)
WEB_UTILITY.static_method("HtmlDecode(string value)")(html.unescape)
WEB_UTILITY.refuses("UrlEncodeToBytes UrlDecodeToBytes")


class MailAddress(Instance):
    """System.Net.Mail.MailAddress."""

    def __init__(self, address: str) -> None:
        user, at, host = address.strip().rpartition("@")
        if not at or not user or not host or " " in host:
            raise FormatException("The specified string is not in the form required for an e-mail address.")
        self.user = user
        self.host = host

    def __str__(self) -> str:
        return f"{self.user}@{self.host}"


MAIL = dotnet("System.Net.Mail.MailAddress", MailAddress, accelerators=["mailaddress"])
MAIL.constructor("string address")(MailAddress)
MAIL.prop("User", "string", lambda self: self.user)
MAIL.prop("Host", "string", lambda self: self.host)
MAIL.prop("Address", "string", str)
MAIL.prop("DisplayName", "string", lambda self: "")
MAIL.method("ToString()")(str)
MAIL.refuses("GetHashCode")

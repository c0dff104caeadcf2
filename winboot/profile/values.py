"""The kinds of values a profile holds, each with a complaint that says how it should look."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from winboot.compat.version import Version
from winboot.source import Wrong, nearest

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MAC_PREFIX: Final = re.compile(r"[0-9A-Fa-f]{2}-[0-9A-Fa-f]{2}")
_TAINT: Final = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^:]*))?:(?P<effect>[A-Za-z]+)")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _text(value: Any, expected: str) -> str:
    if isinstance(value, str):
        return str(value)
    kind = (
        "a map" if isinstance(value, dict) else "a list" if isinstance(value, list | tuple) else repr(value)
    )
    raise Wrong(f"{kind} stands here", expected=expected)


def _version(value: Any) -> Version:
    if isinstance(value, Version):
        return value
    text = _text(value, "a version such as 1.34.2")
    try:
        return Version.parse(text)
    except ValueError:
        raise Wrong(repr(text), expected="a version such as 1.34.2") from None


def _patch_version(value: Any) -> Version:
    version = _version(value)
    if version.patch is None:
        raise Wrong(f"{version} names no patch", expected=f"three numbers, such as {version}.0")
    return version


def _cidr(value: Any) -> Network:
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        return value
    text = _text(value, "a network such as 10.244.0.0/16")
    if "/" not in text:
        raise Wrong(f"{text!r} has no prefix length", expected="a network such as 10.244.0.0/16")
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        pass
    try:
        meant = ipaddress.ip_interface(text).network
    except ValueError:
        raise Wrong(repr(text), expected="a network such as 10.244.0.0/16") from None
    raise Wrong(
        f"{text!r} has bits behind its prefix",
        expected="the first address of the network",
        did_you_mean=str(meant),
    )


def _address(value: Any) -> Address:
    if isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
        return value
    text = _text(value, "an IP address")
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise Wrong(repr(text), expected="an IP address") from None


def _name_or_address(value: Any) -> str:
    """As a certificate names a machine: a DNS name in lower case, or an IP address."""
    expected = "a DNS name or an IP address"
    text = _text(value, expected).lower()
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    if not NAME.fullmatch(text) or len(text) > 253 or text.rpartition(".")[2].isdecimal():
        raise Wrong(repr(text), expected=expected)
    return text


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


def _server(value: Any) -> str:
    text = _text(value, "the address of the API server, https://host:port")
    url = urlsplit(text)
    if url.username or url.password:
        raise Wrong("the address holds a user or a password", expected="https://host:port alone")
    if url.scheme != "https" or not url.hostname:
        raise Wrong(repr(text), expected="https://host:port")
    if url.path.strip("/") or url.query or url.fragment:
        raise Wrong(f"{text!r} has more than a host and a port", expected=f"https://{url.netloc}")
    _check_port(text)
    return text.rstrip("/")


def _http_url(value: Any) -> str:
    text = _text(value, "an http or https address")
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise Wrong(repr(text), expected="an address that starts with http:// or https://")
    if url.username or url.password:
        # Not shown: it would stand in service environments, readable by every user of the machine.
        raise Wrong("the address holds a user or a password", expected="an address without them")
    _check_port(text)
    return text


def _check_port(text: str) -> None:
    try:
        _ = urlsplit(text).port
    except ValueError:
        raise Wrong(f"{text!r} has no such port", expected="a port from 1 to 65535") from None


def node_name(value: Any) -> str:
    """A valid Node name: lower-case RFC 1123, at most 63 characters; raises Wrong."""
    text = _text(value, "a node name")
    if text != text.lower():
        raise Wrong(
            f"{text!r} has capital letters",
            expected="lower case, as Kubernetes names are",
            did_you_mean=text.lower(),
        )
    if not NAME.fullmatch(text) or len(text) > 63:
        raise Wrong(repr(text), expected="letters, digits, - and . (at most 63), as in a host name")
    return text


def label_key(text: str) -> str:
    """A valid label or taint key; raises Wrong."""
    prefix, slash, name = text.rpartition("/")
    if slash and not NAME.fullmatch(prefix):
        raise Wrong(f"the prefix of {text!r} is no host name", expected="example.com/name")
    if not _LABEL_NAME.fullmatch(name):
        raise Wrong(repr(text), expected="letters, digits, -, _ and . (at most 63)")
    return text


def label_value(text: str) -> str:
    """A valid label value; raises Wrong."""
    if text and not _LABEL_NAME.fullmatch(text):
        raise Wrong(repr(text), expected="letters, digits, -, _ and . (at most 63)")
    return text


def _taint(value: Any) -> str:
    text = _text(value, "a taint, key=value:Effect")
    match = _TAINT.fullmatch(text)
    if match is None:
        raise Wrong(repr(text), expected="a taint, key=value:Effect")
    label_key(match["key"])
    label_value(match["value"] or "")
    if match["effect"] not in EFFECTS:
        meant = nearest(match["effect"], EFFECTS)
        raise Wrong(
            f"no taint has the effect {match['effect']!r}", expected=" | ".join(EFFECTS), did_you_mean=meant
        )
    return text


def _sha256(value: Any) -> str:
    text = _text(value, "64 hexadecimal digits").removeprefix("sha256:").lower()
    if not _SHA256.fullmatch(text):
        raise Wrong(repr(str(value)), expected="64 hexadecimal digits, with sha256: before them or not")
    return text


def _mac_prefix(value: Any) -> str:
    text = _text(value, "two bytes, such as 0E-2A")
    if not _MAC_PREFIX.fullmatch(text):
        raise Wrong(repr(text), expected="two bytes, such as 0E-2A")
    return text.upper()


def _schema(**schema: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", **schema})


def _one_or_many_schema(item: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item}]})


_VERSION_PATTERN: Final = r"^v?\d+\.\d+(\.\d+)?(-[0-9A-Za-z.-]+)?$"
AnyVersion = Annotated[Version, PlainValidator(_version), _schema(pattern=_VERSION_PATTERN)]
PatchVersion = Annotated[Version, PlainValidator(_patch_version), _schema(pattern=r"^v?\d+\.\d+\.\d+")]
Cidr = Annotated[Network, PlainValidator(_cidr)]
Ip = Annotated[Address, PlainValidator(_address), _schema()]
Cidrs = Annotated[tuple[Cidr, ...], BeforeValidator(_one_or_many), _one_or_many_schema({"type": "string"})]
Ips = Annotated[tuple[Ip, ...], BeforeValidator(_one_or_many), _one_or_many_schema({"type": "string"})]
Server = Annotated[str, PlainValidator(_server), _schema(pattern="^https://")]
HttpUrl = Annotated[str, PlainValidator(_http_url), _schema(pattern="^https?://")]
NameOrAddress = Annotated[str, PlainValidator(_name_or_address), _schema()]
TaintText = Annotated[str, PlainValidator(_taint), _schema()]
Sha256 = Annotated[str, PlainValidator(_sha256), _schema(pattern="^(sha256:)?[0-9A-Fa-f]{64}$")]
MacPrefix = Annotated[str, PlainValidator(_mac_prefix), _schema()]

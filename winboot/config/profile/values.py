"""The kinds of values a profile holds, each with a complaint that says how it should look."""

from __future__ import annotations

import ipaddress
import re
import shlex
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from winboot.config.compat.version import Version
from winboot.config.source import Wrong, nearest, text_of

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_HOST_LABEL: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_URL_PATH: Final = re.compile(r"[A-Za-z0-9._~!$&()*+,;=:@%/-]*")
_TAINT: Final = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^:]*))?:(?P<effect>[A-Za-z]+)")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def has_login(text: str) -> bool:
    """Does an address name a user (`user:password@host`), with a scheme before it or not?"""
    rest = text.partition("://")[2] or text.lstrip("\\/")
    return "@" in re.split(r"[/\\?#]", rest)[0] or bool(re.match(r"[^/\s]*:[^/\s]*/[^\s]*@", rest))


def refuse_login(text: str, expected: str) -> None:
    """Raises Wrong for an address with a user or a password. The address is not shown: complaints end in CI logs."""
    if has_login(text):
        raise Wrong("the address contains a user or a password", expected=expected)
    if "?" in text or "#" in text:
        # What is found there is often a token (a SAS signature), and paths are appended to these addresses.
        raise Wrong("the address has a query string or a fragment", expected=expected)


def host_name(text: str) -> str:
    """A valid host name or IP address (without brackets); raises Wrong."""
    if not text:
        raise Wrong("the host is empty", expected="a host name or an IP address")
    if _is_address(text):
        return text
    labels = text.split(".")
    if labels[-1].isascii() and labels[-1].isdigit():
        # The resolvers of most systems would take 010.0.0.1 for 8.0.0.1, and 10.1 for 10.0.0.1.
        raise Wrong(
            f"{text!r} is not an IP address", expected="four numbers from 0 to 255 without leading zeros"
        )
    if len(text) > 253 or not all(map(_HOST_LABEL.fullmatch, labels)):
        raise Wrong(f"{text!r} is not a host name", expected="letters, digits, - and ., or an IP address")
    return text


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _host(value: Any) -> str:
    """What a connection is made to: a host name or an IP address, nothing around it."""
    expected = "a host name or an IP address alone; the port is connection.port"
    text = text_of(value, expected)
    if has_login(text):
        raise Wrong(
            "the host contains a user or a password", expected="connection.user and connection.password"
        )
    if "://" in text:
        parts = _split(text, expected)
        raise Wrong(f"{text!r} is a URL", expected=expected, did_you_mean=parts.hostname or "")
    bare = text.strip("[]")
    if bare != text and _is_address(bare):
        raise Wrong(f"{text!r} has brackets", expected=expected, did_you_mean=bare)
    name, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and not _is_address(text):
        raise Wrong(f"{text!r} contains a port", expected=expected, did_you_mean=name.strip("[]"))
    return host_name(text)


def _split(text: str, expected: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.hostname
    except ValueError:
        raise Wrong(repr(text), expected=expected) from None
    return parts


def web_address(text: str, expected: str) -> SplitResult:
    """The parts of an http or https address without a login, query or fragment; raises Wrong."""
    refuse_login(text, expected)
    url = _split(text, expected)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise Wrong(repr(text), expected=expected)
    host_name(url.hostname)
    if not _URL_PATH.fullmatch(url.path):
        raise Wrong(f"{text!r} has characters that are not allowed in a URL", expected=expected)
    _check_port(text)
    return url


def _version(value: Any) -> Version:
    if isinstance(value, Version):
        return value
    text = text_of(value, "a version such as 1.36.5")
    try:
        return Version.parse(text)
    except ValueError:
        raise Wrong(repr(text), expected="a version such as 1.36.5") from None


def _patch_version(value: Any) -> Version:
    version = _version(value)
    if version.patch is None:
        raise Wrong(f"{version} has no patch number", expected=f"three numbers, such as {version}.0")
    if "+" in str(value) or version != version.upstream:
        wrong = f"{str(value)!r} is a version of a distribution that publishes no Windows programs"
        raise Wrong(wrong, expected=f"the upstream release {version.upstream}")
    return version


def _cidr(value: Any) -> Network:
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        return value
    text = text_of(value, "a network such as 10.244.0.0/16")
    if "/" not in text:
        raise Wrong(f"{text!r} has no prefix length", expected="a network such as 10.244.0.0/16")
    if not re.fullmatch(r"[0-9]{1,3}", text.partition("/")[2], re.ASCII):
        # Python reads 10.0.0.0/255.255.0.0, too, and 10.0.0.0/0.0.255.255, which is another notation.
        raise Wrong(repr(text), expected="a network such as 10.244.0.0/16")
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        pass
    try:
        meant = ipaddress.ip_interface(text).network
    except ValueError:
        raise Wrong(repr(text), expected="a network such as 10.244.0.0/16") from None
    raise Wrong(
        f"{text!r} has bits after its prefix",
        expected="the first address of the network",
        did_you_mean=str(meant),
    )


def _nat_exception(value: Any) -> str:
    """A network, or the name of the one that only the node knows."""
    return str(value) if value == "node_subnet" else str(_cidr(value))


def _address(value: Any) -> Address:
    if isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
        return value
    text = text_of(value, "an IP address")
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise Wrong(repr(text), expected="an IP address") from None


def _name_or_address(value: Any) -> str:
    """As a certificate names a machine: a DNS name in lower case, or an IP address."""
    expected = "a DNS name or an IP address"
    text = text_of(value, expected).lower()
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    if not NAME.fullmatch(text) or len(text) > 253 or text.rpartition(".")[2].isdecimal():
        raise Wrong(repr(text), expected=expected)
    return text


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


def server_address(value: Any) -> str:
    """The API server as https://host:port; raises Wrong."""
    text = text_of(value, "the address of the API server, https://host:port")
    url = web_address(text, "https://host:port")
    if url.scheme != "https":
        meant = f"https://{url.netloc}"
        raise Wrong(f"{text!r} is not encrypted", expected="https://host:port", did_you_mean=meant)
    if url.path.strip("/"):
        expected = "the API server's own address, such as https://10.0.0.10:6443: kubelets cannot use a proxy's URL path"
        raise Wrong(f"{text!r} has more than a host and a port", expected=expected)
    return text.rstrip("/")


def _http_url(value: Any) -> str:
    text = text_of(value, "an http or https address")
    web_address(text, "an address that starts with http:// or https://, without user, password and query")
    return text


# Nothing that winboot writes could hide a login: the services' variables are in the registry, where all users read them.
NO_PROXY_LOGIN: Final = (
    "a proxy without a login: exempt the node in the proxy, or set mirrors in runtime.registries and "
    "artifacts.source"
)


def _proxy_url(value: Any) -> str:
    text = text_of(value, "an http or https address")
    if has_login(text):
        raise Wrong("the address contains a user or a password", expected=NO_PROXY_LOGIN)
    return _http_url(text)


def _check_port(text: str) -> None:
    try:
        valid = urlsplit(text).port != 0
    except ValueError:
        valid = False
    if not valid:
        raise Wrong(f"{text!r} has no valid port", expected="a port from 1 to 65535")


def _plain_name(value: Any) -> str:
    """A version that is part of a file name and an address: no slashes, no dots in a row."""
    text = text_of(value, "a version such as 1.7.1-flannel1")
    if not re.fullmatch(r"v?[0-9]+(\.[0-9]+)+([-+.][A-Za-z0-9]+)*", text, re.ASCII):
        raise Wrong(repr(text), expected="a version such as 1.7.1-flannel1")
    return text


def node_name(value: Any) -> str:
    """A valid Node name: lower-case RFC 1123, at most 63 characters; raises Wrong."""
    text = text_of(value, "a node name")
    if text != text.lower():
        raise Wrong(
            f"{text!r} has capital letters",
            expected="lower case, as in all Kubernetes names",
            did_you_mean=text.lower(),
        )
    if not NAME.fullmatch(text) or len(text) > 63:
        raise Wrong(repr(text), expected="letters, digits, - and . (at most 63), as in a host name")
    return text


def label_key(text: str) -> str:
    """A valid label or taint key; raises Wrong."""
    prefix, slash, name = text.rpartition("/")
    if slash and not NAME.fullmatch(prefix):
        raise Wrong(f"the prefix of {text!r} is not a host name", expected="example.com/name")
    if not _LABEL_NAME.fullmatch(name):
        raise Wrong(repr(text), expected="letters, digits, -, _ and . (at most 63)")
    return text


def label_value(text: str) -> str:
    """A valid label value; raises Wrong."""
    if text and not _LABEL_NAME.fullmatch(text):
        raise Wrong(repr(text), expected="letters, digits, -, _ and . (at most 63)")
    return text


def _taint(value: Any) -> str:
    text = text_of(value, "a taint, key=value:Effect")
    match = _TAINT.fullmatch(text)
    if match is None:
        raise Wrong(repr(text), expected="a taint, key=value:Effect")
    label_key(match["key"])
    label_value(match["value"] or "")
    if match["effect"] not in EFFECTS:
        meant = nearest(match["effect"], EFFECTS)
        raise Wrong(
            f"{match['effect']!r} is no effect of a taint", expected=" | ".join(EFFECTS), did_you_mean=meant
        )
    return text


def _sha256(value: Any) -> str:
    text = text_of(value, "64 hexadecimal digits").removeprefix("sha256:").lower()
    if not _SHA256.fullmatch(text):
        raise Wrong(repr(str(value)), expected="64 hexadecimal digits, with or without the prefix sha256:")
    return text


def _fingerprint(value: Any) -> str:
    text = text_of(value, "sha256: and 64 hexadecimal digits")
    digits = text.removeprefix("sha256:").replace(":", "").lower()
    if len(digits) == 40 and re.fullmatch("[0-9a-f]+", digits):
        raise Wrong(
            f"{text!r} is a SHA-1 thumbprint",
            expected="the SHA-256 of the certificate; `winboot ping` shows it",
        )
    if not _SHA256.fullmatch(digits):
        raise Wrong(repr(text), expected="sha256: and 64 hexadecimal digits; `winboot ping` shows it")
    return f"sha256:{digits}"


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
NatExceptionNames = Annotated[
    tuple[Annotated[str, PlainValidator(_nat_exception)], ...],
    BeforeValidator(_one_or_many),
    _one_or_many_schema({"type": "string"}),
]
Server = Annotated[str, PlainValidator(server_address), _schema(pattern="^https://")]
HttpUrl = Annotated[str, PlainValidator(_http_url), _schema(pattern="^https?://")]
ProxyUrl = Annotated[str, PlainValidator(_proxy_url), _schema(pattern="^https?://")]
NameOrAddress = Annotated[str, PlainValidator(_name_or_address), _schema()]
TaintText = Annotated[str, PlainValidator(_taint), _schema()]


# An absolute path of a machine, on a drive; no `..`, no wildcard, no stream.
_WINDOWS_FILE: Final = re.compile(r'[A-Za-z]:(\\(?!\.{1,2}(\\|$))[^\\/:*?"<>|\x00-\x1f]+)+')


def _windows_file(value: Any) -> str:
    text = value.replace("/", "\\") if isinstance(value, str) else ""
    if not _WINDOWS_FILE.fullmatch(text):
        raise Wrong(repr(value), expected=r"the path of a file on the machine, such as C:\run\ready")
    return text


def _windows_folder(value: Any) -> str:
    text = value.replace("/", "\\").rstrip("\\") if isinstance(value, str) else ""
    if not _WINDOWS_FILE.fullmatch(text):
        raise Wrong(repr(value), expected=r"the path of a folder on the machine, such as D:\containerd")
    return text


WindowsFile = Annotated[str, PlainValidator(_windows_file), _schema()]
WindowsFolder = Annotated[str, PlainValidator(_windows_folder), _schema()]


_PRINCIPAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def _host_key(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}", value):
        raise Wrong(repr(value), expected="SHA256:<43 letters of base64>, as `ssh-keygen -l` prints it")
    return value


def _provider_id(value: Any) -> str:
    # <provider>://<what the provider calls it> (k8s.io/api/core/v1, NodeSpec.providerID).
    if not isinstance(value, str) or not re.fullmatch(r"[a-z][a-z0-9.+-]*://[!-~]+", value):
        raise Wrong(repr(value), expected="<provider>://<id>, such as aws:///eu-west-1a/i-0123456789abcdef0")
    return value


def _tunnel(value: Any) -> str:
    text = text_of(value, "a command that forwards {local_port}")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Wrong(
            f"this is not a command line ({str(error).lower()})", expected="a command whose quotes are closed"
        ) from error
    if not any("{local_port}" in word for word in words):
        raise Wrong(
            "the command does not contain {local_port}",
            expected="a command that forwards {local_port}, such as `ssh -N -L {local_port}:{host}:{port} jump.example`",
        )
    return text


def _service_principal(value: Any) -> str:
    # <service class>/<host>; Kerberos' realm comes from krb5.conf (RFC 4120, 6.2; pyspnego takes class and host apart).
    if not isinstance(value, str) or not _PRINCIPAL.fullmatch(value):
        raise Wrong(
            repr(value),
            expected="a service and a host name without realm or port, such as HTTP/win-a1.corp.example",
        )
    return value


TunnelCommand = Annotated[str, PlainValidator(_tunnel), _schema()]
ServicePrincipal = Annotated[
    str, PlainValidator(_service_principal), _schema(pattern=f"^{_PRINCIPAL.pattern}$")
]
ProviderId = Annotated[str, PlainValidator(_provider_id), _schema(pattern="^[a-z][a-z0-9.+-]*://[!-~]+$")]
HostKey = Annotated[str, PlainValidator(_host_key), _schema(pattern="^SHA256:[A-Za-z0-9+/]{43}$")]
Sha256 = Annotated[str, PlainValidator(_sha256), _schema(pattern="^(sha256:)?[0-9A-Fa-f]{64}$")]
Host = Annotated[str, PlainValidator(_host), _schema()]
Fingerprint = Annotated[str, PlainValidator(_fingerprint), _schema()]
PlainVersion = Annotated[str, PlainValidator(_plain_name), _schema()]

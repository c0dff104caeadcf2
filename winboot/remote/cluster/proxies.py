"""The HTTP proxy before an API server: the kubeconfig's, or the environment's as kubectl reads it.

The rules are those of Go (golang.org/x/net/http/httpproxy, proxy.go: `FromEnvironment`, `useProxy`, `init`): the upper case
variable first, loopback and NO_PROXY direct. ALL_PROXY and a proxy of the desktop are not among them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from winboot.base.errors import InvalidInput

_PORTS: Final = {"http": 80, "https": 443}
_HINT: Final = "Give the address of an HTTP proxy (http://host:port), or of an HTTP port of this one."


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy with the place that names it. The URL may hold a password: no message quotes it."""

    url: str
    origin: str

    def __str__(self) -> str:
        url = urlsplit(self.url)
        return f"{url.hostname}:{url.port or _PORTS[url.scheme]} ({self.origin})"


def proxy_of(url: str, origin: str) -> Proxy:
    """The proxy of a URL. Raises InvalidInput for one that winboot does not speak to."""
    try:
        read = urlsplit(url)
        spoken = read.scheme in _PORTS and bool(read.hostname) and read.port != 0
    except ValueError:
        spoken = False
    if not spoken:
        raise InvalidInput(f"{origin} is not an http:// or https:// URL of a proxy", hint=_HINT)
    return Proxy(url, origin)


def from_environment(
    scheme: str, host: str, port: int | None, environment: Mapping[str, str]
) -> Proxy | None:
    """The proxy that the environment names for a server. Raises InvalidInput."""
    words = ("HTTPS_PROXY", "https_proxy") if scheme == "https" else ("HTTP_PROXY", "http_proxy")
    name = next((one for one in words if environment.get(one)), None)
    listed = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if name is None or _is_direct(host.lower().rstrip("."), port or _PORTS.get(scheme, 0), listed):
        return None
    given = environment[name]
    # Go puts http:// before an address without a scheme.
    return proxy_of(given if "://" in given else f"http://{given}", f"the variable {name}")


def _is_direct(host: str, port: int, no_proxy: str) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(one.strip().lower(), host, port) for one in no_proxy.split(","))


def _matches(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY means a host: `*`, a network, an address or a domain, each of these two with a port."""
    address = _address(host)
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _holds(entry, address)
    name, wanted = _split(entry)
    if not name or (wanted and wanted != str(port)):
        return False
    if _address(name) is not None:
        return _address(name) == address
    name = name[1:] if name.startswith("*.") else name
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split(entry: str) -> tuple[str, str]:
    """Host and port; an IPv6 address has brackets where a port follows."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    name, _, port = entry.partition(":")
    return (entry, "") if ":" in port else (name, port)


def _holds(network: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None

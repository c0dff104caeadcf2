"""System.Uri as a value: the parts of an address, in .NET's canonical form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from winboot_lab.engine.exceptions import FormatException, declare_exception

UriFormatException = declare_exception("System.UriFormatException", FormatException)

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "ldap": 389, "ws": 80, "wss": 443, "file": -1}
_ABSOLUTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_SAFE = "!$&'()*+,/:;=@-._~%[]"


@dataclass(frozen=True)
class Uri:
    """`original` as given; the other parts are those of an absolute address (empty for a relative one)."""

    original: str
    absolute: bool
    scheme: str = ""
    user_info: str = ""
    host: str = ""
    port: int = -1
    path: str = ""
    query: str = ""
    fragment: str = ""

    @classmethod
    def parse(cls, text: str, *, absolute: bool = False) -> Uri:
        """Read an address; a relative one is allowed unless `absolute`. Raises UriFormatException."""
        bare = text.strip()
        if _DRIVE.match(bare):
            return cls(text, True, "file", path="/" + quote(bare.replace("\\", "/"), safe=_SAFE))
        if bare.startswith("\\\\"):
            host, _, path = bare[2:].replace("\\", "/").partition("/")
            return cls(text, True, "file", host=host.lower(), path="/" + quote(path, safe=_SAFE))
        match = _ABSOLUTE.fullmatch(bare)
        if match is None or (match.group(2) is None and match.group(1).lower() in DEFAULT_PORTS):
            if absolute:
                raise UriFormatException(
                    "Invalid URI: The format of the URI could not be determined."
                    if bare
                    else "Invalid URI: The URI is empty."
                )
            return cls(text, False)
        return cls._from_parts(text, match)

    @classmethod
    def _from_parts(cls, text: str, match: re.Match[str]) -> Uri:
        scheme = match.group(1).lower()
        authority = match.group(2) or ""
        user, at, place = authority.rpartition("@")
        host, port = cls._host_and_port(place, scheme)
        if not host and scheme in DEFAULT_PORTS and scheme != "file":
            raise UriFormatException("Invalid URI: The hostname could not be parsed.")
        path = quote(match.group(3), safe=_SAFE)
        if match.group(2) is not None:
            path = _without_dots(path.replace("\\", "/")) or "/"
        query = quote(match.group(4) or "", safe=_SAFE + "?")
        return cls(
            text,
            True,
            scheme,
            user if at else "",
            host,
            port,
            path,
            "" if query == "?" else query,
            match.group(5) or "",
        )

    @staticmethod
    def _host_and_port(place: str, scheme: str) -> tuple[str, int]:
        host, port = place, ""
        bracket = place.rfind("]")
        colon = place.rfind(":")
        if colon > bracket:
            host, port = place[:colon], place[colon + 1 :]
        if port and (not port.isdigit() or int(port) > 65535):
            raise UriFormatException("Invalid URI: Invalid port specified.")
        return host.lower(), int(port) if port else DEFAULT_PORTS.get(scheme, -1)

    @property
    def is_default_port(self) -> bool:
        return self.port == DEFAULT_PORTS.get(self.scheme, -1)

    @property
    def authority(self) -> str:
        return self.host if self.is_default_port else f"{self.host}:{self.port}"

    @property
    def absolute_uri(self) -> str:
        """The canonical text, escaped."""
        if not self.absolute:
            return self.original
        slashes = "//" if self.host or self.scheme in DEFAULT_PORTS else ""
        user = f"{self.user_info}@" if self.user_info else ""
        place = self.authority if slashes else ""
        return f"{self.scheme}:{slashes}{user}{place}{self.path}{self.query}{self.fragment}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Uri) and (self.absolute_uri, self.absolute) == (
            other.absolute_uri,
            other.absolute,
        )

    def __hash__(self) -> int:
        return hash(self.absolute_uri)

    def __str__(self) -> str:
        """Uri.ToString(): the canonical text with harmless escapes undone."""
        if not self.absolute:
            return self.original
        return re.sub(r"%20|%[CDEFcdef][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f])+", _unescape, self.absolute_uri)


def _unescape(match: re.Match[str]) -> str:
    return unquote(match.group())


def _without_dots(path: str) -> str:
    out: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if len(out) > 1:
                out.pop()
        elif segment != ".":
            out.append(segment)
    text = "/".join(out)
    return text + "/" if path.endswith(("/.", "/..")) and not text.endswith("/") else text

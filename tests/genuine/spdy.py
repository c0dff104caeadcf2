"""The kubelet's side of SPDY/3.1, as far as one command needs it: API servers speak it to kubelets that declare no WebSockets.

https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/: frames (2.2), the compression of headers (2.6.10.1).
Streams by the header `streamtype`: k8s.io/apimachinery/pkg/util/remotecommand/constants.go.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from socket import socket
from typing import Final

from winboot_lab.cluster.streams import Ran, status_of

PROTOCOLS: Final = ("v4.channel.k8s.io",)
_SYN_STREAM, _SYN_REPLY, _PING, _GOAWAY = 1, 2, 6, 7
_CONTROL, _FIN = 0x80030000, 1
# The dictionary begins with these words, each behind its length, and ends with plain text.
_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_ENDING: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,public"
    "privatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _counted(word: str) -> bytes:
    return struct.pack("!I", len(word)) + word.encode()


def dictionary() -> bytes:
    """What both sides compress headers with."""
    words = (word.replace("_", " ") for word in _WORDS.split(" "))
    return b"".join(map(_counted, words)) + _ENDING.encode()


def _frames(sock: socket) -> Iterator[tuple[int, bytes]]:
    """The first word of each frame, and its content, until the other side has closed."""
    while (head := _exactly(sock, 8)) is not None:
        first, length = struct.unpack("!II", head)
        content = _exactly(sock, length & 0xFFFFFF)
        if content is None:
            return
        yield first, content


def _exactly(sock: socket, count: int) -> bytes | None:
    got = b""
    while len(got) < count:
        try:
            more = sock.recv(count - len(got))
        except OSError:
            return None
        if not more:
            return None
        got += more
    return got


def _control(kind: int, content: bytes, flags: int = 0) -> bytes:
    return struct.pack("!II", _CONTROL | kind, flags << 24 | len(content)) + content


def _headers(block: bytes) -> dict[str, str]:
    count, rest = struct.unpack("!I", block[:4])[0], block[4:]
    words = []
    for _ in range(2 * count):
        length = struct.unpack("!I", rest[:4])[0]
        words.append(rest[4 : 4 + length].decode())
        rest = rest[4 + length :]
    return dict(zip(words[::2], words[1::2], strict=True))


def run(sock: socket, execute: Callable[[], Ran], kinds: frozenset[str]) -> None:
    """Take the streams that were announced, run the command, and send its output and outcome on them."""
    inflate = zlib.decompressobj(zdict=dictionary())
    deflate = zlib.compressobj(zdict=dictionary())
    streams: dict[str, int] = {}
    for first, content in _frames(sock):
        if first == _CONTROL | _PING:
            sock.sendall(_control(_PING, content))
        if first == _CONTROL | _GOAWAY:
            return
        if first != _CONTROL | _SYN_STREAM:
            continue
        number = struct.unpack("!I", content[:4])[0]
        streams[_headers(inflate.decompress(content[10:]))["streamtype"]] = number
        block = deflate.compress(struct.pack("!I", 0)) + deflate.flush(zlib.Z_SYNC_FLUSH)
        sock.sendall(_control(_SYN_REPLY, content[:4] + block))
        if kinds <= streams.keys():
            _tell(sock, streams, execute())
            kinds = frozenset({"nothing more"})


def _tell(sock: socket, streams: dict[str, int], ran: Ran) -> None:
    said = {"stdout": ran.output, "stderr": ran.errors, "error": json.dumps(status_of(ran)).encode()}
    for kind, data in said.items():
        if kind in streams:
            sock.sendall(struct.pack("!II", streams[kind], _FIN << 24 | len(data)) + data)

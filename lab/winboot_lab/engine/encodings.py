"""Text in files as the cmdlets of Windows PowerShell 5.1 write and read it.

Without -Encoding, Set-Content writes the ANSI code page and Out-File UTF-16; `UTF8` writes a mark. Reading recognises a mark,
and takes a file without one as ANSI.
"""

from __future__ import annotations

import codecs

_CODECS = {
    "unicode": "utf-16-le",
    "string": "utf-16-le",
    "unknown": "utf-16-le",
    "bigendianunicode": "utf-16-be",
    "bigendianutf32": "utf-32-be",
    "utf32": "utf-32-le",
    "utf8": "utf-8",
    "utf7": "utf-7",
    "ascii": "ascii",
    "default": "cp1252",
    "oem": "cp437",
}
_MARKS = {
    "unicode": b"\xff\xfe",
    "string": b"\xff\xfe",
    "unknown": b"\xff\xfe",
    "bigendianunicode": b"\xfe\xff",
    "bigendianutf32": b"\x00\x00\xfe\xff",
    "utf32": b"\xff\xfe\x00\x00",
    "utf8": b"\xef\xbb\xbf",
}
_FOUND = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def mark_of(name: str) -> bytes:
    """The byte order mark an encoding of that name begins a file with."""
    return _MARKS.get(name.lower(), b"")


def body(text: str, name: str) -> bytes:
    """The bytes of a text without a mark; what an encoding lacks becomes `?`."""
    codec = _CODECS[name.lower()]
    if codec.startswith("utf"):
        return text.encode(codec, "surrogatepass" if codec != "utf-7" else "replace")
    return _single_bytes(text, codec)


def _single_bytes(text: str, codec: str) -> bytes:
    return text.encode(codec, "replace")


def encode(text: str, name: str) -> bytes:
    """The bytes of a whole file."""
    return mark_of(name) + body(text, name)


def decode(content: bytes, name: str = "default") -> str:
    """The text of a file: by its mark, else by the named encoding (ANSI by default)."""
    for mark, codec in _FOUND:
        if content.startswith(mark):
            return content[len(mark) :].decode(codec, "replace")
    codec = _CODECS.get(name.lower(), "cp1252")
    if codec == "cp1252":
        return codecs.charmap_decode(content, "strict", _ANSI)[0]
    return content.decode(codec, "replace")


def _ansi(number: int) -> str:
    try:
        return bytes((number,)).decode("cp1252")
    except UnicodeDecodeError:
        return chr(number)


_ANSI = "".join(_ansi(number) for number in range(256))

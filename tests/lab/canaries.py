"""Finding a secret wherever it hides: in clear, as UTF-16, Base64, hex, in a URL or JSON, packed, and packs in packs."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

# As deep as anything here is packed: a script in a command line in a journal that is rotated and compressed.
_DEPTH: Final = 4
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX: Final = re.compile(rb"(?:[0-9A-Fa-f]{2}[- ]?){12,}")


def forms(secret: str) -> dict[str, bytes]:
    """The byte sequences that give a secret away, by the name of the encoding.

    Three bytes make four letters of Base64, so a secret inside a longer text shows in one of three forms. The forms
    lack the letters at the ends, which depend on the neighbours.
    """
    found = {
        "UTF-8": secret.encode(),
        "UTF-16": secret.encode("utf-16-le"),
        "a URL": quote(secret, safe="").encode(),
        "JSON": json.dumps(secret)[1:-1].replace("/", "\\/").encode(),
        "reversed": secret[::-1].encode(),
    }
    for name in ("UTF-8", "UTF-16"):
        raw = found[name]
        found[f"hex of {name}"] = raw.hex().encode()
        found[f"hex with dashes of {name}"] = raw.hex("-").encode()
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
            skipped = (shift * 8 + 5) // 6
            kept = encoded[skipped : (shift + len(raw)) * 8 // 6]
            found[f"Base64 of {name}, {shift} bytes in"] = kept
            found[f"Base64 for URLs of {name}, {shift} bytes in"] = kept.replace(b"+", b"-").replace(
                b"/", b"_"
            )
    return found


def layers(data: bytes, depth: int = _DEPTH) -> Iterator[bytes]:
    """The data, and whatever is packed or encoded in it."""
    yield data
    if not depth:
        return
    for inner in _unpacked(data):
        yield from layers(inner, depth - 1)


def _unpacked(data: bytes) -> Iterator[bytes]:
    for start in (match.start() for match in re.finditer(rb"\x1f\x8b\x08", data)):
        yield from _inflated(data[start:], zlib.MAX_WBITS | 16)
    for start in (match.start() for match in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data)):
        yield from _inflated(data[start:], zlib.MAX_WBITS)
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex)):
        for match in pattern.finditer(data):
            yield from decode(match[0])
    # Texts in UTF-16 can hold everything of the above.
    if data.count(0) > len(data) // 3:
        yield data.replace(b"\0", b"")


def _inflated(data: bytes, window: int) -> Iterator[bytes]:
    try:
        inner = zlib.decompressobj(window).decompress(data)
    except zlib.error:
        return
    if inner:
        yield inner


def _from_base64(text: bytes) -> Iterator[bytes]:
    plain = text.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    yield base64.b64decode(plain[: len(plain) // 4 * 4])


def _from_hex(text: bytes) -> Iterator[bytes]:
    try:
        yield binascii.unhexlify(text.replace(b"-", b"").replace(b" ", b""))
    except binascii.Error:
        return


class Canaries:
    """Secrets by name, each in all its forms."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        assert all(len(secret) >= 12 for secret in secrets.values()), "a short one is found by chance"
        self.names = tuple(secrets)
        self._needles = [
            (name, form, needle) for name, secret in secrets.items() for form, needle in forms(secret).items()
        ]
        self._seen: dict[bytes, tuple[str, ...]] = {}

    def found_in(self, data: bytes | str) -> tuple[str, ...]:
        """The names of the secrets in the data, in any form, with the form."""
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        if raw not in self._seen:
            self._seen[raw] = tuple(dict.fromkeys(self._search(raw)))
        return self._seen[raw]

    def _search(self, raw: bytes) -> Iterator[str]:
        for layer in layers(raw):
            # Hex comes in both cases; nothing else does.
            lower = layer.lower()
            for name, form, needle in self._needles:
                if needle in (lower if form.startswith("hex") else layer):
                    yield f"{name} as {form}"

    def leaks(self, things: Iterable[tuple[str, bytes | str]]) -> list[str]:
        """A line for each place that gives a secret away."""
        return [f"{place}: {found}" for place, data in things for found in self.found_in(data)]


def compressed(data: bytes) -> bytes:
    """As a rotated log is."""
    return gzip.compress(data, mtime=0)

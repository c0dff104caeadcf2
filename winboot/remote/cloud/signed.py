"""Signed data as in PKCS #7 (RFC 2315) and CMS (RFC 5652), as far as EC2 writes it: one signer, RSA with SHA-256, the
content inside, no certificates.

`cryptography` reads such data but does not check its signature. EC2 writes it in BER, with lengths left open and the content
in pieces.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

# Object identifiers as they are encoded: signedData, data, sha256, rsaEncryption, sha256WithRSAEncryption, contentType,
# messageDigest.
_SIGNED: Final = bytes.fromhex("2a864886f70d010702")
_DATA: Final = bytes.fromhex("2a864886f70d010701")
_SHA256: Final = bytes.fromhex("608648016503040201")
_RSA: Final = (bytes.fromhex("2a864886f70d010101"), bytes.fromhex("2a864886f70d01010b"))
_CONTENT_TYPE: Final = bytes.fromhex("2a864886f70d010903")
_DIGEST: Final = bytes.fromhex("2a864886f70d010904")
_OID, _OCTETS, _PIECES, _SEQUENCE, _SET, _FIRST = 0x06, 0x04, 0x24, 0x30, 0x31, 0xA0
_CONSTRUCTED: Final = 0x20
_DEEPEST: Final = 16


@dataclass(frozen=True, slots=True)
class Signed:
    """What was signed, and by what. `attributes` is what the signature stands over; the content's `digest` is one of them."""

    content: bytes
    attributes: bytes
    digest: bytes
    signature: bytes

    def by(self, keys: Sequence[rsa.RSAPublicKey]) -> bool:
        """Whether one of these keys made the signature."""
        return any(self._by(key) for key in keys)

    @property
    def unchanged(self) -> bool:
        """Whether the content is the one that the signed attributes name."""
        return hmac.compare_digest(hashlib.sha256(self.content).digest(), self.digest)

    def _by(self, key: rsa.RSAPublicKey) -> bool:
        try:
            key.verify(self.signature, self.attributes, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        return True


def read_signed(data: bytes) -> Signed:
    """Raises ValueError for anything else."""
    top, rest = _element(data, 0, 0)
    if rest != len(data):
        raise ValueError("something follows the signed data")
    kind, wrapped = _parts(top, _SEQUENCE, 2)
    if kind.value(_OID) != _SIGNED:
        raise ValueError("it is not signed data")
    fields = _only(wrapped, _FIRST).children(_SEQUENCE)
    if len(fields) < 4:
        raise ValueError("signed data without its parts")
    inner, wrapped = _parts(fields[2], _SEQUENCE, 2)
    if inner.value(_OID) != _DATA:
        raise ValueError("its content is not of the type data")
    signers = fields[-1].children(_SET)
    if len(signers) != 1:
        raise ValueError("it has another number of signers than one")
    return _signed(_only(wrapped, _FIRST).octets(), signers[0].children(_SEQUENCE))


@dataclass(frozen=True, slots=True)
class _Element:
    """One element. `parts` are those of a constructed one; `body` is the content of a primitive one."""

    tag: int
    body: bytes
    parts: tuple[_Element, ...]

    def children(self, tag: int) -> tuple[_Element, ...]:
        if self.tag != tag:
            raise ValueError("another kind of element is expected")
        return self.parts

    def value(self, tag: int) -> bytes:
        if self.tag != tag:
            raise ValueError("another kind of value is expected")
        return self.body

    def octets(self) -> bytes:
        """An octet string, whole or in pieces."""
        return b"".join(part.octets() for part in self.parts) if self.tag == _PIECES else self.value(_OCTETS)


def _signed(content: bytes, signer: tuple[_Element, ...]) -> Signed:
    """SignerInfo: version, issuer and number, digest's algorithm, [0] attributes, signature's algorithm, signature."""
    if len(signer) < 6 or _algorithm(signer[2]) != _SHA256 or _algorithm(signer[4]) not in _RSA:
        raise ValueError("it is not signed by RSA with SHA-256, or has no signed attributes")
    attributes, digest = _attributes(signer[3])
    return Signed(content, attributes, digest, signer[5].value(_OCTETS))


def _attributes(found: _Element) -> tuple[bytes, bytes]:
    """What the signature stands over, and the digest in it. It is signed as a SET in DER (RFC 5652, section 5.4)."""
    values: dict[bytes, _Element] = {}
    for one in found.children(_FIRST):
        name, given = _parts(one, _SEQUENCE, 2)
        if name.value(_OID) in values:
            raise ValueError("an attribute is given twice")
        values[name.value(_OID)] = _only(given, _SET) if len(given.parts) == 1 else given
    if _CONTENT_TYPE not in values or values[_CONTENT_TYPE].value(_OID) != _DATA or _DIGEST not in values:
        raise ValueError("its signed attributes name no content")
    return _der(_SET, found.parts), values[_DIGEST].value(_OCTETS)


def _algorithm(found: _Element) -> bytes:
    parts = found.children(_SEQUENCE)
    if not parts:
        raise ValueError("an algorithm has no name")
    return parts[0].value(_OID)


def _parts(found: _Element, tag: int, count: int) -> tuple[_Element, ...]:
    parts = found.children(tag)
    if len(parts) != count:
        raise ValueError("an element has another number of parts")
    return parts


def _only(found: _Element, tag: int) -> _Element:
    return _parts(found, tag, 1)[0]


def _der(tag: int, parts: tuple[_Element, ...]) -> bytes:
    """Elements in DER, in the order that they came in."""
    body = b"".join(_der(one.tag, one.parts) if one.parts else _whole(one.tag, one.body) for one in parts)
    return _whole(tag, body)


def _whole(tag: int, body: bytes) -> bytes:
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + body


def _element(data: bytes, at: int, depth: int) -> tuple[_Element, int]:
    """The element at a place, and where the next one begins. Raises ValueError."""
    if depth > _DEEPEST or at + 2 > len(data):
        raise ValueError("it ends too early, or is nested too deep")
    tag, size, at = data[at], data[at + 1], at + 2
    if tag & 0x1F == 0x1F:
        raise ValueError("it has a tag of several bytes")
    if size == 0x80:
        return _open(data, tag, at, depth)
    if size > 0x80:
        count = size & 0x7F
        if count > 4 or at + count > len(data):
            raise ValueError("a length is too long")
        size, at = int.from_bytes(data[at : at + count], "big"), at + count
    end = at + size
    if end > len(data):
        raise ValueError("it ends too early")
    if not tag & _CONSTRUCTED:
        return _Element(tag, data[at:end], ()), end
    parts = []
    while at < end:
        part, at = _element(data[:end], at, depth + 1)
        parts.append(part)
    return _Element(tag, b"", tuple(parts)), end


def _open(data: bytes, tag: int, at: int, depth: int) -> tuple[_Element, int]:
    """An element whose length is left open: it ends with two zero bytes."""
    if not tag & _CONSTRUCTED:
        raise ValueError("a length is left open where it must be given")
    parts = []
    while data[at : at + 2] != b"\0\0":
        part, at = _element(data, at, depth + 1)
        parts.append(part)
    return _Element(tag, b"", tuple(parts)), at + 2

"""Signed instance identity documents, as EC2 writes them: BER with open lengths, the content in a piece, one signer."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

SHA256 = bytes.fromhex("300d06096086480165030402010500")
RSA_SHA256 = bytes.fromhex("300d06092a864886f70d01010b0500")
SIGNED = bytes.fromhex("06092a864886f70d010702")
DATA = bytes.fromhex("06092a864886f70d010701")
CONTENT_TYPE = bytes.fromhex("06092a864886f70d010903")
DIGEST = bytes.fromhex("06092a864886f70d010904")


def der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body)
    length = bytes([size]) if size < 128 else b"\x82" + size.to_bytes(2, "big")
    return bytes([tag]) + length + body


def open_ended(tag: int, *parts: bytes) -> bytes:
    return bytes([tag, 0x80]) + b"".join(parts) + b"\0\0"


# One key for all tests of a process: making one takes a tenth of a second.
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(frozen=True)
class Signer:
    """A region's key and certificate, instead of those of AWS."""

    key: rsa.RSAPrivateKey = KEY
    region: str = "eu-west-1"
    expires: datetime = datetime(2199, 1, 1, tzinfo=UTC)

    @property
    def pem(self) -> str:
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Amazon Web Services LLC")])
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.key.public_key())
            .serial_number(7)
            .not_valid_before(self.expires - timedelta(days=20000))
            .not_valid_after(self.expires)
            .sign(self.key, hashes.SHA256())
        )
        return made.public_bytes(Encoding.PEM).decode()

    def file(self, folder: Path) -> Path:
        path = folder / f"{self.region}.pem"
        path.write_text(
            f"region: {self.region}\nexpires: {self.expires.date()}\n{self.pem}", encoding="utf-8"
        )
        return path

    def sign(self, content: bytes, *, says: bytes | None = None) -> str:
        """The signed form; `says` replaces the content that was signed."""
        digest = hashlib.sha256(content).digest()
        attributes = der(0x30, CONTENT_TYPE, der(0x31, DATA)) + der(
            0x30, DIGEST, der(0x31, der(0x04, digest))
        )
        signature = self.key.sign(der(0x31, attributes), padding.PKCS1v15(), hashes.SHA256())
        issuer = der(0x30, der(0x30), der(0x02, b"\x07"))
        signer = der(
            0x30, der(0x02, b"\1"), issuer, SHA256, der(0xA0, attributes), RSA_SHA256, der(0x04, signature)
        )
        inner = open_ended(0x30, DATA, open_ended(0xA0, open_ended(0x24, der(0x04, says or content))))
        body = open_ended(0x30, der(0x02, b"\1"), der(0x31, SHA256), inner, der(0x31, signer))
        return base64.encodebytes(open_ended(0x30, SIGNED, open_ended(0xA0, body))).decode()


@dataclass(frozen=True)
class Words:
    """What a document says (EC2 user guide, "Instance identity documents")."""

    instanceId: str = "i-0123456789abcdef0"  # noqa: N815
    accountId: str = "123456789012"  # noqa: N815
    region: str = "eu-west-1"
    privateIp: str = "10.224.0.11"  # noqa: N815
    pendingTime: str = "2026-11-24T10:00:00Z"  # noqa: N815
    imageId: str = "ami-0123456789abcdef0"  # noqa: N815
    more: dict[str, Any] = field(default_factory=lambda: {"version": "2017-09-30", "kernelId": None})

    def text(self, **changed: Any) -> bytes:
        said = replace(self, **changed)
        words = {name: getattr(said, name) for name in self.__dataclass_fields__ if name != "more"}
        return json.dumps({**words, **said.more}, indent=2).encode()

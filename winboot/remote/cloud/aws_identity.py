"""EC2's signed instance identity document: what AWS says of the instance that shows it.

The instance gets it from its metadata service (`/latest/dynamic/instance-identity/rsa2048`). AWS signs it with a key
for each region (EC2 user guide, "Use the RSA-2048 signature to verify the instance identity document"). It proves
possession alone: any process that reads the metadata service of an instance has its document.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from winboot.base.errors import InvalidInput
from winboot.remote.cloud.signed import read_signed

_DATA: Final = Path(__file__).parent / "data" / "aws-identity.pem"
_ENTRY: Final = re.compile(
    r"^region: *(\S+)\s+(?:expires: *(\S+)\s+)?(-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----)",
    re.DOTALL | re.MULTILINE,
)
_REGION: Final = re.compile(r"[a-z]{2,5}(-[a-z]+)+-[0-9]{1,2}")
_INSTANCE: Final = re.compile(r"i-[0-9a-f]{8,17}")
LARGEST: Final = 16384


@dataclass(frozen=True, slots=True)
class Document:
    """What AWS says of an instance; `pending` is when it was last started."""

    instance: str
    account: str
    region: str
    address: str
    image: str
    pending: datetime


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a document proves nothing, by name."""

    id: str
    why: str


@dataclass(frozen=True)
class Certificates:
    """AWS' certificates by region, PEM texts: those that winboot knows, and those of a file of the user's."""

    texts: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, also: Path | None = None) -> Certificates:
        """The shipped ones; `also` is a file of the same form. Raises InvalidInput where it has none, or a broken one."""
        found: dict[str, tuple[str, ...]] = {}
        for path in (_DATA, *([also] if also is not None else [])):
            for region, _, text in entries(path):
                found[region] = (*found.get(region, ()), text)
        return cls(found)

    @cached_property
    def regions(self) -> tuple[str, ...]:
        """Where instances can prove themselves."""
        return tuple(sorted(self.texts))

    def keys(self, region: str, now: datetime) -> list[rsa.RSAPublicKey]:
        """The keys that sign in a region now; empty where none is known, or all have expired."""
        found = [certificate(text) for text in self.texts.get(region, ())]
        return [one.public_key() for one in found if one.not_valid_after_utc > now]  # type: ignore[misc]

    def document(self, text: str, now: datetime) -> Document | Flaw:
        """What a machine shows, checked. The region is the document's own word until its signature is."""
        try:
            signed = read_signed(base64.b64decode("".join(text.split()), validate=True))
            document = _document(signed.content)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return Flaw("UnreadableProof", f"its identity document cannot be read: {type(error).__name__}")
        if document.region not in self.texts:
            why = f"no certificate of AWS is known for the region {document.region}"
            return Flaw("UnknownRegion", f"{why}: name one with --aws-certificates")
        keys = self.keys(document.region, now)
        if not keys:
            return Flaw("UnknownRegion", f"the certificate of the region {document.region} has expired")
        if not signed.by(keys):
            why = f"its identity document is not signed by AWS for {document.region}"
            return Flaw("WrongSigner", why)
        if not signed.unchanged:
            return Flaw("ChangedProof", "its identity document was changed after AWS signed it")
        return document


def entries(path: Path) -> Sequence[tuple[str, str, str]]:
    """Region, expiry (as written, may be empty) and certificate of each entry. Raises InvalidInput."""
    form = "Each certificate stands below a line `region: NAME`, as in winboot/remote/cloud/data/aws-identity.pem."
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", hint=form) from error
    found = [(one[1], one[2] or "", one[3]) for one in _ENTRY.finditer(text)]
    if not found or len(found) != text.count("-----BEGIN CERTIFICATE-----"):
        raise InvalidInput(f"{path}: a certificate without its region, or none at all", hint=form)
    for region, expires, one in found:
        try:
            public = certificate(one).public_key()
            _ = date.fromisoformat(expires) if expires else None
        except ValueError as error:
            raise InvalidInput(
                f"{path}: the certificate of {region} cannot be read: {error}", hint=form
            ) from error
        if not isinstance(public, rsa.RSAPublicKey) or not _REGION.fullmatch(region):
            raise InvalidInput(f"{path}: {region} has no RSA certificate of a region", hint=form)
    return found


def certificate(text: str) -> x509.Certificate:
    """Raises ValueError."""
    return x509.load_pem_x509_certificate(text.encode("ascii"))


def _document(content: bytes) -> Document:
    """EC2 user guide, "Instance identity documents". Raises ValueError, KeyError, TypeError."""
    said: Mapping[str, Any] = json.loads(content)
    words = {name: said[name] for name in ("instanceId", "accountId", "region", "privateIp", "imageId")}
    if not all(isinstance(one, str) and len(one) <= 64 and one.isascii() for one in words.values()):
        raise ValueError("a word of the document is not text")
    if not _INSTANCE.fullmatch(words["instanceId"]) or not _REGION.fullmatch(words["region"]):
        raise ValueError("it names no instance or no region")
    if not words["accountId"].isdecimal():
        raise ValueError("it names no account")
    pending = datetime.strptime(said["pendingTime"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return Document(
        words["instanceId"],
        words["accountId"],
        words["region"],
        words["privateIp"],
        words["imageId"],
        pending,
    )

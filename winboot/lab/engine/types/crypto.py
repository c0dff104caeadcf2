"""System.Security.Cryptography: hashes, and certificates as far as a look reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from winboot.lab.engine.dotnet import OBJECT, Runtime, dotnet
from winboot.lab.engine.exceptions import ArgumentNullException, CryptographicException
from winboot.lab.engine.moments import LOCAL, DateTime
from winboot.lab.engine.refusal import Refusal
from winboot.lab.engine.values import ByteArray, EnumValue, Instance

Value = Any

# -- hashes


class HashAlgorithm(Instance):
    """One algorithm; it keeps nothing between calls."""

    def __init__(self, name: str) -> None:
        self.name = name


HASH = dotnet("System.Security.Cryptography.HashAlgorithm", HashAlgorithm, base=OBJECT)


def _hashed(self: HashAlgorithm, content: bytes | None) -> ByteArray:
    if content is None:
        raise ArgumentNullException("buffer")
    return ByteArray(hashlib.new(self.name, bytes(content)).digest())


HASH.method("ComputeHash(byte[] buffer)")(_hashed)
HASH.method("void Dispose()", "void Clear()")(lambda self: None)
HASH.prop("HashSize", "int", lambda self: hashlib.new(self.name).digest_size * 8)
HASH.refuses("TransformBlock TransformFinalBlock Hash Initialize CanReuseTransform InputBlockSize OutputBlockSize")


_ALGORITHMS: Final[dict[str, type[HashAlgorithm]]] = {
    name: type(name, (HashAlgorithm,), {}) for name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")
}
for _name, _class in _ALGORITHMS.items():
    _type = dotnet(f"System.Security.Cryptography.{_name}", _class, base=HASH)
    _type.static_method("Create()")(lambda _class=_class, _name=_name: _class(_name.lower()))

# -- certificates

_OIDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "S",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "1.2.840.113549.1.9.1": "E",
    "0.9.2342.19200300.100.1.25": "DC",
}


class Der:
    """A reader of DER: tag, content, and what is inside."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """Each element as (tag, content). Raises CryptographicException for what is no DER."""
        content, at = self._content, 0
        while at < len(content):
            tag, at = content[at], at + 1
            length, at = self._length(at)
            if at + length > len(content):
                raise _broken()
            yield tag, content[at : at + length]
            at += length

    def _length(self, at: int) -> tuple[int, int]:
        if at >= len(self._content):
            raise _broken()
        first, at = self._content[at], at + 1
        if first < 0x80:
            return first, at
        count = first & 0x7F
        return int.from_bytes(self._content[at : at + count], "big"), at + count


def _broken() -> CryptographicException:
    return CryptographicException("Cannot find the requested object.\r\n", hresult=-2146885623)


class Certificate(Instance):
    """An X.509 certificate: who, by whom, from when to when."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        try:
            fields = list(Der(next(Der(next(Der(raw).parts())[1]).parts())[1]).parts())
            if fields[0][0] == 0xA0:
                fields = fields[1:]
            self.serial = fields[0][1]
            self.issuer = _name_parts(fields[2][1])
            self.not_before, self.not_after = (_moment(tag, text) for tag, text in Der(fields[3][1]).parts())
            self.subject = _name_parts(fields[4][1])
        except (StopIteration, IndexError, ValueError) as error:
            raise _broken() from error


def _name_parts(content: bytes) -> list[tuple[str, str]]:
    found = []
    for _, group in Der(content).parts():
        for _, pair in Der(group).parts():
            (_, oid), (tag, value) = Der(pair).parts()
            text = value.decode("utf-16-be" if tag == 0x1E else "utf-8", "replace")
            found.append((_OIDS.get(_oid(oid), "OID." + _oid(oid)), text))
    return found


def _oid(content: bytes) -> str:
    numbers, current = [content[0] // 40, content[0] % 40], 0
    for byte in content[1:]:
        current = current << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(current)
            current = 0
    return ".".join(map(str, numbers))


def _moment(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == 0x17:
        text = ("20" if int(text[:2]) < 50 else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _distinguished(parts: list[tuple[str, str]]) -> str:
    # Windows shows the parts last first.
    return ", ".join(f"{kind}={_quoted(value)}" for kind, value in reversed(parts))


def _quoted(value: str) -> str:
    needs = value != value.strip() or any(c in value for c in ',+="\n<>#;')
    return '"' + value.replace('"', '""') + '"' if needs else value


CERTIFICATE = dotnet("System.Security.Cryptography.X509Certificates.X509Certificate2", Certificate, base=OBJECT)
CERTIFICATE.constructor("byte[] rawData")(lambda raw: Certificate(bytes(raw)))


@CERTIFICATE.constructor("string fileName")
def _from_file(path: str) -> Certificate:
    raise Refusal("member", "X509Certificate2.new(string): give it the bytes of the certificate")


CERTIFICATE.prop("Subject", "string", lambda self: _distinguished(self.subject))
CERTIFICATE.prop("Issuer", "string", lambda self: _distinguished(self.issuer))
CERTIFICATE.prop("NotBefore", "datetime", lambda runtime, self: _on_machine(runtime, self.not_before), effect=True)
CERTIFICATE.prop("NotAfter", "datetime", lambda runtime, self: _on_machine(runtime, self.not_after), effect=True)
CERTIFICATE.prop("Thumbprint", "string", lambda self: hashlib.sha1(self.raw).hexdigest().upper())
CERTIFICATE.prop("SerialNumber", "string", lambda self: self.serial.hex().upper())
CERTIFICATE.prop("RawData", "byte[]", lambda self: ByteArray(self.raw))
CERTIFICATE.method("void Dispose()", "void Reset()")(lambda self: None)
CERTIFICATE.method("GetCertHashString()")(lambda self: hashlib.sha1(self.raw).hexdigest().upper())
CERTIFICATE.refuses("Extensions PrivateKey PublicKey HasPrivateKey FriendlyName Verify Export Import GetRSAPrivateKey Archived Handle Version")


def _on_machine(runtime: Runtime, when: datetime) -> DateTime:
    """.NET gives these two in the machine's local time."""
    minutes = int(runtime.machine.invoke("clock.zone", {}).objects[0]["offset_minutes"])
    return DateTime.of((when + timedelta(minutes=minutes)).replace(tzinfo=None), LOCAL)


@CERTIFICATE.method("GetNameInfo(System.Security.Cryptography.X509Certificates.X509NameType nameType, bool forIssuer)")
def _name_info(self: Certificate, kind: EnumValue, issuer: bool) -> str:
    if kind.number != 0:
        raise Refusal("member", f"X509Certificate2.GetNameInfo({kind})")
    parts = self.issuer if issuer else self.subject
    for wanted in ("CN", "OU", "O", "E"):
        for found, value in reversed(parts):
            if found == wanted:
                return value
    return ""

"""System.Security.Cryptography: hashes, HMAC, random numbers, and X.509 certificates as far as reading them."""

from __future__ import annotations

import base64
import datetime as py
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from winboot_lab.engine.convert import NOT_CONVERTED, converts
from winboot_lab.engine.door import ask
from winboot_lab.engine.dotnet import DotNetType, Runtime, dotnet
from winboot_lab.engine.exceptions import ArgumentNullException, CryptographicException, DotNetException
from winboot_lab.engine.moments import DateTime
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.files import read_bytes
from winboot_lab.engine.types.streams import Stream
from winboot_lab.engine.values import (
    IDISPOSABLE,
    ByteArray,
    EnumValue,
    Instance,
    Value,
    View,
)

_NS = "System.Security.Cryptography."

# -- hashes


class Hash(Instance):
    """A HashAlgorithm."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.value: bytes | None = None
        self.gathered = b""

    @property
    def dotnet_type(self) -> DotNetType:
        from winboot_lab.engine.dotnet import named

        return named(_NS + self.kind)

    def digest(self, data: bytes) -> bytes:
        self.value = hashlib.new(self.name, data).digest()
        return self.value


HASH = dotnet(_NS + "HashAlgorithm", kind="abstract", interfaces=[IDISPOSABLE])
HMAC = dotnet(_NS + "HMAC", base=HASH, kind="abstract")
_ALGORITHMS = {"SHA1": "sha1", "SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512", "MD5": "md5"}
_PROVIDERS = {
    "SHA1": ("SHA1CryptoServiceProvider", "SHA1Managed", "SHA1Cng"),
    "SHA256": ("SHA256Managed", "SHA256CryptoServiceProvider", "SHA256Cng"),
    "SHA384": ("SHA384Managed", "SHA384CryptoServiceProvider", "SHA384Cng"),
    "SHA512": ("SHA512Managed", "SHA512CryptoServiceProvider", "SHA512Cng"),
    "MD5": ("MD5CryptoServiceProvider", "MD5Cng"),
}


@HASH.method("ComputeHash(byte[] buffer)")
def _compute(self: Hash, data: Value) -> ByteArray:
    if data is None:
        raise ArgumentNullException("buffer")
    return ByteArray(self.digest(bytes(data)))


@HASH.method("ComputeHash(System.IO.Stream inputStream)", effect=True)
def _compute_stream(runtime: Runtime, self: Hash, stream: Stream) -> ByteArray:
    stream.check()
    data = b""
    while piece := stream.read(runtime, 1 << 20):
        data += piece
    return ByteArray(self.digest(data))


HASH.prop("Hash", "byte[]", lambda self: None if self.value is None else ByteArray(self.value))
HASH.method("void Dispose()")(lambda self: None)
HASH.method("void Clear()")(lambda self: None)


def _declare_hashes() -> None:
    for name, python in _ALGORITHMS.items():
        parent = dotnet(_NS + name, base=HASH, kind="abstract")
        default = _PROVIDERS[name][0]
        for provider in _PROVIDERS[name]:
            dotnet(_NS + provider, base=parent)
        parent.static_method("Create()")(lambda python=python, default=default: Hash(python, default))
        dotnet(_NS + "HMAC" + name, base=HMAC)


_declare_hashes()


class RandomNumbers(Instance):
    """RandomNumberGenerator."""


RANDOM = dotnet(_NS + "RandomNumberGenerator", kind="abstract", interfaces=[IDISPOSABLE])
CSP = dotnet(_NS + "RNGCryptoServiceProvider", RandomNumbers, base=RANDOM)


# -- a small reader of DER

_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.4": "SN",
    "2.5.4.5": "SERIALNUMBER",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "S",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.12": "T",
    "2.5.4.42": "G",
    "1.2.840.113549.1.9.1": "E",
    "0.9.2342.19200300.100.1.25": "DC",
}


class _Item:
    """One DER element: its tag and content."""

    __slots__ = ("body", "tag")

    def __init__(self, tag: int, body: bytes) -> None:
        self.tag = tag
        self.body = body

    def items(self) -> list[_Item]:
        return [item for item, _ in _elements(self.body)]


def _elements(data: bytes) -> Iterator[tuple[_Item, bytes]]:
    position = 0
    while position < len(data):
        start = position
        if position + 2 > len(data):
            raise CryptographicException("Cannot find the requested object.\r\n")
        tag, length = data[position], data[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        if position + length > len(data):
            raise CryptographicException("Cannot find the requested object.\r\n")
        yield _Item(tag, data[position : position + length]), data[start : position + length]
        position += length


def _object_id(body: bytes) -> str:
    numbers: list[int] = []
    value = 0
    for byte in body:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(str(number) for number in (first, numbers[0] - 40 * first, *numbers[1:]))


def _text(item: _Item) -> str:
    codec = {0x1E: "utf-16-be", 0x1C: "utf-32-be", 0x14: "latin-1"}.get(item.tag, "utf-8")
    return item.body.decode(codec, "replace")


def _name(item: _Item) -> str:
    """A distinguished name as Windows writes it: the last part first, quoted where needed."""
    parts: list[str] = []
    for part in item.items():
        pairs: list[str] = []
        for pair in part.items():
            kind, value = pair.items()[:2]
            oid = _object_id(kind.body)
            text = _text(value)
            if any(letter in text for letter in ',+="\n<>#;') or text != text.strip():
                text = '"' + text.replace('"', '""') + '"'
            pairs.append(f"{_NAMES.get(oid, 'OID.' + oid)}={text}")
        parts.append(" + ".join(pairs))
    return ", ".join(reversed(parts))


def _moment(item: _Item) -> DateTime:
    text = item.body.decode()
    layout = "%y%m%d%H%M%SZ" if item.tag == 0x17 else "%Y%m%d%H%M%SZ"
    return DateTime.local_of(py.datetime.strptime(text, layout).replace(tzinfo=py.UTC))


class Certificate(Instance):
    """X509Certificate2: its fields, and perhaps a private key that scripts cannot read."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        outer = next(_elements(raw))[0].items()
        fields = outer[0].items()
        if fields[0].tag == 0xA0:
            self.version = fields.pop(0).items()[0].body[0] + 1
        else:
            self.version = 1
        self.serial = fields[0].body
        self.issuer = _name(fields[2])
        start, end = fields[3].items()
        self.not_before, self.not_after = _moment(start), _moment(end)
        self.subject = _name(fields[4])
        key = fields[5].items()
        self.public_key = key[1].body[1:]
        self.key_algorithm = key[0].items()
        self.extensions = next((item.items()[0].items() for item in fields[6:] if item.tag == 0xA3), [])

    @property
    def thumbprint(self) -> str:
        return hashlib.sha1(self.raw, usedforsecurity=False).hexdigest().upper()

    @property
    def serial_number(self) -> str:
        return self.serial.hex().upper()


def _from_bytes(data: bytes) -> Certificate:
    """A certificate from DER or PEM."""
    if data.lstrip().startswith(b"-----BEGIN"):
        begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
        start = data.find(begin)
        stop = data.find(end, start)
        if start < 0 or stop < 0:
            raise CryptographicException("Cannot find the requested object.\r\n")
        data = base64.b64decode(data[start + len(begin) : stop])
    try:
        return Certificate(data)
    except (IndexError, ValueError, StopIteration):
        raise CryptographicException("Cannot find the requested object.\r\n") from None


_X509 = _NS + "X509Certificates."
BASE = dotnet(_X509 + "X509Certificate", interfaces=[IDISPOSABLE], accelerators=["x509certificate"])
CERTIFICATE = dotnet(_X509 + "X509Certificate2", Certificate, base=BASE)


@CERTIFICATE.constructor("byte[] rawData")
def _from_data(data: Sequence[int] | None) -> Certificate:
    if not data:
        raise Refusal("member", "X509Certificate2", "of no bytes")
    return _from_bytes(bytes(data))


@CERTIFICATE.constructor("string fileName", effect=True)
def _from_file(runtime: Runtime, path: str) -> Certificate:
    try:
        data = read_bytes(runtime, path)
    except DotNetException as cause:
        raise CryptographicException("The system cannot find the file specified.\r\n") from cause
    return _from_bytes(data)


for _property, _get in (
    ("Subject", lambda self: self.subject),
    ("Issuer", lambda self: self.issuer),
    ("Thumbprint", lambda self: self.thumbprint),
    ("SerialNumber", lambda self: self.serial_number),
):
    CERTIFICATE.prop(_property, "string", _get)
CERTIFICATE.prop("NotBefore", "datetime", lambda self: self.not_before)
CERTIFICATE.prop("NotAfter", "datetime", lambda self: self.not_after)
CERTIFICATE.prop("Version", "int", lambda self: self.version)
CERTIFICATE.method("GetPublicKey()")(lambda self: ByteArray(self.public_key))
CERTIFICATE.method("GetKeyAlgorithm()")(lambda self: _object_id(self.key_algorithm[0].body))


@CERTIFICATE.method("GetKeyAlgorithmParametersString()")
def _key_parameters(self: Certificate) -> str:
    """Their encoding, in capital hex: 0500 for RSA (Microsoft, X509Certificate.GetKeyAlgorithmParametersString, example)."""
    one = self.key_algorithm[1]
    if len(one.body) > 127:
        raise Refusal("value", f"{len(one.body)} bytes", "parameters of a key")
    return bytes([one.tag, len(one.body), *one.body]).hex().upper()


@CERTIFICATE.method(f"GetNameInfo({_X509}X509NameType nameType, bool forIssuer)")
def _name_info(self: Certificate, kind: Value, issuer: bool) -> str:
    if str(kind) != "SimpleName":
        raise Refusal("value", str(kind), "kind of name of a certificate")
    text = self.issuer if issuer else self.subject
    parts = dict(part.partition("=")[::2] for part in reversed(text.split(", ")))
    return next((parts[key] for key in ("CN", "OU", "O") if key in parts), "")


CERTIFICATE.method("void Dispose()")(lambda self: None)
CERTIFICATE.method("ToString()")(
    lambda self: (
        f"[Subject]\r\n  {self.subject}\r\n\r\n[Issuer]\r\n  {self.issuer}\r\n\r\n[Serial Number]\r\n  "
        f"{self.serial_number}\r\n\r\n[Not Before]\r\n  {self.not_before}\r\n\r\n[Not After]\r\n  {self.not_after}\r\n\r\n"
        f"[Thumbprint]\r\n  {self.thumbprint}\r\n"
    )
)


@converts(CERTIFICATE)
def _to_certificate(value: Value) -> Value:
    return _from_bytes(bytes(value)) if isinstance(value, ByteArray) else NOT_CONVERTED


# -- stores


class Store(Instance):
    """X509Store on the machine."""

    def __init__(self, name: str, location: str) -> None:
        self.name = {"CertificateAuthority": "CA"}.get(name, name)
        self.location = location
        self.open_for_writing: bool | None = None

    @property
    def path(self) -> str:
        return f"{self.location}\\{self.name}"


STORE = dotnet(_X509 + "X509Store", Store, interfaces=[IDISPOSABLE])
_WHERE = f"{_X509}StoreLocation storeLocation"
STORE.constructor(f"string storeName, {_WHERE}")(lambda name, where: Store(name, str(where)))
STORE.constructor(f"{_X509}StoreName storeName, {_WHERE}")(lambda name, where: Store(str(name), str(where)))


COLLECTION = dotnet(_X509 + "X509Certificate2Collection")


@STORE.method(f"void Open({_X509}OpenFlags flags)")
def _open(self: Store, flags: EnumValue) -> None:
    self.open_for_writing = bool(flags.number & 3)


def _need_open(self: Store) -> None:
    if self.open_for_writing is None:
        raise CryptographicException("The X509 certificate store has not been opened.")


def _certificates(runtime: Runtime, self: Store) -> Value:
    _need_open(self)
    found = [
        Certificate(bytes(record["raw"])) for record in ask(runtime, "certificate.list", store=self.path)
    ]
    return CertificateCollection(found)


@STORE.method(f"void Add({_X509}X509Certificate2 certificate)", effect=True)
def _add(runtime: Runtime, self: Store, certificate: Certificate) -> None:
    _need_open(self)
    if not self.open_for_writing:
        raise CryptographicException("Access is denied.\r\n")
    ask(runtime, "certificate.add", store=self.path, raw=certificate.raw)


@STORE.method(f"void Remove({_X509}X509Certificate2 certificate)", effect=True)
def _remove(runtime: Runtime, self: Store, certificate: Certificate) -> None:
    _need_open(self)
    ask(runtime, "certificate.remove", store=self.path, thumbprint=certificate.thumbprint)


STORE.prop("Certificates", "object", _certificates, effect=True)
STORE.method("void Close()")(lambda self: setattr(self, "open_for_writing", None))


class CertificateCollection(View):
    """X509Certificate2Collection."""

    def __init__(self, items: list[Certificate]) -> None:
        super().__init__(_X509 + "X509Certificate2Collection", lambda: list[Any](items))


COLLECTION = dotnet(_X509 + "X509Certificate2Collection")
COLLECTION.prop("Count", "int", len)
COLLECTION.method("Item(int index)")(lambda self, index: self.read()[index])

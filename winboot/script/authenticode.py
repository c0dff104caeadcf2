"""A signature at the end of a script, as Windows PowerShell checks it under AllSigned: Authenticode for .ps1.

The block is a comment: base64 of a PKCS#7 SignedData (RFC 2315) over an SPC_INDIRECT_DATA content, which says "a script,
and this is the SHA-256 of its text in UTF-16LE", the text being all before the line break that the block begins with.
Layout and identifiers: osslsigncode (script.c, helpers.c), jborean93/OpenAuthenticode (PowerShellProvider.cs) and Microsoft's
"Windows Authenticode Portable Executable Signature Format", which agree. No time is in it, so the same text and key
give the same bytes; without a time stamp it ends with its certificate.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key, pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID

from winboot.base.errors import ScriptError, UsageError
from winboot.base.secret import Secret

BEGIN: Final = "# SIG # Begin signature block"
END: Final = "# SIG # End signature block"

_SIGNED_DATA: Final = "1.2.840.113549.1.7.2"
_CONTENT_TYPE: Final = "1.2.840.113549.1.9.3"
_MESSAGE_DIGEST: Final = "1.2.840.113549.1.9.4"
_RSA: Final = "1.2.840.113549.1.1.1"
_SHA256: Final = "2.16.840.1.101.3.4.2.1"
_SPC_INDIRECT_DATA: Final = "1.3.6.1.4.1.311.2.1.4"
_SPC_STATEMENT_TYPE: Final = "1.3.6.1.4.1.311.2.1.11"
_SPC_INDIVIDUAL: Final = "1.3.6.1.4.1.311.2.1.21"
_SPC_SIP_INFO: Final = "1.3.6.1.4.1.311.2.1.30"
# {603BCC1F-4B59-4E08-B724-D2C6297EF351}, PowerShell's subject interface package, as Windows keeps a GUID in memory.
_POWERSHELL: Final = bytes.fromhex("1fcc3b60594b084eb724d2c6297ef351")


@dataclass(frozen=True, slots=True)
class Signer:
    """A key, its certificate, and those that lead to a root (without the root itself)."""

    key: rsa.RSAPrivateKey
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...]


def load_signer(path: Path, ask: Callable[[], Secret]) -> Signer:
    """The signer of a PFX file, or of a PEM file with key and certificate; `ask` is called only if it has a password.

    Raises UsageError when the file cannot be used to sign, with the reason.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"--sign {path}: it cannot be read: {error.strerror}",
            hint="Name a PFX file, or a PEM file with the private key and its certificate.",
        ) from error
    key, certificates = _unlocked(path, content, ask)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise UsageError(
            f"--sign {path}: it contains no RSA key",
            hint="Windows checks scripts with RSA certificates; App Control does not take others.",
        )
    own = [one for one in certificates if one.public_key() == key.public_key()]
    if not own:
        raise UsageError(
            f"--sign {path}: it contains no certificate of its key",
            hint="Put the certificate and the private key into one file.",
        )
    _check(path, own[0])
    chain = tuple(one for one in certificates if one != own[0] and one.subject != one.issuer)
    return Signer(key, own[0], chain)


def sign(text: str, signer: Signer) -> bytes:
    """The script with a signature block, ready to be written as it is.

    Raises ScriptError for a text with characters that Windows PowerShell and its signature check could read differently.
    """
    if not text.isascii():
        line = next(number for number, line in enumerate(text.splitlines(), 1) if not line.isascii())
        raise ScriptError(
            f"line {line} of the script has a character outside of ASCII, so it cannot be signed",
            hint="A script file without a byte order mark is read in the machine's code page.",
        )
    encoded = base64.b64encode(_signed_data(text.encode("utf-16-le"), signer)).decode()
    lines = [encoded[at : at + 64] for at in range(0, len(encoded), 64)]
    block = [BEGIN, *(f"# {line}" for line in lines), END]
    return (text + "".join(f"\r\n{line}" for line in block) + "\r\n").encode("ascii")


# ---- reading the file of the signer ----------------------------------------------------------------------------------


def _unlocked(
    path: Path, content: bytes, ask: Callable[[], Secret]
) -> tuple[object, Sequence[x509.Certificate]]:
    read = _pem if b"-----BEGIN" in content else _pfx
    try:
        # A PEM file with a locked key is a TypeError, a PFX file a ValueError, as is everything that is no such file.
        return read(content, None)
    except (TypeError, ValueError):
        password = ask().reveal().encode()
    try:
        return read(content, password)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"--sign {path}: it is no PFX or PEM file with a key, or the password is another",
            hint="`openssl pkcs12 -info -noout -in FILE` or `openssl pkey -noout -in FILE` tells which.",
        ) from error


def _pem(content: bytes, password: bytes | None) -> tuple[object, Sequence[x509.Certificate]]:
    return load_pem_private_key(content, password), x509.load_pem_x509_certificates(content)


def _pfx(content: bytes, password: bytes | None) -> tuple[object, Sequence[x509.Certificate]]:
    key, certificate, others = pkcs12.load_key_and_certificates(content, password)
    return key, [one for one in (certificate, *others) if one is not None]


def _check(path: Path, certificate: x509.Certificate) -> None:
    """Set-AuthenticodeSignature refuses such certificates too."""
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise UsageError(
            f"--sign {path}: the certificate is valid from {certificate.not_valid_before_utc:%Y-%m-%d} "
            f"to {certificate.not_valid_after_utc:%Y-%m-%d}",
            hint="Renew it, or set the clock of this computer.",
        )
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        usage = x509.ExtendedKeyUsage([])
    if ExtendedKeyUsageOID.CODE_SIGNING not in usage:
        raise UsageError(
            f"--sign {path}: the certificate is not one for code signing",
            hint="Its extended key usage has to contain codeSigning (1.3.6.1.5.5.7.3.3).",
        )


# ---- the signature ---------------------------------------------------------------------------------------------------


def _signed_data(hashed: bytes, signer: Signer) -> bytes:
    content = _indirect_data(_sha256(hashed))
    encoded = [one.public_bytes(Encoding.DER) for one in (signer.certificate, *signer.chain)]
    return _sequence(
        _identifier(_SIGNED_DATA),
        _tagged(
            0xA0,
            _sequence(
                _number(1),
                _tagged(0x31, _algorithm(_SHA256)),
                _sequence(_identifier(_SPC_INDIRECT_DATA), _tagged(0xA0, _sequence(content))),
                _tagged(0xA0, *sorted(encoded)),
                _tagged(0x31, _signer_info(content, signer)),
            ),
        ),
    )


def _indirect_data(digest: bytes) -> bytes:
    """The content of SpcIndirectDataContent, without its own tag and length: this is what is hashed."""
    sip = _sequence(_number(0x10000), _octets(_POWERSHELL), *[_number(0)] * 5)
    return _sequence(_identifier(_SPC_SIP_INFO), sip) + _sequence(_algorithm(_SHA256), _octets(digest))


def _signer_info(content: bytes, signer: Signer) -> bytes:
    attributes = sorted(
        [
            _attribute(_CONTENT_TYPE, _identifier(_SPC_INDIRECT_DATA)),
            _attribute(_SPC_STATEMENT_TYPE, _sequence(_identifier(_SPC_INDIVIDUAL))),
            _attribute(_MESSAGE_DIGEST, _octets(_sha256(content))),
        ]
    )
    # Signed as a SET, kept under the tag of its place (RFC 2315, 9.3).
    signature = signer.key.sign(_tagged(0x31, *attributes), padding.PKCS1v15(), hashes.SHA256())
    certificate = signer.certificate
    return _sequence(
        _number(1),
        _sequence(certificate.issuer.public_bytes(), _number(certificate.serial_number)),
        _algorithm(_SHA256),
        _tagged(0xA0, *attributes),
        _algorithm(_RSA),
        _octets(signature),
    )


def _sha256(content: bytes) -> bytes:
    digest = hashes.Hash(hashes.SHA256())
    digest.update(content)
    return digest.finalize()


# ---- DER (X.690), as much as a signature needs -----------------------------------------------------------------------


def _tagged(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    if len(content) < 0x80:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _tagged(0x30, *parts)


def _octets(content: bytes) -> bytes:
    return _tagged(0x04, content)


def _number(value: int) -> bytes:
    return _tagged(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _identifier(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    return _tagged(0x06, b"".join(_base128(each) for each in (first * 40 + second, *rest)))


def _base128(value: int) -> bytes:
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(0x80 | value & 0x7F)
    return bytes(reversed(digits))


def _algorithm(dotted: str) -> bytes:
    return _sequence(_identifier(dotted), _tagged(0x05))


def _attribute(dotted: str, value: bytes) -> bytes:
    return _sequence(_identifier(dotted), _tagged(0x31, value))

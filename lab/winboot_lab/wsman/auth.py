"""The client at the other end of a connection: Basic, NTLM and SPNEGO, and the sealing of message bodies.

On WinRM a login belongs to the TCP connection. It is made once, later requests carry no header, and over
plain HTTP every body is sealed with keys of that login. A new connection therefore cannot read what was
sealed for the old one.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

import spnego
from spnego import ContextReq
from spnego._ntlm_raw.crypto import ntowfv1
from spnego.channel_bindings import GssChannelBindings
from spnego.exceptions import ContextExpiredError, SpnegoError

SPNEGO_PROTOCOL: Final = "application/HTTP-SPNEGO-session-encrypted"
_BOUNDARY: Final = b"--Encrypted Boundary\r\n"
_NO_LM_HASH: Final = "0" * 32

# The library reads the accounts from the file that this variable names, when an acceptor is made. It reads them once
# more when the client proves its password; farms in one process take turns.
_FILE_VARIABLE: Final = "NTLM_USER_FILE"
# The same of Kerberos' acceptor: the keys of the services that this machine is.
_KEYTAB_VARIABLE: Final = "KRB5_KTNAME"
_turn = threading.Lock()

# At DEBUG it logs login tokens.
logging.getLogger("spnego").setLevel(logging.CRITICAL + 1)


class CannotUnseal(Exception):
    """The body was not sealed for this connection's login."""


class LoginExpired(Exception):
    """The ticket behind a Kerberos login has run out. MIT's acceptor then reads and seals nothing more with it."""


class Accounts:
    """The accounts of one machine. Names compare without case; `.\\name` and `COMPUTER\\name` are local names."""

    def __init__(
        self, file: Path, computer_name: str, passwords: Mapping[str, str], keytab: Path | None = None
    ) -> None:
        self._file = file
        self._keytab = keytab
        self._computer_name = computer_name
        self._passwords: dict[str, str] = {}
        for user, password in passwords.items():
            self.set_password(user, password)

    def set_password(self, user: str, password: str) -> None:
        """Add an account, or change its password."""
        self._passwords[_key(user)] = password
        lines = [line for name, secret in self._passwords.items() for line in self._lines(name, secret)]
        self._file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def accept(self, user: str, password: str) -> bool:
        """Whether this is the user's password."""
        name = _key(user)
        for prefix in (".\\", f"{self._computer_name.casefold()}\\"):
            name = name.removeprefix(prefix)
        return self._passwords.get(name) == password

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While this lasts, the acceptors of NTLM and Kerberos know these accounts and keys."""
        # Without keys of its own, a machine must not find those of this host.
        keys = str(self._keytab or os.devnull)
        with _turn, _variable(_FILE_VARIABLE, str(self._file)), _variable(_KEYTAB_VARIABLE, keys):
            yield

    def _lines(self, name: str, password: str) -> list[str]:
        # The smbpasswd form holds the hash; the other form would cost a pure-Python MD4 for each login.
        ntlm_hash = ntowfv1(password).hex().upper()
        names = [name] if "\\" in name else [name, f".\\{name}", f"{self._computer_name}\\{name}"]
        return [f"{each}:1000:{_NO_LM_HASH}:{ntlm_hash}:[U]:LCT-00000000" for each in names]


@contextmanager
def _until_expiry() -> Iterator[None]:
    try:
        yield
    except ContextExpiredError as error:
        raise LoginExpired from error
    except _GSS_ERRORS as error:
        # pyspnego lets gssapi's own exception through where it asks for the mechanism.
        if getattr(error, "maj_code", None) != 12 << 16:  # GSS_S_CONTEXT_EXPIRED
            raise
        raise LoginExpired from error


def _gss_errors() -> Iterator[type[Exception]]:
    with suppress(ImportError):
        yield import_module("gssapi.raw").GSSError


_GSS_ERRORS: Final = tuple(_gss_errors())


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _key(user: str) -> str:
    return user.casefold()


@dataclass(frozen=True, slots=True)
class Refused:
    """Answer 401, with these WWW-Authenticate headers."""

    challenges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Go on as `user`; `token` is the login's last word, to be sent as WWW-Authenticate."""

    user: str
    token: str | None = None


class Login:
    """The login of one connection. `bindings` are those of its TLS (RFC 5929): a Kerberos login bound to another
    certificate is refused, one without any binding is not, as WinRM's CbtHardeningLevel Relaxed has it.
    """

    def __init__(
        self, accounts: Accounts, offers: tuple[str, ...], bindings: GssChannelBindings | None = None
    ) -> None:
        self._accounts = accounts
        self._offers = offers
        self._bindings = bindings
        self._context: spnego.ContextProxy | None = None
        self._user: str | None = None

    def step(self, authorization: str | None) -> Accepted | Refused:
        """Read the Authorization header, if there is one, and say how the request continues."""
        if authorization is None:
            return Accepted(self._user) if self._user is not None else self._refuse()
        scheme, _, rest = authorization.partition(" ")
        if scheme.casefold() not in {offer.partition(" ")[0].casefold() for offer in self._offers}:
            return self._refuse()
        try:
            token = base64.b64decode(rest, validate=True)
        except binascii.Error:
            return self._refuse()
        return self._basic(token) if scheme.casefold() == "basic" else self._negotiate(scheme, token)

    def seal(self, body: bytes) -> bytes:
        """The multipart body that carries `body` encrypted. Raises LoginExpired."""
        assert self._context is not None
        with _until_expiry():
            sealed = self._context.wrap_winrm(body)
        return b"".join(
            (
                _BOUNDARY,
                f"\tContent-Type: {SPNEGO_PROTOCOL}\r\n".encode(),
                f"\tOriginalContent: type=application/soap+xml;charset=UTF-8;Length={len(body)}\r\n".encode(),
                _BOUNDARY,
                b"\tContent-Type: application/octet-stream\r\n",
                struct.pack("<i", len(sealed.header)),
                sealed.header,
                sealed.data,
                b"--Encrypted Boundary--\r\n",
            )
        )

    def unseal(self, body: bytes) -> bytes:
        """What a multipart body carries. Raises CannotUnseal or LoginExpired."""
        marker = b"\tContent-Type: application/octet-stream\r\n"
        start = body.find(marker)
        end = body.rfind(b"--Encrypted Boundary--")
        if start < 0 or end < 0 or self._context is None or not self._context.complete:
            raise CannotUnseal
        sealed = body[start + len(marker) : end]
        length = int.from_bytes(sealed[:4], "little")
        with _until_expiry():
            try:
                return self._context.unwrap_winrm(sealed[4 : 4 + length], sealed[4 + length :])
            except ContextExpiredError:
                raise
            except SpnegoError as error:
                raise CannotUnseal from error

    @property
    def delegated(self) -> bool:
        """Whether the client gave a ticket with which this machine could log in elsewhere."""
        return self._context is not None and bool(self._context.context_attr & ContextReq.delegate)

    @property
    def protocol(self) -> str | None:
        """`ntlm` or `kerberos`, once the login is through."""
        return self._context.negotiated_protocol if self._context is not None else None

    def _refuse(self) -> Refused:
        self._context = None
        self._user = None
        return Refused(self._offers)

    def _basic(self, token: bytes) -> Accepted | Refused:
        try:
            text = token.decode("utf-8")
        except UnicodeDecodeError:
            text = token.decode("latin-1")  # no encoding is agreed on, and clients differ
        user, _, password = text.partition(":")
        # Basic proves itself again with each request and leaves no login behind.
        return Accepted(user) if self._accounts.accept(user, password) else self._refuse()

    def _negotiate(self, scheme: str, token: bytes) -> Accepted | Refused:
        with self._accounts.in_use():
            if self._context is None or self._context.complete:
                protocol = "ntlm" if token.startswith(b"NTLMSSP\0") else "negotiate"
                options = spnego.NegotiateOptions.use_negotiate
                self._context = spnego.server(protocol=protocol, options=options)
                self._user = None
            try:
                answer = self._context.step(token, channel_bindings=self._bindings)
            except (SpnegoError, ValueError, struct.error):
                return self._refuse()
            except AttributeError:
                # gssapi keeps an error back while it has a token to send, such as that of a wrong binding. Then pyspnego
                # asks it for the flags of a login that does not exist.
                return self._refuse()
        header = f"{scheme} {base64.b64encode(answer).decode()}" if answer else None
        if not self._context.complete:
            return Refused((header,)) if header else self._refuse()
        self._user = self._context.client_principal or ""
        return Accepted(self._user, header)

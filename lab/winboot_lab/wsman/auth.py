"""Who is at the other end of a connection: Basic, NTLM and SPNEGO, and the sealing of message bodies.

On WinRM a login belongs to the TCP connection: it is made once, later requests carry no header, and over
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import spnego
from spnego._ntlm_raw.crypto import ntowfv1
from spnego.exceptions import SpnegoError

SPNEGO_PROTOCOL: Final = "application/HTTP-SPNEGO-session-encrypted"
_BOUNDARY: Final = b"--Encrypted Boundary\r\n"
_NO_LM_HASH: Final = "0" * 32

# The library reads the accounts from the file that this variable names, when an acceptor is made and once
# more when the client proves its password; farms in one process take turns.
_FILE_VARIABLE: Final = "NTLM_USER_FILE"
_turn = threading.Lock()

# At DEBUG it logs login tokens.
logging.getLogger("spnego").setLevel(logging.CRITICAL + 1)


class CannotUnseal(Exception):
    """The body was not sealed for this connection's login."""


class Accounts:
    """The accounts of one machine. Names compare without case; `.\\name` and `COMPUTER\\name` are local
    names.
    """

    def __init__(self, file: Path, computer_name: str, passwords: Mapping[str, str]) -> None:
        self._file = file
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
        """While this lasts, the NTLM acceptor knows these accounts."""
        with _turn:
            before = os.environ.get(_FILE_VARIABLE)
            os.environ[_FILE_VARIABLE] = str(self._file)
            try:
                yield
            finally:
                if before is None:
                    del os.environ[_FILE_VARIABLE]
                else:
                    os.environ[_FILE_VARIABLE] = before

    def _lines(self, name: str, password: str) -> list[str]:
        # The smbpasswd form holds the hash; the other form would cost a pure-Python MD4 for each login.
        ntlm_hash = ntowfv1(password).hex().upper()
        names = [name] if "\\" in name else [name, f".\\{name}", f"{self._computer_name}\\{name}"]
        return [f"{each}:1000:{_NO_LM_HASH}:{ntlm_hash}:[U]:LCT-00000000" for each in names]


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
    """The login of one connection."""

    def __init__(self, accounts: Accounts, offers: tuple[str, ...]) -> None:
        self._accounts = accounts
        self._offers = offers
        self._context: spnego.ContextProxy | None = None
        self._user: str | None = None

    def step(self, authorization: str | None) -> Accepted | Refused:
        """Read the Authorization header, if there is one, and say how the request goes on."""
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
        """The multipart body that carries `body` encrypted."""
        assert self._context is not None
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
        """What a multipart body carries. Raises CannotUnseal."""
        marker = b"\tContent-Type: application/octet-stream\r\n"
        start = body.find(marker)
        end = body.rfind(b"--Encrypted Boundary--")
        if start < 0 or end < 0 or self._context is None or not self._context.complete:
            raise CannotUnseal
        sealed = body[start + len(marker) : end]
        length = int.from_bytes(sealed[:4], "little")
        try:
            return self._context.unwrap_winrm(sealed[4 : 4 + length], sealed[4 + length :])
        except SpnegoError as error:
            raise CannotUnseal from error

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
        # Basic proves itself anew with each request and leaves no login behind.
        return Accepted(user) if self._accounts.accept(user, password) else self._refuse()

    def _negotiate(self, scheme: str, token: bytes) -> Accepted | Refused:
        with self._accounts.in_use():
            if self._context is None or self._context.complete:
                protocol = "ntlm" if token.startswith(b"NTLMSSP\0") else "negotiate"
                options = spnego.NegotiateOptions.use_negotiate
                self._context = spnego.server(protocol=protocol, options=options)
                self._user = None
            try:
                answer = self._context.step(token)
            except (SpnegoError, ValueError, struct.error):
                return self._refuse()
        header = f"{scheme} {base64.b64encode(answer).decode()}" if answer else None
        if not self._context.complete:
            return Refused((header,)) if header else self._refuse()
        self._user = self._context.client_principal or ""
        return Accepted(self._user, header)


LoginFactory = Callable[[], Login]

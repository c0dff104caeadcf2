"""What Kerberos says of a login that failed, by its number and never by its text.

The numbers are those of MIT's library (krb5_err.et, from `ERROR_TABLE_BASE_krb5` up); the first 128 are the codes of
RFC 4120, 7.5.9. They come in the exceptions of two Python packages, krb5 and gssapi, neither of which has to be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from winboot.base.errors import ConnectionLost, LoginRefused, TransportError, Unreachable


def _classes() -> Iterator[type[Exception]]:
    # pyspnego imports both when they are there; it lets some of their exceptions through.
    for module, name in (("krb5", "Krb5Error"), ("gssapi.raw", "GSSError")):
        with suppress(ImportError):
            yield getattr(import_module(module), name)


KERBEROS_ERRORS: Final = tuple(_classes())
_CONTEXT_EXPIRED: Final = 12 << 16  # GSS_S_CONTEXT_EXPIRED (RFC 2744, 3.9.1)
_BASE: Final = -1765328384
_TICKET_HINT: Final = (
    "Run `kinit`, or let KRB5_CLIENT_KTNAME name a keytab: with a keytab, winboot gets and renews tickets itself. Or "
    "set `user` and `password` in the inventory."
)
_REALM_HINT: Final = (
    "Write `user: name@REALM`, with a realm that krb5.conf (or DNS) knows; `klist` shows your principal."
)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a number means: the error, and what to do."""

    kind: type[TransportError]
    hint: str


_MEANINGS: Final = {
    6: _Meaning(LoginRefused, _REALM_HINT),  # KDC_ERR_C_PRINCIPAL_UNKNOWN
    7: _Meaning(  # KDC_ERR_S_PRINCIPAL_UNKNOWN
        LoginRefused,
        "Connect by the machine's name in its domain, or set `connection.spn` to one of its principals; `setspn -L "
        "COMPUTER` lists them.",
    ),
    24: _Meaning(
        LoginRefused, "Check that the password or the keytab belongs to this account and is current."
    ),  # PREAUTH_FAILED
    31: _Meaning(
        LoginRefused, "Check that the password or the keytab belongs to this account and is current."
    ),  # AP_ERR_BAD_INTEGRITY
    32: _Meaning(LoginRefused, f"The ticket has expired. {_TICKET_HINT}"),  # AP_ERR_TKT_EXPIRED
    37: _Meaning(
        LoginRefused, "Correct the clock of this host or of the machine: five minutes are allowed."
    ),  # SKEW
    141: _Meaning(LoginRefused, _TICKET_HINT),  # KRB5_CC_NOTFOUND
    154: _Meaning(LoginRefused, _REALM_HINT),  # KRB5_REALM_UNKNOWN
    156: _Meaning(
        Unreachable, "Check that a domain controller is up, and that no firewall blocks its port 88."
    ),  # KRB5_KDC_UNREACH
    195: _Meaning(LoginRefused, _TICKET_HINT),  # KRB5_FCC_NOFILE
    220: _Meaning(
        Unreachable, "Check that a domain controller is up, and that no firewall blocks its port 88."
    ),  # REALM_CANT_RESOLVE
}
_OTHER: Final = _Meaning(
    LoginRefused, "Test with `kvno host/NAME`. Check `user`, `password`, `auth` and `spn` in the inventory."
)


def kerberos_error(chain: Iterable[BaseException], name: str, user: str) -> TransportError | None:
    """The error for the machine called `name`, when one of `chain` comes from Kerberos; else None.

    A login that expired while its connection was open is a lost connection: the next one logs in again.
    """
    for each in chain:
        if getattr(each, "maj_code", None) == _CONTEXT_EXPIRED:
            return ConnectionLost(
                f"{name}: the Kerberos login of this connection has expired", hint=_TICKET_HINT, node=name
            )
        number = _number(each)
        if number is not None:
            meaning = _MEANINGS.get(number, _OTHER)
            who = repr(user) if user else "with the tickets of this host"
            return meaning.kind(
                f"{name}: no Kerberos login {who}: {_said(each)}", hint=meaning.hint, node=name
            )
    return None


def _number(error: BaseException) -> int | None:
    """Kerberos' own number: krb5's `err_code`, or gssapi's `min_code`, which has lost its sign."""
    for attribute in ("err_code", "min_code"):
        code = getattr(error, attribute, None)
        if isinstance(code, int):
            signed = code - (1 << 32) if code >= 1 << 31 else code
            if 0 <= signed - _BASE < 256:
                return signed - _BASE
    return None


def _said(error: BaseException) -> str:
    """The library's own words. gssapi has two numbers and two sentences, of which the second one matters."""
    text = " ".join(str(error).split())
    _, minor, last = text.rpartition("Minor (")
    text = last.partition("): ")[2] if minor else text
    return text.removesuffix(f" {getattr(error, 'err_code', '')}").strip()

"""A domain account that one machine refused is not tried at others: a few wrong passwords lock it for everybody.

A local account (`.\\name`) is another one on each machine. Until a domain account has logged in somewhere, only
`MOST_AT_ONCE` sessions are opened with it at a time. A domain locks an account after three wrong passwords at the
earliest that anybody uses, after five or ten as a rule.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Final, Self

from winboot.base.errors import LoginRefused, WinbootError
from winboot.base.secret import Secret
from winboot.config.inventory import Connection
from winboot.remote.transport.base import Probe, Transport

MOST_AT_ONCE: Final = 2


def domain_account(connection: Connection) -> str | None:
    """The domain account that a connection logs in with by a password, in lower case; None for any other."""
    user = connection.user.lower()
    if connection.password is None:
        return None
    domain, slash, _ = user.partition("\\")
    return user if "@" in user or (slash and domain not in ("", ".")) else None


class Logins:
    """What is known of the domain accounts of one run; used from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}

    def guarded(self, connection: Connection, transport: Transport, *, name: str) -> Transport:
        """The transport, which does not log in with a domain account that was refused elsewhere."""
        account = self._account(connection)
        return transport if account is None else GuardedTransport(transport, account, name)

    def trying(self, connection: Connection, name: str) -> AbstractContextManager[None]:
        """Around what logs in somewhere else, in another process: raises LoginRefused, without any try, where a machine has
        refused the account. What is raised within says that it did not log in: LoginRefused, or an error that says nothing of
        the account."""
        account = self._account(connection)
        return nullcontext() if account is None else account.trying(name)

    def _account(self, connection: Connection) -> _Account | None:
        user = domain_account(connection)
        if user is None:
            return None
        with self._lock:
            return self._accounts.setdefault(user, _Account(connection.user))


class _Account:
    """One domain account: whether it is good, or where it was refused."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._few = threading.Semaphore(MOST_AT_ONCE)
        self._good = threading.Event()
        self._refused_at = ""

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """Around whatever may log in. Raises LoginRefused, without any try, where another machine refused it."""
        if self._good.is_set():
            yield
            return
        with self._few:
            if self._refused_at and not self._good.is_set():
                raise LoginRefused(
                    f"{name}: winboot did not log in: {self._refused_at} refused the login {self._user!r}, and more "
                    "wrong passwords would lock the account",
                    hint="Check `user`, `password` and `auth` in the inventory, then run the same command again.",
                    node=name,
                )
            try:
                yield
            except LoginRefused:
                self._refused_at = name
                raise
            except WinbootError:
                # It says nothing of the account.
                raise
            self._good.set()


class GuardedTransport:
    """A transport whose first login waits until its account is known to be good."""

    def __init__(self, inner: Transport, account: _Account, name: str) -> None:
        self._inner = inner
        self._account = account
        self._name = name

    @property
    def on_quiet(self) -> Callable[[], None]:
        """See `Transport`."""
        return self._inner.on_quiet

    @on_quiet.setter
    def on_quiet(self, hear: Callable[[], None]) -> None:
        self._inner.on_quiet = hear

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        """See `Transport.run`. With the first line, or the end, the login has succeeded."""
        lines = self._inner.run(script, arguments, secrets)
        with self._account.trying(self._name):
            first = next(lines, None)
        if first is not None:
            yield first
            yield from lines

    def probe(self) -> Probe:
        """See `Transport.probe`."""
        with self._account.trying(self._name):
            return self._inner.probe()

    def close(self) -> None:
        """See `Transport.close`."""
        self._inner.close()

    def interrupt(self) -> None:
        """See `Transport.interrupt`."""
        self._inner.interrupt()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

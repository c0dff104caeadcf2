"""The protocol that every way to a machine implements, and the values that pass it.

    with connect(endpoint, name="win-a1") as transport:
        for line in transport.run(script, {"Mode": "Look"}, {}):
            ...

What a transport promises, and one contract test (`tests/transport/test_contract.py`) asks of all of them:

- `run` yields each output string the moment it arrives. Whatever else the script says (errors that do not
  end it, warnings, verbose text) comes in between as a line `error: …`, `warning: …`. Such a line is never a JSON
  object.
- A script runs at most once per `run`. When the connection breaks in the middle, `run` continues with the
  same pipeline where the protocol allows it. Where it does not, it raises `ConnectionLost` and the caller may run the
  script again.
- The script's text is dropped once it is sent: a fleet would hold half a megabyte a node while it waits.
- Secrets travel apart from the script, encrypted: never in its text, in a log, in an error or in a `repr`.
- Every failure is one of `winboot.base.errors`. `close` never raises and takes a bounded time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Literal, Protocol, Self

from winboot.base.secret import Secret

Auth = Literal["negotiate", "ntlm", "kerberos", "basic"]


@dataclass(frozen=True, slots=True)
class Tls:
    """What to trust on an HTTPS endpoint: a CA (PEM text), one pinned certificate (SHA-256 in hex), or with neither
    of them the system's CAs.
    """

    ca_pem: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds. `read` must exceed `operation`: a quiet script answers every
    `operation` seconds.

    `open` is how long opening a session is tried again while the machine is out of reach or busy. `resume` is how
    long a running script may be out of reach before it is given up. `close` is the most that ending a session may
    take, and `idle` how long a session that we could not end lives on the machine.
    """

    connect: int = 10
    operation: int = 20
    read: int = 35
    open: int = 5
    resume: int = 60
    close: int = 5
    idle: int = 900


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and as which user winboot reaches a machine. `tls` None means HTTP, whose bodies are then sealed by the
    login. `via` is the place to dial instead (host, port), when a tunnel leads to the machine. `spn` is the service
    principal of Kerberos (`HTTP/name`) where it is not host/address.
    """

    address: str
    port: int
    user: str
    password: Callable[[], Secret] | None = field(repr=False)
    auth: Auth = "negotiate"
    tls: Tls | None = None
    timeouts: Timeouts = Timeouts()
    via: tuple[str, int] | None = None
    spn: str | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate an HTTPS endpoint shows, trusted or not."""

    fingerprint: str
    subject: str
    issuer: str
    names: tuple[str, ...]
    not_after: datetime
    protocol: str


@dataclass(frozen=True, slots=True)
class Outside:
    """What a machine shows to anyone who asks."""

    offered_auth: tuple[str, ...]
    certificate: Certificate | None
    host_key: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """What `winboot ping` shows of a machine: facts, no judgement.

    `clock_offset` is the machine's clock minus ours. `administrator` is false for a filtered token, too:
    the account is in the Administrators group, but this session does not have its rights. `certificate` is WinRM's,
    `host_key` (a fingerprint) is SSH's.
    """

    offered_auth: tuple[str, ...]
    certificate: Certificate | None
    language_mode: str
    execution_policy: str
    administrator: bool
    filtered_token: bool
    computer_name: str
    domain: str | None
    os_build: str
    ps_version: str
    clock_offset: timedelta
    round_trip: timedelta
    host_key: str | None = None


def nobody_waits() -> None:
    """What `on_quiet` is until something listens."""


class Transport(Protocol):
    """A session on one machine. Belongs to one thread; opens on first use.

    `on_quiet` is called from time to time while a script says nothing; it may raise to end the script.
    """

    on_quiet: Callable[[], None]

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        """Run `script` and yield its output as it streams.

        `arguments` become named parameters (plain values: None, bool, int, float, str, bytes, list, dict);
        `secrets` become the hashtable parameter `Secrets`, whose values are SecureStrings on the machine.
        Raises TransportError for the way there, ScriptFailed when the script ends with a terminating error.
        Closing the iterator early stops the script.
        """
        ...

    def probe(self) -> Probe:
        """Look at the machine with one small script of our own. Raises TransportError."""
        ...

    def close(self) -> None:
        """End the session. Never raises."""
        ...

    def interrupt(self) -> None:
        """End the script that runs now, if any: `run` then raises. The one method that another thread may call.

        Best effort, within some seconds; never raises.
        """
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""Scripts over SSH: one connection to the machine, one channel for each run, powershell.exe behind it (see `console`).

SSH cannot take up a channel again. A connection that breaks in the middle of a script raises ConnectionLost. The
script on the machine ends at its next event, when it cannot write any more, and the caller runs it again.

Win32-OpenSSH does not end what it started when the client goes away (PowerShell/Win32-OpenSSH issue 1751). So winboot
ends a script by its process id, on a second channel.
"""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import paramiko
from paramiko.hostkeys import HostKeyEntry
from paramiko.ssh_exception import (
    AuthenticationException,
    BadAuthenticationType,
    ChannelException,
    IncompatiblePeer,
    PasswordRequiredException,
    SSHException,
)

from winboot.base.errors import (
    Busy,
    ConnectionLost,
    HostKeyNotTrusted,
    LoginRefused,
    ProtocolError,
    ScriptFailed,
    TransportError,
    Unreachable,
    WinbootError,
)
from winboot.base.retry import retried
from winboot.base.secret import Secret
from winboot.config.inventory import Connection, Jump
from winboot.config.profile import Reference
from winboot.remote.transport.base import Outside, Probe, Timeouts, Transport, nobody_waits
from winboot.remote.transport.console import AGAIN, Conversation, command_line, standard_input
from winboot.remote.transport.probe import PROBE_SCRIPT, read_probe

# Without a handler, logging prints paramiko's tracebacks to standard error.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_KEYS: Final = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
_PIECE: Final = 1 << 16
_LAST_PIECES: Final = (
    64  # that are read of what a machine still says after the end: it may say it without an end
)
_LAST_WORDS: Final = 4096  # bytes of standard error that are kept
# Members of Administrators have their keys in one common file. The server refuses it when others may write to it
# (Microsoft Learn, "Key-based authentication in OpenSSH for Windows").
_KEY_HINT: Final = (
    r"For an account in Administrators, sshd on Windows reads C:\ProgramData\ssh\administrators_authorized_keys, which only"
    " SYSTEM and Administrators may have access to; for others .ssh/authorized_keys. Check `user`, `key` and `password`."
)


@dataclass(frozen=True, slots=True)
class Login:
    """How to prove our identity. Each callable reads its reference when it is needed."""

    user: str
    key: Callable[[], Secret] | None = field(default=None, repr=False)
    passphrase: Callable[[], Secret] | None = field(default=None, repr=False)
    certificate: Callable[[], Secret] | None = field(default=None, repr=False)
    password: Callable[[], Secret] | None = field(default=None, repr=False)
    agent: bool = False


@dataclass(frozen=True, slots=True)
class Trust:
    """Which host key is the right one: a pinned fingerprint (`SHA256:…`), or what a known_hosts file says."""

    fingerprint: str | None = None
    known_hosts: Path | None = None


@dataclass(frozen=True, slots=True)
class SshEndpoint:
    """Where and as which user winboot reaches a machine over SSH.

    `jump` is the host to go through. `via` is the place to dial instead, when a tunnel leads to the machine; the host
    key is still looked up under `address` and `port`.
    """

    address: str
    port: int
    login: Login
    trust: Trust
    jump: SshEndpoint | None = None
    via: tuple[str, int] | None = None
    timeouts: Timeouts = field(default_factory=Timeouts)


def ssh_endpoint(connection: Connection, name: str) -> SshEndpoint:
    """The endpoint of a connection of the inventory, behind its jump hosts."""
    timeouts = Timeouts(connect=connection.connect_timeout_s)
    before: SshEndpoint | None = None
    for jump in connection.proxy_jump:
        before = SshEndpoint(
            jump.host,
            jump.port,
            _login(jump, f"{name}: proxy_jump {jump.host}"),
            _trust(jump),
            before,
            timeouts=timeouts,
        )
    return SshEndpoint(
        connection.host,
        connection.port_number,
        _login(connection, f"{name}: connection"),
        _trust(connection),
        before,
        timeouts=timeouts,
    )


def _login(settings: Connection | Jump, where: str) -> Login:
    def reading(reference: Reference | None, key: str) -> Callable[[], Secret] | None:
        return partial(reference.read, f"{where}.{key}") if reference is not None else None

    return Login(
        user=settings.user,
        key=reading(settings.key, "key"),
        passphrase=reading(settings.passphrase, "passphrase"),
        certificate=reading(settings.certificate, "certificate"),
        password=reading(settings.password, "password"),
        agent=settings.agent,
    )


def _trust(settings: Connection | Jump) -> Trust:
    return Trust(settings.host_key, settings.known_hosts or Path.home() / ".ssh" / "known_hosts")


class Link:
    """An SSH connection whose host key has been checked, with the connections to the hosts before it."""

    def __init__(self, transport: Session, before: Link | None = None) -> None:
        self.transport = transport
        self._before = before

    def close(self) -> None:
        """Close it and what it goes through. Never raises."""
        self.transport.close()
        if self._before is not None:
            self._before.close()


def fingerprint(key: paramiko.PKey) -> str:
    """As `ssh-keygen -l` prints it: `SHA256:` and base64 without padding."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode("ascii").rstrip("=")


def shown_host_key(endpoint: SshEndpoint, name: str) -> str:
    """The type and the fingerprint of the host key that a machine shows, whether trusted or not. Raises TransportError."""
    link = _greet(endpoint, name)
    try:
        key = link.transport.get_remote_server_key()
        return f"{key.get_name()} {fingerprint(key)}"
    finally:
        link.close()


class SshTransport(Transport):
    """One machine over SSH."""

    def __init__(self, endpoint: SshEndpoint, *, name: str) -> None:
        self._endpoint = endpoint
        self._name = name
        self._link: Link | None = None
        self._talk: Conversation | None = None
        self.on_quiet = nobody_waits

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        """See `Transport.run`."""
        payload = standard_input(script, arguments, secrets)
        with self._named_failures():
            process = self._start(payload)
            # It may run for half an hour, and each of them is half a megabyte.
            del script, payload
            talk = self._talk = Conversation(self._name, process)
            try:
                yield from talk.lines()
            finally:
                if not talk.ended and talk.pid is not None:
                    self._stop(talk.pid)
                process.channel.close()

    def probe(self) -> Probe:
        """See `Transport.probe`."""
        with self._named_failures():
            offered = _offered(self._endpoint, self._name)
            shown = fingerprint(self._session().transport.get_remote_server_key())
        return read_probe(lambda: self.run(PROBE_SCRIPT, {}, {}), Outside(offered, None, shown), self._name)

    def close(self) -> None:
        """See `Transport.close`."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def interrupt(self) -> None:
        """See `Transport.interrupt`."""
        talk = self._talk
        if talk is not None and not talk.ended and talk.pid is not None:
            self._stop(talk.pid)

    @contextmanager
    def _named_failures(self) -> Iterator[None]:
        """Let every failure be a winboot error; a connection that broke is not used again."""
        try:
            yield
        except ScriptFailed:
            raise
        except WinbootError:
            self.close()
            raise
        except (SSHException, EOFError, OSError) as error:
            self.close()
            raise _lost(self._name, error) from error

    def _start(self, payload: bytes) -> _ChannelProcess:
        link = self._session()
        try:
            channel = link.transport.open_session(timeout=self._endpoint.timeouts.connect)
        except ChannelException as error:
            self.close()
            raise Unreachable(
                f"{self._name}: the login works, but sshd opens no session ({_root(error)})",
                hint="Check MaxSessions in the machine's sshd_config: 0 allows only jumps.",
                node=self._name,
            ) from error
        channel.settimeout(float(self._endpoint.timeouts.read))
        channel.exec_command(command_line())
        channel.sendall(payload)
        channel.shutdown_write()
        channel.settimeout(float(self._endpoint.timeouts.operation))
        return _ChannelProcess(channel, self._name, self._endpoint.timeouts, self.on_quiet)

    def _session(self) -> Link:
        """The open connection, or a new one. Opening is tried again while that can help, for `timeouts.open` seconds."""
        if self._link is not None and self._link.transport.is_active():
            return self._link
        self.close()
        self._link = retried(
            lambda: _open(self._endpoint, self._name),
            self._endpoint.timeouts.open,
            Unreachable,
            ConnectionLost,
            Busy,
        )
        return self._link

    def _stop(self, pid: int) -> None:
        """End the script on the machine, with whatever it started. Best effort, within `timeouts.close` seconds."""
        link = self._link
        if link is None or not link.transport.is_active():
            return
        seconds = float(self._endpoint.timeouts.close)
        with suppress(SSHException, EOFError, OSError):
            channel = link.transport.open_session(timeout=seconds)
            channel.settimeout(seconds)
            channel.exec_command(f"taskkill.exe /PID {pid} /T /F")
            channel.shutdown_write()
            for _ in range(_LAST_PIECES):
                if not channel.recv(_PIECE):
                    break
            channel.close()


class _ChannelProcess:
    """powershell.exe behind a channel; see `console.Process`."""

    def __init__(
        self, channel: paramiko.Channel, name: str, timeouts: Timeouts, on_quiet: Callable[[], None]
    ) -> None:
        self.channel = channel
        self._on_quiet = on_quiet
        self._name = name
        self._timeouts = timeouts

    def receive(self) -> bytes:
        """More output. winboot asks a quiet machine from time to time whether it is still there."""
        while True:
            try:
                return self.channel.recv(_PIECE)
            except TimeoutError:
                self._ask_whether_alive()
                self._on_quiet()

    def finish(self) -> tuple[int | None, str]:
        """The exit code, None when the connection ended first, and the last of standard error."""
        said = b""
        with suppress(SSHException, EOFError, OSError):
            self.channel.settimeout(float(self._timeouts.close))
            for _ in range(_LAST_PIECES):
                piece = self.channel.recv_stderr(_PIECE)
                if not piece:
                    break
                said = (said + piece)[-_LAST_WORDS:]
        code = None
        if self.channel.status_event.wait(self._timeouts.close) and self.channel.exit_status >= 0:
            code = self.channel.exit_status
        return code, said.decode("utf-8", errors="replace")

    def _ask_whether_alive(self) -> None:
        """Send a request that every server must answer (RFC 4254, 4). paramiko waits for the answer without a limit."""
        transport = self.channel.get_transport()
        answered = threading.Event()

        def ask() -> None:
            with suppress(SSHException, EOFError, OSError):
                transport.global_request("keepalive@openssh.com", wait=True)
            if transport.is_active():
                answered.set()

        threading.Thread(target=ask, name=f"keepalive {self._name}", daemon=True).start()
        if not answered.wait(self._timeouts.read):
            transport.close()
            raise ConnectionLost(
                f"{self._name}: the machine has not answered for {self._timeouts.read} s",
                hint=AGAIN,
                node=self._name,
            )


def _open(endpoint: SshEndpoint, name: str) -> Link:
    """Connect, check the host key, log in. Raises TransportError."""
    link = _greet(endpoint, name)
    try:
        _check_host_key(link.transport.get_remote_server_key(), endpoint, name)
        _log_in(link.transport, endpoint.login, name)
    except (SSHException, EOFError, OSError) as error:
        # paramiko calls a connection that broke a refused login as well. After a refusal the client still has the
        # connection, or the server closed it.
        stays = isinstance(error, AuthenticationException) and link.transport.is_active()
        refused = stays or link.transport.sent_away
        link.close()
        if refused:
            raise LoginRefused(
                f"{name}: the login {endpoint.login.user!r} was refused", hint=_KEY_HINT, node=name
            ) from error
        raise Busy(
            f"{name}: the connection ended during the login ({error or type(error).__name__})",
            hint="sshd may be restarting or may have too many logins at once (MaxStartups).",
            node=name,
        ) from error
    except BaseException:
        link.close()
        raise
    return link


class Session(paramiko.Transport):
    """paramiko's connection, which knows how it ended."""

    # The server has said goodbye, as after too many refused logins; a connection that breaks says nothing.
    sent_away = False

    def _parse_disconnect(self, m: paramiko.Message) -> None:
        self.sent_away = True
        super()._parse_disconnect(m)  # type: ignore[misc]  # not in the stubs


def _greet(endpoint: SshEndpoint, name: str) -> Link:
    """A connection with its keys exchanged; no user is logged in, and the host key is not checked."""
    before = _open(endpoint.jump, f"{name} (jump host {endpoint.jump.address})") if endpoint.jump else None
    sock = _dial(endpoint, before, name)
    transport = Session(sock)
    transport.banner_timeout = transport.handshake_timeout = float(endpoint.timeouts.connect)
    _prefer_known_types(transport, endpoint)
    link = Link(transport, before)
    try:
        transport.start_client(timeout=float(endpoint.timeouts.connect))
    except IncompatiblePeer as error:
        link.close()
        raise ProtocolError(
            f"{name}: no common SSH algorithms ({error})",
            hint=_common_algorithms(transport, str(error)),
            node=name,
        ) from error
    except (SSHException, EOFError, OSError) as error:
        link.close()
        raise Busy(
            f"{name}: the SSH server ended the connection before the login ({error or type(error).__name__})",
            hint="sshd does this above MaxStartups and during a restart; or another service has this port.",
            node=name,
        ) from error
    return link


def _common_algorithms(transport: paramiko.Transport, error: str) -> str:
    """What sshd_config must allow: what paramiko offers of the kind that its error names."""
    ours = transport.get_security_options()
    kinds = {
        "kex": ("KexAlgorithms", ours.kex),
        "host key": ("HostKeyAlgorithms", ours.key_types),
        "cipher": ("Ciphers", ours.ciphers),
        "mac": ("MACs", ours.digests),
    }
    word, names = next((kinds[kind] for kind in kinds if kind in error), kinds["kex"])
    return f"Allow one of these in {word} of the machine's sshd_config: {', '.join(names)}."


def _dial(endpoint: SshEndpoint, before: Link | None, name: str) -> socket.socket | paramiko.Channel:
    host, port = endpoint.via or (endpoint.address, endpoint.port)
    try:
        if before is not None:
            return before.transport.open_channel(
                "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=float(endpoint.timeouts.connect)
            )
        sock = socket.create_connection((host, port), timeout=endpoint.timeouts.connect)
    except (ChannelException, SSHException, EOFError, OSError) as error:
        if before is not None:
            before.close()
        raise Unreachable(
            f"{name}: nothing answers at {host}:{port} ({_root(error)})",
            hint=f"Check that sshd runs on the machine, and that a firewall allows TCP port {port}.",
            node=name,
        ) from error
    # paramiko sets neither; without the first each small packet waits for the acknowledgement of the last one.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


def _prefer_known_types(transport: paramiko.Transport, endpoint: SshEndpoint) -> None:
    """Ask for the type of host key that we know, where the server has several."""
    known = _known_keys(endpoint)
    options = transport.get_security_options()
    first = [kind for kind in options.key_types if kind in known]
    if "ssh-rsa" in known:
        first += [kind for kind in ("rsa-sha2-512", "rsa-sha2-256") if kind in options.key_types]
    options.key_types = [
        *dict.fromkeys(first),
        *(kind for kind in options.key_types if kind not in first),
    ]


def _known_keys(endpoint: SshEndpoint) -> dict[str, paramiko.PKey]:
    """The keys that known_hosts has for the machine, by their type. Lines with a marker (`@revoked`) are not among them,
    and an unreadable line hides no other.
    """
    file = endpoint.trust.known_hosts
    if file is None or not file.is_file():
        return {}
    entries = paramiko.HostKeys()
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.strip() and not line.startswith(("#", "@")):
            with suppress(SSHException):
                entry = HostKeyEntry.from_line(line)
                if entry is not None and entry.key is not None and entry.hostnames is not None:
                    for host in entry.hostnames:
                        entries.add(host, entry.key.get_name(), entry.key)
    found = entries.lookup(_known_name(endpoint))
    return {kind: found[kind] for kind in found} if found is not None else {}


def _known_name(endpoint: SshEndpoint) -> str:
    return endpoint.address if endpoint.port == 22 else f"[{endpoint.address}]:{endpoint.port}"


def _check_host_key(key: paramiko.PKey, endpoint: SshEndpoint, name: str) -> None:
    """Raise HostKeyNotTrusted unless the key is the pinned one, or the one that known_hosts has."""
    seen = fingerprint(key)
    pinned = endpoint.trust.fingerprint
    if pinned is not None:
        if seen != pinned:
            raise HostKeyNotTrusted(
                f"{name}: the host key is {seen}, but the inventory pins {pinned}",
                hint="If the machine was reinstalled, set `host_key` to the new fingerprint after checking it on its console.",
                node=name,
            )
        return
    known = _known_keys(endpoint)
    of_type = known.get(key.get_name())
    if of_type is not None and of_type.asbytes() == key.asbytes() and not _revoked(key, endpoint):
        return
    where = f"{endpoint.trust.known_hosts} as {_known_name(endpoint)}"
    if of_type is not None:
        raise HostKeyNotTrusted(
            f"{name}: the host key {key.get_name()} {seen} is not the one in {where}",
            hint="Another host may be answering instead of the machine. If the machine was reinstalled, remove the old line"
            " (`ssh-keygen -R`) after checking the fingerprint on its console.",
            node=name,
        )
    raise HostKeyNotTrusted(
        f"{name}: the host key {key.get_name()} {seen} is not known",
        hint=f"Check the key on the machine's console (`ssh-keygen -lf` of its host key); then set `host_key: {seen}` "
        f"in the inventory, or add the key to {where}.",
        node=name,
    )


def _revoked(key: paramiko.PKey, endpoint: SshEndpoint) -> bool:
    """Whether known_hosts marks this key `@revoked`; paramiko does not read markers."""
    assert endpoint.trust.known_hosts is not None
    lines = endpoint.trust.known_hosts.read_text(encoding="utf-8", errors="replace").splitlines()
    words = [line.split() for line in lines if line.startswith("@revoked")]
    return any(len(word) > 3 and word[3] == key.get_base64() for word in words)


def _log_in(transport: paramiko.Transport, login: Login, name: str) -> None:
    """Try key, agent and password in this order. Raises AuthenticationException with the last refusal."""
    refusal: AuthenticationException | None = None
    for key in _keys(login, name):
        try:
            transport.auth_publickey(login.user, key)
        except AuthenticationException as error:
            refusal = error
        else:
            return
    if login.password is not None:
        # paramiko answers keyboard-interactive with the password, too, where that is what the server offers.
        transport.auth_password(login.user, login.password().reveal())
        return
    raise refusal or BadAuthenticationType("no key and no password", [])


def _keys(login: Login, name: str) -> Iterator[paramiko.PKey]:
    if login.key is not None:
        yield _private_key(login, name)
    if login.agent:
        yield from paramiko.Agent().get_keys()


def _private_key(login: Login, name: str) -> paramiko.PKey:
    assert login.key is not None
    text = login.key().reveal()
    passphrase = login.passphrase().reveal() if login.passphrase is not None else None
    for kind in _KEYS:
        try:
            key = kind.from_private_key(io.StringIO(text), passphrase)
        except PasswordRequiredException as error:
            raise LoginRefused(
                f"{name}: the private key is encrypted", hint="Set `connection.passphrase`.", node=name
            ) from error
        except (SSHException, ValueError):
            continue
        if login.certificate is not None:
            key.load_certificate(login.certificate().reveal().strip())
        return key
    raise LoginRefused(
        f"{name}: the private key cannot be read",
        hint="Use an OpenSSH or PEM key of type ed25519, ecdsa or rsa, and set `connection.passphrase` to its passphrase.",
        node=name,
    )


def _offered(endpoint: SshEndpoint, name: str) -> tuple[str, ...]:
    """The ways to log in that the server names to a client that offers none."""
    link = _greet(endpoint, name)
    try:
        link.transport.auth_none(endpoint.login.user)
    except BadAuthenticationType as error:
        return tuple(error.allowed_types)
    except (SSHException, EOFError, OSError):
        return ()
    finally:
        link.close()
    return ("none",)


def _lost(name: str, error: BaseException) -> TransportError:
    return ConnectionLost(f"{name}: the SSH connection was lost ({_root(error)})", hint=AGAIN, node=name)


def _root(error: BaseException) -> str:
    return str(error) or type(error).__name__

"""What the machine reaches: other hosts' ports, web servers, names; what listens on it; its certificate stores.

`World` is everything outside: a name or an address with a port leads either to a Python function (`serve`) or to a real
server on loopback (`forward`). Whatever is not in it does not answer.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import urlsplit

from winboot_lab.windows.failure import Failure, failure
from winboot_lab.windows.files import Files
from winboot_lab.windows.host import Host
from winboot_lab.windows.network import Network
from winboot_lab.windows.processes import Process, Processes

# Windows tries a silent address for about this long (five attempts: github.com/nmap/nmap/issues/2113).
SILENCE = 21.0
# It reports a refusal only after further attempts, about this long, on loopback too (github.com/libuv/libuv/pull/2896).
REFUSAL = 2.0
# Seconds of this host's time that a real server may take.
_REAL_S = 100.0

_CODES = {
    10051: "A socket operation was attempted to an unreachable network",
    10060: "A connection attempt failed because the connected party did not properly respond after a period of "
    "time, or established connection failed because connected host has failed to respond",
    10061: "No connection could be made because the target machine actively refused it",
    11001: "No such host is known",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A web request as it arrives at a server of the lab."""

    method: str
    url: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer. `complete` False: the connection broke after `content`. `pace`: bytes a second, 0 for all at once."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    complete: bool = True
    pace: float = 0.0


Handler = Callable[[Request], Response]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Server:
    """One port of the world: a function or a real address on loopback. `issuer`: its certificate's, as PEM."""

    handler: Handler | None = None
    real: tuple[str, int] | None = None
    issuer: str = ""
    proxy: bool = False
    names_sources: bool = False


class World:
    """The network around the lab's machines. One world serves many machines."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.servers: dict[tuple[str, int], Server] = {}
        self._damaged: dict[str, bytes] = {}
        self._broken: dict[str, int] = {}
        self._slow: dict[str, float] = {}
        # Hosts that are only reached through a proxy.
        self.behind_proxy: set[str] = set()
        # The lab's machines, and how a connection between them and to their pods ends: "open", "closed", "silent", or
        # None where the address belongs to no part of the cluster.
        self.machines: list[Host] = []
        self.way: Callable[[Host, str, int], str | None] | None = None

    def name(self, name: str, address: str) -> None:
        """Let a name resolve."""
        self.names[name.lower()] = address

    def serve(self, host: str, port: int, handler: Handler, *, issuer: str = "") -> None:
        """A web server that is a function; `host` a name of the world or an address."""
        self.servers[self._address(host), port] = Server(handler, issuer=issuer)

    def forward(
        self, host: str, port: int, real: tuple[str, int], *, issuer: str = "", names_sources: bool = False
    ) -> None:
        """A port that is a real server on loopback. With `names_sources` it receives the source of each connection."""
        self.servers[self._address(host), port] = Server(
            real=real, issuer=issuer, names_sources=names_sources
        )

    def proxy(self, host: str, port: int) -> None:
        """A web proxy that reaches everything in the world."""
        self.servers[self._address(host), port] = Server(proxy=True)

    def listen(self, host: str, port: int) -> None:
        """A port that takes connections and says nothing."""
        self.servers[self._address(host), port] = Server(lambda request: Response(404))

    def close(self, host: str, port: int) -> None:
        """The server is gone: connections are refused."""
        self.servers.pop((self._address(host), port), None)

    def damage(self, url: str, content: bytes) -> None:
        """The mirror gives other bytes for a URL: the hash will be wrong."""
        self._damaged[url] = content

    def repair(self, url: str) -> None:
        """The mirror gives the right bytes again."""
        self._damaged.pop(url, None)

    def break_after(self, url: str, count: int) -> None:
        """The next download of the URL breaks off after so many bytes."""
        self._broken[url] = count

    def slow(self, url: str, pace: float) -> None:
        """The downloads of the URL dribble: so many bytes a second."""
        self._slow[url] = pace

    def address(self, host: str) -> str | None:
        """What a name resolves to; an address is itself."""
        try:
            return str(ipaddress.ip_address(host))
        except ValueError:
            return self.names.get(host.lower().rstrip("."))

    def _address(self, host: str) -> str:
        found = self.address(host)
        if found is None:
            # A name without an address gets one from the documentation range.
            found = f"198.51.100.{len(self.names) + 1}"
            self.name(host, found)
        return found

    def knows(self, address: str) -> bool:
        """Whether there is a host at an address (then closed ports refuse instead of staying silent)."""
        return any(host == address for host, _ in self.servers)

    def answer(self, server: Server, request: Request, *, tls: bool, host: str) -> Response:
        """What a server answers, faults included."""
        if request.url in self._damaged:
            response = _ranged(request, self._damaged[request.url])
        elif server.handler is not None:
            response = server.handler(request)
        else:
            response = _forwarded(server, request, tls=tls, host=host)
        limit = self._broken.pop(request.url, None)
        if limit is not None and limit < len(response.content):
            return Response(
                response.status, response.content[:limit], response.headers, response.reason, False
            )
        return replace(response, pace=self._slow.get(request.url, 0.0))


def _ranged(request: Request, content: bytes) -> Response:
    asked = next((v for k, v in request.headers.items() if k.lower() == "range"), "")
    first = asked.removeprefix("bytes=").partition("-")[0]
    if not first.isdigit():
        return Response(200, content, {"Content-Length": str(len(content)), "Accept-Ranges": "bytes"})
    start = int(first)
    if start >= len(content):
        return Response(416, b"", {"Content-Range": f"bytes */{len(content)}"})
    span = f"bytes {start}-{len(content) - 1}/{len(content)}"
    return Response(
        206, content[start:], {"Content-Range": span, "Content-Length": str(len(content) - start)}
    )


def serve_files(files: Mapping[str, bytes]) -> Handler:
    """A web server of fixed files by path; it knows HEAD and Range."""

    def handler(request: Request) -> Response:
        content = files.get(request.path)
        if content is None:
            return Response(404, b"not found")
        response = _ranged(request, content)
        return Response(response.status, b"", response.headers) if request.method == "HEAD" else response

    return handler


def _forwarded(server: Server, request: Request, *, tls: bool, host: str) -> Response:
    assert server.real is not None
    connection: http.client.HTTPConnection
    if tls:
        # Trust was decided before, from the machine's certificate store; here it only has to be carried.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(*server.real, timeout=30, context=context)
    else:
        connection = http.client.HTTPConnection(*server.real, timeout=30)
    try:
        headers = {"Host": host, **request.headers}
        connection.request(request.method, request.path, body=request.body or None, headers=headers)
        answer = connection.getresponse()
        try:
            content, complete = answer.read(), True
        except http.client.IncompleteRead as cut:
            content, complete = cut.partial, False
        return Response(answer.status, content, dict(answer.getheaders()), answer.reason, complete)
    finally:
        connection.close()


@dataclass(slots=True)
class Listener:
    """A port a process of the machine listens on; `handler` answers web requests there."""

    protocol: str
    address: str
    port: int
    pid: int
    handler: Handler | None = None

    def takes(self, address: str, port: int) -> bool:
        """Whether a connection to one of the machine's addresses is this one's: it listens on all of them, or on it."""
        return port == self.port and self.address in ("0.0.0.0", "::", address)


class Sockets:
    """The machine's side of all connections."""

    def __init__(
        self, machine: Host, files: Files, network: Network, processes: Processes, world: World
    ) -> None:
        self._machine, self._files, self._network, self._world = machine, files, network, world
        processes.ended.append(self.close_all)
        self.listeners: list[Listener] = []
        self._open: dict[str, int] = {}
        self._remote: dict[str, tuple[str, int]] = {}
        self._secured: dict[str, ssl.SSLSocket] = {}
        self._numbers = 0
        # Store (`LocalMachine\\Root`) to thumbprint to DER bytes.
        self.certificates: dict[str, dict[str, bytes]] = {}

    # ---- the machine's own ports -----------------------------------------------------------------------

    def listen(
        self,
        process: Process,
        port: int,
        *,
        address: str = "0.0.0.0",
        protocol: str = "tcp",
        handler: Handler | None = None,
    ) -> Listener:
        """A process listens; 10048 when the port is taken. An excluded range only keeps others' random ports out."""
        for known in self.listeners:
            if (known.protocol, known.port) == (protocol, port) and (
                address == known.address or "0.0.0.0" in (address, known.address)
            ):
                raise _socket_failure(10048, "Only one usage of each socket address is normally permitted")
        listener = Listener(protocol, address, port, process.pid, handler)
        self.listeners.append(listener)
        return listener

    def close_all(self, pid: int) -> None:
        """A process ended: its ports are free."""
        self.listeners = [n for n in self.listeners if n.pid != pid]
        for handle in [h for h, owner in self._open.items() if owner == pid]:
            self.close(handle)

    def forget_all(self) -> None:
        """A reboot."""
        self.listeners.clear()
        for handle in list(self._open):
            self.close(handle)

    # ---- going out -------------------------------------------------------------------------------------

    def resolve(self, name: str) -> list[str]:
        """The addresses of a name: itself, the hosts file, then DNS when a server is set and reached."""
        lower = name.lower().rstrip(".")
        if lower in ("localhost", self._machine.name.lower()):
            return ["127.0.0.1"] if lower == "localhost" else [self._network.lan.address]
        try:
            return [str(ipaddress.ip_address(name))]
        except ValueError:
            pass
        known = self._hosts_file().get(lower)
        if known is None and self._has_dns():
            known = self._world.address(lower)
        if known is None:
            raise _socket_failure(11001)
        return [known]

    def _hosts_file(self) -> dict[str, str]:
        files = self._files
        path = r"C:\Windows\System32\drivers\etc\hosts"
        found: dict[str, str] = {}
        if files.exists(path):
            for line in files.text(path).splitlines():
                words = line.partition("#")[0].split()
                found.update({name.lower(): words[0] for name in words[1:]})
        return found

    def _has_dns(self) -> bool:
        return self._network.online() and any(a.dns_servers for a in self._network.adapters)

    def connect(
        self, host: str, port: int, pid: int, timeout: float = SILENCE, spent: float = 0.0
    ) -> tuple[str, str]:
        """Open a TCP connection: a handle and the remote address. `spent`: the seconds that this attempt has had before."""
        address = self.resolve(host)[0]
        self._reach(address, port, timeout, spent)
        self._numbers += 1
        handle = f"socket-{self._numbers}"
        self._open[handle] = pid
        self._remote[handle] = address, port
        return handle, address

    def _reach(self, address: str, port: int, timeout: float, spent: float = 0.0) -> None:
        if self._is_own(address):
            if not any(n.protocol == "tcp" and n.takes(address, port) for n in self.listeners):
                self._await(REFUSAL - spent, timeout)
                raise _socket_failure(10061, port=f"{address}:{port}")
            return
        if not self._network.reaches(address):
            raise _socket_failure(10051, port=f"{address}:{port}")
        if (address, port) in self._world.servers:
            return
        way = self._world.way(self._machine, address, port) if self._world.way is not None else None
        if way == "open":
            return
        if way == "silent":
            self._await(SILENCE - spent, timeout)
            raise _socket_failure(10060, port=f"{address}:{port}")
        if way == "closed" or self._world.knows(address):
            self._await(REFUSAL - spent, timeout)
            raise _socket_failure(10061, port=f"{address}:{port}")
        self._await(SILENCE - spent, timeout)
        raise _socket_failure(10060, port=f"{address}:{port}")

    def _await(self, needed: float, timeout: float) -> None:
        """Wait for what takes `needed` seconds, or end by TimeoutException when the time is over before."""
        self._machine.wait(max(0.0, min(needed, timeout)))
        if timeout < needed:
            raise failure("System.TimeoutException", "The operation has timed out.", hresult=0x80131505)

    def _is_own(self, address: str) -> bool:
        return ipaddress.ip_address(address).is_loopback or self._network.holder(address) is not None

    def secure(self, handle: str, host: str) -> bytes:
        """TLS on a connection to a real server: the certificate it shows, unjudged.

        The server receives the source of the connection in a line of the PROXY protocol, as by a load balancer: all machines of
        the lab have one real address.
        """
        address, port = self._remote[handle]
        server = self._world.servers.get((address, port))
        if handle not in self._open or server is None or server.real is None:
            raise _broken("Authentication failed because the remote party has closed the transport stream.")
        here, real = self._network.source(address), server.real
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2

        def begin() -> ssl.SSLSocket:
            # A load balancer has an address of its own.
            own = ("127.0.0.2", 0) if server.names_sources else None
            plain = socket.create_connection(real, _REAL_S, own)
            if server.names_sources:
                plain.sendall(f"PROXY TCP4 {here} {address} 49152 {port}\r\n".encode("ascii"))
            return context.wrap_socket(plain, server_hostname=host)

        secured = self._really(begin)
        self._secured[handle] = secured
        return secured.getpeercert(binary_form=True) or b""

    def send(self, handle: str, data: bytes) -> None:
        """Bytes under TLS."""
        secured = self._under_tls(handle)
        self._really(lambda: secured.sendall(data))

    def receive(self, handle: str, count: int, seconds: float) -> bytes:
        """At most so many bytes; none at the end."""
        secured = self._under_tls(handle)
        secured.settimeout(seconds or _REAL_S)
        return self._really(lambda: secured.recv(count))

    def _under_tls(self, handle: str) -> ssl.SSLSocket:
        if handle not in self._open or handle not in self._secured:
            raise _broken("Unable to write data to the transport connection.")
        return self._secured[handle]

    def _really(self, work: Callable[[], T]) -> T:
        """Something of this host's network; what goes wrong there, as .NET says it."""
        try:
            return self._machine.outside(work)
        except OSError as error:
            raise _broken(f"Unable to read data from the transport connection: {error}.") from None

    def close(self, handle: str) -> None:
        """Close a connection; closing twice is fine."""
        self._open.pop(handle, None)
        self._hang_up(handle)

    def _hang_up(self, handle: str) -> None:
        secured = self._secured.pop(handle, None)
        if secured is not None:
            secured.close()

    def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        timeout: float = 100.0,
        method: str = "GET",
        body: bytes = b"",
        trusted: tuple[str, ...] = (),
    ) -> Response:
        """A web request from the machine. `trusted`: issuers (PEM) the caller trusts besides the machine's store."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = "The URI prefix is not recognized."
            raise failure("System.NotSupportedException", message, hresult=0x80131515)
        tls = parts.scheme == "https"
        port = parts.port or (443 if tls else 80)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        request = Request(method, url, path, dict(headers or {}), body)
        if proxy:
            self._through_proxy(proxy, timeout)
        address = self._web_address(parts.hostname, port, timeout, proxied=bool(proxy))
        own = next((n for n in self.listeners if n.port == port), None) if self._is_own(address) else None
        if own is not None:
            if own.handler is None:
                raise _web_failure("ReceiveFailure", "The underlying connection was closed.")
            return own.handler(request)
        server = self._world.servers[address, port]
        if tls and server.issuer and not self.trusts(server.issuer, trusted):
            raise _web_failure(
                "TrustFailure", "Could not establish trust relationship for the SSL/TLS secure channel."
            )
        world = self._world
        return self._machine.outside(lambda: world.answer(server, request, tls=tls, host=parts.netloc))

    def trusts(self, issuer: str, trusted: tuple[str, ...] = ()) -> bool:
        """Whether a certificate's issuer (PEM) is trusted by the caller or is in the machine's Root store."""
        if any(issuer.strip() == t.strip() for t in trusted):
            return True
        raw = ssl.PEM_cert_to_DER_cert(issuer)
        return raw in self.certificates.get("LocalMachine\\Root", {}).values()

    def _through_proxy(self, proxy: str, timeout: float) -> None:
        parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
        if parts.scheme != "http":
            # ServicePointManager.FindServicePointHelper of the .NET Framework (referencesource, ServicePointManager.cs):
            # net_proxyschemenotsupported, before any name is resolved.
            raise failure(
                "System.NotSupportedException",
                f"The ServicePointManager does not support proxies with the {parts.scheme} scheme.",
                hresult=0x80131515,
            )
        try:
            address = self.resolve(parts.hostname or "")[0]
        except Failure:
            raise _web_failure(
                "ProxyNameResolutionFailure", "The proxy name could not be resolved."
            ) from None
        port = parts.port or 80
        try:
            self._reach(address, port, timeout)
        except Failure:
            raise _web_failure("ConnectFailure", "Unable to connect to the remote server") from None
        if not self._world.servers[address, port].proxy:
            raise _web_failure("ProtocolError", "The remote server returned an error: (502) Bad Gateway.")

    def _web_address(self, host: str, port: int, timeout: float, *, proxied: bool) -> str:
        world = self._world
        if proxied:
            # The proxy resolves and connects, not the machine.
            address = world.address(host)
            if address is None or (address, port) not in world.servers:
                raise _web_failure("ProtocolError", "The remote server returned an error: (502) Bad Gateway.")
            return address
        try:
            address = self.resolve(host)[0]
        except Failure:
            message = f"The remote name could not be resolved: '{host}'"
            raise _web_failure("NameResolutionFailure", message) from None
        if host.lower() in world.behind_proxy:
            self._machine.wait(min(SILENCE, timeout))
            raise _web_failure("ConnectFailure", "Unable to connect to the remote server")
        try:
            self._reach(address, port, timeout)
        except Failure as failed:
            if failed.problem.exception == "System.TimeoutException":
                raise _web_failure("Timeout", "The operation has timed out") from None
            raise _web_failure("ConnectFailure", "Unable to connect to the remote server") from None
        return address


def _socket_failure(code: int, message: str = "", *, port: str = "") -> Failure:
    text = (message or _CODES[code]) + (f" {port}" if port else "")
    return failure("System.Net.Sockets.SocketException", text, hresult=0x80004005, target=code)


def _broken(message: str) -> Failure:
    return failure("System.IO.IOException", message, hresult=0x80131620)


def _web_failure(status: str, message: str) -> Failure:
    return failure("System.Net.WebException", message, hresult=0x80131509, target=status)

"""network.*, dns.*, socket.*, http.*: the machine's connections."""

from __future__ import annotations

from collections.abc import Mapping

from winboot_lab.windows.call import primitive
from winboot_lab.windows.door import Plain, Record
from winboot_lab.windows.session import Session
from winboot_lab.windows.sockets import SILENCE

Objects = tuple[Plain, ...]


@primitive("network.interfaces")
def interfaces(session: Session) -> Objects:
    """All interfaces with their settings."""
    network = session.machine.network
    found: list[Plain] = []
    for adapter in network.adapters:
        addresses: list[Plain] = [
            {"address": a.ip, "prefix_length": a.prefix_length}
            for a in adapter.addresses
            if a.state == "Preferred"
        ]
        gateways: list[Plain] = [
            r.next_hop for r in network.routes if r.interface == adapter.index and r.prefix == "0.0.0.0/0"
        ]
        servers: list[Plain] = [*adapter.dns_servers]
        found.append(
            Record(
                "interface",
                {
                    "id": adapter.guid,
                    "name": adapter.name,
                    "description": adapter.description,
                    "kind": "Loopback" if adapter.loopback else "Ethernet",
                    "status": "Up" if adapter.up else "Down",
                    "mac": adapter.mac.replace("-", ""),
                    "index": adapter.index,
                    "mtu": adapter.mtu,
                    "dhcp": adapter.dhcp,
                    "forwarding": adapter.forwarding,
                    "addresses": addresses,
                    "gateways": gateways,
                    "dns_servers": servers,
                    "dns_suffix": adapter.suffix,
                },
            )
        )
    return tuple(found)


@primitive("network.listeners")
def listeners(session: Session, protocol: str = "tcp") -> Objects:
    """Ports that processes of the machine listen on."""
    return tuple(
        Record("listener", {"address": n.address, "port": n.port, "pid": n.pid})
        for n in session.machine.sockets.listeners
        if n.protocol == protocol
    )


@primitive("dns.resolve")
def resolve(session: Session, name: str) -> Objects:
    """The addresses of a name."""
    return tuple(session.machine.sockets.resolve(name))


@primitive("socket.connect")
def connect(session: Session, host: str, port: int, milliseconds: int = -1, spent: int = 0) -> Objects:
    """Open a TCP connection, or go on with an attempt that has taken `spent` milliseconds."""
    timeout = SILENCE if milliseconds < 0 else milliseconds / 1000
    handle, address = session.machine.sockets.connect(host, port, session.process.pid, timeout, spent / 1000)
    own = session.machine.network.source(address)
    return (Record("socket", {"handle": handle, "local_address": own, "remote_address": address}),)


@primitive("socket.secure")
def secure(session: Session, handle: str, host: str) -> Objects:
    """Begin TLS on a connection; gives the server's certificate, trusted or not."""
    return (session.machine.sockets.secure(handle, host),)


@primitive("socket.send")
def send(session: Session, handle: str, data: bytes) -> Objects:
    """Send bytes under TLS."""
    session.machine.sockets.send(handle, data)
    return ()


@primitive("socket.receive")
def receive(session: Session, handle: str, count: int, milliseconds: int = 0) -> Objects:
    """Bytes that came under TLS, at most so many; none at the end."""
    return (session.machine.sockets.receive(handle, count, milliseconds / 1000),)


@primitive("socket.close")
def close(session: Session, handle: str) -> Objects:
    """Close it."""
    session.machine.sockets.close(handle)
    return ()


@primitive("http.get")
def get(
    session: Session,
    url: str,
    headers: Mapping[str, str] | None = None,
    proxy: str | None = None,
    milliseconds: int = 100_000,
    method: str = "GET",
    body: bytes = b"",
) -> Objects:
    """A web request."""
    response = session.machine.sockets.fetch(
        url, headers=headers, proxy=proxy, timeout=milliseconds / 1000, method=method, body=body
    )
    answered: dict[str, Plain] = dict(response.headers)
    return (
        Record(
            "response",
            {
                "status": response.status,
                "reason": response.reason,
                "headers": answered,
                "content": response.content,
                "complete": response.complete,
                "pace": response.pace,
            },
        ),
    )

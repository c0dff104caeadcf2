"""The addresses that a connection leads to, as this host sees them: the node watches them while its network is rewired."""

from __future__ import annotations

import ipaddress
import socket

from winboot.config.inventory import Connection


def dialled_addresses(connection: Connection) -> tuple[str, ...]:
    """Addresses of the machine's host name as text; none where this host does not dial it itself or cannot resolve it.

    They are a hint: behind NAT or a port forward none of them is the machine's. sshd itself reports to the node where
    the connection came in.
    """
    try:
        return (str(ipaddress.ip_address(connection.host)),)
    except ValueError:
        pass
    if connection.transport != "winrm" or connection.tunnel is not None:
        return ()
    return resolved(connection.host, connection.port_number)


def resolved(host: str, port: int) -> tuple[str, ...]:
    """The addresses of a host, as text, as this host's resolver returns them; empty where it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(sorted({str(address[0]) for *_, address in found}))

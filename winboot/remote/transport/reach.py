"""Whether anything listens where a machine is dialled: a handshake of TCP, and no more."""

from __future__ import annotations

import socket
from typing import Final

from winboot.config.inventory import Connection

PATIENCE_S: Final = 3.0


def not_reached(connection: Connection) -> str:
    """Why nothing answers at the machine's port; empty where something does, and where this host cannot see that:
    behind a jump host or a tunnel, or on this very machine."""
    if connection.transport == "local" or connection.proxy_jump or connection.tunnel is not None:
        return ""
    where = (connection.host, connection.port_number)
    try:
        with socket.create_connection(where, timeout=PATIENCE_S):
            return ""
    except OSError as error:
        return f"{where[0]}:{where[1]} does not answer ({error.strerror or error})"

"""HTTP connections that are dialled at another place than their URL says: through a tunnel on loopback.

The URL keeps the machine's name, so that TLS and Kerberos see the machine they expect.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.connection import HTTPConnection


def lead_through(adapter: BaseAdapter, via: tuple[str, int]) -> None:
    """Let every connection of this adapter be dialled at `via` (host, port).

    What makes its pools stays in charge of them: pypsrp's adapter has pools that can refuse a new connection.
    """
    assert isinstance(adapter, HTTPAdapter)
    manager: Any = adapter.poolmanager
    manager.pool_classes_by_scheme = {
        scheme: _led(make, via) for scheme, make in manager.pool_classes_by_scheme.items()
    }


def _led(make: Callable[..., Any], via: tuple[str, int]) -> Callable[..., Any]:
    def pool(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        connect = made.ConnectionCls

        def led(*args: Any, **kwargs: Any) -> Any:
            connection = connect(*args, **kwargs)
            connection._new_conn = partial(_dialled, connection, via, connection._new_conn)
            return connection

        made.ConnectionCls = led
        return made

    return pool


def _dialled(
    connection: HTTPConnection, via: tuple[str, int], dial: Callable[[], socket.socket]
) -> socket.socket:
    """Dial at `via`, and let the connection believe that it is where its URL says: TLS asks it for the host name."""
    own = connection._dns_host, connection.port
    connection._dns_host, connection.port = via
    try:
        return dial()
    finally:
        connection._dns_host, connection.port = own

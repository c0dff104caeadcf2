"""HTTP connections that are dialled at another place than their URL says: through a tunnel on loopback.

The URL keeps the machine's name, so that TLS and Kerberos see the machine they expect.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


def lead_through(adapter: HTTPAdapter, via: tuple[str, int]) -> None:
    """Let every connection of this adapter be dialled at `via` (host, port)."""
    adapter.poolmanager.pool_classes_by_scheme = {"http": _pool(via), "https": _secure_pool(via)}


def _pool(via: tuple[str, int]) -> type[HTTPConnectionPool]:
    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _dialled(self, via, super()._new_conn)

    class Pool(HTTPConnectionPool):
        ConnectionCls = Plain

    return Pool


def _secure_pool(via: tuple[str, int]) -> type[HTTPSConnectionPool]:
    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return _dialled(self, via, super()._new_conn)

    class Pool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return Pool


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

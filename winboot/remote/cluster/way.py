"""How each request of this computer reaches an API server: TLS, proxy, and the user.

One transport carries all requests, WebSockets too, so that no command has another way than its kubeconfig says.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import httpx2

# PEM texts of a certificate and its key.
Certificate: TypeAlias = tuple[str, str]
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]


class Way(httpx2.BaseTransport):
    """The transport to one API server. Used by any number of threads.

    `make` opens connections with a client certificate, or with none but the kubeconfig's. `server_name` is the name that the
    server's certificate must have (tls-server-name); `headers` go with each request.
    """

    def __init__(
        self,
        make: Callable[[Certificate | None], httpx2.BaseTransport],
        *,
        server_name: str | None = None,
        headers: Headers = (),
    ) -> None:
        self._make = make
        self._inner = make(None)
        self._former: list[httpx2.BaseTransport] = []
        self._server_name = server_name
        self._headers = headers

    def present(self, certificate: Certificate) -> None:
        """Log in with this certificate from now on: an open connection keeps the former one. Raises ssl.SSLError."""
        self._former.append(self._inner)
        self._inner = self._make(certificate)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it. A request that is sent again after a login has its headers already."""
        there = {name for name, _ in request.headers.raw}
        more = [one for one in self._headers if one[0] not in there]
        if more:
            request.headers = httpx2.Headers([*request.headers.raw, *more])
        if self._server_name:
            # httpcore2/_sync/connection.py and http_proxy.py: the name in the handshake, and the one that is checked.
            request.extensions = {**request.extensions, "sni_hostname": self._server_name}
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Give all connections back."""
        for one in (*self._former, self._inner):
            one.close()


def load(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Put a certificate and its key into a context; Python reads them from a file. Raises ssl.SSLError."""
    handle, name = tempfile.mkstemp()  # for the user alone
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write("\n".join(certificate))
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()

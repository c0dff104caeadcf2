"""NTLM, Kerberos and SPNEGO logins that begin with the first request.

pypsrp asks first and logs in when the machine demands it: one request more for each connection. Here the first token
goes out at once, where that is possible. An NTLM token needs nothing of the machine, and over plain HTTP no token
does. (Over TLS a Kerberos token is bound to the certificate, which is not known yet.)
"""

from __future__ import annotations

from typing import Any

import requests
import spnego
from pypsrp._utils import get_hostname
from pypsrp.negotiate import HTTPNegotiateAuth as _Untyped
from spnego.channel_bindings import GssChannelBindings

_SCHEME = "Negotiate"
_WRAPPING = spnego.NegotiateOptions.wrapping_winrm
# pypsrp has types in parts only; this class has none.
_Login: Any = _Untyped


class EagerLogin(_Login):  # type: ignore[misc]
    """pypsrp's login, one request shorter. Falls back to pypsrp's way where the machine does not take the token."""

    _pending: Any = None

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        prepared: requests.PreparedRequest = super().__call__(request)
        if not self.contexts and (self.wrap_required or self.auth_provider == "ntlm"):
            self._pending = spnego.client(
                self.username,
                self.password,
                hostname=str(self.hostname_override or get_hostname(str(request.url))),
                service=self.service,
                protocol=self.auth_provider,
                options=_WRAPPING if self.wrap_required else spnego.NegotiateOptions.none,
            )
            self._set_auth_token(prepared, self._pending.step(), _SCHEME)
        return prepared

    def response_hook(self, response: requests.Response, **kwargs: Any) -> requests.Response:
        context, self._pending = self._pending, None
        token = self._get_auth_token(response, self._regex) if context is not None else None
        if context is None or not token:
            answer: requests.Response = super().response_hook(response, **kwargs)
            return answer
        self.contexts[get_hostname(str(response.url))] = context
        context.response_auth_header = _SCHEME.lower()
        return self._go_on(context, token, response, **kwargs)

    def _go_on(
        self, context: Any, token: bytes | None, response: requests.Response, **kwargs: Any
    ) -> requests.Response:
        # The certificate is the connection's: the first answer shows it, while its body is still to be read. Over plain
        # HTTP, where messages are sealed, there is no such token, and Kerberos' first answer has been read: it ends
        # the login.
        bound = self._get_cbt_data(response) if self.send_cbt and not self.wrap_required else None
        bindings = GssChannelBindings(application_data=bound) if bound else None
        while token:
            reply = context.step(token, channel_bindings=bindings)
            if reply is None:
                break
            # Reading the answer to its end gives the connection back, and the login belongs to the
            # connection.
            _ = response.content
            response.raw.release_conn()
            request = response.request.copy()
            self._set_auth_token(request, reply, _SCHEME)
            response = response.connection.send(request, **kwargs)
            token = self._get_auth_token(response, self._regex)
        return response

"""pypsrp's WSMan connection, made safe for a lost connection and strict about certificates.

All that touches the private parts of pypsrp 0.9 and requests is here and in `psrp`; the version is pinned.
What changes:

- A message sealed for one connection is never sent on another: pypsrp would, and WinRM would answer 400 each
  time.
- A request that was certainly not sent is sent again on a new connection. One that may have been handled is
  repeated only if the caller said that repeating is safe. That is a Receive, whose MessageID makes the machine repeat
  its answer.
- TLS trusts exactly the given CA or the pinned certificate, on every new connection; environment variables
  change nothing.
"""

from __future__ import annotations

import functools
import logging
import ssl
import time
from typing import Any, Final
from xml.etree import ElementTree

import requests
from pypsrp._pool_manager import DisableNewConnectionsContext, NewConnectionDisabled
from pypsrp.exceptions import WinRMError, WinRMTransportError
from pypsrp.wsman import SelectorSet, WSMan, _TransportHTTP
from requests.adapters import BaseAdapter, HTTPAdapter

from winboot.base.errors import Busy, ConnectionLost, InvalidInput, ProtocolError, Unreachable
from winboot.base.limits import LARGEST_ANSWER
from winboot.base.retry import retried
from winboot.base.tls import even
from winboot.remote.transport.base import Endpoint, Tls
from winboot.remote.transport.dial import lead_through
from winboot.remote.transport.failures import ALL_ERRORS, HTTP_TOO_LARGE, LIBRARY_ERRORS, translate
from winboot.remote.transport.login import EagerLogin

# A whole answer may take so many read timeouts.
WHOLE_READS: Final = 3
_PIECE: Final = 1 << 16
_DIGITS: Final = 20
_QUIET: Final = ("pypsrp", "requests", "urllib3", "spnego")


def quieten() -> None:
    """Let the libraries say nothing. At DEBUG they log whole scripts, and at ERROR what we handle."""
    for name in _QUIET:
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL + 1)
        logger.propagate = False
        logger.addHandler(logging.NullHandler())


class Wire(_TransportHTTP):
    """The HTTP side of one WSMan connection. `patience` is how long a request that was not sent is tried again."""

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        sealed = endpoint.tls is None and endpoint.auth != "basic"
        super().__init__(
            endpoint.address,
            port=endpoint.port,
            username=endpoint.user or None,
            password=endpoint.password().reveal() if endpoint.password is not None else None,
            ssl=endpoint.tls is not None,
            auth=endpoint.auth,
            connection_timeout=endpoint.timeouts.connect,
            read_timeout=endpoint.timeouts.read,
            encryption="auto" if sealed or endpoint.tls is not None else "never",
            no_proxy=True,
        )
        self.patience = 0.0
        self.repeated = False
        self.answered = False
        self._resume = float(endpoint.timeouts.resume)
        self._tls = endpoint.tls
        self._via = endpoint.via
        self._spn = endpoint.spn
        self.name = name
        self.user = endpoint.user

    @property
    def logged_in(self) -> bool:
        """Whether messages are sealed by a login that was finished."""
        return self.encryption is not None

    def forget(self) -> None:
        """Start again: the next request opens a connection and logs in again."""
        if self.session is not None:
            self.session.close()
        self.session = None
        self.encryption = None

    def send(
        self,
        message: bytes,
        *,
        retries_on_read_timeout: int = 0,
        timeout: float | tuple[float, float] | None = None,
    ) -> bytes:
        """Send one message and give its answer.

        `retries_on_read_timeout` is pypsrp's way to say that the message may be repeated; the number is not
        used. Raises WinRMTransportError for an answer other than 200 and 503, else one of winboot's errors.
        """
        if not retries_on_read_timeout:
            return self._deliver(message, timeout, self.patience)
        attempts = 0

        def deliver() -> bytes:
            nonlocal attempts
            attempts += 1
            self.repeated = self.repeated or attempts > 1
            return self._deliver(message, timeout, 0)

        return retried(deliver, self._resume, Unreachable, ConnectionLost, Busy)

    def _deliver(self, message: bytes, timeout: float | tuple[float, float] | None, patience: float) -> bytes:
        return retried(lambda: self._once(message, timeout), patience, Unreachable)

    def _once(self, message: bytes, timeout: float | tuple[float, float] | None) -> bytes:
        try:
            return self._sealed_once(message, timeout) if self.wrap_required else self._send(message, timeout)
        except WinRMTransportError as error:
            if error.code == 503:
                # A login that was not finished must not be continued: the next one begins again.
                if self.wrap_required and self.encryption is None:
                    self.forget()
                raise translate(error, self.name, self.user) from error
            if error.code == HTTP_TOO_LARGE:
                # http.sys may have refused it unread: what was sealed after it could not be unsealed there.
                self.forget()
            raise
        except LIBRARY_ERRORS as error:
            self.forget()
            raise translate(error, self.name, self.user) from error

    def _sealed_once(self, message: bytes, timeout: float | tuple[float, float] | None) -> bytes:
        try:
            if self.encryption is None:
                return self._send(message, timeout)
            # What is sealed for this connection must not go out on a new one, which urllib3 would open
            # silently.
            with DisableNewConnectionsContext():
                return self._send(message, timeout)
        except NewConnectionDisabled:
            self.forget()
        except WinRMTransportError as error:
            # The machine could not unseal the message: the login was cut off before we knew of its end.
            if error.code != 400:
                raise
            self.forget()
        return self._send(message, timeout)

    def _send(self, message: bytes, timeout: float | tuple[float, float] | None) -> bytes:
        answer: bytes = super().send(message, timeout=timeout)
        return answer

    def _send_request(self, request: Any, timeout: float | tuple[float, float] | None = None) -> bytes:
        try:
            answer: bytes = super()._send_request(request, timeout=timeout)
        except WinRMError:
            self.answered = True
            raise
        self.answered = True
        return answer

    def _build_auth_negotiate(self, session: requests.Session, auth_provider: str = "negotiate") -> None:
        # Every machine of a domain has the principal host/name; HTTP/name may belong to an application's account.
        service, _, host = (self._spn or "host/").partition("/")
        session.auth = EagerLogin(
            username=self.username,
            password=self.password,
            auth_provider=auth_provider,
            wrap_required=self.wrap_required,
            service=service,
            hostname_override=host or None,
        )

    def _build_session(self) -> requests.Session:
        session: requests.Session = super()._build_session()
        # Reading proxy variables and bundles from the environment costs a tenth of the client's time, and a
        # laptop's REQUESTS_CA_BUNDLE is not an opinion about this machine.
        session.trust_env = False
        session.headers["User-Agent"] = "winboot"
        # an option makes pypsrp's own adapter open no new connection, which sealed messages need.
        plain = session.get_adapter("http://")
        secure = _TlsAdapter(self._tls) if self._tls is not None else session.get_adapter("https://")
        if self._via is not None:
            lead_through(plain, self._via)
            lead_through(secure, self._via)
        seconds = WHOLE_READS * float(self.read_timeout)
        session.mount("https://", _Whole(secure, self.name, seconds))
        session.mount("http://", _Whole(plain, self.name, seconds))
        return session


class Connection(WSMan):
    """pypsrp's WSMan over a Wire."""

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        super().__init__(
            endpoint.address, port=endpoint.port, operation_timeout=endpoint.timeouts.operation, auth="basic"
        )
        self.wire = self.transport = Wire(endpoint, name)

    def try_once(
        self,
        action: str,
        resource_uri: str,
        body: ElementTree.Element | None,
        selectors: SelectorSet,
        seconds: int,
    ) -> None:
        """A request whose outcome does not matter, within about `seconds`; only a bug of our own is raised."""
        patience, self.wire.patience = self.wire.patience, 0.0
        try:
            self.invoke(action, resource_uri, body, selector_set=selectors, timeout=seconds)
        except ALL_ERRORS as error:
            # What could not be ended, ends by itself.
            translate(error, self.wire.name, self.wire.user)
        finally:
            self.wire.patience = patience


class _Whole(BaseAdapter):
    """Reads answers whole, and refuses those that no WinRM gives.

    An answer that ends within its header is taken by http.client for a short but valid one. A redirect would be followed
    with a new login, to another machine and out of TLS. A packed answer, one of any size or one that drips would take
    our memory and time from all other machines. What answers a sealed request is sealed.
    """

    def __init__(self, inner: BaseAdapter, name: str, seconds: float) -> None:
        super().__init__()
        assert isinstance(inner, HTTPAdapter)
        self._inner = inner
        self._name = name
        self._seconds = seconds

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        answer = self._inner.send(request, *args, **kwargs)
        # The login continues by `answer.connection.send`, which must not go past this.
        answer.connection = self  # type: ignore[assignment]  # any adapter will do
        if "content-length" not in answer.headers and "transfer-encoding" not in answer.headers:
            answer.close()
            raise requests.ConnectionError("the answer was cut off")
        try:
            self._refuse_strange(request, answer)
            self._refuse_promised(answer)
            if answer.status_code == 401 and "content-length" in answer.headers:
                # The login reads the certificate off the open answer, for its channel binding (RFC 5929).
                return answer
            body = self._body(answer)
        except ALL_ERRORS:
            answer.close()
            raise
        # requests keeps what it has read of an answer in these two.
        vars(answer).update(_content=body, _content_consumed=True)
        return answer

    def _refuse_strange(self, request: requests.PreparedRequest, answer: requests.Response) -> None:
        if 300 <= answer.status_code < 400:
            where = answer.headers.get("location", "nowhere")
            raise self._error(f"winboot does not follow the redirect to {where} (HTTP {answer.status_code})")
        packing = answer.headers.get("content-encoding", "identity")
        if packing.lower() != "identity":
            raise self._error(f"the answer is compressed ({packing}), which winboot did not request")
        sealed = _is_sealed(request.headers.get("content-type", ""))
        if sealed and answer.status_code == 200 and not _is_sealed(answer.headers.get("content-type", "")):
            raise self._error("the machine sent an unencrypted answer to an encrypted message")

    def _refuse_promised(self, answer: requests.Response) -> None:
        promised = answer.headers.get("content-length", "0")
        # Python refuses to read a number of thousands of digits.
        if not promised.isdecimal() or len(promised) > _DIGITS or int(promised) > LARGEST_ANSWER:
            raise self._error(f"the answer is larger than {LARGEST_ANSWER >> 20} MiB")

    def _body(self, answer: requests.Response) -> bytes:
        deadline, body = time.monotonic() + self._seconds, bytearray()
        while piece := answer.raw.read1(_PIECE, decode_content=False):
            body += piece
            if len(body) > LARGEST_ANSWER:
                raise self._error(f"the answer is larger than {LARGEST_ANSWER >> 20} MiB")
            if time.monotonic() > deadline:
                raise self._error(f"the answer took longer than {self._seconds:.0f} s")
        # Unless it is given back, the next request opens another connection, and logs in again.
        answer.raw.release_conn()
        return bytes(body)

    def _error(self, what: str) -> ProtocolError:
        return ProtocolError(
            f"{self._name}: {what}",
            hint="Check for a proxy or another service between this computer and the machine's WinRM.",
            node=self._name,
        )

    def close(self) -> None:
        # urllib3 closes connections when the garbage collector comes by; what a login has left in frames and errors keeps
        # it away, and the machine its connection.
        pools = self._inner.poolmanager.pools
        for key in pools.keys():  # noqa: SIM118 - its iterator refuses
            pools[key].close()
        self._inner.close()


def _is_sealed(content_type: str | bytes) -> bool:
    text = content_type.decode("latin-1") if isinstance(content_type, bytes) else content_type
    return text.lower().startswith(("multipart/encrypted", "multipart/x-multi-encrypted"))


class _TlsAdapter(HTTPAdapter):
    """Connections of one session, all judged by the same TLS context or pinned certificate."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        pinned = self._tls.fingerprint
        kwargs["ssl_context"] = _pinning_context() if pinned else _trusting_context(self._tls.ca_pem)
        if pinned:
            # urllib3 compares the certificate of each new connection, before the first byte of HTTP.
            kwargs["assert_fingerprint"] = pinned
        super().init_poolmanager(*args, **kwargs)

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """The context decides alone; requests would add its own CA bundle here."""


@functools.lru_cache(maxsize=64)
def _trusting_context(ca_pem: str | None) -> ssl.SSLContext:
    """Shared between machines: building one costs more than a login."""
    try:
        return even(ssl.create_default_context(cadata=ca_pem))
    except ssl.SSLError as error:
        raise InvalidInput(
            "connection.tls.ca: the certificate cannot be read", hint="Use a PEM file."
        ) from error


@functools.lru_cache(maxsize=1)
def _pinning_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

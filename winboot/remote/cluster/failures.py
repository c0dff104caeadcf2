"""From the client library's errors to winboot's, in one place."""

from __future__ import annotations

import math
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2
import msgspec
from lightkube.exceptions import ApiError, ConfigError

from winboot.base.errors import ClusterBusy, ClusterConflict, ClusterError, ClusterRefused, ClusterUnreachable
from winboot.base.tls import reason_of
from winboot.remote.cluster.proxies import Proxy

# openssl/x509_vfy.h: X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
_OTHER_NAME: Final = frozenset({62, 64})
# 500 is what etcd's "request timed out" and "leader changed" become; 410 ends a list that changed between two pages.
_NOT_NOW: Final = frozenset({410, 429, 500, 502, 503, 504})


@contextmanager
def translated(doing: str, server: str, proxy: Proxy | None = None) -> Iterator[None]:
    """Within this block, the library's errors become ClusterErrors; `doing` says what was tried, `proxy` is on the way."""
    try:
        yield
    except httpx2.HTTPStatusError as e:
        raise _by_status(doing, server, e) from e
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as e:
        hint = "Write `server` in the kubeconfig as https://name-or-address:6443."
        raise ClusterError(f"{doing}: {server} is not the address of an API server: {e}", hint=hint) from e
    except httpx2.TransportError as e:
        raise _by_transport(doing, server, proxy, e) from e
    except httpx2.RequestError as e:
        raise ClusterError(
            f"{doing}: the answer of {server} is not from Kubernetes: {e}", hint=_stranger(server)
        ) from e
    except ConfigError as e:
        raise ClusterError(f"{doing}: {e}", hint="Check the user of the kubeconfig's context.") from e
    except msgspec.MsgspecError as e:
        raise ClusterError(
            f"{doing}: the answer of {server} is not from Kubernetes: {e}", hint=_stranger(server)
        ) from e
    except (LookupError, ValueError, TypeError, AttributeError) as e:
        # The client library reads an error's Content-Type and its body as if a Kubernetes API had sent them.
        if isinstance(e.__context__, httpx2.HTTPStatusError):
            raise _by_status(doing, server, e.__context__) from e
        if isinstance(e, TypeError | AttributeError):
            raise
        problem = f"{doing}: the answer of {server} is not from Kubernetes: {type(e).__name__}: {e}"
        raise ClusterError(problem, hint=_stranger(server)) from e


def status_of(error: httpx2.HTTPStatusError) -> int:
    """The HTTP status; the library's own error class covers answers of one content type only."""
    return int(error.response.status_code)


def _stranger(server: str) -> str:
    if server.startswith("http://"):
        return "`server` in the kubeconfig begins with http://; API servers speak https://."
    return "Check `server` in the kubeconfig: a proxy or another service may be answering."


@contextmanager
def reading(kubeconfig: str) -> Iterator[None]:
    """Within this block the client reads a kubeconfig's credentials; whatever is wrong with it becomes a ClusterError."""
    hint = "Check `cluster.kubeconfig` and `cluster.context` in the profile."
    try:
        yield
    except ConfigError as e:
        raise ClusterError(f"{kubeconfig}: {e}", hint=hint) from e
    except KeyError as e:
        raise ClusterError(f"{kubeconfig}: the file refers to {e}, which is not in it", hint=hint) from e
    except (msgspec.MsgspecError, TypeError, ValueError, AttributeError) as e:
        raise ClusterError(f"{kubeconfig} is not a kubeconfig file: {e}", hint=hint) from e
    except (OSError, ssl.SSLError) as e:
        raise ClusterError(f"{kubeconfig}: {e}", hint=hint) from e


def _by_status(doing: str, server: str, error: httpx2.HTTPStatusError) -> ClusterError:
    code = status_of(error)
    message = error.status.message if isinstance(error, ApiError) and error.status.message else str(error)
    if code == 401:
        return ClusterRefused(
            f"{doing}: {server} does not know this user (401)",
            hint="The kubeconfig's credential is wrong or has expired.",
        )
    if code == 403:
        hint = "Give the kubeconfig's user this right, or use another."
        return ClusterRefused(f"{doing}: {message}", hint=hint)
    if code == 409:
        return ClusterConflict(f"{doing}: {message}", hint="Run the same command again.")
    if code in _NOT_NOW:
        after = _retry_after(error.response.headers.get("Retry-After"))
        problem = f"{doing}: {server} cannot answer now ({code}): {message}"
        return ClusterBusy(problem, hint="Run the same command again later.", retry_after=after)
    if not isinstance(error, ApiError):
        problem = f"{doing}: the answer of {server} is not from Kubernetes: {message}"
        return ClusterError(problem, hint=_stranger(server))
    return ClusterError(f"{doing}: {message}", hint="The message is the API server's own.")


def _retry_after(header: str | None) -> float | None:
    """Seconds, or a date: https://www.rfc-editor.org/rfc/rfc9110#name-retry-after."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except ValueError:
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _by_transport(doing: str, server: str, proxy: Proxy | None, error: httpx2.TransportError) -> ClusterError:
    reason = reason_of(error)
    if reason is not None:
        return _of_certificate(doing, server, reason)
    if proxy is not None:
        return ClusterUnreachable(
            f"{doing}: {server} does not answer through the proxy {proxy}: {error}",
            hint="Check the proxy, or add the API server to NO_PROXY.",
        )
    return ClusterUnreachable(
        f"{doing}: {server} does not answer: {error}",
        hint="Check the network, the VPN and `server` in the kubeconfig.",
    )


def _of_certificate(doing: str, server: str, reason: ssl.SSLCertVerificationError) -> ClusterError:
    if reason.verify_code in _OTHER_NAME:
        return ClusterError(
            f"{doing}: the certificate of {server} is for another name: {reason.verify_message}",
            hint="Check `server` and `tls-server-name` in the kubeconfig; the address may belong to another cluster.",
        )
    return ClusterError(
        f"{doing}: the certificate of {server} is not signed by the kubeconfig's CA: {reason.verify_message}",
        hint="Check `certificate-authority` in the kubeconfig; the address may belong to another cluster.",
    )

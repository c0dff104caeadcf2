"""From the client library's errors to winboot's, in one place."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import msgspec
from lightkube.exceptions import ApiError, ConfigError

from winboot.errors import ClusterConflict, ClusterError, ClusterRefused, ClusterUnreachable

_OVERLOADED = {429, 502, 503, 504}


@contextmanager
def translated(doing: str, server: str) -> Iterator[None]:
    """Within this block, the library's errors become ClusterErrors; `doing` says what was tried."""
    try:
        yield
    except httpx2.HTTPStatusError as e:
        raise _by_status(doing, server, e) from e
    except httpx2.TransportError as e:
        raise _by_transport(doing, server, e) from e
    except ConfigError as e:
        raise ClusterError(f"{doing}: {e}", hint="Check the user of the kubeconfig's context.") from e
    except msgspec.MsgspecError as e:
        raise ClusterError(
            f"{doing}: {server} answered something that is not Kubernetes: {e}",
            hint="Check `server` in the kubeconfig: a proxy or another service may be answering.",
        ) from e


@contextmanager
def reading(kubeconfig: str) -> Iterator[None]:
    """Within this block the client reads a kubeconfig's credentials; whatever is wrong with it becomes a ClusterError."""
    hint = "Check `cluster.kubeconfig` and `cluster.context` in the profile."
    try:
        yield
    except ConfigError as e:
        raise ClusterError(f"{kubeconfig}: {e}", hint=hint) from e
    except KeyError as e:
        raise ClusterError(f"{kubeconfig}: it names {e}, which it does not hold", hint=hint) from e
    except (msgspec.MsgspecError, TypeError, ValueError, AttributeError) as e:
        raise ClusterError(f"{kubeconfig} is not a kubeconfig file: {e}", hint=hint) from e
    except (OSError, ssl.SSLError) as e:
        raise ClusterError(f"{kubeconfig}: {e}", hint=hint) from e


def _by_status(doing: str, server: str, error: httpx2.HTTPStatusError) -> ClusterError:
    code = error.response.status_code if error.response is not None else 0
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
    if code in _OVERLOADED:
        problem = f"{doing}: {server} is overloaded ({code}): {message}"
        return ClusterUnreachable(problem, hint="Try again later.")
    return ClusterError(f"{doing}: {message}", hint="")


def _by_transport(doing: str, server: str, error: httpx2.TransportError) -> ClusterError:
    if _certificate_problem(error):
        return ClusterError(
            f"{doing}: the certificate of {server} is not signed by the kubeconfig's CA: {error}",
            hint="Check `certificate-authority` in the kubeconfig; the address may belong to another cluster.",
        )
    return ClusterUnreachable(
        f"{doing}: {server} does not answer: {error}",
        hint="Check the network, the VPN and `server` in the kubeconfig.",
    )


def _certificate_problem(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False

"""TLS checks that are the same on each Python."""

from __future__ import annotations

import ssl


def even(context: ssl.SSLContext) -> ssl.SSLContext:
    """The context with the checks of OpenSSL that winboot chooses, on Python 3.11 to 3.14.

    From 3.13 on `ssl.create_default_context` sets both flags (docs.python.org/3/library/ssl.html, "Changed in version 3.13").
    A certificate that is trusted itself is enough, as for curl and Go. RFC 5280's strict rules are off: certificates that
    `openssl x509 -req` and older Windows CAs issue lack an Authority Key Identifier (github.com/python/cpython/issues/138193).
    """
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def reason_of(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """What OpenSSL has against a certificate, behind an error or its causes; None where it is about something else."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error

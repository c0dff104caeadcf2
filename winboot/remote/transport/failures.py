"""What the libraries below raise, as one of winboot's errors.

`winboot.remote.transport.psrp` is built on pypsrp, which is built on requests, urllib3, pyspnego, ssl and socket.
Each has an exception tree of its own, and an error may surface from any depth. Nothing else in winboot sees them. The
order of `translate` goes from the special to the general; `tests/transport/test_failures.py` walks all the trees.
"""

from __future__ import annotations

import binascii
import http.client
import socket
import ssl
import struct
import sys
import traceback
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

import requests
import spnego.exceptions
import urllib3.exceptions
from pypsrp._pool_manager import NewConnectionDisabled
from pypsrp.exceptions import (
    AuthenticationError,
    InvalidPSRPOperation,
    WinRMError,
    WinRMTransportError,
    WSManFaultError,
)

from winboot.base.errors import (
    AccessDenied,
    Busy,
    CertificateNotTrusted,
    ConnectionLost,
    LoginRefused,
    ProtocolError,
    TransportError,
    Unreachable,
    UsageError,
    WinbootError,
)
from winboot.base.extras import how_to_install
from winboot.remote.transport.kerberos import KERBEROS_ERRORS, kerberos_error

OPERATION_TIMEOUT: Final = 2150858793
HTTP_TOO_LARGE: Final = 413
NO_SUCH_SHELL: Final = 2150858843
# RPC_S_CALL_FAILED (winerror.h): wsmprovhost.exe, the process of the session, has ended.
HOST_ENDED: Final = 1726
_ACCESS_DENIED: Final = 5
_FAULT_HINT: Final = (
    "Run `winrm helpmsg CODE` on the machine, and see its log Microsoft-Windows-WinRM/Operational."
)
_FORBIDDEN_HINT: Final = (
    "The account must be in the group Administrators. A proxy or a firewall in between may also answer 403."
)

# Where a quota is that a fault's code names, as Set-Item takes it on the machine. The codes are those of wsmerror.h that
# PowerShell's own client takes for a quota (PowerShell/PowerShell, CimChildJobBase.cs, WsManErrorCode). Since Server 2012 an
# endpoint has quotas of its own, which the codes with PPQ name (about_Remote_Troubleshooting).
_SHELL, _SERVICE = "WSMan:\\localhost\\Shell", "WSMan:\\localhost\\Service"
_ENDPOINT = "WSMan:\\localhost\\Plugin\\microsoft.powershell\\Quotas"
QUOTAS: Final = {
    0x803381A5: rf"{_SHELL}\MaxShellsPerUser",  # QUOTA_MAX_SHELLS
    0x803381A6: rf"{_SERVICE}\MaxConcurrentOperationsPerUser",  # QUOTA_MAX_OPERATIONS
    0x803381A7: rf"{_SERVICE}\MaxConcurrentOperationsPerUser",  # QUOTA_USER
    0x803381A8: rf"{_SERVICE}\MaxConnections",  # QUOTA_SYSTEM
    0x803381AB: rf"{_SHELL}\MaxConcurrentUsers",  # QUOTA_MAX_SHELLUSERS
    0x803381E4: rf"{_ENDPOINT}\MaxShellsPerUser",  # QUOTA_MAX_SHELLS_PPQ
    0x803381E5: rf"{_ENDPOINT}\MaxConcurrentUsers",  # QUOTA_MAX_USERS_PPQ
    0x803381E6: rf"{_ENDPOINT}\MaxShells",  # QUOTA_MAX_PLUGINSHELLS_PPQ
    0x803381E7: rf"{_ENDPOINT}\MaxConcurrentOperations",  # QUOTA_MAX_PLUGINOPERATIONS_PPQ
    0x803381E8: rf"{_ENDPOINT}\MaxConcurrentOperationsPerUser",  # QUOTA_MAX_OPERATIONS_USER_PPQ
    0x803381E9: rf"{_ENDPOINT}\MaxConcurrentCommandsPerShell",  # QUOTA_MAX_COMMANDS_PER_SHELL_PPQ
    0x803381EA: _ENDPOINT,  # QUOTA_MIN_REQUIREMENT_NOT_AVAILABLE_PPQ
}
# System error codes (winerror.h) of a machine that is short of something.
SHORT: Final = {
    8: "the machine has no memory left (ERROR_NOT_ENOUGH_MEMORY)",
    14: "the machine has no memory left (ERROR_OUTOFMEMORY)",
    170: "a resource that WinRM needs is in use (ERROR_BUSY)",
    995: "WinRM is shutting down, or it ended the operation (ERROR_OPERATION_ABORTED)",
    1450: "Windows has no system resources left (ERROR_NO_SYSTEM_RESOURCES)",
}

# pypsrp reads what the machine sent without looking: an answer in another form surfaces as one of these. Each has its
# place in pypsrp 0.9; `_raised_here` distinguishes them from our own bug, which raises the same classes.
_MALFORMED: Final = (
    ElementTree.ParseError,  # wsman.py: ET.fromstring of an answer that is not XML
    struct.error,  # powershell.py: Fragment.unpack of a piece that is too short
    binascii.Error,  # shell.py and serializer.py: b64decode of what is no Base64
    ValueError,  # serializer.py: int, float and UUID of another text; invalid UTF-8
    OverflowError,  # serializer.py: chr() of a number that is not a character
    KeyError,  # serializer.py: a reference to an object that was not sent; messages.py: an unknown message type
    IndexError,  # encryption.py: a sealed part without its length or its body
    TypeError,  # serializer.py: int(None) and b64decode(None) of an empty element
    AttributeError,  # serializer.py and powershell.py: an element or a text that is missing (None)
    RecursionError,  # serializer.py: objects nested deeper than Python's stack
)

LIBRARY_ERRORS: Final[tuple[type[Exception], ...]] = (
    WinRMError,
    NewConnectionDisabled,
    requests.RequestException,
    requests.cookies.CookieConflictError,
    urllib3.exceptions.HTTPError,
    spnego.exceptions.SpnegoError,
    spnego.exceptions.FeatureMissingError,
    spnego.exceptions.NativeError,
    http.client.HTTPException,
    OSError,
    ImportError,
    *KERBEROS_ERRORS,
    *_MALFORMED,
)

# Those, and our own.
ALL_ERRORS: Final[tuple[type[Exception], ...]] = (WinbootError, *LIBRARY_ERRORS)

_LOGIN_ERRORS: Final = (
    AuthenticationError,
    spnego.exceptions.NoCredentialError,
    spnego.exceptions.InvalidCredentialError,
    spnego.exceptions.CredentialsExpiredError,
    spnego.exceptions.BadNameError,
    spnego.exceptions.BadBindingsError,
)
_NEVER_SENT: Final = (
    requests.ConnectTimeout,
    requests.exceptions.ProxyError,
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NameResolutionError,
    urllib3.exceptions.ProxyError,
    urllib3.exceptions.LocationValueError,
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    NewConnectionDisabled,
    socket.gaierror,
    socket.herror,
    ConnectionRefusedError,
)
_TLS_ENDED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_CUT_OFF: Final = (
    requests.ReadTimeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ConnectionError,
    urllib3.exceptions.ProtocolError,
    urllib3.exceptions.ReadTimeoutError,
    urllib3.exceptions.TimeoutError,
    http.client.IncompleteRead,
    http.client.RemoteDisconnected,
    *_TLS_ENDED,
    ConnectionError,
    TimeoutError,
)


def _of_login(user: str) -> str:
    """What to look at after a refused login: a name that says whose it is needs no other form."""
    if "\\" in user or "@" in user:
        return "Check `password` and `auth` in the inventory, and whether the account is locked or disabled."
    return r"Local accounts need the form .\name. Check `user`, `password` and `auth` in the inventory."


def translate(error: BaseException, name: str, user: str) -> WinbootError:
    """What `error` means for the machine called `name`, reached as `user`.

    `Unreachable` says that the machine has certainly not seen the request; `ConnectionLost` that it may have. An error
    that a bug of our own made is raised as it is: no network is to blame for it.
    """
    if isinstance(error, WinbootError):
        return error
    if isinstance(error, WSManFaultError):
        return _fault(error, name, user)
    if isinstance(error, WinRMTransportError):
        return _status(error, name, user)
    chain = tuple(_causes(error))
    if (kerberos := kerberos_error(chain, name, user)) is not None:
        return kerberos
    if any(isinstance(each, _LOGIN_ERRORS) for each in chain):
        return LoginRefused(
            f"{name}: the login '{user}' was refused",
            hint=_of_login(user),
            node=name,
        )
    if _not_trusted(chain):
        return CertificateNotTrusted(
            f"{name}: the certificate is not the expected one ({_root(chain)})",
            hint="`winboot ping` shows the certificate. If it is right, set `tls.ca` or `tls.fingerprint`.",
            node=name,
        )
    if any(isinstance(each, ssl.SSLError) and not isinstance(each, _TLS_ENDED) for each in chain):
        return ProtocolError(
            f"{name}: winboot and the machine share no TLS version or cipher ({_root(chain)})",
            hint="Check that this port is HTTPS: 5985 is plain HTTP, 5986 is HTTPS.",
            node=name,
        )
    if any(isinstance(each, _NEVER_SENT) for each in chain):
        return Unreachable(
            f"{name}: nothing answers ({_root(chain)})",
            hint="Check that the machine is on, that WinRM runs, and that no firewall blocks the port.",
            node=name,
        )
    if any(isinstance(each, _CUT_OFF) for each in chain):
        return ConnectionLost(
            f"{name}: the connection was lost ({_root(chain)})",
            hint="Run the command again: it continues where it stopped.",
            node=name,
        )
    return _general(error, name)


def _general(error: BaseException, name: str) -> WinbootError:
    if isinstance(error, ImportError | spnego.exceptions.FeatureMissingError):
        return UsageError(
            f"{name}: this login needs a library that is not installed ({error})",
            hint=f"Kerberos needs the system's library and a package: {how_to_install('kerberos')}.",
            node=name,
        )
    if isinstance(error, InvalidPSRPOperation):
        return ConnectionLost(
            f"{name}: the session ended unexpectedly ({error})",
            hint="Run the command again: it continues where it stopped.",
            node=name,
        )
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return Unreachable(f"{name}: {error}", hint="Check the network of this computer.", node=name)
    if isinstance(error, _MALFORMED) and _raised_here(error):
        raise error
    return ProtocolError(
        f"{name}: the answer is not from WinRM ({type(error).__name__})",
        hint="Check for a proxy or another service between this computer and the machine's WinRM.",
        node=name,
    )


def _raised_here(error: BaseException) -> bool:
    """Whether code of winboot raised it, and not a library that it called. Frames of Python's own library belong to
    their caller. False for an error that was never raised.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    packages = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame in frames]
    foreign = [one for one in packages if one not in sys.stdlib_module_names]
    return foreign[-1:] == ["winboot"]


# learn.microsoft.com/troubleshoot/developer/webapps/iis/www-authentication-authorization/http-bad-request-response-kerberos:
# http.sys answers so where a ticket makes the header longer than MaxFieldLength, 16,384 bytes by default.
_BAD_REQUEST_HINT: Final = (
    "The Kerberos ticket of an account in many groups is too long for http.sys. Set `auth: ntlm`, or raise MaxFieldLength and"
    r" MaxRequestBytes below HKLM\SYSTEM\CurrentControlSet\Services\HTTP\Parameters and restart the machine. Otherwise check"
    " for a proxy or another service between this computer and the machine's WinRM."
)


def _fault(error: WSManFaultError, name: str, user: str) -> TransportError:
    reason = " ".join(str(error.reason or error.provider_fault or "no reason given").split())
    if error.code in QUOTAS:
        return Busy(
            f"{name}: the machine temporarily refuses the request: {reason}",
            hint=f"Wait some minutes until abandoned sessions end, or raise {QUOTAS[error.code]} on the machine.",
            node=name,
        )
    if error.code in SHORT:
        return Busy(
            f"{name}: the machine temporarily refuses the request: {reason}",
            hint=f"{SHORT[error.code]}. Run the command again; if this repeats, restart WinRM or the machine.",
            node=name,
        )
    if error.code == _ACCESS_DENIED:
        return AccessDenied(
            f"{name}: {user!r} may not open a PowerShell session",
            hint="The account must be in the group Administrators. A local account other than Administrator also"
            " needs LocalAccountTokenFilterPolicy.",
            node=name,
        )
    if error.code in (NO_SUCH_SHELL, OPERATION_TIMEOUT, HOST_ENDED):
        return ConnectionLost(
            f"{name}: the session no longer exists: {reason}",
            hint="Run the command again: it continues where it stopped.",
            node=name,
        )
    return ProtocolError(f"{name}: WinRM fault {error.code}: {reason}", hint=_FAULT_HINT, node=name)


def _status(error: WinRMTransportError, name: str, user: str) -> TransportError:
    match error.code:
        case 503:
            return Busy(
                f"{name}: WinRM is not ready (HTTP 503)", hint="WinRM may be starting or stopping.", node=name
            )
        case 403:
            return AccessDenied(
                f"{name}: {user!r} may not use WinRM (HTTP 403)", hint=_FORBIDDEN_HINT, node=name
            )
        case 400:
            return ProtocolError(
                f"{name}: the machine refuses the request (HTTP 400)", hint=_BAD_REQUEST_HINT, node=name
            )
        case 413:  # HTTP_TOO_LARGE
            return ProtocolError(
                f"{name}: the machine refuses a message of this size (HTTP 413)",
                hint="Raise MaxEnvelopeSizekb on the machine; the default is 500.",
                node=name,
            )
        case code:
            return ProtocolError(
                f"{name}: HTTP {code} instead of an answer",
                hint="Check for a proxy or another service between this computer and the machine's WinRM.",
                node=name,
            )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and whatever it came from. requests and urllib3 put causes into `args` and `reason`."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        candidates = [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]
        waiting += [one for one in candidates if isinstance(one, BaseException)]


def _not_trusted(chain: tuple[BaseException, ...]) -> bool:
    if any(isinstance(each, ssl.SSLCertVerificationError | ssl.CertificateError) for each in chain):
        return True
    # urllib3 says that a pinned fingerprint differs by an SSLError of its own, which no error of ssl caused.
    ours = [each for each in chain if isinstance(each, urllib3.exceptions.SSLError)]
    return bool(ours) and not any(
        isinstance(each, OSError) and not isinstance(each, requests.RequestException) for each in chain
    )


def _root(chain: tuple[BaseException, ...]) -> str:
    """The innermost reason in a few words."""
    last = next((each for each in reversed(chain) if isinstance(each, OSError) and each.strerror), chain[-1])
    if isinstance(last, OSError) and last.strerror:
        return str(last.strerror)
    text = str(last).strip()
    return text.splitlines()[0][:200] if text else type(last).__name__

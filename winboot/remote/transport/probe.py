"""What a machine is like before anything is done to it: seen from outside, and by one small script inside."""

from __future__ import annotations

import hashlib
import http.client
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from winboot.base.clean import clean
from winboot.base.errors import ProtocolError
from winboot.base.foreign import Malformed, decoded
from winboot.remote.transport.base import Certificate, Endpoint, Outside, Probe
from winboot.remote.transport.failures import LIBRARY_ERRORS, translate

# Plain enough for Constrained Language, where .NET calls fail: there the answer stays null, and the mode shows why.
PROBE_SCRIPT: Final = r"""
$answer = @{
    language = $ExecutionContext.SessionState.LanguageMode.ToString()
    policy = [string](Get-ExecutionPolicy)
    ps = [string]$PSVersionTable.PSVersion
    computer = [string]$env:COMPUTERNAME
    administrator = $false
    filtered = $false
    domain = $null
    build = ''
    now = $null
}
if ($answer.language -eq 'FullLanguage') {
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $principal = [Security.Principal.WindowsPrincipal]::new($identity)
    $answer.administrator = $principal.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)
    if (-not $answer.administrator) {
        # The token knows the group Administrators, but only to be denied things.
        $denied = @($identity.Claims | Where-Object { $_.Type -like '*denyonlysid' -and $_.Value -eq 'S-1-5-32-544' })
        $answer.filtered = $denied.Count -gt 0
    }
    $system = Get-CimInstance -ClassName 'Win32_ComputerSystem' -Property 'PartOfDomain', 'Domain'
    if ($system.PartOfDomain) { $answer.domain = [string]$system.Domain }
    $version = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey('SOFTWARE\Microsoft\Windows NT\CurrentVersion')
    $answer.build = '{0}.{1}' -f $version.GetValue('CurrentBuildNumber'), $version.GetValue('UBR')
    $version.Dispose()
    $answer.now = [DateTime]::UtcNow.ToString('o')
}
ConvertTo-Json -InputObject $answer -Compress
"""


def visible_from_outside(endpoint: Endpoint, name: str) -> Outside:
    """Which logins the endpoint offers and which certificate it shows, trusted or not. Nothing secret is sent."""
    try:
        return _ask(endpoint, name)
    except LIBRARY_ERRORS as error:
        raise translate(error, name, endpoint.user) from error


def _ask(endpoint: Endpoint, name: str) -> Outside:
    timeout = endpoint.timeouts.connect
    host, port = endpoint.via or (endpoint.address, endpoint.port)
    connection: http.client.HTTPConnection
    if endpoint.tls is not None:
        # This connection carries no login and no script: it is made to see the certificate, whatever it is.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.connect()
        sock = connection.sock
        certificate = _certificate(sock, name) if isinstance(sock, ssl.SSLSocket) else None
        connection.request("POST", "/wsman", headers={"Content-Length": "0"})
        answer = connection.getresponse()
        answer.read()
        offers = answer.headers.get_all("WWW-Authenticate") or []
        return Outside(tuple(clean(offer.split(" ")[0]) for offer in offers), certificate)
    finally:
        connection.close()


def _certificate(sock: ssl.SSLSocket, name: str) -> Certificate | None:
    der = sock.getpeercert(binary_form=True)
    if der is None:
        return None
    try:
        return _described(der, sock.version() or "")
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        # As with a * in a PrintableString, which OpenSSL lets pass.
        raise ProtocolError(
            f"{name}: the certificate is not well-formed; its fingerprint is sha256:{hashlib.sha256(der).hexdigest()}",
            hint="Issue another certificate for WinRM; logins are bound to the certificate.",
            node=name,
        ) from error


def _described(der: bytes, protocol: str) -> Certificate:
    certificate = x509.load_der_x509_certificate(der)
    return Certificate(
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(),
        subject=clean(certificate.subject.rfc4514_string()),
        issuer=clean(certificate.issuer.rfc4514_string()),
        names=_names(certificate),
        not_after=certificate.not_valid_after_utc,
        protocol=protocol,
    )


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(each.value) for each in names)


def read_probe(run: Callable[[], Iterator[str]], outside: Outside, name: str) -> Probe:
    """Run the probe script and join its answer with what was seen from outside. Raises TransportError."""
    before = datetime.now(UTC)
    lines = list(run())
    after = datetime.now(UTC)
    answer = _answer(lines)
    if answer is None:
        raise ProtocolError(
            f"{name}: none of the {len(lines)} lines that the machine sent is an answer to the probe",
            hint="See the journal, and what runs in the sessions of this account (a profile script, an agent).",
            node=name,
        )
    middle = before + (after - before) / 2
    return Probe(
        offered_auth=outside.offered_auth,
        certificate=outside.certificate,
        host_key=outside.host_key,
        language_mode=clean(answer.language),
        execution_policy=clean(answer.policy),
        administrator=answer.administrator,
        filtered_token=answer.filtered,
        computer_name=clean(answer.computer),
        domain=clean(answer.domain) if answer.domain is not None else None,
        os_build=clean(answer.build),
        ps_version=clean(answer.ps),
        clock_offset=(answer.now or middle) - middle,
        round_trip=after - before,
    )


class _Answer(msgspec.Struct, frozen=True):
    """One line of PROBE_SCRIPT."""

    language: str
    policy: str
    ps: str
    computer: str
    administrator: bool
    filtered: bool
    domain: str | None
    build: str
    # None where Constrained Language hides it.
    now: Annotated[datetime, msgspec.Meta(tz=True)] | None


_ANSWER: Final = msgspec.json.Decoder(_Answer)


def _answer(lines: list[str]) -> _Answer | None:
    """The first line that is an answer; the others are warnings of the machine."""
    for line in lines:
        with suppress(Malformed):
            return decoded(_ANSWER, line)
    return None

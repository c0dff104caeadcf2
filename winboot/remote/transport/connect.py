"""The transport that an inventory's connection asks for. Only its own library is imported, and only here."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Final

from winboot.base.errors import InvalidInput
from winboot.base.extras import require
from winboot.config.inventory import Connection
from winboot.config.profile.reference import Reference
from winboot.remote.transport.base import Endpoint, Outside, Timeouts, Tls, Transport

_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\s]+-----END CERTIFICATE-----")


def connect(connection: Connection, *, name: str) -> Transport:
    """A transport to the machine called `name`, which is in every error; nothing is sent before its first
    use.

    Raises UsageError for a connection that must not be used, such as Basic beyond this host, and InvalidInput
    where a reference (password, CA) cannot be read.
    """
    # The libraries behind each transport take 0.2 s to import, so only the one in use is.
    match connection.transport:
        case "winrm":
            from winboot.remote.transport.psrp import PsrpTransport

            endpoint = _endpoint(connection, name)

            def make(via: tuple[str, int] | None) -> Transport:
                return PsrpTransport(replace(endpoint, via=via), name=name)

        case "ssh":
            require("ssh", f"{name}: transport: ssh")
            from winboot.remote.transport.ssh import SshTransport, ssh_endpoint

            target = ssh_endpoint(connection, name)

            def make(via: tuple[str, int] | None) -> Transport:
                return SshTransport(replace(target, via=via), name=name)

        case "local":
            from winboot.remote.transport.local import LocalTransport

            return LocalTransport(name=name)
    if connection.tunnel is None:
        return make(None)
    from winboot.remote.transport.tunnel import TunnelledTransport

    return TunnelledTransport(connection, make, name=name)


def look_from_outside(connection: Connection, *, name: str) -> Outside | None:
    """What a WinRM endpoint shows to anyone: its certificate and the logins it offers; None for other ways.

    Nothing secret is sent. Raises TransportError.
    """
    if connection.transport != "winrm" or connection.tunnel is not None:
        return None
    from winboot.remote.transport.probe import visible_from_outside

    return visible_from_outside(_endpoint(connection, name), name)


def show_host_key(connection: Connection, *, name: str) -> str | None:
    """Type and fingerprint of the SSH host key that a machine shows, trusted or not; None for other ways.

    It does not log in. Raises TransportError.
    """
    if connection.transport != "ssh":
        return None
    require("ssh", f"{name}: transport: ssh")
    from winboot.remote.transport.ssh import shown_host_key, ssh_endpoint

    endpoint = ssh_endpoint(connection, name)
    if connection.tunnel is None:
        return shown_host_key(endpoint, name)
    from winboot.remote.transport.tunnel import through

    with through(connection, name=name) as way:
        return shown_host_key(replace(endpoint, via=way), name)


def _authority(reference: Reference, where: str) -> str:
    """The certificates of a PEM file, without what is between them: a CA's name in words of any language, often."""
    found = _CERTIFICATE.findall(reference.read(where).reveal())
    if not found:
        raise InvalidInput(
            f"{where}: {reference} does not contain a certificate", hint="It must be a PEM file."
        )
    return "\n".join(found) + "\n"


def _endpoint(connection: Connection, name: str) -> Endpoint:
    tls = None
    if connection.https:
        given = connection.tls
        ca = _authority(given.ca, f"{name}: connection.tls.ca") if given is not None and given.ca else None
        pinned = (
            given.fingerprint.removeprefix("sha256:") if given is not None and given.fingerprint else None
        )
        tls = Tls(ca_pem=ca, fingerprint=pinned)
    reference = connection.password
    return Endpoint(
        address=connection.host,
        port=connection.port_number,
        user=connection.user,
        password=partial(reference.read, f"{name}: connection.password") if reference is not None else None,
        auth=connection.auth,
        tls=tls,
        timeouts=Timeouts(connect=connection.connect_timeout_s),
        spn=connection.spn,
    )

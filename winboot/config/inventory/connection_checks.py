"""Whether the keys of a connection go together, and whether its files and packages are here."""

from __future__ import annotations

from typing import Final

from winboot.base.extras import ExtraName, how_to_install, lacking
from winboot.config.inventory.complaints import Complaints
from winboot.config.inventory.connection import Connection, Jump, is_loopback
from winboot.config.model import is_file
from winboot.config.profile import Reference
from winboot.config.source import (
    Scalar,
    Table,
    dotted,
    locate,
)

# What an SSH login may read from a file.
_LOGIN_FILES: Final = {
    "key": "a private key",
    "passphrase": "a file with the passphrase",
    "certificate": "the certificate of the key, as ssh-keygen -s writes it",
    "password": "a file with the password",
}


def check_connection(into: Complaints, connection: Connection, merged: Table, name: str) -> None:
    """All findings about a connection without dialling; `name` is the host key."""
    address = merged.get("address")
    target = connection.host or (address.text if isinstance(address, Scalar) else name)
    place = locate(merged, ("connection", "auth"))
    if connection.transport == "winrm":
        if connection.auth == "basic" and not is_loopback(target):
            wrong = f"basic would send the password in plain text to another machine, {target}"
            into.complain(place, "connection.auth", wrong, "negotiate, ntlm or kerberos")
        if connection.auth in ("basic", "ntlm") and not (connection.user and connection.password):
            wrong = f"{connection.auth} needs a user and a password"
            into.complain(place, "connection.auth", wrong, "user and password: {env: NAME}")
        elif connection.password and not connection.user:
            # pyspnego would send the password with an empty name.
            into.complain(
                locate(merged, ("connection", "password"), key=True),
                "connection.password",
                "a password is set, but no user",
                r"user: DOMAIN\name, .\name or name@domain",
            )
        if not connection.https and connection.tls is not None:
            into.complain(
                locate(merged, ("connection", "tls"), key=True),
                "connection.tls",
                "http does not use certificates",
                "port 5986, or no tls",
            )
        ca = connection.tls.ca if connection.tls else None
        _check_file(into, ca, ("connection", "tls", "ca"), "a PEM file", merged)
        _check_file(into, connection.password, ("connection", "password"), "a file with the password", merged)
    if connection.transport == "ssh":
        _check_ssh(into, connection, merged)
        _check_extra(into, "ssh", ("connection", "transport"), "transport: ssh", merged)
    if connection.transport == "winrm" and connection.auth == "kerberos":
        _check_extra(into, "kerberos", ("connection", "auth"), "auth: kerberos", merged)
    if connection.transport != "local":
        _check_user(into, connection, merged)
    _check_tunnel(into, connection, merged)
    _check_spn(into, connection, merged)


def _check_user(into: Complaints, connection: Connection, merged: Table) -> None:
    """A name that no account of Windows has would be a refused login on every machine, and may lock an account."""
    user, place = connection.user, locate(merged, ("connection", "user"))
    name = user.rpartition("\\")[2]
    if user and (user != user.strip() or "/" in user or user.count("\\") > 1 or not name.partition("@")[0]):
        wrong, meant = f"{user!r} is not a Windows user", user.strip().replace("/", "\\")
        into.complain(place, "connection.user", wrong, r"DOMAIN\name, .\name or name@domain", meant)
    elif name.endswith("@"):
        wrong = f"{user!r} has no domain after @"
        into.complain(place, "connection.user", wrong, r"DOMAIN\name, .\name or name@domain", user[:-1])


def _check_extra(into: Complaints, extra: ExtraName, path: tuple[str, ...], what: str, merged: Table) -> None:
    """A part of winboot that is not installed here. A warning: `render` does without it."""
    if missing := lacking(extra):
        wrong = f"{what} needs the Python package {', '.join(missing)}, which is not installed"
        expected = f"the extra {extra}, {how_to_install(extra)}"
        into.warn(locate(merged, path), dotted(path), wrong, expected)


def _check_file(
    into: Complaints, reference: Reference | None, path: tuple[str | int, ...], expected: str, merged: Table
) -> None:
    """A file that a reference names. A missing one is a warning: `render` does without it."""
    file = reference.file if reference is not None else None
    if file is not None and not is_file(file):
        path = (*path, "file")
        place = locate(merged, path)
        into.warn(place, dotted(path), f"there is no file {file}", expected)


def _check_tunnel(into: Complaints, connection: Connection, merged: Table) -> None:
    if connection.tunnel is None:
        return
    place = locate(merged, ("connection", "tunnel"), key=True)
    if connection.transport == "local":
        wrong, expected = (
            "the transport local makes no connection",
            "transport winrm or ssh, or no tunnel",
        )
        into.complain(place, "connection.tunnel", wrong, expected)
    elif connection.proxy_jump:
        wrong = "proxy_jump and tunnel cannot be combined"
        into.complain(place, "connection.tunnel", wrong, "proxy_jump or tunnel, not both")


def _check_spn(into: Complaints, connection: Connection, merged: Table) -> None:
    if connection.spn is None:
        return
    place = locate(merged, ("connection", "spn"), key=True)
    if connection.transport != "winrm":
        wrong = f"the transport {connection.transport} uses no Kerberos ticket"
        into.complain(place, "connection.spn", wrong, "transport winrm, or no spn")
    elif connection.auth not in ("negotiate", "kerberos"):
        wrong = f"{connection.auth} uses no Kerberos ticket"
        into.complain(place, "connection.spn", wrong, "auth negotiate or kerberos, or no spn")


def _check_ssh(into: Complaints, connection: Connection, merged: Table) -> None:
    if connection.port in (5985, 5986):
        place = locate(merged, ("connection", "port"))
        into.complain(place, "connection.port", f"{connection.port} is a port of WinRM", "22")
    if not connection.user:
        place = locate(merged, ("connection", "transport"))
        into.complain(place, "connection.user", "ssh needs a user", "user: Administrator")
    if connection.key is None and connection.password is None and not connection.agent:
        place = locate(merged, ("connection", "transport"))
        into.complain(
            place, "connection.key", "ssh needs a key, a password or the agent", "key: {file: PATH}"
        )
    _check_logins(into, connection, ("connection",), merged)
    for number, jump in enumerate(connection.proxy_jump):
        _check_logins(into, jump, ("connection", "proxy_jump", number), merged)


def _check_logins(
    into: Complaints, settings: Connection | Jump, path: tuple[str | int, ...], merged: Table
) -> None:
    """The files that an SSH login reads. Their permissions do not matter: winboot never looks at them."""
    for key, expected in _LOGIN_FILES.items():
        _check_file(into, getattr(settings, key), (*path, key), expected, merged)
    if settings.known_hosts is not None and not is_file(settings.known_hosts):
        path = (*path, "known_hosts")
        wrong = f"there is no file {settings.known_hosts}"
        into.warn(locate(merged, path), dotted(path), wrong, "a known_hosts file")

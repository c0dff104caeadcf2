"""How a machine is reached: keys of an inventory, with the defaults filled in."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, model_validator

from winboot.config.model import LocalPath, Model, OneOrMany
from winboot.config.profile import Reference
from winboot.config.profile.reference import LoginReference
from winboot.config.profile.values import Address as IpAddress
from winboot.config.profile.values import (
    Fingerprint,
    Host,
    HostKey,
    NameOrAddress,
    ServicePrincipal,
    TunnelCommand,
)
from winboot.config.source import Wrong

_LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})


class Tls(Model):
    """How the machine's certificate is judged: by a CA, or by the certificate's own fingerprint."""

    ca: Reference | None = Field(
        default=None, description="the PEM file of the CA that signed the WinRM certificate"
    )
    fingerprint: Fingerprint | None = Field(
        default=None, description="sha256:<hex> of the certificate itself (DER)"
    )


class Jump(Model):
    """One SSH host to go through."""

    host: NameOrAddress = Field(description="name or address of the jump host")
    port: int = Field(default=22, ge=1, le=65535, description="the SSH port of the jump host")
    user: str = Field(description="the account on the jump host")
    password: Reference | None = Field(default=None, description="{env | file | command}")
    key: Reference | None = Field(default=None, description="the private key, {file: …}")
    passphrase: Reference | None = Field(default=None, description="the passphrase of the private key")
    certificate: Reference | None = Field(default=None, description="the certificate of the key, {file: …}")
    agent: bool = Field(default=False, description="also try the keys of the SSH agent")
    host_key: HostKey | None = Field(default=None, description="SHA256:<base64> of the jump host's key")
    known_hosts: LocalPath | None = Field(
        default=None, description="a known_hosts file; default: ~/.ssh/known_hosts"
    )

    @model_validator(mode="before")
    @classmethod
    def _is_no_login(cls, value: object) -> object:
        """The form of `ssh -J` has a place of its own for each part here."""
        host = value.get("host") if isinstance(value, Mapping) else value
        user, at, bare = str(host).rpartition("@")
        if at:
            raise Wrong(f"{str(host)!r} has a user and a host", expected=f"{{host: {bare}, user: {user}}}")
        return value


class Connection(Model):
    """How to reach one machine. `host` is the address to connect to; the inventory's `address` fills it in.

    WinRM speaks HTTPS unless the port is 5985 (or `scheme` says http): then NTLM or Kerberos seal the messages.
    """

    transport: Literal["winrm", "ssh", "local"] = Field(default="winrm", description="winrm | ssh | local")
    host: Host = Field(default="", description="the address to connect to; default: the host's address")
    port: int | None = Field(default=None, ge=1, le=65535, description="default: 5986 (winrm), 22 (ssh)")
    scheme: Literal["http", "https"] | None = Field(
        default=None, description="default: http on port 5985, else https"
    )
    auth: Literal["negotiate", "ntlm", "kerberos", "basic"] = Field(
        default="negotiate", description="negotiate | ntlm | kerberos | basic (loopback only)"
    )
    spn: ServicePrincipal | None = Field(
        default=None,
        description="Kerberos: the service principal of the ticket; default: host/<address of the connection>",
    )
    tls: Tls | None = Field(
        default=None, description="{ca: {file: …}} or {fingerprint: sha256:…}; default: the system's CAs"
    )
    user: str = Field(default="", description=r"DOMAIN\name, .\name or name@domain")
    password: LoginReference | None = Field(
        default=None, description="{env | file | command}, or {ec2_key: FILE}"
    )
    key: Reference | None = Field(default=None, description="ssh: the private key, {file: …}")
    passphrase: Reference | None = Field(default=None, description="ssh: the passphrase of the private key")
    certificate: Reference | None = Field(
        default=None, description="ssh: the certificate of the private key, {file: …}"
    )
    agent: bool = Field(default=False, description="ssh: also try the keys of the SSH agent")
    host_key: HostKey | None = Field(
        default=None, description="ssh: SHA256:<base64> of the machine's host key"
    )
    known_hosts: LocalPath | None = Field(
        default=None, description="ssh: a known_hosts file; default: ~/.ssh/known_hosts"
    )
    proxy_jump: OneOrMany[Jump] = Field(default=(), description="ssh: the jump hosts, in order")
    tunnel: TunnelCommand | None = Field(
        default=None,
        description="a command that forwards {local_port} on 127.0.0.1 to {host}:{port}; started for each session",
    )
    connect_timeout_s: int = Field(
        default=30, ge=1, le=3600, description="how long winboot waits for the answer to the first packet"
    )
    poll_s: float = Field(
        default=5.0,
        gt=0,
        le=600,
        allow_inf_nan=False,
        description="the interval between retries while the machine restarts or works without a connection",
    )

    @property
    def https(self) -> bool:
        """Is WinRM spoken over TLS?"""
        return self.scheme == "https" if self.scheme else self.port != 5985

    @property
    def loopback(self) -> bool:
        """Is the machine this one?"""
        return self.transport == "local" or is_loopback(self.host)

    @property
    def port_number(self) -> int:
        """The port, with the transport's default filled in."""
        if self.port is not None:
            return self.port
        return 22 if self.transport == "ssh" else 5986 if self.https else 5985


def address_of(text: str | None) -> IpAddress | None:
    """The address that a text is; None where it is a name."""
    try:
        return ipaddress.ip_address(text or "")
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Is a name or address this very machine's?"""
    address = address_of(host)
    return host.lower() in _LOOPBACK_NAMES if address is None else address.is_loopback

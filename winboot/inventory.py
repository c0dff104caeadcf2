"""Which machines, how to reach them, and which profile each one gets."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from winboot.model import LocalPath, Model
from winboot.profile import Reference


class Tls(Model):
    """How the machine's certificate is judged: by a CA, or by the certificate's own fingerprint."""

    ca: Reference | None = Field(
        default=None, description="the PEM file of the CA that signed the WinRM certificate"
    )
    fingerprint: str | None = Field(default=None, description="sha256:<hex> of the certificate itself (DER)")


class Connection(Model):
    """How to reach one machine. `host` is the address to connect to; the inventory's `address` fills it in.

    WinRM speaks HTTPS unless the port is 5985 (or `scheme` says http): then NTLM or Kerberos seal the
    messages.
    """

    transport: Literal["winrm", "ssh", "local"] = Field(default="winrm", description="winrm | ssh | local")
    host: str = Field(default="", description="what to connect to; default: the address of the host")
    port: int | None = Field(default=None, ge=1, le=65535, description="default: 5986 (winrm), 22 (ssh)")
    scheme: Literal["http", "https"] | None = Field(
        default=None, description="default: http on port 5985, else https"
    )
    auth: Literal["negotiate", "ntlm", "kerberos", "basic"] = Field(
        default="negotiate", description="negotiate | ntlm | kerberos | basic (loopback only)"
    )
    tls: Tls | None = Field(
        default=None, description="{ca: {file: …}} or {fingerprint: sha256:…}; default: the system's CAs"
    )
    user: str = Field(default="", description=r"DOMAIN\name, .\name or name@domain")
    password: Reference | None = Field(default=None, description="{env | file | command}")
    key: Reference | None = Field(default=None, description="ssh: the private key, {file: …}")
    passphrase: Reference | None = Field(default=None, description="ssh: the passphrase of the private key")
    host_key: str | None = Field(default=None, description="ssh: SHA256:<base64> of the machine's host key")
    known_hosts: LocalPath | None = Field(
        default=None, description="ssh: a known_hosts file; default: ~/.ssh/known_hosts"
    )
    connect_timeout_s: int = Field(
        default=30, ge=1, description="how long to wait for an answer to the first packet"
    )

    @property
    def https(self) -> bool:
        """Is WinRM spoken over TLS?"""
        return self.scheme == "https" if self.scheme else self.port != 5985

    @property
    def port_number(self) -> int:
        """The port, with the transport's default filled in."""
        if self.port is not None:
            return self.port
        return 22 if self.transport == "ssh" else 5986 if self.https else 5985

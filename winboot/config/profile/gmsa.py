"""Group managed service accounts: the domain, the accounts, the users that may use them, and the webhook's certificate."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, PlainValidator

from winboot.config.model import Model, OneOrMany
from winboot.config.profile.reference import Reference
from winboot.config.profile.user_file import UserFile
from winboot.config.profile.values import NAME, host_name
from winboot.config.source import Wrong, text_of

# A domain's SID has three numbers behind S-1-5-21 (MS-DTYP 2.4.2.4); an account's has one more.
_SID: Final = re.compile(r"S-1-5-21(-[0-9]{1,10}){3}")
_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_NETBIOS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,14}")
# sAMAccountName of a group managed service account: 15 characters and the dollar sign
# (learn.microsoft.com/windows-server/identity/ad-ds/manage/group-managed-service-accounts).
_ACCOUNT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,14}")


def _matching(form: re.Pattern[str], expected: str) -> PlainValidator:
    def check(value: Any) -> str:
        text = text_of(value, expected)
        if not form.fullmatch(text):
            meant = text.removesuffix("$").strip("{}")
            raise Wrong(repr(text), expected=expected, did_you_mean=meant if form.fullmatch(meant) else "")
        return text

    return PlainValidator(check)


def _dns(value: Any) -> str:
    text = host_name(text_of(value, "a DNS name of a domain, such as corp.example"))
    if "." not in text:
        raise Wrong(f"{text!r} has no dot", expected="the DNS name; a NetBIOS name leads to NTLM")
    return text


def _subject(value: Any) -> str:
    expected = "namespace/serviceaccount"
    text = text_of(value, expected)
    namespace, slash, name = text.partition("/")
    if not slash or not NAME.fullmatch(namespace) or not NAME.fullmatch(name):
        raise Wrong(repr(text), expected=expected)
    return text


Guid = Annotated[str, _matching(_GUID, "a GUID such as 244818ae-87ac-4fcd-92ec-e79e5252348a")]
DnsDomain = Annotated[str, PlainValidator(_dns)]


class Domain(Model):
    """The Active Directory domain of the accounts, as `Get-ADDomain` shows it."""

    # DomainJoinConfig of a credential spec (PowerShell Gallery, CredentialSpec.psm1, `New-CredentialSpec`).
    elsewhere: ClassVar[dict[str, str]] = {
        "DnsTreeName": "forest",
        "MachineAccountName": "gmsa.accounts.<name>.name",
    }

    dns_name: DnsDomain = Field(description="the domain's DNS name (DNSRoot)")
    netbios_name: Annotated[str, _matching(_NETBIOS, "a NetBIOS name such as CORP")] = Field(
        description="the domain's NetBIOS name (NetBIOSName)"
    )
    forest: DnsDomain | None = Field(
        default=None, description="the forest's DNS name (Forest); default: dns_name"
    )
    sid: Annotated[str, _matching(_SID, "the domain's SID, S-1-5-21- and three numbers")] = Field(
        description="the domain's SID (DomainSID)"
    )
    guid: Guid = Field(description="the domain's GUID (ObjectGUID)")


class Account(Model):
    """One account; its key in the profile is the name of its GMSACredentialSpec."""

    name: Annotated[str, _matching(_ACCOUNT, "at most 15 characters, without domain and $")] = Field(
        description="the account's name (SamAccountName without $)"
    )
    service_accounts: OneOrMany[Annotated[str, PlainValidator(_subject)]] = Field(
        default=(), description="namespace/serviceaccount of the pods that may use it"
    )
    plugin_input: str | None = Field(
        default=None,
        description="outside a domain: the plug-in's input, a reference to the credential in the plug-in's own form; never a "
        "password",
    )


class Webhook(Model):
    """How the webhook gets its certificate; winboot makes no CA key."""

    certificates: Literal["cert-manager", "own"] = Field(
        default="cert-manager", description="by cert-manager, or own (your CA bundle and your Secret)"
    )
    ca_bundle: Reference | None = Field(
        default=None, description="own: the CA that signed the certificate, {file: ca.crt}"
    )
    secret: str = Field(
        default="gmsa-server-cert",
        description="own: the Secret with ca.crt, tls.crt and tls.key in the webhook's namespace",
    )


class EventManifest(UserFile):
    """The manifest of a plug-in's event provider, whose texts are in the plug-in's library."""

    provider: Guid = Field(description="the GUID of the manifest's provider, as the manifest names it")


class CredentialPlugin(UserFile):
    """A Container Credential Guard plug-in that winboot installs: one library with a COM class."""

    app_id: Guid = Field(description="the AppID of the plug-in's COM class, from the plug-in's documentation")
    events: EventManifest | None = Field(
        default=None, description="the manifest of its event provider, which winboot registers"
    )


class Gmsa(Model):
    """Group managed service accounts for pods of these nodes."""

    domain: Domain = Field(description="the Active Directory domain")
    accounts: dict[str, Account | None] = Field(
        default={}, description="name of the GMSACredentialSpec → account"
    )
    webhook: Webhook = Field(default=Webhook(), description="the admission webhook of windows-gmsa")
    plugin_guid: Guid | None = Field(
        default=None, description="outside a domain: the CLSID of the Container Credential Guard plug-in"
    )
    plugin: CredentialPlugin | None = Field(
        default=None,
        description="the plug-in's library, which winboot installs; without it you install the plug-in",
    )

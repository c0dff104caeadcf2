"""Group managed service accounts: names, and inputs of plug-ins that are references and no passwords."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.gmsa import Gmsa
from winboot.config.profile.values import NAME
from winboot.config.source import Complaint, PathParts

_SECRET_KEY: Final = re.compile(r"pass(word|wd|phrase)?|pwd", re.IGNORECASE)
_PAIRS: Final = re.compile(r"(\s*\w+\s*=[^;]*(;|$))+")
# An address without a login in it, or an ARN (docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html).
_REFERENCE: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://[^/?#@\s]+([/?#]\S*)?|arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:\d*:\S+"
)
_LOGIN: Final = re.compile(r"[\\:@][^\\:@]+:.", re.DOTALL)


def check(draft: Draft) -> Iterator[Complaint]:
    """What the parts of the section say of one another."""
    gmsa = draft.gmsa
    if gmsa is None:
        return
    webhook = gmsa.webhook
    if webhook.certificates == "own" and webhook.ca_bundle is None:
        yield draft.at(("gmsa", "webhook"), "ca_bundle is missing", "ca_bundle: {file: ca.crt}", key=True)
    if gmsa.plugin is not None and gmsa.plugin_guid is None:
        yield draft.at(("gmsa", "plugin"), "the plug-in's CLSID is missing", "gmsa.plugin_guid", key=True)
    yield from _accounts(draft, gmsa)


def _accounts(draft: Draft, gmsa: Gmsa) -> Iterator[Complaint]:
    for key, account in gmsa.accounts.items():
        path: PathParts = ("gmsa", "accounts", key)
        if not NAME.fullmatch(key):
            yield draft.at(
                path, repr(key), "the name of a GMSACredentialSpec: lower case, digits, - and .", key=True
            )
        given = account.plugin_input if account is not None else None
        if account is None or (given is None) == (gmsa.plugin_guid is None):
            yield from _input(draft, (*path, "plugin_input"), given)
        elif given is None:
            yield draft.at(
                path, "the account has no plugin_input", "the plug-in's reference to the credential", key=True
            )
        else:
            wrong = "plugin_input is only for machines outside a domain, which need gmsa.plugin_guid"
            yield draft.at((*path, "plugin_input"), wrong, "gmsa.plugin_guid, or no plugin_input", key=True)


def _input(draft: Draft, path: PathParts, text: str | None) -> Iterator[Complaint]:
    if text is not None and holds_password(text):
        wrong = "this value looks like a password, and all readers of the CredentialSpec would see it"
        yield draft.at(path, wrong, "a reference for the plug-in, such as SecretUri=https://…")


def holds_password(text: str) -> bool:
    r"""Whether a plug-in's input holds a password: a key of that name, or anywhere in it Microsoft's sample form
    `domain:user:password` (learn.microsoft.com, ICcgDomainAuthCredentials), `domain\user:password` or `user@domain:password`.
    References pass: `ObjectId=…;SecretUri=…`, {"credentialArn": "arn:…"}, `namespace:secret`."""
    try:
        parsed: Any = json.loads(text)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict | list):
        return any(map(_is_secret, _leaves(parsed)))
    if _PAIRS.fullmatch(text):
        return any(map(_is_secret, (part.partition("=")[::2] for part in text.split(";"))))
    return not _REFERENCE.fullmatch(text) and bool(_LOGIN.search(text))


def _is_secret(pair: tuple[str, str]) -> bool:
    return bool(_SECRET_KEY.search(pair[0])) or holds_password(pair[1])


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Each key of a JSON value at every depth, with the text below it; an empty one for any other value."""
    yield key, value if isinstance(value, str) else ""
    for name, one in value.items() if isinstance(value, dict) else ():
        yield from _leaves(one, name)
    for one in value if isinstance(value, list) else ():
        yield from _leaves(one)

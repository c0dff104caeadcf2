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


def check(draft: Draft) -> Iterator[Complaint]:
    """What the parts of the section say of one another."""
    gmsa = draft.gmsa
    if gmsa is None:
        return
    webhook = gmsa.webhook
    if webhook.certificates == "own" and webhook.ca_bundle is None:
        yield draft.at(("gmsa", "webhook"), "ca_bundle is missing", "ca_bundle: {file: ca.crt}", key=True)
    if gmsa.plugin is not None and gmsa.plugin_guid is None:
        yield draft.at(("gmsa", "plugin"), "the CLSID of its class is missing", "gmsa.plugin_guid", key=True)
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
                path, "it has no plugin_input", "the plug-in's reference to the credential", key=True
            )
        else:
            wrong = "plugin_input is for machines outside a domain, and no plug-in is named"
            yield draft.at((*path, "plugin_input"), wrong, "gmsa.plugin_guid, or drop it", key=True)


def _input(draft: Draft, path: PathParts, text: str | None) -> Iterator[Complaint]:
    if text is not None and holds_password(text):
        wrong = "it looks like a password, and every user that may read the CredentialSpec would see it"
        yield draft.at(path, wrong, "a plug-in whose input is a reference, such as SecretUri=https://…")


def holds_password(text: str) -> bool:
    r"""Whether a plug-in's input holds a password: a key of that name, or Microsoft's sample form `domain:user:password`
    (learn.microsoft.com, ICcgDomainAuthCredentials), or `domain\user:password`. References pass: `ObjectId=…;SecretUri=…`,
    {"credentialArn": "arn:…"}, `namespace:secret`."""
    try:
        parsed: Any = json.loads(text)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict | list):
        return any(map(_SECRET_KEY.search, _keys(parsed)))
    pairs = [part.partition("=")[0] for part in text.split(";") if "=" in part]
    if pairs:
        return any(map(_SECRET_KEY.search, pairs))
    return "://" not in text and not text.startswith("arn:") and bool(re.search(r"[\\:][^\\:]+:.", text))


def _keys(value: Any) -> Iterator[str]:
    """The keys of a JSON value, at every depth."""
    if isinstance(value, dict):
        yield from value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(one)

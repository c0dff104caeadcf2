"""The services: their names, managers, variables and priorities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from winboot.config.profile import sections
from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.values import has_login
from winboot.config.source import Complaint, PathParts, nearest

# A variable of a service is in the registry, where every user of the machine reads it.
_SECRET_VARIABLE: Final = re.compile(
    r"PASSW(OR)?D|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?|CONNECTION_?STRING",
    re.IGNORECASE,
)

# Google's one is a path, too: cloud.google.com/docs/authentication/application-default-credentials.
_PLACE_VARIABLE: Final = re.compile(
    r"_(FILE|PATH|DIR|URI|URL|ENDPOINT|ID|NAME|ROLE|TTL|EXPIRATION)$|^GOOGLE_APPLICATION_CREDENTIALS$",
    re.IGNORECASE,
)


def check(draft: Draft) -> Iterator[Complaint]:
    """Names of services that winboot runs, and what their manager can do."""
    services = draft.services
    if services is None:
        return
    yield from _service_names(draft, services)
    yield from _service_environment(draft, services)
    for name, manager in services.overrides.items():
        path: PathParts = ("services", "overrides", name)
        if name in sections.NSSM_ALONE and manager == "sc":
            yield draft.at(path, f"{name} cannot be a service without NSSM (error 1053)", "nssm")
        old = draft.version is not None and not draft.version.at_least(sections.LOG_RUNNER_SINCE)
        if old and manager == "sc" and name in sections.LOGGED_BY_RUNNER:
            wrong = f"Kubernetes {draft.version} has no kube-log-runner, which writes the log of the service"
            yield draft.at(path, wrong, "nssm")
        if name in sections.SC_ALONE and manager == "nssm":
            yield draft.at(path, f"{name} runs as a Windows service without NSSM", "sc")


def _service_names(draft: Draft, services: sections.Services) -> Iterator[Complaint]:
    for key in ("overrides", "environment", "priority"):
        for name in getattr(services, key):
            if name not in sections.SERVICES:
                wrong, meant = f"winboot runs no service {name!r}", nearest(name, sections.SERVICES)
                yield draft.at(("services", key, name), wrong, " | ".join(sections.SERVICES), meant, key=True)
    for name, chosen in services.priority.items():
        manager = services.overrides.get(name) or services.manager
        path: PathParts = ("services", "priority", name)
        if name == "kubelet":
            expected = "kubelet.flags: {windows-priorityclass: …}"
            yield draft.at(path, "the kubelet sets its own priority class", expected, key=True)
        elif chosen is not None and manager == "sc" and name not in sections.NSSM_ALONE:
            wrong = "the service manager cannot set a priority class; NSSM can"
            yield draft.at(path, wrong, f"services.overrides: {{{name}: nssm}}", key=True)


def _service_environment(draft: Draft, services: sections.Services) -> Iterator[Complaint]:
    for service, variables in services.environment.items():
        for name, value in variables.items():
            path: PathParts = ("services", "environment", service, name)
            if value is not None and looks_secret(name, value):
                wrong = "this variable looks like a credential, and every user of the node can read it"
                yield draft.at(path, wrong, "a file that only the service can read", key=True)
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                yield draft.at(path, repr(name), "a name of letters, digits and _", key=True)
            elif name.upper() in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
                yield draft.at(path, f"winboot sets {name} itself", "proxy", key=True)


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable or flag holds a credential: a login in an address, or a secret's name that names no place of one."""
    if has_login(value) and ("://" in value or ":" in value.partition("@")[0]):
        return True
    return bool(value and _SECRET_VARIABLE.search(name) and not _PLACE_VARIABLE.search(name))

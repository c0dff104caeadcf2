"""Acting as another user, as the API server lets it: k8s.io/apiserver, pkg/endpoints/filters/impersonation.go.

`buildImpersonationRequests` reads the headers, `WithImpersonation` asks for the verb impersonate on each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from winboot_lab.cluster.failure import ApiFailure
from winboot_lab.cluster.identity import AUTHENTICATED, UNAUTHENTICATED, Identity, service_account
from winboot_lab.cluster.rbac import Action

PREFIX: Final = "impersonate-"
_EXTRA: Final = "impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io"
_ACCOUNT: Final = "system:serviceaccount:"
# The API server's own: a user of no name that came without a credential.
_ANONYMOUS: Final = "system:anonymous"


def impersonated(
    who: Identity, headers: Sequence[tuple[str, str]], may: Callable[[Identity, Action], bool]
) -> Identity:
    """The user that the headers (names in lower case) name; the client itself without them. Raises ApiFailure."""
    if not headers:
        return who
    name = next((value for header, value in headers if header == "impersonate-user"), "")
    if not name:
        raise ApiFailure(
            500, "Internal Server Error: requested groups, extra or uid without impersonating a user"
        )
    for action in _actions(name, headers):
        if not may(who, action):
            raise ApiFailure(
                403,
                f'{action.plain} "{action.name}" is forbidden: User "{who.name}" cannot impersonate resource '
                f'"{action.resource}" in API group "{action.group}" at the cluster scope',
                details={"name": action.name, "group": action.group, "kind": action.plain},
            )
    return Identity(
        name, _groups(name, [value for header, value in headers if header == "impersonate-group"])
    )


def _actions(name: str, headers: Sequence[tuple[str, str]]) -> Iterator[Action]:
    if _is_account(name):
        _, _, namespace, account = name.split(":")
        yield Action("impersonate", "", "serviceaccounts", namespace, account)
    else:
        yield Action("impersonate", "", "users", "", name)
    for header, value in headers:
        if header == "impersonate-group":
            yield Action("impersonate", "", "groups", "", value)
        elif header == "impersonate-uid":
            yield Action("impersonate", _AUTHENTICATION, "uids", "", value)
        elif header.startswith(_EXTRA):
            key = unquote(header.removeprefix(_EXTRA))
            yield Action("impersonate", _AUTHENTICATION, f"userextras/{key}", "", value)


def _is_account(name: str) -> bool:
    parts = name.split(":")
    return name.startswith(_ACCOUNT) and len(parts) == 4 and all(parts)


def _groups(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """The groups that the headers name, or a service account's own, with the one that the API server adds."""
    groups = list(given)
    if not groups and _is_account(name):
        groups = list(service_account(*name.split(":")[2:]).groups)
    added = UNAUTHENTICATED if name == _ANONYMOUS else AUTHENTICATED
    if not {added, UNAUTHENTICATED} & set(groups):
        groups.append(added)
    return tuple(groups)

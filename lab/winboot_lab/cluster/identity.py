"""The client of a request: a user name and its groups, as the API server derives them from a credential."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
NODES: Final = "system:nodes"
NODE_PREFIX: Final = "system:node:"
# ovn-kubernetes go-controller/pkg/csrapprover/approver.go.
OVN_NODES: Final = "system:ovn-nodes"
OVN_NODE_PREFIX: Final = "system:ovn-node:"
BOOTSTRAPPERS: Final = "system:bootstrappers"


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated (or anonymous) user."""

    name: str
    groups: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def node(self) -> str | None:
        """The node's name when a kubelet is asking: the node authorizer goes by prefix and group."""
        if self.name.startswith(NODE_PREFIX) and NODES in self.groups:
            return self.name.removeprefix(NODE_PREFIX)
        return None

    def info(self) -> dict[str, Any]:
        """The UserInfo object of reviews."""
        return {"username": self.name, "groups": list(self.groups)}


def user(name: str, *groups: str) -> Identity:
    """An authenticated user; system:authenticated is added as the API server does."""
    return Identity(name, (*groups, AUTHENTICATED))


def service_account(namespace: str, name: str) -> Identity:
    """A service account's user."""
    return user(
        f"system:serviceaccount:{namespace}:{name}",
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
    )


ANONYMOUS: Final = Identity("system:anonymous", (UNAUTHENTICATED,))
ADMIN: Final = user("kubernetes-admin", MASTERS, "kubeadm:cluster-admins")
CONTROLLERS: Final = user("system:kube-controller-manager", MASTERS)

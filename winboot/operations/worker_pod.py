"""What winboot's own pods in a cluster have in common, the hook's and those of a fleet. Each has an account with
exactly the rights that it needs, and a container without any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from winboot.remote.cluster.base import Need
from winboot.remote.cluster.rights import SYSTEM
from winboot.remote.manifests import RBAC, named, rules_of, token_policy

Object = dict[str, Any]
NAMESPACE: Final = "winboot-system"
CONFIG: Final = "/etc/winboot"
SECRETS: Final = "/etc/winboot-secrets"
_STATE: Final = "/var/lib/winboot"
# distroless' and our Containerfile's user.
_USER: Final = 65532
# Where rights are named that hold where the claims are.
CLAIMS: Final = "claims"


def account_roles(
    name: str, everywhere: str, namespace: str, needs: Iterable[tuple[str, Sequence[Need]]]
) -> list[Object]:
    """Roles and bindings of the ServiceAccount `name`. `needs` by the namespace that they hold in: empty for those of the whole
    cluster, whose role is called `everywhere`; CLAIMS for the account's own `namespace`."""
    objects = []
    for where, rights in needs:
        space = namespace if where == CLAIMS else where
        kind, role = ("Role", name) if space else ("ClusterRole", everywhere)
        objects.append({**named(f"{RBAC}/v1", kind, role, namespace=space), "rules": rules_of(rights)})
        objects.append(
            {
                **named(f"{RBAC}/v1", f"{kind}Binding", role, namespace=space),
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }
        )
        if where == SYSTEM:
            who = f"request.userInfo.username == 'system:serviceaccount:{namespace}:{name}'"
            objects += token_policy(f"{name}-tokens", who)
    return objects


def pod_spec(name: str, container: Object, *, config: Object, grace_s: int, state_claim: str = "") -> Object:
    """The spec of a pod with one container. `config` is the source of the volume of that name, `name` the account's and the
    Secret's; SIGTERM has `grace_s` seconds. The state goes with the pod, unless a `state_claim` (PersistentVolumeClaim) keeps
    it."""
    state: Object = {"persistentVolumeClaim": {"claimName": state_claim}} if state_claim else {"emptyDir": {}}
    return {
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": grace_s,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
            # Secrets are readable by the group alone.
            "fsGroup": _USER,
        },
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": config},
            {"name": "secrets", "secret": {"secretName": name, "optional": True, "defaultMode": 0o440}},
            {"name": "state", **state},
            {"name": "tmp", "emptyDir": {}},
        ],
    }


def container(
    name: str,
    image: str,
    args: Sequence[str],
    *,
    secret: str,
    fields: Mapping[str, str],
    resources: Object,
    **more: object,
) -> Object:
    """A container that runs winboot with these arguments. `fields` are variables from fields of the pod; passwords are
    variables of the Secret; `more` is added as it is."""
    return {
        "name": name,
        "image": image,
        "args": list(args),
        "env": [
            *({"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()),
            {"name": "WINBOOT_STATE", "value": _STATE},
            {"name": "HOME", "value": "/tmp"},
        ],
        "envFrom": [{"secretRef": {"name": secret, "optional": True}}],
        **more,
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG, "readOnly": True},
            {"name": "secrets", "mountPath": SECRETS, "readOnly": True},
            {"name": "state", "mountPath": _STATE},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }

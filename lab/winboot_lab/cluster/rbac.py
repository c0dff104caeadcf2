"""Which user may do what: RBAC over the stored roles and bindings, and the node authorizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from winboot_lab.cluster.identity import MASTERS, Identity
from winboot_lab.cluster.kinds import CLUSTERROLEBINDINGS, CLUSTERROLES, PODS, ROLEBINDINGS, ROLES, Object
from winboot_lab.cluster.store import Store


@dataclass(frozen=True, slots=True)
class Action:
    """A request to the API: a verb on a resource, or on a path when `path` is set."""

    verb: str
    group: str = ""
    resource: str = ""  # with its subresource: `nodes/status`
    namespace: str = ""
    name: str = ""
    path: str = ""
    fields: tuple[tuple[str, str], ...] = ()  # the field selector of a list or watch

    @property
    def plain(self) -> str:
        return self.resource.partition("/")[0]


def allowed(store: Store, identity: Identity, action: Action) -> bool:
    """Whether any authorizer says yes."""
    if MASTERS in identity.groups:
        return True
    if identity.node is not None and node_allows(store, identity.node, action):
        return True
    return any(rule_allows(rule, action) for rule in _rules_for(store, identity, action.namespace))


# What the node authorizer grants every kubelet without looking at the object. Nodes are read one by one:
# since the authorizer looks at field selectors (1.32), a kubelet lists only itself. So kube-proxy and
# flanneld, when they borrow the kubelet's certificate, need bindings of their own.
_NODE_RULES: Final[tuple[tuple[str, str, frozenset[str]], ...]] = (
    ("authentication.k8s.io", "tokenreviews", frozenset({"create"})),
    ("authorization.k8s.io", "subjectaccessreviews", frozenset({"create"})),
    ("authorization.k8s.io", "localsubjectaccessreviews", frozenset({"create"})),
    ("", "services", frozenset({"get", "list", "watch"})),
    ("", "nodes", frozenset({"create"})),
    ("", "events", frozenset({"create", "patch", "update"})),
    ("events.k8s.io", "events", frozenset({"create", "patch", "update"})),
    ("", "pods", frozenset({"create"})),
    ("certificates.k8s.io", "certificatesigningrequests", frozenset({"create", "get", "list", "watch"})),
    ("storage.k8s.io", "csidrivers", frozenset({"get", "list", "watch"})),
    ("node.k8s.io", "runtimeclasses", frozenset({"get", "list", "watch"})),
)
_OWN_NODE_VERBS: Final = frozenset({"get", "update", "patch"})


def node_allows(store: Store, node: str, action: Action) -> bool:
    """The node authorizer: fixed rules, the node's own objects, and what its pods refer to."""
    if any(
        (action.group, action.resource) == (group, resource) and action.verb in verbs
        for group, resource, verbs in _NODE_RULES
    ):
        return True
    match (action.group, action.resource):
        case ("", "nodes" | "nodes/status"):
            if action.verb in ("list", "watch"):
                return ("metadata.name", node) in action.fields
            return action.name == node and action.verb in _OWN_NODE_VERBS
        case ("coordination.k8s.io", "leases"):
            own = action.name in ("", node)
            return action.namespace == "kube-node-lease" and own and action.verb not in ("list", "watch")
        case ("storage.k8s.io", "csinodes"):
            return action.name in ("", node) and action.verb not in ("list", "watch")
        case ("", "pods" | "pods/status" | "pods/eviction"):
            return _may_touch_pods(store, node, action)
        case ("", "secrets" | "configmaps" | "serviceaccounts" | "serviceaccounts/token"):
            return _pods_refer_to(store, node, action)
    return False


def _may_touch_pods(store: Store, node: str, action: Action) -> bool:
    if action.verb in ("list", "watch"):
        return ("spec.nodeName", node) in action.fields
    pod = store.find(PODS, action.namespace, action.name)
    return pod is not None and pod.get("spec", {}).get("nodeName") == node


def _pods_refer_to(store: Store, node: str, action: Action) -> bool:
    if action.verb not in ("get", "list", "watch", "create") or not action.name:
        return False
    for pod in store.look(PODS, action.namespace):
        spec = pod.get("spec", {})
        if spec.get("nodeName") != node:
            continue
        if action.plain == "serviceaccounts" and spec.get("serviceAccountName") == action.name:
            return True
        for volume in spec.get("volumes", []):
            source = volume.get("secret", {}).get("secretName"), volume.get("configMap", {}).get("name")
            if action.name == source[0 if action.plain == "secrets" else 1]:
                return True
    return False


def _rules_for(store: Store, identity: Identity, namespace: str) -> Iterator[dict[str, Any]]:
    for binding in store.look(CLUSTERROLEBINDINGS):
        if _binds(binding, identity):
            role = store.find(CLUSTERROLES, "", binding["roleRef"]["name"])
            yield from (role or {}).get("rules") or []
    if not namespace:
        return
    for binding in store.look(ROLEBINDINGS, namespace):
        if not _binds(binding, identity):
            continue
        reference = binding["roleRef"]
        if reference["kind"] == "ClusterRole":
            role = store.find(CLUSTERROLES, "", reference["name"])
        else:
            role = store.find(ROLES, namespace, reference["name"])
        yield from (role or {}).get("rules") or []


def _binds(binding: Object, identity: Identity) -> bool:
    for subject in binding.get("subjects") or []:
        match subject["kind"]:
            case "User" if subject["name"] == identity.name:
                return True
            case "Group" if subject["name"] in identity.groups:
                return True
            case "ServiceAccount":
                if identity.name == f"system:serviceaccount:{subject.get('namespace', '')}:{subject['name']}":
                    return True
    return False


def rule_allows(rule: dict[str, Any], action: Action) -> bool:
    """Whether one rule of a role allows it."""
    if not _has(rule.get("verbs"), action.verb):
        return False
    if action.path:
        return any(
            action.path == p or (p.endswith("*") and action.path.startswith(p[:-1]))
            for p in rule.get("nonResourceURLs") or []
        )
    resources = rule.get("resources") or []
    subresource = action.resource.partition("/")[2]
    if not (_has(resources, action.resource) or (subresource and f"*/{subresource}" in resources)):
        return False
    names = rule.get("resourceNames") or []
    return _has(rule.get("apiGroups"), action.group) and (not names or action.name in names)


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    found = tuple(values or ())
    return "*" in found or wanted in found

"""The API itself: one request in, one answer out, over TLS or from a program of a lab machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography import x509

from winboot.config.compat.version import Version
from winboot_lab.cluster import bootstrap
from winboot_lab.cluster.admission import admit, admit_level
from winboot_lab.cluster.authentication import Authenticator, Credentials
from winboot_lab.cluster.authority import (
    CLIENT_AUTH,
    SERVER_AUTH,
    Authority,
    KeyPair,
    Subject,
    is_address,
    load_certificate,
)
from winboot_lab.cluster.controllers import Controllers, monitor_grace
from winboot_lab.cluster.failure import ApiFailure, not_found, without_version
from winboot_lab.cluster.identity import Identity, user
from winboot_lab.cluster.impersonation import impersonated
from winboot_lab.cluster.kinds import (
    BUDGETS,
    CSRS,
    KINDS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    QUOTAS,
    SERVICEACCOUNTS,
    SERVICES,
    SHORT_NAMES,
    Kind,
    Object,
    copied,
)
from winboot_lab.cluster.pages import Pages
from winboot_lab.cluster.patches import apply_patch, check_patch_type
from winboot_lab.cluster.plan import ClusterPlan
from winboot_lab.cluster.rbac import Action, allowed
from winboot_lab.cluster.routes import Target, matches_fields, matches_labels, parse_fields, parse_path
from winboot_lab.cluster.services import complete_service
from winboot_lab.cluster.store import Store
from winboot_lab.cluster.streams import EXEC, FORWARD, NodeApi, Stream

ADMIN: Final = Subject("kubernetes-admin", ("system:masters",))
ANYWHERE: Final = "at the cluster scope"


def real_now() -> datetime:
    """The clock a cluster has unless the lab gives it another."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Answer:
    """Status code and JSON body."""

    code: int
    body: Any


@dataclass(slots=True)
class Faults:
    """What a lab can do to a cluster. `refuse` sees each request and may return its failure."""

    unreachable: bool = False
    refuse: Callable[[Identity, str, str], ApiFailure | None] | None = None


class LabCluster:
    """State, rules and controllers of one cluster. Thread-safe."""

    def __init__(
        self, plan: ClusterPlan | None = None, *, now: Callable[[], datetime] = real_now, leaps: bool = False
    ) -> None:
        self.plan = plan or ClusterPlan()
        self.now = now
        # Whether its time leaps, so that this computer's clock cannot agree with it.
        self.leaps = leaps
        self.store = Store(now)
        self.authority = Authority("kubernetes")
        self.api_certificate = self._api_certificate()
        self.authenticator = Authenticator(self.store, self.authority)
        self.controllers = Controllers(
            self.store,
            self.authority,
            self.plan.pod_cidrs if self.plan.allocates else (),
            now,
            self.plan.pod_cidrs,
            monitor_grace(Version.parse(self.plan.version)),
            self.plan.ovn,
        )
        self.faults = Faults()
        self._pages = Pages()
        # What another controller of the cluster puts into each new namespace.
        self.stamps: list[tuple[Kind, Object]] = []
        self.kubelet: Callable[[str], NodeApi] = _nobody
        # Where it is a list: every action that a client asked for, allowed or not.
        self.audit: list[tuple[Identity, Action]] | None = None
        for kind, thing in bootstrap.objects(self.plan, self.authority.pem, self.store.timestamp()):
            self.store.create(kind, thing)
        for node in self.store.all(NODES):
            self.controllers.node_changed(node["metadata"]["name"])
        self.settle()  # this cluster has been here for long

    def _api_certificate(self) -> x509.Certificate:
        """What the API server shows to lab machines. It is as old as the cluster: a clock far behind refuses it."""
        host = urlsplit(self.plan.server).hostname or ""
        name: tuple[str, ...] = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
        addresses: tuple[str, ...] = ()
        if is_address(host):
            addresses = (host,)
        else:
            name = (*name, host)
        valid = (self.now() - timedelta(hours=1), self.now() + timedelta(days=365))
        subject = Subject("kube-apiserver", dns_names=name, addresses=addresses)
        return load_certificate(self.authority.issue(subject, (SERVER_AUTH,), valid).certificate)

    def admin(self) -> KeyPair:
        """A new administrator certificate."""
        return self.authority.issue(ADMIN, (CLIENT_AUTH,))

    def identify(self, shown: Credentials) -> Identity:
        """The user behind a credential, or the one it acts as; raises ApiFailure 401, and 403 where it may not."""
        who = self.authenticator.identify(shown, self.now())
        return impersonated(who, shown.impersonation, self._may)

    def request(
        self,
        identity: Identity | Credentials,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Answer one request; raises ApiFailure where the real server answers with a failure Status."""
        who = self.identify(identity) if isinstance(identity, Credentials) else identity
        self._refused(who, method, path)
        target = parse_path(path)
        if target is not None and target.subresource == "log":
            self._authorize(who, target, "get", ())
            pod = self.store.get(PODS, target.namespace, target.name)
            return Answer(200, self.kubelet(str(pod["spec"].get("nodeName", ""))).log(pod))
        if target is not None and target.kind is NODES and target.rest == "logs":
            self._authorize(who, target, "get", ())
            return Answer(200, self.kubelet(target.name).node_log(query or {}))
        with self.store.lock:
            self.controllers.catch_up()
            if target is None:
                return self._plain_path(who, method, path)
            return self._resource(who, target, method, copied(body), query or {}, content_type)

    def watch(
        self,
        identity: Identity | Credentials,
        path: str,
        query: Mapping[str, str],
        stop: Callable[[], bool] = lambda: False,
        poll_s: float = 0.1,
    ) -> Iterator[Object | None]:
        """Watch events as they come; None now and then, so that the caller can notice a closed connection."""
        who = self.identify(identity) if isinstance(identity, Credentials) else identity
        target = parse_path(path)
        if target is None:
            raise ApiFailure(404, "the server could not find the requested resource")
        fields = _fields(target, query)
        self._authorize(who, target, "watch", fields)
        revision = int(query.get("resourceVersion") or 0)
        if revision == 0:
            with self.store.lock:
                revision = int(self.store.revision)
                present = [
                    o for o in self.store.all(target.kind, target.namespace) if _selected(o, fields, query)
                ]
            yield from ({"type": "ADDED", "object": thing} for thing in present)
        while not stop():
            self.controllers.catch_up()
            changes, revision = self.store.changes_since(target.kind, target.namespace, revision, poll_s)
            yield None
            for change in changes:
                if _selected(change.object, fields, query):
                    yield {"type": change.type, "object": change.object}

    def objects(self, kind: Kind) -> list[Object]:
        """Copies of all objects of a kind."""
        return self.store.all(kind)

    def stream(self, identity: Identity | Credentials, path: str, query: Sequence[tuple[str, str]]) -> Stream:
        """What a WebSocket to exec or portforward of a pod is about. Raises ApiFailure where the real server refuses it.

        From 1.35 on it checks both the right to get and that to create (AuthorizePodWebsocketUpgradeCreatePermission).
        """
        who = self.identify(identity) if isinstance(identity, Credentials) else identity
        target = parse_path(path)
        if target is None or target.subresource not in ("exec", "portforward"):
            raise ApiFailure(404, "the server could not find the requested resource")
        self._refused(who, "GET", path)
        for verb in ("get", "create"):
            self._authorize(who, target, verb, ())
        pod = self.store.get(PODS, target.namespace, target.name)
        api = self.kubelet(str(pod["spec"].get("nodeName", "")))
        if target.subresource == "exec":
            command = [value for name, value in query if name == "command"]
            return Stream(EXEC, run=lambda: api.execute(pod, command))
        port = next((int(value) for name, value in query if name == "ports"), 0)
        return Stream(FORWARD, port=port, forward=lambda request: api.forward(pod, port, request))

    def _refused(self, who: Identity, method: str, path: str) -> None:
        failure = self.faults.refuse(who, method, path) if self.faults.refuse is not None else None
        if failure is not None:
            raise failure

    def snapshot(self) -> list[Object]:
        """Copies of all objects."""
        self.controllers.catch_up()
        return list(self.store.everything())

    def settle(self) -> None:
        """The controllers do all that they have to do, as if time had passed."""
        self.controllers.catch_up(all_of_it=True)

    def latest(self, kind: Kind) -> int:
        """The revision of the last change to a kind: what an open watch would know."""
        self.controllers.catch_up()
        return self.store.latest(kind)

    # -- one request
    # ----------------------------------------------------------------------------------------------

    def _plain_path(self, who: Identity, method: str, path: str) -> Answer:
        verb = "get" if method == "GET" else method.lower()
        plain = path.partition("?")[0].rstrip("/") or "/"
        if not self._may(who, Action(verb, path=plain)):
            raise ApiFailure(403, f'forbidden: User "{who.name}" cannot {verb} path "{plain}"')
        found = discovery(plain, self.plan.version)
        if found is None:
            raise ApiFailure(404, "the server could not find the requested resource")
        return Answer(200, found)

    def _resource(
        self,
        who: Identity,
        target: Target,
        method: str,
        body: Any,
        query: Mapping[str, str],
        content_type: str,
    ) -> Answer:
        verb = target.verb(method, query)
        fields = _fields(target, query)
        name = target.name or (
            str((body or {}).get("metadata", {}).get("name", "")) if verb == "create" else ""
        )
        self._authorize(who, target, verb, fields, name if verb != "create" or target.subresource else "")
        if target.subresource in ("eviction", "token", "proxy"):
            return self._action(target, verb, body)
        if not target.kind.stored:
            return Answer(201, self._review(who, target, body))
        match verb:
            case "get":
                return Answer(200, self.store.get(target.kind, target.namespace, target.name))
            case "list":
                return Answer(200, self._list(target, fields, query))
            case "create":
                return Answer(201, self._create(who, target, body))
            case "update" | "patch":
                return Answer(200, self._change(who, target, verb, body, content_type))
            case "delete":
                return Answer(200, self._delete(target))
        for thing in self.store.all(target.kind, target.namespace):
            if _selected(thing, fields, query):
                metadata = thing["metadata"]
                self.store.delete(target.kind, metadata.get("namespace", ""), metadata["name"])
        return Answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _authorize(
        self,
        who: Identity,
        target: Target,
        verb: str,
        fields: tuple[tuple[str, str], ...],
        name: str | None = None,
    ) -> None:
        action = Action(
            verb,
            target.kind.group,
            target.resource,
            target.namespace,
            target.name if name is None else name,
            fields=fields,
        )
        if self._may(who, action):
            return
        where = f'in the namespace "{target.namespace}"' if target.namespace else ANYWHERE
        named = f'{target.kind.qualified} "{target.name}"' if target.name else target.kind.qualified
        raise ApiFailure(
            403,
            f'{named} is forbidden: User "{who.name}" cannot {verb} resource "{target.resource}" '
            f'in API group "{target.kind.group}" {where}',
            details={"name": target.name, "group": target.kind.group, "kind": target.kind.plural},
        )

    def _may(self, who: Identity, action: Action) -> bool:
        if self.audit is not None:
            self.audit.append((who, action))
        return allowed(self.store, who, action)

    def _list(self, target: Target, fields: tuple[tuple[str, str], ...], query: Mapping[str, str]) -> Object:
        items = [o for o in self.store.all(target.kind, target.namespace) if _selected(o, fields, query)]
        items, metadata = self._pages.page(items, self.store.revision, query)
        return {
            "kind": f"{target.kind.kind}List",
            "apiVersion": target.kind.api_version,
            "metadata": metadata,
            "items": items,
        }

    def _create(self, who: Identity, target: Target, body: Any) -> Object:
        new = _body(body)
        metadata = new.setdefault("metadata", {})
        if target.kind.namespaced:
            if metadata.setdefault("namespace", target.namespace) != target.namespace:
                raise ApiFailure(
                    400, "the namespace of the provided object does not match the namespace of the request"
                )
            if self.store.find(NAMESPACES, "", target.namespace) is None:
                raise not_found("namespaces", target.namespace)
            self._admit_in(self.store.get(NAMESPACES, "", target.namespace), target, new)
        admit(target.kind, target.subresource, None, new, who)
        if target.kind is SERVICES:
            complete_service(new, self.store.all(SERVICES), self.plan.service_cidrs)
        created = self.store.create(target.kind, new)
        if target.kind is NAMESPACES:
            for kind, thing in self.stamps:
                metadata = {**thing["metadata"], "namespace": created["metadata"]["name"]}
                self.store.create(kind, {**copied(thing), "metadata": metadata})
        self._notify(target, created)
        return self.store.get(target.kind, target.namespace, created["metadata"]["name"])

    def _change(self, who: Identity, target: Target, verb: str, body: Any, content_type: str) -> Object:
        if verb == "patch":
            check_patch_type(content_type)
        old = self.store.get(target.kind, target.namespace, target.name)
        new = (
            apply_patch(target.kind.plural, copied(old), body, content_type)
            if verb == "patch"
            else _body(body)
        )
        new = _only_part(target, old, new)
        if target.kind.namespaced:
            new["metadata"].setdefault("namespace", target.namespace)
        if new["metadata"].get("name") != target.name:
            raise ApiFailure(400, "the name of the object does not match the name on the URL")
        if verb == "update" and not target.kind.unconditional and not new["metadata"].get("resourceVersion"):
            raise without_version(target.kind.kind, target.kind.group, target.name)
        if target.subresource == "approval":
            self._authorize_signer(who, new)
        admit(target.kind, target.subresource, old, new, who)
        changed = self.store.replace(target.kind, new)
        self._notify(target, changed)
        return self.store.get(target.kind, target.namespace, target.name)

    def _authorize_signer(self, who: Identity, csr: Object) -> None:
        signer = csr["spec"]["signerName"]
        for name in (signer, signer.partition("/")[0] + "/*"):
            if self._may(who, Action("approve", "certificates.k8s.io", "signers", name=name)):
                return
        raise ApiFailure(
            403,
            f'certificatesigningrequests.certificates.k8s.io "{csr["metadata"]["name"]}" is forbidden: '
            f'user not permitted to approve requests with signerName "{signer}"',
        )

    def _admit_in(self, namespace: Object, target: Target, new: Object) -> None:
        """What a namespace refuses: while it ends, beyond its quotas, below its Pod Security level."""
        name = new["metadata"].get("name", "")
        if namespace.get("status", {}).get("phase") == "Terminating":
            where = namespace["metadata"]["name"]
            raise ApiFailure(
                403,
                f'{target.kind.qualified} "{name}" is forbidden: unable to create new content in namespace '
                f"{where} because it is being terminated",
            )
        for quota in self.store.all(QUOTAS, namespace["metadata"]["name"]):
            limit = (quota["spec"].get("hard") or {}).get(target.kind.plural)
            used = len(self.store.all(target.kind, namespace["metadata"]["name"]))
            if limit is not None and used >= int(limit):
                kind = target.kind.plural
                raise ApiFailure(
                    403,
                    f'{kind} "{name}" is forbidden: exceeded quota: {quota["metadata"]["name"]}, requested: {kind}=1, '
                    f"used: {kind}={used}, limited: {kind}={limit}",
                )
        if target.kind is PODS:
            admit_level(namespace, new)

    def _delete(self, target: Target) -> Object:
        if target.kind is NAMESPACES:
            return self._end_namespace(target.name)
        gone = self.store.delete(target.kind, target.namespace, target.name)
        if target.kind is NODES:
            self.controllers.node_gone(target.name)
        if target.kind in (PODS, SERVICES):
            self.controllers.services_changed(target.namespace)
        return gone

    def _end_namespace(self, name: str) -> Object:
        """It is Terminating first; its controller deletes what is in it, then itself."""
        found = self.store.get(NAMESPACES, "", name)
        if found.get("status", {}).get("phase") == "Terminating":
            raise ApiFailure(
                409, f'Operation cannot be fulfilled on namespaces "{name}": it is being terminated'
            )
        found["metadata"]["deletionTimestamp"] = self.store.timestamp()
        found["status"] = {"phase": "Terminating"}
        self.controllers.namespace_ends(name)
        return self.store.replace(NAMESPACES, found)

    def _notify(self, target: Target, thing: Object) -> None:
        if target.kind in (PODS, SERVICES):
            self.controllers.services_changed(target.namespace)
        if target.kind is PODS:
            self.controllers.pod_changed(thing["metadata"]["namespace"], thing["metadata"]["name"])
        if target.kind is CSRS:
            self.controllers.request_changed(thing["metadata"]["name"])
        elif target.kind is NODES:
            self.controllers.node_changed(thing["metadata"]["name"])

    # -- what is not storage
    # --------------------------------------------------------------------------------------

    def _action(self, target: Target, verb: str, body: Any) -> Answer:
        if target.subresource == "eviction" and verb == "create":
            self._evict(target)
            return Answer(201, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
        if target.subresource == "token" and verb == "create":
            return Answer(201, self._token(target, body))
        if target.subresource == "proxy" and target.rest == "healthz":
            # A kubelet that answers is one that renewed its lease a moment ago.
            lease = self.store.find(LEASES, "kube-node-lease", target.name)
            if lease is not None and self._fresh(lease):
                return Answer(200, "ok")
            raise ApiFailure(
                503, f"error trying to reach service: dial tcp {target.name}:10250: connect: refused"
            )
        raise ApiFailure(405, "the server does not allow this method on the requested resource")

    def _fresh(self, lease: Object) -> bool:
        renewed = datetime.fromisoformat(lease["spec"]["renewTime"].replace("Z", "+00:00"))
        return abs(self.now() - renewed) < timedelta(seconds=lease["spec"].get("leaseDurationSeconds", 40))

    def _evict(self, target: Target) -> None:
        pod = self.store.get(PODS, target.namespace, target.name)
        for budget in self.store.all(BUDGETS, target.namespace):
            wanted = budget["spec"].get("selector", {}).get("matchLabels") or {}
            selector = ",".join(f"{k}={v}" for k, v in wanted.items())
            if not selector or not matches_labels(pod, selector):
                continue
            healthy = sum(1 for p in self.store.all(PODS, target.namespace) if matches_labels(p, selector))
            if healthy - 1 < int(budget["spec"].get("minAvailable", 0)):
                name, wanted_healthy = budget["metadata"]["name"], budget["spec"]["minAvailable"]
                # checkAndDecrement of kubernetes' pkg/registry/core/pod/storage/eviction.go.
                cause = f"The disruption budget {name} needs {wanted_healthy} healthy pods and has {healthy} currently"
                raise ApiFailure(
                    429,
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    details={"causes": [{"reason": "DisruptionBudget", "message": cause}]},
                )
        self.store.delete(PODS, target.namespace, target.name)

    def _token(self, target: Target, body: Any) -> Object:
        self.store.get(SERVICEACCOUNTS, target.namespace, target.name)
        spec = (body or {}).get("spec", {})
        seconds = int(spec.get("expirationSeconds") or 3600)
        token, end = self.authenticator.issue_token(
            target.namespace, target.name, timedelta(seconds=seconds), self.now()
        )
        return {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": target.name, "namespace": target.namespace},
            "spec": {"audiences": spec.get("audiences") or [], "expirationSeconds": seconds},
            "status": {"token": token, "expirationTimestamp": f"{end:%Y-%m-%dT%H:%M:%SZ}"},
        }

    def _review(self, who: Identity, target: Target, body: Any) -> Object:
        review = _body(body)
        review["apiVersion"], review["kind"] = target.kind.api_version, target.kind.kind
        spec = review.get("spec") or {}
        match target.kind.kind:
            case "SelfSubjectReview":
                review["status"] = {"userInfo": who.info()}
            case "SelfSubjectAccessReview":
                review["status"] = {"allowed": allowed(self.store, who, _asked(spec))}
            case "SubjectAccessReview":
                subject = user(str(spec.get("user") or ""), *(spec.get("groups") or []))
                review["status"] = {"allowed": allowed(self.store, subject, _asked(spec))}
            case "TokenReview":
                review["status"] = self._token_review(str(spec.get("token") or ""))
        return review

    def _token_review(self, token: str) -> Object:
        try:
            return {"authenticated": True, "user": self.identify(Credentials(token=token)).info()}
        except ApiFailure:
            return {"authenticated": False, "error": "invalid bearer token"}


def _nobody(node: str) -> NodeApi:
    raise ApiFailure(500, f"error dialing backend: dial tcp: lookup {node}: no such host")


def discovery(path: str, version: str) -> Any:
    """The answers to the paths that are not resources."""
    major, minor, *_ = version.split(".")
    match path:
        case "/version":
            return {"major": major, "minor": minor, "gitVersion": f"v{version}", "platform": "linux/amd64"}
        case "/healthz" | "/livez" | "/readyz":
            return "ok"
        case "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        case "/apis":
            groups = sorted({k.group for k in KINDS if k.group})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g) for g in groups]}
    group_version = path.removeprefix("/apis/").removeprefix("/api/")
    kinds = [k for k in KINDS if k.api_version == group_version]
    if not kinds:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": [
            {
                "name": k.plural,
                "singularName": k.kind.lower(),
                "namespaced": k.namespaced,
                "kind": k.kind,
                "verbs": _ALL,
                **({"shortNames": [SHORT_NAMES[k.qualified]]} if k.qualified in SHORT_NAMES else {}),
            }
            for k in kinds
        ],
    }


_ALL: Final[Sequence[str]] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
]


def _group(name: str) -> Object:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _fields(target: Target, query: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    fields = parse_fields(query.get("fieldSelector", ""))
    return (*fields, ("metadata.name", target.name)) if target.name else fields


def _selected(thing: Object, fields: tuple[tuple[str, str], ...], query: Mapping[str, str]) -> bool:
    return matches_fields(thing, fields) and matches_labels(thing, query.get("labelSelector", ""))


def _body(body: Any) -> Object:
    if not isinstance(body, dict):
        raise ApiFailure(400, "the request needs a JSON object as its body")
    return body


def _only_part(target: Target, old: Object, new: Object) -> Object:
    """Through `status` (and `approval`) only the status changes; through the main resource, all else.

    A node's status endpoint also takes labels and annotations: that is how flanneld writes its lease.
    """
    if target.subresource in ("status", "approval"):
        kept = {**copied(old), "status": new.get("status", {})}
        if target.kind is NODES:
            kept["metadata"] = {**new["metadata"]}
        elif new.get("metadata", {}).get("resourceVersion"):
            kept["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"]
        return kept
    if "status" in target.kind.subresources and "status" in old:
        return {**new, "status": old["status"]}
    return new


def _asked(spec: Mapping[str, Any]) -> Action:
    plain = spec.get("nonResourceAttributes")
    if plain:
        return Action(plain.get("verb", ""), path=plain.get("path", ""))
    asked = spec.get("resourceAttributes") or {}
    resource = asked.get("resource", "")
    if asked.get("subresource"):
        resource = f"{resource}/{asked['subresource']}"
    return Action(
        asked.get("verb", ""),
        asked.get("group", ""),
        resource,
        asked.get("namespace", ""),
        asked.get("name", ""),
    )


def decode_body(raw: bytes, content_type: str) -> Any:
    """The JSON of a request body; 400 when it holds no JSON."""
    if not raw:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        raise ApiFailure(
            400, f"the object provided is unrecognized (not JSON; content type {content_type})"
        ) from None

"""The cluster protocol over lightkube.

More than 800 lines: this is the only module that imports lightkube.
"""

from __future__ import annotations

import base64
import itertools
import re
import secrets
import string
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar, cast

import httpx2
from lightkube import Client, KubeConfig, SingleConfig
from lightkube.config import client_adapter
from lightkube.exceptions import ApiError
from lightkube.generic_resource import GenericGlobalResource, create_global_resource
from lightkube.models.authorization_v1 import (
    ResourceAttributes,
    SelfSubjectAccessReviewSpec,
    SubjectAccessReviewSpec,
)
from lightkube.models.certificates_v1 import (
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)
from lightkube.models.core_v1 import EventSource, ObjectReference
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview, SubjectAccessReview
from lightkube.resources.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestApproval
from lightkube.resources.core_v1 import ConfigMap, Event, Node, Secret, Service
from lightkube.types import PatchType

from winboot.base.clean import clean
from winboot.base.errors import ClusterConflict, ClusterError, ClusterUnreachable
from winboot.base.limits import LARGEST_LOG
from winboot.base.retry import retried
from winboot.base.secret import Secret as HiddenText
from winboot.base.tls import even
from winboot.config.annotations import CORDON
from winboot.config.compat.version import Version
from winboot.config.networks import NETWORKS, cluster_settings
from winboot.config.networks.cluster import ResourceKind
from winboot.config.node_spec import Taint
from winboot.remote.cluster import labels, requests
from winboot.remote.cluster.base import (
    ALL_PODS,
    REQUEST_KINDS,
    SERVICE_CIDR,
    Belonging,
    Drained,
    DrainRules,
    ExpectedNode,
    GmsaState,
    Judge,
    MissingRight,
    Need,
    NodeFacts,
    NodeWish,
    PodFacts,
    Request,
    Token,
    Verdict,
    Wait,
    token_id,
)
from winboot.remote.cluster.belongings import Belongings
from winboot.remote.cluster.calls import PATIENCE, Calls, Patience, sleep
from winboot.remote.cluster.claims import Leases
from winboot.remote.cluster.decoding import prepare_types
from winboot.remote.cluster.draining import Draining
from winboot.remote.cluster.failures import reading, status_of
from winboot.remote.cluster.kubeconfig import Kubeconfig
from winboot.remote.cluster.plugin import PluginAuth
from winboot.remote.cluster.proxies import Proxy
from winboot.remote.cluster.rights import JOINERS, SYSTEM
from winboot.remote.cluster.way import Certificate, Way, load
from winboot.remote.cluster.workbench import Workbench
from winboot.report.events import Difference

MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "winboot"}
NODE_LABEL: Final = "winboot.io/node"
# Which binding gives a program its rights; the names are those that `winboot manifests rbac` prints.
BINDINGS: Final[Mapping[str, str]] = {
    "kube-proxy": "winboot:node-proxier",
    **{one.agent_service: one.rights.name for one in NETWORKS if one.rights is not None and one.rights.name},
}
_TOKEN_LETTERS: Final = string.ascii_lowercase + string.digits
_POLL_S: Final = 2.0
_PAGE: Final = 500  # objects in one answer to a list, as kubectl asks for them
_MISSING: Final = 404
_CONFLICT: Final = 409
# A Date header has whole seconds, as Go's net/http cuts them.
_DATE_UNIT: Final = timedelta(seconds=1)
_OVERTAKEN_S: Final = 15.0  # how long a patch that others overtake is tried again

# Made at import: two threads must not register one kind at the same time.
_KINDS: Final[Mapping[ResourceKind, type[GenericGlobalResource]]] = {
    kind: create_global_resource(kind.group, kind.version, kind.kind, kind.plural)
    for kind in (SERVICE_CIDR, *(kind for one in cluster_settings() for kind in one.kinds))
}

T = TypeVar("T")


class LightkubeCluster:
    """One API server, reached with one kubeconfig.

    `transport` carries the requests instead of sockets; `wait` and `clock` are the time between attempts.
    """

    def __init__(
        self,
        kubeconfig: Kubeconfig | Path,
        *,
        context: str | None = None,
        transport: httpx2.BaseTransport | None = None,
        patience: Patience = PATIENCE,
        wait: Wait = sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        prepare_types()
        read = kubeconfig if isinstance(kubeconfig, Kubeconfig) else Kubeconfig.from_file(kubeconfig)
        read.user(context)
        read.judge(context)
        plugin = _plugin(read, context, self._log_in_with)
        with reading(read.origin):
            config = _single(read, context)
            proxy = read.proxy(context)
            self._server: Final = config.cluster.server
            self._proxy: Final = proxy
            self._call: Final = Calls(self._server, proxy=proxy, patience=patience, wait=wait)
            self._clock: Final = clock
            self._way: Final = Way(
                lambda certificate: transport or _connecting(config, proxy, certificate),
                server_name=read.server_name(context),
                headers=read.impersonation(context),
            )
            # The way has the proxy; the libraries must not look for another one in the environment.
            self._client: Final = Client(
                config, field_manager="winboot", lazy=False, transport=self._way, trust_env=False
            )
            # For what is not a resource (the version, the server's clock), the same connections.
            self._plain: Final = client_adapter.Client(
                config, client_adapter.ConnectionParams(transport=self._way, trust_env=False)
            )
        self.is_insecure: Final = read.is_insecure(context)
        if plugin is not None:
            # The library has no other way in; what it does itself with a program names neither program nor remedy.
            self._client._client._client.auth = self._plain.auth = plugin

    def _log_in_with(self, certificate: Certificate) -> None:
        self._way.present(certificate)

    def leases(self, namespace: str) -> Leases:
        """Which run works on which node, kept in this namespace."""
        from winboot.remote.cluster.leases import LightkubeLeases

        return LightkubeLeases(self._client, self._server, namespace, self._proxy)

    def workbench(self) -> Workbench:
        """Pods, services and what runs in the pods."""
        from winboot.remote.cluster.lightkube_pods import LightkubeWorkbench

        return LightkubeWorkbench(self._plain, self._call)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()
        self._plain.close()

    def __enter__(self) -> LightkubeCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # The API server itself

    def version(self) -> Version:
        """The API server's version."""
        text = self._call("reading the version", lambda: _git_version(self._version_answer()))
        try:
            return Version.parse(text)
        except ValueError:
            hint = "Check `server` in the kubeconfig: another service may be answering."
            raise ClusterError(f"{self._server} calls its version {text!r}", hint=hint) from None

    def server_time(self) -> datetime:
        """The API server's clock, from the Date header of an answer; our own where it sends none."""
        return _date_of(self._clock_answer()) or datetime.now(UTC)

    def clock_ahead(self) -> timedelta | None:
        """How far, at least, its clock is ahead of this computer's: the server dated its answer between our call and its
        arrival."""
        sent = datetime.now(UTC)
        answer = self._clock_answer()
        date, here = _date_of(answer), datetime.now(UTC)
        # A cache adds Age to an answer of an earlier time (RFC 9111, section 5.1).
        if date is None or "Age" in answer.headers:
            return None
        return max(date - here, min(date + _DATE_UNIT - sent, timedelta()))

    def _clock_answer(self) -> httpx2.Response:
        return self._call("reading the server's clock", self._version_answer)

    def _version_answer(self) -> httpx2.Response:
        answer = self._plain.get("version")
        answer.raise_for_status()
        return answer

    # Nodes

    def node(self, name: str) -> NodeFacts | None:
        """The node, or None while it does not exist."""
        return self._call(f"reading node {name}", lambda: self._node(name))

    def _node(self, name: str) -> NodeFacts | None:
        found = _unless_missing(lambda: self._client.get(Node, name))
        return node_facts(found) if found is not None else None

    def nodes(self) -> tuple[NodeFacts, ...]:
        """All nodes."""
        return self._call(
            "listing nodes", lambda: tuple(map(node_facts, self._client.list(Node, chunk_size=_PAGE)))
        )

    def windows_nodes(self) -> tuple[NodeFacts, ...]:
        """The Windows nodes as the API server has them at hand. With resourceVersion=0 it answers from its watch cache, and
        etcd is not read (kubernetes.io/docs/reference/using-api/api-concepts, "Semantics for get and list")."""
        query = {"resourceVersion": "0", "labelSelector": "kubernetes.io/os=windows"}

        def ask() -> tuple[NodeFacts, ...]:
            answer = self._plain.get("api/v1/nodes", params=query)
            answer.raise_for_status()
            return tuple(node_facts(cast("Node", Node.from_dict(one))) for one in answer.json()["items"])

        return self._call("listing nodes", ask)

    def delete_node(self, name: str) -> bool:
        """Remove the Node object; False when it did not exist."""
        asked = itertools.count()

        def delete() -> bool:
            again = next(asked) > 0
            # Gone at a second try: the first one did it, and its answer was lost.
            return _unless_missing(lambda: self._client.delete(Node, name) or True) or again

        return self._call(f"deleting node {name}", delete)

    def wait_ready(self, name: str, *, timeout: float, wait: Wait) -> NodeFacts | None:
        """Ask every two seconds; an API server that cannot answer is one more reason to wait. See the protocol."""
        end = self._clock() + timeout
        facts, away = None, None
        while True:
            try:
                facts, away = self._call.once(f"reading node {name}", lambda: self._node(name)), None
            except ClusterUnreachable as error:
                away = error
            left = end - self._clock()
            if (away is None and facts is not None and facts.ready) or left <= 0 or wait(min(_POLL_S, left)):
                if away is not None:
                    raise away
                return facts

    def change_node(self, name: str, wish: NodeWish) -> tuple[Difference, ...]:
        """Make labels and taints what the wish says; gives what was different."""
        found = labels.differences(self._present(name), wish)

        def patch(facts: NodeFacts) -> dict[str, Any] | None:
            return labels.patch(facts, wish) if labels.differences(facts, wish) else None

        self._patch_node(name, "labelling", patch)
        return found

    def lift_taint(self, name: str, key: str) -> bool:
        """Remove the taints with this key; False when the node had none."""

        def patch(facts: NodeFacts) -> dict[str, Any] | None:
            if not facts.has_taint(key):
                return None
            kept = [labels.as_object(t) for t in facts.taints if t.key != key]
            return {"metadata": {"resourceVersion": facts.version}, "spec": {"taints": kept or None}}

        return self._patch_node(name, "lifting a taint of", patch)

    def tell(self, name: str, reason: str, message: str, *, good: bool) -> None:
        """See `Cluster.tell`. Its uid is the node's name, as in the kubelet's events (kubectl describe.go, "kubelet use
        node.name"); a message has at most 1024 letters (k8s.io/kubernetes/pkg/apis/core/validation/events.go)."""
        now = datetime.now(UTC)
        event = Event(
            metadata=ObjectMeta(name=f"{name}.{secrets.token_hex(8)}", namespace="default"),
            involvedObject=ObjectReference(kind="Node", name=name, uid=name, apiVersion="v1"),
            reason=reason,
            message=message[:1024],
            type="Normal" if good else "Warning",
            source=EventSource(component="winboot"),
            firstTimestamp=now,
            lastTimestamp=now,
            count=1,
        )
        self._call(f"writing an event about {name}", lambda: self._client.create(event))

    def cordon(self, name: str, *, why: str = "true") -> bool:
        """Make the node unschedulable, marked as ours."""

        def patch(facts: NodeFacts) -> dict[str, Any] | None:
            if facts.unschedulable:
                return None
            return {
                "metadata": {"resourceVersion": facts.version, "annotations": {CORDON: why}},
                "spec": {"unschedulable": True},
            }

        return self._patch_node(name, "cordoning", patch)

    def uncordon(self, name: str) -> bool:
        """Make it schedulable again, only when the cordon is ours."""

        def patch(facts: NodeFacts) -> dict[str, Any] | None:
            if CORDON not in facts.annotations:
                return None
            return {
                "metadata": {"resourceVersion": facts.version, "annotations": {CORDON: None}},
                "spec": {"unschedulable": None},
            }

        return self._patch_node(name, "uncordoning", patch)

    def _present(self, name: str) -> NodeFacts:
        facts = self.node(name)
        if facts is None:
            raise ClusterError(
                f"there is no node {name}", hint="Its kubelet has not registered yet.", node=name
            )
        return facts

    def _patch_node(self, name: str, doing: str, patch: Callable[[NodeFacts], dict[str, Any] | None]) -> bool:
        """Patch what is there now; look again when another client was quicker. False: nothing to do."""
        asked = False

        def change() -> bool:
            nonlocal asked
            wanted = patch(self._present(name))
            if wanted is None:
                # Nothing left to do after our own try: it was done, and its answer lost.
                return asked
            asked = True
            self._call(
                f"{doing} node {name}",
                partial(self._client.patch, Node, name, wanted, patch_type=PatchType.MERGE),
            )
            return True

        return retried(change, _OVERTAKEN_S, ClusterConflict)

    # Bootstrap tokens

    def mint_token(self, *, node: str, lifetime: timedelta, run: str = "") -> Token:
        """See the protocol."""
        expires = self.server_time() + lifetime
        ids = itertools.chain([token_id(run, node)] if run else [], iter(lambda: _letters(6), ""))
        return retried(lambda: self._mint(node, next(ids), expires), _OVERTAKEN_S, ClusterConflict)

    def _mint(self, node: str, token_id: str, expires: datetime) -> Token:
        """One token with this id; ClusterConflict if another token has it already."""
        token_secret = _letters(16)
        secret = Secret(
            metadata=ObjectMeta(
                name=f"bootstrap-token-{token_id}", namespace=SYSTEM, labels={**MANAGED_BY, NODE_LABEL: node}
            ),
            type="bootstrap.kubernetes.io/token",
            stringData={
                "description": f"made by winboot for the join of {node}",
                "token-id": token_id,
                "token-secret": token_secret,
                "expiration": f"{expires:%Y-%m-%dT%H:%M:%SZ}",
                "usage-bootstrap-authentication": "true",
                "auth-extra-groups": JOINERS,
            },
        )
        asked = itertools.count()

        def create() -> None:
            again = next(asked) > 0
            try:
                self._client.create(secret)
            except httpx2.HTTPStatusError as e:
                # There already at a second try: the first one made it, and its answer was lost.
                if not (again and status_of(e) == _CONFLICT):
                    raise

        self._call(f"making a bootstrap token for {node}", create)
        return Token(token_id, HiddenText(f"{token_id}.{token_secret}"), expires)

    def forget_token(self, token: str) -> None:
        """Delete one token by its id; that it is gone already is fine."""
        name = f"bootstrap-token-{token}"
        self._found(f"deleting {name}", lambda: self._client.delete(Secret, name, namespace=SYSTEM))

    # Certificates

    def settle_requests(self, expected: ExpectedNode) -> tuple[Verdict, ...]:
        """Look at each pending certificate request of this node; approve those that are in order."""

        def judge(request: Request) -> tuple[str, ...] | None:
            return requests.problems(request, expected) if requests.concerns(request, expected) else None

        return self._settled(judge)

    def certificate_requests(self) -> tuple[Request, ...]:
        """All requests for a kubelet's certificates, decided ones too."""
        return self._call(
            "listing certificate requests", lambda: tuple(map(_request, self._kubelet_requests()))
        )

    def judge_requests(self, judge: Judge) -> tuple[Verdict, ...]:
        """Approve each pending serving request that `judge` finds nothing wrong with; see the protocol."""
        return retried(lambda: self._settled(judge), _OVERTAKEN_S, ClusterUnreachable)

    def _settled(self, judge: Judge) -> tuple[Verdict, ...]:
        listed = self._call.once("listing certificate requests", self._kubelet_requests)
        judged = [
            (found, one := _request(found), judge(one) if one.state == "pending" else None)
            for found in listed
        ]
        newest = requests.newest(request for _, request, reasons in judged if not reasons)
        verdicts = []
        for found, request, reasons in judged:
            if request.kind is None or reasons is None:
                continue
            if reasons:
                verdicts.append(Verdict(request.name, request.kind, approved=False, reasons=reasons))
            elif request.name in newest and self._approve(found, request):
                verdicts.append(Verdict(request.name, request.kind, approved=True))
        return tuple(verdicts)

    def _kubelet_requests(self) -> list[CertificateSigningRequest]:
        return [
            one
            for one in self._client.list(CertificateSigningRequest, chunk_size=_PAGE)
            if one.spec.signerName in REQUEST_KINDS
        ]

    def _approve(self, csr: CertificateSigningRequest, request: Request) -> bool:
        """Approve exactly the object that was judged; False when another client was at it meanwhile."""
        condition = CertificateSigningRequestCondition(
            type="Approved",
            status="True",
            reason="WinbootApproved",
            message="winboot checked subject, usages, names and requestor against the inventory",
        )
        approval = CertificateSigningRequestApproval(
            metadata=csr.metadata,
            spec=csr.spec,
            status=CertificateSigningRequestStatus(conditions=[condition]),
        )

        def replace() -> bool:
            try:
                self._client.replace(approval, request.name)
            except httpx2.HTTPStatusError as e:
                if status_of(e) in (_MISSING, _CONFLICT):
                    return False
                raise
            return True

        return self._call.once(f"approving {request.name}", replace)

    # Pods

    def drain(self, name: str, *, timeout: float, wait: Wait, rules: DrainRules = ALL_PODS) -> Drained:
        """Evict the node's pods; see the protocol."""
        return Draining(self._client, self._call, name, rules, self._clock).run(timeout=timeout, wait=wait)

    def pods_to_drain(self, name: str) -> Sequence[PodFacts]:
        """The pods that a drain would evict."""
        return Draining(self._client, self._call, name, ALL_PODS, self._clock).pods()

    def images(self, name: str) -> list[str]:
        """The images that the node's pods name; see the protocol."""
        return Draining(self._client, self._call, name, ALL_PODS, self._clock).images()

    def runs_containers(self, name: str) -> bool:
        """Whether a pod of the node runs a container; see the protocol."""
        return Draining(self._client, self._call, name, ALL_PODS, self._clock).runs_containers()

    # What else there is of a node

    def belongings(self, name: str) -> tuple[Belonging, ...]:
        """What the cluster keeps about the node in addition to its Node."""
        return self._belongings().of(name)

    def delete_belonging(self, one: Belonging) -> None:
        """Delete it; that it is gone already is fine."""
        self._belongings().delete(one)

    def _belongings(self) -> Belongings:
        return Belongings(self._client, self._call, self._requests_about)

    def _requests_about(self, node: str) -> list[str]:
        expected = ExpectedNode(node)
        return [one.name for one in self.certificate_requests() if requests.concerns(one, expected)]

    # What preflight reads

    def missing_rights(
        self, needs: Mapping[str, Sequence[Need]], user: str, groups: Sequence[str]
    ) -> tuple[MissingRight, ...]:
        """Which needs (by program) this user lacks."""
        return tuple(
            MissingRight(program, user, need, BINDINGS.get(program, ""))
            for program, wanted in needs.items()
            for need in wanted
            if not self._may(user, groups, need)
        )

    def own_missing_rights(self, needs: Sequence[Need]) -> tuple[Need, ...]:
        """Which of these the user of the kubeconfig lacks."""
        return tuple(need for need in needs if not self._may_i(need))

    def _may(self, user: str, groups: Sequence[str], need: Need) -> bool:
        review = SubjectAccessReview(
            metadata=ObjectMeta(),
            spec=SubjectAccessReviewSpec(
                user=user, groups=[*groups, "system:authenticated"], resourceAttributes=_attributes(need)
            ),
        )
        answer = self._call(f"asking whether {user} may {need}", lambda: self._client.create(review))
        return answer.status is not None and bool(answer.status.allowed)

    def _may_i(self, need: Need) -> bool:
        review = SelfSubjectAccessReview(
            metadata=ObjectMeta(), spec=SelfSubjectAccessReviewSpec(resourceAttributes=_attributes(need))
        )
        answer = self._call(f"asking whether this user may {need}", lambda: self._client.create(review))
        return answer.status is not None and bool(answer.status.allowed)

    def windows_kube_proxies(self) -> tuple[str, ...]:
        """DaemonSets that run kube-proxy on Windows nodes."""
        return tuple(_full_name(d.metadata) for d in self._daemon_sets() if _is_windows_kube_proxy(d))

    def windows_kube_proxy_configs(self) -> tuple[tuple[str, str], ...]:
        """Each DaemonSet of kube-proxy on Windows nodes with the ConfigMap (both `namespace/name`) that it mounts."""
        return tuple(
            (_full_name(one.metadata), f"{_full_name(one.metadata).partition('/')[0]}/{name}")
            for one in self._daemon_sets()
            if _is_windows_kube_proxy(one)
            for name in _mounted_config_maps(one)
        )

    def resources(self, kind: ResourceKind) -> Sequence[Mapping[str, Any]] | None:
        """The specs of all objects of a kind; see the protocol."""

        def ask() -> list[dict[str, Any]]:
            return [
                {**(one.get("spec") or {}), "name": _name(one.metadata)}
                for one in self._client.list(_KINDS[kind], chunk_size=_PAGE)
            ]

        return self._found(f"listing {kind.kind}", ask)

    def node_log(self, name: str, service: str, since: datetime) -> str | None:
        """The end of a service's log; see the protocol."""
        # Once: a kubelet that is out of reach does not come back within seconds.
        doing = f"reading the log of {service} on {name}"
        return self._call.once(doing, lambda: self._node_log(name, service, since))

    def _node_log(self, name: str, service: str, since: datetime) -> str | None:
        # On Windows `since` filters nothing, and a query for a service that logs to a file has no options (kubernetes
        # pkg/kubelet/kubelet_server_journal_windows.go, getLoggingCmdArgs; kubelet_server_journal.go, copyForBoot).
        for options in ({"sinceTime": f"{since:%Y-%m-%dT%H:%M:%SZ}"}, {}):
            text = self._log_end(f"api/v1/nodes/{name}/proxy/logs/", {"query": service, **options})
            if "options present and query resolved to log files" not in text[:500]:
                break
        # Without the query the kubelet lists its folder (Go net/http/fs.go, dirList).
        return None if text.startswith(("<!doctype html>", "<pre>")) else text

    def _log_end(self, path: str, query: Mapping[str, str]) -> str:
        """At most the last LARGEST_LOG bytes of an answer, whose beginning is read, too."""
        end = b""
        with self._plain.stream("GET", path, params=query) as answer:
            if answer.status_code == httpx2.codes.NOT_FOUND:
                return "<pre>"
            if answer.is_error:
                answer.read()
                # The API server's own refusal; the kubelet answers with plain text.
                if "json" in answer.headers.get("Content-Type", ""):
                    raise ApiError(answer.request, answer)
            answer.raise_for_status()
            for part in answer.iter_bytes():
                end = (end + part)[-LARGEST_LOG:]
        return end.decode("utf-8", "replace")

    def config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """The data of a ConfigMap; None where it does not exist."""
        found = self._found(
            f"reading {namespace}/{name}", lambda: self._client.get(ConfigMap, name, namespace=namespace)
        )
        return None if found is None else found.data or {}

    def service_addresses(self, namespace: str, name: str) -> tuple[str, ...]:
        """The cluster IPs of a Service; see the protocol."""
        found = self._found(
            f"reading the Service {namespace}/{name}",
            lambda: self._client.get(Service, name, namespace=namespace),
        )
        spec = found.spec if found is not None else None
        if spec is None:
            return ()
        addresses = spec.clusterIPs or ([spec.clusterIP] if spec.clusterIP else [])
        return tuple(clean(one) for one in addresses if one != "None")

    def _daemon_sets(self) -> list[DaemonSet]:
        return self._call(
            "listing DaemonSets", lambda: list(self._client.list(DaemonSet, namespace="*", chunk_size=_PAGE))
        )

    def csi_proxies(self) -> tuple[tuple[str, str], ...]:
        """DaemonSets that run csi-proxy, and those whose pods mount a pipe of it."""
        found: list[tuple[str, str]] = []
        for one in self._daemon_sets():
            if _runs_csi_proxy(one):
                found.append((_full_name(one.metadata), "runs"))
            elif _mounts_csi_proxy(one):
                found.append((_full_name(one.metadata), "mounts"))
        return tuple(found)

    def gmsa(self) -> GmsaState:
        """What the cluster has of windows-gmsa; see the protocol."""
        from winboot.remote.cluster import gmsa

        def listed() -> frozenset[str]:
            return frozenset(_name(one.metadata) for one in self._client.list(gmsa.SPECS, chunk_size=_PAGE))

        def configured() -> dict[str, str]:
            return gmsa.bundles(gmsa.configurations(self._client))

        specs = self._found("listing GMSACredentialSpecs", listed)
        return GmsaState(specs, self._call("listing webhook configurations", configured))

    def try_gmsa(self, namespace: str, account: str, spec: str) -> str:
        """A dry run of a pod with an account; see the protocol."""
        from winboot.remote.cluster import gmsa

        pod = gmsa.pod_with(namespace, account, spec)

        def ask() -> str:
            try:
                made = self._client.create(pod, namespace=namespace, dry_run=True)
            except ApiError as error:
                # The API server's own answer: 404 without the namespace, 500 if the webhook does not answer. Another try
                # would not help.
                return clean(error.status.message or str(error))
            if gmsa.is_filled(made):
                return ""
            return "the API server left the pod as it was: no webhook filled it in"

        return self._call(f"a dry run of a pod in {namespace}", ask)

    def unselective_daemon_sets(self) -> tuple[str, ...]:
        """DaemonSets that would put Linux pods on a Windows node."""
        return tuple(_full_name(d.metadata) for d in self._daemon_sets() if _takes_windows(d))

    def has_privileged_daemon_sets(self) -> bool:
        """Whether any DaemonSet has a privileged or HostProcess container; see the protocol."""
        return any(_is_privileged(d) for d in self._daemon_sets())

    def _found(self, doing: str, ask: Callable[[], T]) -> T | None:
        """What `ask` gives; None when the API says 404."""
        return self._call(doing, lambda: _unless_missing(ask))


def _git_version(answer: httpx2.Response) -> str:
    """Raises ValueError where the answer is not a version of a Kubernetes API."""
    found = answer.json()
    if not isinstance(found, dict) or "gitVersion" not in found:
        raise ValueError("gitVersion is missing")
    return str(found["gitVersion"])


def _date_of(answer: httpx2.Response) -> datetime | None:
    """When the server sent its answer; None without a Date header, or with one that is not a date."""
    try:
        return parsedate_to_datetime(answer.headers["Date"]).astimezone(UTC)
    except (KeyError, ValueError, OverflowError):
        return None


def _unless_missing(ask: Callable[[], T]) -> T | None:
    """What `ask` gives; None when the API says 404."""
    try:
        return ask()
    except httpx2.HTTPStatusError as e:
        if status_of(e) == _MISSING:
            return None
        raise


def _plugin(
    kubeconfig: Kubeconfig, context: str | None, present: Callable[[Certificate], None]
) -> PluginAuth | None:
    entry = kubeconfig.plugin(context)
    if entry is None:
        return None
    folder = kubeconfig.path.parent if kubeconfig.path is not None else None
    return PluginAuth(
        entry,
        kubeconfig.origin,
        folder,
        cluster=lambda: kubeconfig.cluster_info(context),
        present=present,
    )


def _connecting(
    config: SingleConfig, proxy: Proxy | None, certificate: Certificate | None
) -> httpx2.BaseTransport:
    """What opens connections. The certificate takes the place of the kubeconfig's."""
    assert config.user is not None  # the reader has found it
    context = even(client_adapter.verify_cluster(config.cluster, config.user, config.abs_file))
    if certificate is not None:
        load(context, certificate)
    return httpx2.HTTPTransport(
        verify=context, trust_env=False, proxy=None if proxy is None else httpx2.Proxy(proxy.url)
    )


def _single(kubeconfig: Kubeconfig, context: str | None) -> SingleConfig:
    config = KubeConfig.from_dict(dict(kubeconfig.data), fname=kubeconfig.path).get(
        kubeconfig.context(context)
    )
    # The reader has found both.
    assert config is not None
    assert config.user is not None
    config.user.exec = None  # PluginAuth does it
    config.cluster.server = kubeconfig.server(context)
    if config.cluster.certificate_auth_data is not None:
        pem = kubeconfig.ca_pem(context)
        config.cluster.certificate_auth_data = base64.b64encode(pem.encode()).decode()
    return config


def _attributes(need: Need) -> ResourceAttributes:
    resource, _, subresource = need.resource.partition("/")
    return ResourceAttributes(
        verb=need.verb,
        group=need.group,
        resource=resource,
        subresource=subresource or None,
        namespace=need.namespace or None,
        name=need.name or None,
    )


def _is_windows_kube_proxy(daemon_set: DaemonSet) -> bool:
    """By its selector and its name, as sig-windows-tools and AKS name theirs (`kube-proxy-windows`)."""
    pod = daemon_set.spec.template.spec if daemon_set.spec is not None else None
    selector = (pod.nodeSelector if pod is not None else None) or {}
    return "windows" in selector.values() and "kube-proxy" in _name(daemon_set.metadata)


def _mounted_config_maps(daemon_set: DaemonSet) -> list[str]:
    pod = daemon_set.spec.template.spec if daemon_set.spec is not None else None
    maps = [one.configMap for one in (pod.volumes if pod is not None else None) or []]
    return [one.name for one in maps if one is not None and one.name]


def node_facts(node: Node) -> NodeFacts:
    """Read a Node object."""
    metadata, spec, status = node.metadata, node.spec, node.status
    conditions = (status.conditions if status is not None else None) or []
    ready = next((c for c in conditions if c.type == "Ready"), None)
    info = status.nodeInfo if status is not None else None
    cidrs = (spec.podCIDRs or ([spec.podCIDR] if spec.podCIDR else [])) if spec is not None else []
    taints = (spec.taints if spec is not None else None) or []
    addresses = (status.addresses if status is not None else None) or []
    return NodeFacts(
        name=_name(metadata),
        version=(metadata.resourceVersion if metadata is not None else None) or "",
        ready=ready is not None and ready.status == "True",
        reason=clean((ready.reason if ready is not None else None) or ""),
        message=clean((ready.message if ready is not None else None) or ""),
        system_uuid=info.systemUUID if info is not None else "",
        pod_cidrs=tuple(cidrs),
        labels=dict((metadata.labels if metadata is not None else None) or {}),
        annotations=dict((metadata.annotations if metadata is not None else None) or {}),
        taints=tuple(Taint(t.key, t.value or "", t.effect) for t in taints),
        addresses=tuple((a.type, a.address) for a in addresses),
        kubelet_version=info.kubeletVersion if info is not None else "",
        machine_id=info.machineID if info is not None else "",
        runtime_version=info.containerRuntimeVersion if info is not None else "",
        operating_system=info.operatingSystem if info is not None else "",
        unschedulable=bool(spec is not None and spec.unschedulable),
        provider_id=(spec.providerID if spec is not None else None) or "",
        silent_since=ready.lastTransitionTime if ready is not None and ready.status == "Unknown" else None,
        network_reason=next((c.reason or "" for c in conditions if c.type == "NetworkUnavailable"), ""),
    )


def _request(csr: CertificateSigningRequest) -> Request:
    spec, status = csr.spec, csr.status
    decided = [c.type for c in (status.conditions if status is not None else None) or ()]
    made = csr.metadata.creationTimestamp if csr.metadata is not None else None
    return Request(
        name=_name(csr.metadata),
        signer=spec.signerName,
        user=spec.username or "",
        groups=tuple(spec.groups or ()),
        usages=frozenset(spec.usages or ()),
        pem=spec.request,
        state=requests.state_of(decided, issued=status is not None and bool(status.certificate)),
        made=made,
    )


def _takes_windows(daemon_set: DaemonSet) -> bool:
    """Whether no selector keeps this DaemonSet's pods on Linux, nor asks for Windows on purpose."""
    spec = daemon_set.spec
    pod = spec.template.spec if spec is not None else None
    if pod is None:
        return False
    selector = pod.nodeSelector or {}
    if "kubernetes.io/os" in selector or "beta.kubernetes.io/os" in selector:
        return False
    affinity = pod.affinity.nodeAffinity if pod.affinity is not None else None
    required = affinity.requiredDuringSchedulingIgnoredDuringExecution if affinity is not None else None
    terms = required.nodeSelectorTerms if required is not None else []
    by_os = [t for t in terms if any(e.key.endswith("kubernetes.io/os") for e in t.matchExpressions or [])]
    return not terms or len(by_os) < len(terms)


def _runs_csi_proxy(daemon_set: DaemonSet) -> bool:
    """By its image: the DaemonSet of sig-windows-tools (hostprocess/csi-proxy) and the chart of csi-driver-smb."""
    pod = daemon_set.spec.template.spec if daemon_set.spec is not None else None
    images = [one.image or "" for one in (pod.containers if pod is not None else ())]
    return any(re.search(r"(^|/)csi-proxy([:@]|$)", image) for image in images)


def _mounts_csi_proxy(daemon_set: DaemonSet) -> bool:
    r"""A driver in ordinary pods mounts pipes such as \\.\pipe\csi-proxy-filesystem-v1."""
    pod = daemon_set.spec.template.spec if daemon_set.spec is not None else None
    paths = [one.hostPath.path for one in (pod.volumes if pod is not None else None) or () if one.hostPath]
    return any(path.replace("/", "\\").startswith("\\\\.\\pipe\\csi-proxy-") for path in paths)


def _is_privileged(daemon_set: DaemonSet) -> bool:
    """Whether a container or the pod asks for what --allow-privileged decides: the API server refuses both in templates, too
    (kubernetes/kubernetes, pkg/apis/core/validation/validation.go: capabilities.Get().AllowPrivileged)."""
    pod = daemon_set.spec.template.spec if daemon_set.spec is not None else None
    if pod is None:
        return False
    contexts = [one.securityContext for one in (*pod.containers, *(pod.initContainers or ()))]
    windows = [one.windowsOptions for one in (pod.securityContext, *contexts) if one is not None]
    return any(one is not None and one.privileged for one in contexts) or any(
        one is not None and one.hostProcess for one in windows
    )


def _name(metadata: ObjectMeta | None) -> str:
    return (metadata.name if metadata is not None else None) or ""


def _namespace(metadata: ObjectMeta | None) -> str:
    return (metadata.namespace if metadata is not None else None) or ""


def _full_name(metadata: ObjectMeta | None) -> str:
    return f"{_namespace(metadata)}/{_name(metadata)}"


def _letters(count: int) -> str:
    return "".join(secrets.choice(_TOKEN_LETTERS) for _ in range(count))

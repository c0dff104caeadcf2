"""The lab's Kubernetes API keeps the rules that joining nodes meet."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from winboot_lab.cluster import ApiFailure, ClusterPlan, Credentials, Identity, LabCluster
from winboot_lab.cluster.authority import Subject, load_certificate, new_key, request_pem
from winboot_lab.cluster.controllers import CLIENT_SIGNER, OVN_SIGNER, SERVING_SIGNER
from winboot_lab.cluster.identity import ADMIN, user

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
JOINERS = "system:bootstrappers:kubeadm:default-node-token"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
TOKEN = "abcdef.0123456789abcdef"


class Scene:
    """A cluster with a clock that the test moves."""

    def __init__(self, plan: ClusterPlan | None = None) -> None:
        self.now = NOON
        self.cluster = LabCluster(plan, now=lambda: self.now)

    def ask(self, who: Identity | Credentials, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        return self.cluster.request(who, method, path, body, **rest).body

    def mint(self, *, expires: timedelta = timedelta(hours=1)) -> None:
        self.ask(
            ADMIN,
            "POST",
            "/api/v1/namespaces/kube-system/secrets",
            {
                "metadata": {"name": "bootstrap-token-abcdef"},
                "type": "bootstrap.kubernetes.io/token",
                "stringData": {
                    "token-id": "abcdef",
                    "token-secret": "0123456789abcdef",
                    "expiration": f"{self.now + expires:%Y-%m-%dT%H:%M:%SZ}",
                    "usage-bootstrap-authentication": "true",
                    "auth-extra-groups": JOINERS,
                },
            },
        )

    def csr(
        self, who: Identity | Credentials, subject: Subject, signer: str = CLIENT_SIGNER, **spec: Any
    ) -> dict[str, Any]:
        usage = "server auth" if signer == SERVING_SIGNER else "client auth"
        pem = request_pem(new_key(), subject)
        found: dict[str, Any] = self.ask(
            who,
            "POST",
            CSRS,
            {
                "metadata": {"generateName": "csr-"},
                "spec": {
                    "request": base64.b64encode(pem.encode()).decode(),
                    "signerName": signer,
                    "usages": ["digital signature", usage],
                    **spec,
                },
            },
        )
        return found

    def later(self, thing: Any) -> dict[str, Any]:
        """A request or Node once the controllers had time for it."""
        path = CSRS if thing["kind"] == "CertificateSigningRequest" else "/api/v1/nodes"
        found: dict[str, Any] = {}
        for _ in range(2):  # one approves or allocates, another one signs
            self.now += timedelta(seconds=1)
            found = self.ask(ADMIN, "GET", f"{path}/{thing['metadata']['name']}")
        return found

    def node(self, name: str = "win-1", **rest: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(
            kubelet(name), "POST", "/api/v1/nodes", {"metadata": {"name": name}, **rest}
        )
        return found


def kubelet(name: str) -> Identity:
    return user(f"system:node:{name}", "system:nodes")


@pytest.fixture
def scene() -> Iterator[Scene]:
    yield Scene()


def failure(scene: Scene, *request: Any, **rest: Any) -> ApiFailure:
    with pytest.raises(ApiFailure) as caught:
        scene.ask(*request, **rest)
    return caught.value


def test_a_bootstrap_token_brings_a_signed_kubelet_certificate(scene: Scene) -> None:
    """The path of a first join: token, CSR, approval by kubeadm's binding, certificate, identity."""
    scene.mint()

    csr = scene.csr(Credentials(token=TOKEN), Subject("system:node:win-1", ("system:nodes",)))
    assert csr["status"] == {}  # nothing happens within the request itself
    csr = scene.later(csr)

    pem = base64.b64decode(csr["status"]["certificate"]).decode()
    assert csr["status"]["conditions"][0]["reason"] == "AutoApproved"
    assert scene.cluster.identify(Credentials(certificate=pem)).node == "win-1"
    assert load_certificate(pem).not_valid_before_utc < NOON


def test_an_expired_token_is_no_identity(scene: Scene) -> None:
    scene.mint()
    scene.now += timedelta(hours=2)

    assert failure(scene, Credentials(token=TOKEN), "GET", CSRS).code == 401


def test_a_token_that_joins_may_not_read_secrets(scene: Scene) -> None:
    scene.mint()

    refused = failure(scene, Credentials(token=TOKEN), "GET", "/api/v1/namespaces/kube-system/secrets")

    assert refused.code == 403
    assert 'User "system:bootstrap:abcdef" cannot list resource "secrets"' in refused.message


def test_a_serving_certificate_waits_for_a_person(scene: Scene) -> None:
    subject = Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.1.11",))

    csr = scene.csr(kubelet("win-1"), subject, SERVING_SIGNER)

    assert csr["status"] == {}
    csr["status"]["conditions"] = [{"type": "Approved", "status": "True", "reason": "Checked"}]
    name = csr["metadata"]["name"]
    approved = scene.later(scene.ask(ADMIN, "PUT", f"{CSRS}/{name}/approval", csr))
    assert load_certificate(base64.b64decode(approved["status"]["certificate"]).decode())


def test_a_kubelet_may_not_approve_its_own_serving_certificate(scene: Scene) -> None:
    subject = Subject("system:node:win-1", ("system:nodes",), ("win-1",))
    csr = scene.csr(kubelet("win-1"), subject, SERVING_SIGNER)

    path = f"{CSRS}/{csr['metadata']['name']}/approval"

    assert failure(scene, kubelet("win-1"), "PUT", path, csr).code == 403


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        (Subject("system:node:win-1", ("system:masters",)), "organization"),
        (Subject("win-1", ("system:nodes",)), "common name"),
        (Subject("system:node:win-1", ("system:nodes",), ("evil",)), "subjectAltNames"),
    ],
)
def test_a_forged_request_is_neither_approved_nor_signed(scene: Scene, subject: Subject, why: str) -> None:
    scene.mint()

    csr = scene.later(scene.csr(Credentials(token=TOKEN), subject))

    assert csr["status"] == {}
    csr["status"]["conditions"] = [{"type": "Approved", "status": "True"}]
    forced = scene.later(scene.ask(ADMIN, "PUT", f"{CSRS}/{csr['metadata']['name']}/approval", csr))
    assert why in forced["status"]["conditions"][1]["message"]
    assert "certificate" not in forced["status"]


def test_without_its_binding_a_client_request_stays_pending(scene: Scene) -> None:
    scene.mint()
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:node-autoapprove-bootstrap"
    scene.ask(ADMIN, "DELETE", path)

    csr = scene.csr(Credentials(token=TOKEN), Subject("system:node:win-1", ("system:nodes",)))

    assert scene.later(csr)["status"] == {}


def test_nodes_get_pod_networks_in_turn_and_a_new_one_after_deletion(scene: Scene) -> None:
    first, second = scene.later(scene.node("win-1")), scene.later(scene.node("win-2"))
    scene.ask(ADMIN, "DELETE", "/api/v1/nodes/win-1")
    again = scene.later(scene.node("win-1"))

    cidrs = [n["spec"]["podCIDR"] for n in (first, second, again)]

    assert cidrs == ["10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24"]


def test_dual_stack_nodes_get_one_network_of_each_family() -> None:
    scene = Scene(ClusterPlan(pod_cidrs=("10.244.0.0/16", "fd00:10:244::/56")))

    assert scene.later(scene.node())["spec"]["podCIDRs"] == ["10.244.1.0/24", "fd00:10:244:1::/64"]


def test_a_node_is_tainted_until_its_kubelet_says_ready(scene: Scene) -> None:
    taints = {t["key"] for t in scene.node()["spec"]["taints"]}
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    node = scene.ask(
        kubelet("win-1"),
        "PATCH",
        "/api/v1/nodes/win-1/status",
        ready,
        content_type="application/strategic-merge-patch+json",
    )

    assert taints == {"node.kubernetes.io/not-ready"} == {t["key"] for t in node["spec"]["taints"]}
    assert "taints" not in scene.later(node)["spec"]


def test_a_kubelet_may_not_touch_another_node_nor_its_own_taints_and_roles(scene: Scene) -> None:
    scene.node("win-1")
    scene.node("win-2")
    merge = {"content_type": "application/merge-patch+json"}

    other = failure(scene, kubelet("win-1"), "PATCH", "/api/v1/nodes/win-2", {}, **merge)
    role = failure(
        scene,
        kubelet("win-1"),
        "PATCH",
        "/api/v1/nodes/win-1",
        {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}},
        **merge,
    )
    taint = failure(
        scene, kubelet("win-1"), "PATCH", "/api/v1/nodes/win-1", {"spec": {"taints": []}}, **merge
    )

    assert [other.code, role.code, taint.code] == [403, 403, 403]
    assert "node-role.kubernetes.io/worker" in role.message
    assert "taints" in taint.message


def test_a_kubelets_certificate_lists_nodes_only_where_a_binding_lets_it() -> None:
    bound, bare = Scene(), Scene(ClusterPlan(grant_nodes=False))

    assert len(bound.ask(kubelet("win-1"), "GET", "/api/v1/nodes")["items"]) == 1
    assert failure(bare, kubelet("win-1"), "GET", "/api/v1/nodes").code == 403
    assert failure(bare, kubelet("win-1"), "GET", "/apis/discovery.k8s.io/v1/endpointslices").code == 403


def test_an_update_with_an_old_version_is_a_conflict(scene: Scene) -> None:
    scene.node()
    node = scene.ask(ADMIN, "GET", "/api/v1/nodes/win-1")
    node["metadata"]["labels"] = {"a": "b"}
    scene.ask(ADMIN, "PUT", "/api/v1/nodes/win-1", node)

    node["metadata"]["labels"] = {"a": "c"}

    assert failure(scene, ADMIN, "PUT", "/api/v1/nodes/win-1", node).code == 409


def test_eviction_respects_a_disruption_budget(scene: Scene) -> None:
    pod = {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"nodeName": "win-1"}}
    scene.ask(ADMIN, "POST", "/api/v1/namespaces/default/pods", pod)
    budget = {
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    scene.ask(ADMIN, "POST", budgets, budget)

    refused = failure(scene, ADMIN, "POST", "/api/v1/namespaces/default/pods/web/eviction", {})
    scene.ask(ADMIN, "DELETE", f"{budgets}/web")
    scene.ask(ADMIN, "POST", "/api/v1/namespaces/default/pods/web/eviction", {})

    assert refused.code == 429
    assert failure(scene, ADMIN, "GET", "/api/v1/namespaces/default/pods/web").code == 404


def test_a_service_account_token_is_its_account_until_it_ends(scene: Scene) -> None:
    path = "/api/v1/namespaces/kube-flannel/serviceaccounts/flannel/token"
    token = scene.ask(ADMIN, "POST", path, {"spec": {"expirationSeconds": 600}})["status"]["token"]
    shown = Credentials(token=token)

    assert scene.cluster.identify(shown).name == "system:serviceaccount:kube-flannel:flannel"
    assert scene.ask(shown, "GET", "/api/v1/nodes")["items"]
    scene.now += timedelta(minutes=11)
    assert failure(scene, shown, "GET", "/api/v1/nodes").code == 401


def test_a_list_can_be_narrowed_by_fields_and_labels(scene: Scene) -> None:
    scene.node("win-1", spec={})
    linux = scene.ask(ADMIN, "GET", "/api/v1/nodes", query={"labelSelector": "kubernetes.io/os in (linux)"})
    own = scene.ask(ADMIN, "GET", "/api/v1/nodes", query={"fieldSelector": "metadata.name=win-1"})

    assert [n["metadata"]["name"] for n in linux["items"]] == ["control-plane"]
    assert [n["metadata"]["name"] for n in own["items"]] == ["win-1"]


def test_a_review_answers_for_another_user(scene: Scene) -> None:
    review = {
        "spec": {
            "user": "system:node:win-1",
            "groups": ["system:nodes"],
            "resourceAttributes": {"verb": "list", "group": "discovery.k8s.io", "resource": "endpointslices"},
        }
    }

    answer = scene.ask(ADMIN, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)

    assert answer["status"]["allowed"] is True


def test_a_paused_controller_catches_up_when_resumed(scene: Scene) -> None:
    scene.cluster.controllers.paused.add("nodeipam")
    bare = scene.later(scene.node())

    scene.cluster.controllers.resume("nodeipam")

    assert "podCIDR" not in bare["spec"]
    assert scene.later(bare)["spec"]["podCIDR"] == "10.244.1.0/24"


def taints(node: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["key"], one["effect"]) for one in node["spec"].get("taints") or []}


@pytest.mark.parametrize(("version", "grace"), [("1.31.9", 40), ("1.32.0", 50), ("1.37.1", 50)])
def test_a_node_whose_kubelet_is_silent_becomes_unreachable_after_the_grace_period(
    version: str, grace: int
) -> None:
    """kubernetes/kubernetes#126287; the node's own clock does not count (tryUpdateNodeHealth, probeTimestamp)."""
    scene = Scene(ClusterPlan(version=version))
    name = scene.node()["metadata"]["name"]
    path, leases = f"/api/v1/nodes/{name}", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    strategic = "application/strategic-merge-patch+json"
    scene.ask(ADMIN, "PATCH", f"{path}/status", ready, content_type=strategic)
    late = {"metadata": {"name": name}, "spec": {"renewTime": "2026-03-02T11:30:00.000000Z"}}
    scene.ask(ADMIN, "POST", leases, late)

    def status(seconds: int) -> tuple[str, set[tuple[str, str]]]:
        scene.now += timedelta(seconds=seconds)
        node = scene.ask(ADMIN, "GET", path)
        (found,) = [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"]
        return found, taints(node)

    assert status(6) == ("True", set())
    assert status(grace) == ("True", set())
    assert status(6) == (
        "Unknown",
        {("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")},
    )

    scene.ask(ADMIN, "PATCH", f"{path}/status", ready, content_type=strategic)
    assert status(1) == ("True", set())


OVN_NODE = Subject("system:ovn-node:win-1", ("system:ovn-nodes",))
AGENTS: list[tuple[dict[str, Any], Subject, str, str]] = [
    ({"expirationSeconds": 86400}, OVN_NODE, "win-1", ""),
    ({}, OVN_NODE, "win-1", "without specyfying the expirationSeconds"),
    ({"expirationSeconds": 366 * 86400}, OVN_NODE, "win-1", "invalid expirationSeconds value"),
    ({"expirationSeconds": 86400}, OVN_NODE, "win-2", "by an unexpected user"),
    (
        {"expirationSeconds": 86400, "usages": ["digital signature", "key encipherment", "client auth"]},
        OVN_NODE,
        "win-1",
        "with unexpected usages",
    ),
    (
        {"expirationSeconds": 86400},
        Subject(OVN_NODE.common_name, ("system:nodes",)),
        "win-1",
        "organizations",
    ),
]


@pytest.mark.parametrize(("spec", "subject", "asks", "denied"), AGENTS)
def test_ovnkube_identity_approves_what_the_agent_asks_for_and_denies_the_rest(
    spec: dict[str, Any], subject: Subject, asks: str, denied: str
) -> None:
    """ovn-kubernetes pkg/csrapprover/approver.go."""
    scene = Scene(ClusterPlan(ovn="10.132.0.0/14"))

    csr = scene.later(scene.csr(kubelet(asks), subject, OVN_SIGNER, **spec))

    (decided,) = csr["status"]["conditions"]
    assert decided["type"] == ("Denied" if denied else "Approved")
    assert denied in decided["message"]
    assert ("certificate" in csr["status"]) is not bool(denied)

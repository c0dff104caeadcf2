"""One contract, two servers: what winboot and kubelets lean on, asked of the lab's API and of a genuine one.

The lab's half runs always, the genuine half under `make genuine`: a lab that is softer than Kubernetes shows here.
"""

from __future__ import annotations

import base64
import itertools
import json
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from winboot_lab.cluster.authority import KeyPair, Subject, new_key, request_pem
from winboot_lab.cluster.controllers import CLIENT_SIGNER, SERVING_SIGNER

from tests.genuine.conftest import Genuine

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
# Every kind that is updated here, with a body that both servers take: whether its strategy allows an update
# without resourceVersion.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "configmaps": (MAPS, {"data": {"a": "b"}}),
    "secrets": ("/api/v1/namespaces/default/secrets", {"type": "Opaque"}),
    "serviceaccounts": ("/api/v1/namespaces/default/serviceaccounts", {}),
    "nodes": ("/api/v1/nodes", {}),
    "leases": (LEASES, {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 40}}),
    "poddisruptionbudgets": (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}},
    ),
    "clusterroles": ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"rules": []}),
    "runtimeclasses": ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "x"}),
    "csidrivers": ("/apis/storage.k8s.io/v1/csidrivers", {"spec": {"attachRequired": False}}),
    "csinodes": ("/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": []}}),
    "endpointslices": (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {"addressType": "IPv4", "endpoints": [], "ports": []},
    ),
}
VERSIONED = {"leases", "poddisruptionbudgets", "runtimeclasses", "csidrivers", "csinodes"}


def named(prefix: str) -> str:
    """A new name: the genuine server lives through all tests of this file."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def until(look: Callable[[], Any], seconds: float = 20) -> Any:
    """What `look` gives as soon as it is something."""
    end = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def kubelet(server: Genuine, name: str) -> KeyPair:
    return server.authority.issue(Subject(f"system:node:{name}", ("system:nodes",)), ("client auth",))


def request(server: Genuine, subject: Subject, signer: str, **who: Any) -> httpx2.Response:
    """A kubelet asks for a certificate."""
    usage = "client auth" if signer == CLIENT_SIGNER else "server auth"
    pem = request_pem(new_key(), subject)
    spec = {
        "request": base64.b64encode(pem.encode()).decode(),
        "signerName": signer,
        "usages": ["digital signature", usage],
    }
    return server.ask("POST", CSRS, {"metadata": {"name": named("csr")}, "spec": spec}, **who)


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_without_a_version_is_taken_or_refused_by_its_kind(either: Genuine, kind: str) -> None:
    path, body = KINDS[kind]
    name = named("thing")
    made = either.ask("POST", path, {**body, "metadata": {"name": name}})
    assert made.status_code == 201, made.text
    if kind == "nodes":  # its pod network comes later, and an update without it would delete it
        assert until(lambda: either.ask("GET", f"{path}/{name}").json()["spec"].get("podCIDR"))
    bare = {**either.ask("GET", f"{path}/{name}").json(), "metadata": {"name": name, "labels": {"a": "b"}}}

    answer = either.ask("PUT", f"{path}/{name}", bare)

    if kind not in VERSIONED:
        assert answer.status_code == 200, answer.text
        return
    status = answer.json()
    assert (answer.status_code, status["reason"]) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value" in status["message"]
    assert "must be specified for an update" in status["message"]
    assert [cause["field"] for cause in status["details"]["causes"]] == ["metadata.resourceVersion"]
    read = either.ask("GET", f"{path}/{name}").json()
    assert either.ask("PUT", f"{path}/{name}", {**read, "metadata": read["metadata"]}).status_code == 200


def test_an_update_of_an_old_state_is_a_conflict(either: Genuine) -> None:
    name = named("map")
    old = either.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"a": "1"}}).json()
    assert either.ask("PUT", f"{MAPS}/{name}", {**old, "data": {"a": "2"}}).status_code == 200

    answer = either.ask("PUT", f"{MAPS}/{name}", {**old, "data": {"a": "3"}})

    assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer.json()["message"]


def test_an_update_that_changes_nothing_leaves_the_version(either: Genuine) -> None:
    name = named("map")
    made = either.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"a": "1"}}).json()

    again = either.ask("PATCH", f"{MAPS}/{name}", {"data": {"a": "1"}}, kind=MERGE).json()

    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_list_comes_in_pages_of_one_state(either: Genuine) -> None:
    label = named("pages")
    for n in range(5):
        body = {"metadata": {"name": f"{label}-{n}", "labels": {"pages": label}}}
        assert either.ask("POST", MAPS, body).status_code == 201
    path = f"{MAPS}?labelSelector=pages%3D{label}&limit=2"

    first = either.ask("GET", path).json()
    # What is made in between belongs to a later state than the list's.
    either.ask("POST", MAPS, {"metadata": {"name": f"{label}-3a", "labels": {"pages": label}}})
    second = either.ask("GET", f"{path}&continue={first['metadata']['continue']}").json()
    third = either.ask("GET", f"{path}&continue={second['metadata']['continue']}").json()

    names = [[one["metadata"]["name"] for one in page["items"]] for page in (first, second, third)]
    assert names == [[f"{label}-0", f"{label}-1"], [f"{label}-2", f"{label}-3"], [f"{label}-4"]]
    assert "continue" not in third["metadata"]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1


def test_a_list_without_selectors_says_how_much_remains(either: Genuine) -> None:
    for n in range(3):
        assert either.ask("POST", MAPS, {"metadata": {"name": named(f"remains-{n}")}}).status_code == 201

    whole = either.ask("GET", MAPS).json()
    first = either.ask("GET", f"{MAPS}?limit=1").json()

    assert first["metadata"]["remainingItemCount"] == len(whole["items"]) - 1
    assert "remainingItemCount" not in whole["metadata"]


def test_a_token_of_another_making_is_refused(either: Genuine) -> None:
    answer = either.ask("GET", f"{MAPS}?limit=1&continue=nonsense")

    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
    assert "continue key is not valid" in answer.json()["message"]


def test_a_client_request_is_approved_and_signed_after_its_answer(either: Genuine) -> None:
    """Nothing of it within the request: a client that reads its answer alone sees no certificate."""
    either.bind_joiners()
    node = named("win")

    answer = request(
        either, Subject(f"system:node:{node}", ("system:nodes",)), CLIENT_SIGNER, pair=kubelet(either, node)
    )

    assert answer.status_code == 201, answer.text
    assert not answer.json()["status"]
    path = f"{CSRS}/{answer.json()['metadata']['name']}"
    signed = until(lambda: either.ask("GET", path).json()["status"].get("certificate"))
    assert signed
    conditions = either.ask("GET", path).json()["status"]["conditions"]
    assert [(one["type"], one["reason"]) for one in conditions] == [("Approved", "AutoApproved")]


def test_a_serving_request_is_signed_after_its_approval_and_not_by_it(either: Genuine) -> None:
    node = named("win")
    subject = Subject(f"system:node:{node}", ("system:nodes",), (node,), ("10.0.1.11",))
    asked = request(either, subject, SERVING_SIGNER, pair=kubelet(either, node)).json()
    path = f"{CSRS}/{asked['metadata']['name']}"
    asked["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}

    answer = either.ask("PUT", f"{path}/approval", asked)

    assert answer.status_code == 200, answer.text
    assert not answer.json()["status"].get("certificate")
    assert until(lambda: either.ask("GET", path).json()["status"].get("certificate"))
    # A decision is not taken back.
    read = either.ask("GET", path).json()
    read["status"]["conditions"] = []
    assert either.ask("PUT", f"{path}/approval", read).status_code == 422


def test_a_requests_author_is_its_sender(either: Genuine) -> None:
    """And a kubelet asks in its own name only: NodeRestriction."""
    node = named("win")
    pair = kubelet(either, node)

    def ask(name: str) -> httpx2.Response:
        subject = Subject(f"system:node:{name}", ("system:nodes",), ("x",))
        return request(either, subject, SERVING_SIGNER, pair=pair)

    refused, made = ask("somebody-else"), ask(node).json()

    assert refused.status_code == 403
    assert f"can only create a node CSR with CN=system:node:{node}" in refused.json()["message"]
    assert made["spec"]["username"] == f"system:node:{node}"
    assert set(made["spec"]["groups"]) == {"system:nodes", "system:authenticated"}


def test_a_node_gets_its_pod_network_after_its_registration(either: Genuine) -> None:
    node = named("win")

    made = either.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}}, pair=kubelet(either, node))

    assert made.status_code == 201, made.text
    assert "podCIDR" not in made.json()["spec"]
    assert [t["key"] for t in made.json()["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]
    cidr = until(lambda: either.ask("GET", f"/api/v1/nodes/{node}").json()["spec"].get("podCIDR"))
    assert cidr.startswith("10.244.") and cidr.endswith("/24")
    change = either.ask("PATCH", f"/api/v1/nodes/{node}", {"spec": {"podCIDR": "10.1.0.0/24"}}, kind=MERGE)
    assert change.status_code == 422


def test_the_not_ready_taint_goes_after_the_kubelets_word(either: Genuine) -> None:
    node = named("win")
    pair = kubelet(either, node)
    either.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}}, pair=pair)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    path = f"/api/v1/nodes/{node}"
    # A controller that takes a Node from the API server's hands wants its lease as well.
    lease = {"metadata": {"name": node}, "spec": {"holderIdentity": node, "leaseDurationSeconds": 40}}
    assert either.ask("POST", LEASES, lease, pair=pair).status_code == 201

    answer = either.ask(
        "PATCH", f"{path}/status", {"status": {"conditions": [ready]}}, pair=pair, kind=STRATEGIC
    )

    assert answer.status_code == 200, answer.text
    assert [t["key"] for t in answer.json()["spec"].get("taints", [])] == ["node.kubernetes.io/not-ready"]
    assert until(lambda: not either.ask("GET", path).json()["spec"].get("taints"))


@pytest.mark.parametrize(
    ("label", "code"),
    [
        ("pool", 200),
        ("node-role.kubernetes.io/worker", 403),
        ("node.kubernetes.io/windows-build", 200),
        ("node-restriction.kubernetes.io/x", 403),
    ],
)
def test_a_kubelet_labels_its_node_within_its_limits(either: Genuine, label: str, code: int) -> None:
    node = named("win")
    pair = kubelet(either, node)
    either.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}}, pair=pair)

    answer = either.ask(
        "PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {label: "x"}}}, pair=pair, kind=MERGE
    )

    assert answer.status_code == code, answer.text


def test_a_kubelet_touches_no_other_node_and_no_taint(either: Genuine) -> None:
    node, other = named("win"), named("win")
    pair = kubelet(either, node)
    for one in (node, other):
        either.ask("POST", "/api/v1/nodes", {"metadata": {"name": one}})

    def change(name: str, body: Any) -> int:
        return either.ask("PATCH", f"/api/v1/nodes/{name}", body, pair=pair, kind=MERGE).status_code

    assert change(other, {"metadata": {"labels": {"a": "b"}}}) == 403
    assert change(node, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}) == 403
    assert either.ask("GET", "/api/v1/nodes", pair=pair).status_code in (200, 403)
    assert either.ask("GET", f"/api/v1/nodes/{node}", pair=pair).status_code == 200
    assert either.ask("GET", f"{LEASES}/{other}", pair=pair).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "code", "reason"),
    [
        ("GET", "/api/v1/nodes/nobody", None, "application/json", 404, "NotFound"),
        ("POST", MAPS, {"metadata": {"name": "kube-root-ca.crt"}}, "application/json", 409, "AlreadyExists"),
        ("POST", MAPS, {"metadata": {"name": "Not_A_Name"}}, "application/json", 422, "Invalid"),
        ("PATCH", "/api/v1/nodes/nobody", {}, "text/plain", 415, "UnsupportedMediaType"),
        (
            "POST",
            "/api/v1/namespaces/nowhere/configmaps",
            {"metadata": {"name": "a"}},
            "application/json",
            404,
            "NotFound",
        ),
    ],
)
def test_a_refusal_has_its_code_and_reason(
    either: Genuine, method: str, path: str, body: Any, kind: str, code: int, reason: str
) -> None:
    if "kube-root-ca.crt" in str(body):  # the root CA publisher is not among the controllers of `genuine`
        either.ask("POST", MAPS, body)

    answer = either.ask(method, path, body, kind=kind)

    assert (answer.status_code, answer.json()["reason"]) == (code, reason), answer.text


def test_anonymous_requests_and_a_wrong_token_are_refused(either: Genuine) -> None:
    wrong = either.ask("GET", "/api/v1/nodes", token="abcdef.0123456789abcdef")

    assert (wrong.status_code, wrong.json()["reason"]) == (401, "Unauthorized")


def watching(server: Genuine, path: str) -> Iterator[dict[str, Any]]:
    """Events of a watch as the administrator, until it ends."""
    context = ssl.create_default_context(cadata=server.authority.pem)
    pair = server.authority.issue(Subject("kubernetes-admin", ("system:masters",)), ("client auth",))
    files = server.folder / "watch.crt", server.folder / "watch.key"
    files[0].write_text(pair.certificate)
    files[1].write_text(pair.key)
    context.load_cert_chain(*files)
    with (
        httpx2.Client(verify=context, base_url=server.url, timeout=20) as client,
        client.stream("GET", path) as answer,
    ):
        yield from map(json.loads, filter(None, answer.iter_lines()))


def test_a_watch_from_a_version_sends_the_later_events(either: Genuine) -> None:
    listed = either.ask("GET", MAPS).json()["metadata"]["resourceVersion"]
    name = named("seen")
    path = f"{MAPS}?watch=true&resourceVersion={listed}&timeoutSeconds=10&allowWatchBookmarks=true"
    seen: list[tuple[str, str]] = []

    def follow() -> None:
        events = (one for one in watching(either, path) if one["object"]["metadata"].get("name") == name)
        seen.extend((one["type"], one["object"]["metadata"]["name"]) for one in itertools.islice(events, 2))

    thread = threading.Thread(target=follow)
    thread.start()
    either.ask("POST", MAPS, {"metadata": {"name": name}})
    either.ask("DELETE", f"{MAPS}/{name}")
    thread.join(20)

    assert seen == [("ADDED", name), ("DELETED", name)]


def test_a_watch_ends_after_its_time(either: Genuine) -> None:
    started = time.monotonic()

    events = list(watching(either, f"{MAPS}?watch=true&timeoutSeconds=1"))

    assert all(one["type"] == "ADDED" for one in events)
    assert time.monotonic() - started < 10

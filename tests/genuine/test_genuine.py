"""Preflight, certificates and the cluster's side of a join, against a genuine control plane."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.cluster.authority import KeyPair, Subject, key_pem, new_key, request_pem
from winboot_lab.cluster.controllers import CLIENT_SIGNER, SERVING_SIGNER

from tests.cluster.test_hostile_requests import CASES
from tests.config.scene import a_spec
from tests.config.test_gmsa import a_profile as gmsa_profile
from tests.genuine.conftest import Genuine
from winboot.config.node_spec import Taint
from winboot.node.preflight import Preflight
from winboot.remote.cluster import connect
from winboot.remote.cluster.base import ExpectedNode, NodeWish
from winboot.remote.cluster.calls import sleep
from winboot.remote.manifests import OPERATORS, manifest

pytestmark = pytest.mark.genuine
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
STARTING = {"key": "winboot.io/starting", "value": "true", "effect": "NoSchedule"}


def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    """What `look` gives as soon as it is something."""
    end = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.3)
    return found


def request(genuine: Genuine, name: str, subject: Subject, signer: str, **who: Any) -> tuple[Any, Any]:
    """A kubelet asks for a certificate; gives its key and the answer."""
    key = new_key()
    spec = {
        "request": base64.b64encode(request_pem(key, subject).encode()).decode(),
        "signerName": signer,
        "usages": ["digital signature", "client auth" if signer == CLIENT_SIGNER else "server auth"],
    }
    return key, genuine.ask("POST", CSRS, {"metadata": {"name": name}, "spec": spec}, **who)


def issued(genuine: Genuine, name: str) -> str:
    """The certificate, when it is there."""
    text = genuine.ask("GET", f"{CSRS}/{name}").json().get("status", {}).get("certificate", "")
    return base64.b64decode(text).decode()


def test_preflight_names_what_is_missing_and_is_quiet_when_it_is_there(
    fresh: Genuine, tmp_path: Path
) -> None:
    spec = a_spec(tmp_path, profile="kubernetes: {version: '1.36.2'}")
    operator = fresh.kubeconfig("operator", OPERATORS)

    def errors() -> list[str]:
        with connect(operator) as cluster:
            preflight = Preflight([spec], lambda one: cluster, drains=True)
            preflight.findings(spec)
            return [f"{one.id}: {one.reason}" for one in preflight.so_far() if not one.skipped]

    before = errors()
    assert any(one.startswith("permissions: this kubeconfig's user may not patch nodes") for one in before)
    fresh.apply(manifest("operator", [spec]))
    wanting = until(lambda: [one for one in errors() if not one.startswith("permissions")])
    assert {one.partition(":")[0] for one in wanting} >= {"bootstrap-bindings", "flannel-config", "node-rbac"}

    fresh.bind_joiners()
    fresh.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-flannel}")
    fresh.apply(manifest("flannel", [spec]))
    fresh.apply(manifest("rbac", [spec]))
    assert until(lambda: not errors()), errors()


def test_the_clusters_side_of_a_join_with_an_operators_rights(fresh: Genuine, tmp_path: Path) -> None:
    """Token, client certificate by the controller-manager, serving certificate by winboot, labels, Ready, taint."""
    spec = a_spec(tmp_path, profile="kubernetes: {version: '1.36.2'}")
    fresh.bind_joiners()
    fresh.apply(manifest("operator", [spec]))
    operator = fresh.kubeconfig("operator", OPERATORS)
    expected = ExpectedNode("win-1", addresses=frozenset({"10.0.1.11"}))
    with connect(operator) as cluster:
        token = cluster.mint_token(node="win-1", lifetime=timedelta(hours=1))
        me = Subject("system:node:win-1", ("system:nodes",))
        key, answer = request(fresh, "client", me, CLIENT_SIGNER, token=token.value.reveal())
        assert answer.status_code == 201, answer.text
        pem = until(lambda: issued(fresh, "client"))
        kubelet = KeyPair(pem, key_pem(key))
        cluster.forget_token(token.id)
        refused = fresh.ask("GET", "/api/v1/nodes/win-1", token=token.value.reveal())
        assert until(lambda: refused.status_code in (401, 403))

        node = {"metadata": {"name": "win-1"}, "spec": {"taints": [STARTING]}}
        assert fresh.ask("POST", "/api/v1/nodes", node, pair=kubelet).status_code == 201
        serving = Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.1.11",))
        request(fresh, "serving", serving, SERVING_SIGNER, pair=kubelet)
        assert [v.approved for v in cluster.settle_requests(expected)] == [True]
        assert until(lambda: issued(fresh, "serving"))
        assert cluster.settle_requests(expected) == ()

        wish = NodeWish({"pool": "windows"}, [Taint("os", "windows", "NoSchedule")])
        assert cluster.change_node("win-1", wish)
        assert cluster.change_node("win-1", wish) == ()
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
        kind = "application/strategic-merge-patch+json"
        fresh.ask("PATCH", "/api/v1/nodes/win-1/status", ready, pair=kubelet, kind=kind)
        facts = cluster.wait_ready("win-1", timeout=30, wait=sleep)
        assert facts is not None and facts.ready
        assert until(lambda: (cluster.node("win-1") or facts).pod_cidrs)
        assert cluster.lift_taint("win-1", STARTING["key"])
        assert cluster.cordon("win-1")
        assert cluster.drain("win-1", timeout=5, wait=sleep).left == ()
        assert cluster.uncordon("win-1")


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.who.name == "system:node:win-1"])
def test_a_hostile_request_is_never_approved(genuine: Genuine, name: str) -> None:
    """Those that the API server takes from the node's own certificate; the others never come to winboot."""
    case = CASES[name]
    pair = genuine.authority.issue(Subject(case.who.name, ("system:nodes",)), ("client auth",))
    if tuple(group for group in case.who.groups if group != "system:authenticated") != ("system:nodes",):
        pair = genuine.authority.issue(Subject(case.who.name, case.who.groups), ("client auth",))
    asked = f"hostile-{list(CASES).index(name)}"
    spec = {
        "request": base64.b64encode(case.pem()).decode(),
        "signerName": SERVING_SIGNER,
        "usages": list(case.usages),
    }
    answer = genuine.ask("POST", CSRS, {"metadata": {"name": asked}, "spec": spec}, pair=pair)
    if answer.status_code != 201:
        assert answer.status_code in (400, 403, 422)
        return
    with connect(genuine.kubeconfig("admin", "system:masters")) as cluster:
        cluster.settle_requests(ExpectedNode("win-1", frozenset({"win-a1"}), frozenset({"10.0.1.11"})))

    conditions = genuine.ask("GET", f"{CSRS}/{asked}").json()["status"].get("conditions") or []
    assert not [one for one in conditions if one["type"] == "Approved"]


def test_the_manifest_of_gmsa_passes_a_dry_run_with_the_crd_of_windows_gmsa(
    fresh: Genuine, tmp_path: Path
) -> None:
    """deploy/gmsa-crd.yml of kubernetes-sigs/windows-gmsa lies in the folder that GMSA names."""
    file = Path(os.environ.get("GMSA", "")) / "gmsa-crd.yml"
    if not file.is_file():
        pytest.skip("GMSA names no folder with gmsa-crd.yml of kubernetes-sigs/windows-gmsa")
    crd = yaml.safe_load(file.read_text(encoding="utf-8"))
    answer = fresh.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert answer.status_code in (201, 409), answer.text
    path = "/apis/windows.k8s.io/v1/gmsacredentialspecs"
    assert until(lambda: fresh.ask("GET", path).status_code == 200)

    specs, *rbac = yaml.safe_load_all(manifest("gmsa", [a_spec(tmp_path, profile=gmsa_profile())]))

    answer = fresh.ask("POST", f"{path}?dryRun=All&fieldValidation=Strict", specs)
    assert answer.status_code == 201, answer.text
    for namespace in {one["metadata"].get("namespace") for one in rbac} - {None}:
        fresh.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for one in rbac:
        where = one["metadata"].get("namespace")
        space = f"namespaces/{where}/" if where else ""
        url = f"/apis/{one['apiVersion']}/{space}{one['kind'].lower()}s?dryRun=All&fieldValidation=Strict"
        answer = fresh.ask("POST", url, one)
        assert answer.status_code == 201, answer.text

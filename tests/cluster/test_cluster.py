"""winboot and the cluster understand each other, over TLS, through the real client library."""

from __future__ import annotations

import base64
import json
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import Node
from winboot_lab.cluster import ClusterPlan, ClusterServer, Credentials, LabCluster
from winboot_lab.cluster.authority import Subject, new_key, request_pem
from winboot_lab.cluster.controllers import CLIENT_SIGNER, SERVING_SIGNER

from tests.cluster.conftest import Scene, kubelet
from winboot.base.errors import ClusterError, ClusterRefused, ClusterUnreachable, InvalidInput
from winboot.config.networks.flannel_settings import read
from winboot.config.node_spec import Taint
from winboot.remote.cluster import connect
from winboot.remote.cluster.base import DrainRules, ExpectedNode, Need, NodeWish, token_id
from winboot.remote.cluster.calls import Patience
from winboot.remote.cluster.lightkube import LightkubeCluster, node_facts

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
WIN = Taint("os", "windows", "NoSchedule")


def at_once(seconds: float) -> bool:
    """Waiting that costs nothing."""
    return False


def serving_request(scene: Scene, subject: Subject, asker: str = "win-1") -> str:
    """A kubelet asks for its serving certificate; gives the request's name."""
    pem = request_pem(new_key(), subject)
    spec = {
        "request": base64.b64encode(pem.encode()).decode(),
        "signerName": SERVING_SIGNER,
        "usages": ["digital signature", "server auth"],
    }
    body = {"metadata": {"generateName": "csr-"}, "spec": spec}
    return str(scene.ask(kubelet(asker), "POST", CSRS, body)["metadata"]["name"])


def test_the_version_and_the_clock_are_the_servers(scene: Scene) -> None:
    assert str(scene.cluster.version()) == ClusterPlan().version
    assert abs(scene.cluster.server_time() - scene.lab.now()) < timedelta(seconds=5)


@pytest.mark.parametrize("ahead", [-3600, -7, 0, 7, 3600])
def test_a_clock_that_differs_from_ours_is_seen(scene: Scene, ahead: int) -> None:
    """An API server dates each answer by its own clock; how long the answer took does not count."""
    scene.lab.now = lambda: datetime.now(UTC) + timedelta(seconds=ahead)

    found = scene.cluster.clock_ahead()

    assert found is not None
    assert abs(found - timedelta(seconds=ahead)) < timedelta(seconds=3)
    assert ahead or not found


def test_the_time_of_a_lab_that_leaps_is_not_compared_with_ours(scene: Scene) -> None:
    scene.lab.leaps = True

    assert scene.cluster.clock_ahead() is None


def test_a_missing_node_is_none_and_a_registered_one_has_its_facts(scene: Scene) -> None:
    assert scene.cluster.node("win-1") is None
    status = {
        "nodeInfo": {"systemUUID": "AB", "kubeletVersion": "v1.34.2", "operatingSystem": "windows"},
        "addresses": [{"type": "InternalIP", "address": "10.0.1.11"}],
    }
    scene.join(spec={"taints": [{"key": "os", "value": "windows", "effect": "NoSchedule"}]}, status=status)
    scene.lab.settle()

    facts = scene.cluster.node("win-1")

    assert facts is not None
    assert facts.pod_cidrs == ("10.244.1.0/24",)
    assert WIN in facts.taints
    assert facts.addresses == (("InternalIP", "10.0.1.11"),)
    assert not facts.ready
    assert [n.name for n in scene.cluster.nodes()] == ["control-plane", "win-1"]


def test_the_windows_nodes_at_hand_are_those_whose_kubelet_says_so(scene: Scene) -> None:
    labelled = {"name": "win-1", "labels": {"kubernetes.io/os": "windows"}}
    scene.ask(kubelet("win-1"), "POST", "/api/v1/nodes", {"metadata": labelled})
    scene.join("lin-1")

    assert [n.name for n in scene.cluster.windows_nodes()] == ["win-1"]


def test_waiting_ends_when_the_node_is_ready_or_time_is_up(scene: Scene) -> None:
    scene.join()
    scene.make_ready(status="False", reason="KubeletNotReady")

    late = scene.cluster.wait_ready("win-1", timeout=0.3, wait=at_once)

    def becomes_ready(seconds: float) -> bool:
        scene.make_ready()
        return False

    there = scene.cluster.wait_ready("win-1", timeout=4, wait=becomes_ready)
    assert late is not None and not late.ready and late.reason == "KubeletNotReady"
    assert there is not None and there.ready


def tokens(scene: Scene) -> set[str]:
    """The bootstrap tokens that there are, by name."""
    return {one["metadata"]["name"] for one in scene.lab.store.everything() if one["kind"] == "Secret"}


def test_a_minted_token_joins_and_is_forgotten_afterwards(scene: Scene) -> None:
    token = scene.cluster.mint_token(node="win-1", lifetime=timedelta(hours=1))
    shown = Credentials(token=token.value.reveal())

    assert scene.lab.identify(shown).name == f"system:bootstrap:{token.id}"
    scene.cluster.forget_token(token.id)
    assert tokens(scene) == set()


def test_one_token_is_forgotten_and_its_neighbour_stays(scene: Scene) -> None:
    mine = scene.cluster.mint_token(node="win-1", lifetime=timedelta(hours=1))
    other = scene.cluster.mint_token(node="win-1", lifetime=timedelta(hours=1))

    scene.cluster.forget_token(mine.id)
    scene.cluster.forget_token(mine.id)

    assert tokens(scene) == {f"bootstrap-token-{other.id}"}


def test_the_token_of_a_run_is_named_by_it_and_by_another_id_if_that_is_taken(scene: Scene) -> None:
    """The next run finds the token of a killed one by the run that its claim names."""
    first, second = (
        scene.cluster.mint_token(node="win-1", lifetime=timedelta(hours=1), run="0123456789ab") for _ in "12"
    )

    assert first.id == token_id("0123456789ab", "win-1")
    assert second.id not in (first.id, token_id("0123456789ab", "win-2"))
    assert re.fullmatch("[a-z0-9]{6}", first.id)


def test_a_serving_certificate_in_order_is_approved(scene: Scene) -> None:
    scene.join()
    name = serving_request(
        scene, Subject("system:node:win-1", ("system:nodes",), ("win-1", "WIN-A1"), ("10.0.1.11",))
    )
    expected = ExpectedNode("win-1", frozenset({"win-a1"}), frozenset({"10.0.1.11"}))

    verdicts = scene.cluster.settle_requests(expected)

    assert [(v.request, v.kind, v.approved) for v in verdicts] == [(name, "serving", True)]
    scene.lab.settle()
    assert scene.admin("GET", f"{CSRS}/{name}")["status"]["certificate"]
    assert scene.cluster.settle_requests(expected) == ()


def test_of_a_kubelets_serving_requests_the_newest_is_approved(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubelet makes a new key at each start; those of its former requests are gone."""
    scene.join()
    subject = Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.1.11",))
    expected = ExpectedNode("win-1", addresses=frozenset({"10.0.1.11"}))
    with monkeypatch.context() as past:
        past.setattr(scene.lab.store, "timestamp", lambda: "2026-01-01T00:00:00Z")
        serving_request(scene, subject)
    name = serving_request(scene, subject)

    assert [one.request for one in scene.cluster.settle_requests(expected)] == [name]
    assert scene.cluster.settle_requests(expected) == ()


def test_a_newer_request_that_is_refused_does_not_hide_a_good_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.join()
    expected = ExpectedNode("win-1", addresses=frozenset({"10.0.1.11"}))
    with monkeypatch.context() as past:
        past.setattr(scene.lab.store, "timestamp", lambda: "2026-01-01T00:00:00Z")
        good = serving_request(
            scene, Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.1.11",))
        )
    bad = serving_request(scene, Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.0.10",)))

    verdicts = scene.cluster.settle_requests(expected)

    assert {one.request: one.approved for one in verdicts} == {good: True, bad: False}


def test_a_serving_certificate_with_a_strange_address_stays_pending_with_a_reason(scene: Scene) -> None:
    name = serving_request(scene, Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.0.10",)))

    (verdict,) = scene.cluster.settle_requests(ExpectedNode("win-1", addresses=frozenset({"10.0.1.11"})))

    assert not verdict.approved
    assert "the address 10.0.0.10 is not one of this machine's" in verdict.reasons[0]
    assert scene.admin("GET", f"{CSRS}/{name}")["status"] == {}


def test_a_client_request_in_order_is_left_to_the_controller_manager(scene: Scene) -> None:
    scene.lab.controllers.paused.add("csrapproving")
    pem = request_pem(new_key(), Subject("system:node:win-1", ("system:nodes",)))
    spec = {
        "request": base64.b64encode(pem.encode()).decode(),
        "signerName": CLIENT_SIGNER,
        "usages": ["digital signature", "client auth"],
    }
    scene.ask(kubelet("win-1"), "POST", CSRS, {"metadata": {"name": "mine"}, "spec": spec})

    assert scene.cluster.settle_requests(ExpectedNode("win-1")) == ()
    assert scene.admin("GET", f"{CSRS}/mine")["status"] == {}


def test_requests_of_other_nodes_are_not_looked_at(scene: Scene) -> None:
    serving_request(scene, Subject("system:node:win-2", ("system:nodes",), ("win-2",)), asker="win-2")

    assert scene.cluster.settle_requests(ExpectedNode("win-1")) == ()


def test_labels_and_taints_are_repaired_and_foreign_ones_stay(scene: Scene) -> None:
    scene.join()
    scene.admin(
        "PATCH",
        "/api/v1/nodes/win-1",
        {
            "metadata": {"labels": {"other": "x"}},
            "spec": {"taints": [{"key": "theirs", "effect": "NoExecute"}]},
        },
        content_type="application/merge-patch+json",
    )
    first = NodeWish({"pool": "windows", "gpu": "true"}, (WIN,))
    second = NodeWish({"pool": "windows"}, ())

    changed = scene.cluster.change_node("win-1", first)
    again = scene.cluster.change_node("win-1", first)
    scene.cluster.change_node("win-1", second)
    scene.lab.settle()

    facts = scene.cluster.node("win-1")
    assert {d.what for d in changed} >= {"node label pool", "node label gpu", "node taint os:NoSchedule"}
    assert again == ()
    assert facts is not None
    assert facts.labels == {"other": "x", "pool": "windows"}
    assert {t.key for t in facts.taints} == {"theirs", "node.kubernetes.io/not-ready"}


def test_the_startup_taint_is_lifted_once(scene: Scene) -> None:
    taint = {"key": "winboot.io/starting", "value": "true", "effect": "NoSchedule"}
    scene.join(spec={"taints": [taint]})

    assert scene.cluster.lift_taint("win-1", "winboot.io/starting")
    assert not scene.cluster.lift_taint("win-1", "winboot.io/starting")
    facts = scene.cluster.node("win-1")
    assert facts is not None and not facts.has_taint("winboot.io/starting")


def test_many_threads_may_change_one_node(scene: Scene) -> None:
    """Every patch carries the version it has seen; a thread that is too late reads the Node again."""
    scene.join(spec={"taints": [{"key": f"k{i}", "effect": "NoSchedule"} for i in range(3)]})
    threads = [threading.Thread(target=scene.cluster.lift_taint, args=("win-1", f"k{i}")) for i in range(3)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    facts = scene.cluster.node("win-1")
    assert facts is not None and not any(facts.has_taint(f"k{i}") for i in range(3))


def test_only_our_own_cordon_is_lifted(scene: Scene) -> None:
    scene.join("win-1")
    scene.join("win-2", spec={"unschedulable": True})

    assert scene.cluster.cordon("win-1") and not scene.cluster.cordon("win-2")
    assert scene.cluster.uncordon("win-1") and not scene.cluster.uncordon("win-2")
    theirs = scene.cluster.node("win-2")
    assert theirs is not None and theirs.unschedulable


def test_a_drain_evicts_what_it_may_and_names_what_stays(scene: Scene) -> None:
    pods = "/api/v1/namespaces/default/pods"

    def pod(name: str, **metadata: Any) -> None:
        body = {
            "metadata": {"name": name, "labels": {"app": name}, **metadata},
            "spec": {"nodeName": "win-1", "containers": []},
        }
        scene.admin("POST", pods, body)

    pod("web")
    pod("kept")
    pod("agent", ownerReferences=[{"kind": "DaemonSet", "name": "a", "apiVersion": "apps/v1", "uid": "1"}])
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    scene.admin("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)

    drained = scene.cluster.drain("win-1", timeout=0.3, wait=at_once)

    assert drained.evicted == ("default/web",)
    assert [name for name, _ in drained.left] == ["default/kept"]
    assert drained.left[0][1].endswith("The disruption budget b needs 1 healthy pods and has 1 currently")


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        (DrainRules(unmanaged=False), {"default/alone": "no controller re-creates the pod"}),
        (DrainRules(emptydir=False), {"default/scratch": "--delete-emptydir-data allows this"}),
        (DrainRules(), {}),
    ],
)
def test_nothing_is_evicted_where_the_rules_keep_one_pod(
    scene: Scene, rules: DrainRules, left: dict[str, str]
) -> None:
    """As kubectl drain does it: before the first eviction."""
    pods = "/api/v1/namespaces/default/pods"
    owner = {"kind": "ReplicaSet", "name": "r", "apiVersion": "apps/v1", "uid": "1", "controller": True}
    for name, owners, volumes in (
        ("alone", [], []),
        ("scratch", [owner], [{"name": "tmp", "emptyDir": {}}]),
        ("web", [owner], []),
    ):
        body = {
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {"nodeName": "win-1", "containers": [], "volumes": volumes},
        }
        scene.admin("POST", pods, body)

    drained = scene.cluster.drain("win-1", timeout=0.3, wait=at_once, rules=rules)

    assert [name for name, _ in drained.left] == list(left)
    assert all(left[name] in why for name, why in drained.left)
    assert len(drained.evicted) == (0 if left else 3)


@pytest.mark.parametrize(
    ("status", "runs"),
    [
        ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, True),
        ({"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "Crash"}}}]}, False),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, True),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 1}}}]}, False),
        ({"phase": "Pending"}, False),
        ({"phase": "Running"}, True),
    ],
    ids=["runs", "crashes", "an init container", "has ended", "has not begun", "nobody says"],
)
def test_whether_a_container_runs_is_what_its_kubelet_said_of_every_pod(
    scene: Scene, status: dict[str, Any], runs: bool
) -> None:
    """A pod of a DaemonSet too, which a drain leaves."""
    owner = {"kind": "DaemonSet", "name": "a", "apiVersion": "apps/v1", "uid": "1"}
    told = [
        {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, **one}
        for one in status.get("containerStatuses", status.get("initContainerStatuses", []))
    ]
    key = next((one for one in status if one.endswith("Statuses")), "containerStatuses")
    body = {
        "metadata": {"name": "web", "ownerReferences": [owner]},
        "spec": {"nodeName": "win-1", "containers": []},
        "status": {**status, key: told},
    }
    scene.admin("POST", "/api/v1/namespaces/default/pods", body)

    assert scene.cluster.runs_containers("win-1") is runs
    assert not scene.cluster.runs_containers("win-2")


def test_images_are_those_of_all_pods_that_have_not_ended(scene: Scene) -> None:
    for name, phase, images in (("a", "Running", "xy"), ("b", "Pending", "xz"), ("c", "Succeeded", "w")):
        init, *containers = ({"name": one, "image": one} for one in images)
        body = {
            "metadata": {"name": name},
            "spec": {"nodeName": "win-1", "initContainers": [init], "containers": containers},
            "status": {"phase": phase},
        }
        scene.admin("POST", "/api/v1/namespaces/default/pods", body)

    assert scene.cluster.images("win-1") == ["x", "y", "z"]
    assert scene.cluster.images("win-2") == []


def test_a_missing_right_names_the_binding_that_would_give_it(tmp_path: Path) -> None:
    bare = LabCluster(ClusterPlan(grant_nodes=False))
    needs = {
        "kube-proxy": [Need("list", "endpointslices", "discovery.k8s.io")],
        "flanneld": [Need("get", "services")],
    }
    with ClusterServer(bare) as server:
        path = tmp_path / "admin.conf"
        server.write_admin_kubeconfig(path)
        with connect(path) as cluster:
            missing = cluster.missing_rights(needs, "system:node:win-1", ["system:nodes"])

    assert [(m.program, str(m.need), m.binding) for m in missing] == [
        ("kube-proxy", "list endpointslices.discovery.k8s.io", "winboot:node-proxier")
    ]


def test_flannels_configuration_is_read(scene: Scene) -> None:
    conf = read(scene.cluster)

    assert conf is not None
    assert (conf.place, conf.network, conf.backend) == (
        "kube-flannel/kube-flannel-cfg",
        "10.244.0.0/16",
        "host-gw",
    )


def test_daemon_sets_for_any_system_are_named(scene: Scene) -> None:
    def daemon_set(name: str, **spec: Any) -> None:
        body = {
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}], **spec}},
            },
        }
        scene.admin("POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", body)

    daemon_set("proxy", nodeSelector={"kubernetes.io/os": "linux"})
    daemon_set("logs")

    assert scene.cluster.unselective_daemon_sets() == ("kube-system/logs",)


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({}, False),
        ({"securityContext": {"windowsOptions": {"hostProcess": True}}}, True),
        ({"initContainers": [{"name": "i", "image": "i", "securityContext": {"privileged": True}}]}, True),
        ({"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": False}}]}, False),
        (
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "securityContext": {"windowsOptions": {"hostProcess": True}},
                    }
                ]
            },
            True,
        ),
    ],
)
def test_a_privileged_daemon_set_shows_that_the_api_server_allows_it(
    scene: Scene, spec: dict[str, Any], shown: bool
) -> None:
    pod = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"kubernetes.io/os": "linux"}, **spec}
    body = {
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {"spec": pod}},
    }
    scene.admin("POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", body)

    assert scene.cluster.has_privileged_daemon_sets() is shown


def test_the_config_maps_that_kube_proxy_on_windows_mounts_are_named(scene: Scene) -> None:
    pod = {
        "containers": [{"name": "c", "image": "i"}],
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "volumes": [
            {"name": "config", "configMap": {"name": "kube-proxy"}},
            {"name": "scratch", "emptyDir": {}},
        ],
    }
    for name in ("kube-proxy-windows", "logs-windows"):
        spec = {"selector": {"matchLabels": {"app": name}}, "template": {"spec": pod}}
        body = {"metadata": {"name": name}, "spec": spec}
        scene.admin("POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", body)

    assert scene.cluster.windows_kube_proxy_configs() == (
        ("kube-system/kube-proxy-windows", "kube-system/kube-proxy"),
    )


def test_a_silent_server_is_unreachable_and_worth_another_try(scene: Scene) -> None:
    scene.lab.faults.unreachable = True

    with (
        LightkubeCluster(scene.kubeconfig, patience=Patience(0.2, 0.2)) as cluster,
        pytest.raises(ClusterUnreachable, match="does not answer") as caught,
    ):
        cluster.node("win-1")
    assert caught.value.worth_retrying


def test_a_user_without_rights_is_refused_with_verb_and_resource(scene: Scene, tmp_path: Path) -> None:
    config = json.loads(scene.kubeconfig.read_text())
    token = scene.cluster.mint_token(node="x", lifetime=timedelta(hours=1))
    config["users"][0]["user"] = {"token": token.value.reveal()}
    other = tmp_path / "weak.conf"
    other.write_text(json.dumps(config))

    with connect(other) as weak, pytest.raises(ClusterRefused, match="cannot list resource") as caught:
        weak.nodes()
    assert caught.value.exit_code == 77


def test_another_clusters_certificate_is_named_as_such(scene: Scene, tmp_path: Path) -> None:
    config = json.loads(scene.kubeconfig.read_text())
    stranger = LabCluster().authority.pem
    config["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(
        stranger.encode()
    ).decode()
    other = tmp_path / "wrong-ca.conf"
    other.write_text(json.dumps(config))

    with connect(other) as cluster, pytest.raises(ClusterError, match="not signed by the kubeconfig's CA"):
        cluster.version()


@pytest.mark.parametrize("text", ["", "clusters: [", "{}", '{"clusters": [], "contexts": []}'])
def test_a_broken_kubeconfig_is_an_error_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.conf"
    path.write_text(text)

    with pytest.raises(InvalidInput, match=r"broken\.conf"):
        connect(path)


def test_the_annotation_of_one_network_does_not_replace_the_pod_cidrs_of_a_node() -> None:
    annotations = {"k8s.ovn.org/hybrid-overlay-node-subnet": "10.9.0.0/24"}
    node = Node.from_dict(
        {"metadata": {"name": "win-1", "annotations": annotations}, "spec": {"podCIDR": "10.244.1.0/24"}}
    )

    facts = node_facts(node)

    assert (facts.pod_cidrs, facts.annotations) == (("10.244.1.0/24",), annotations)

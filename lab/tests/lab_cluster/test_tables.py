"""What `kubectl get` shows of the lab: the API server's own columns, ages and short names."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster import ClusterServer, LabCluster
from winboot_lab.cluster.cluster import discovery
from winboot_lab.cluster.kinds import CSRS, EVENTS, NODES, PODS, SERVICES
from winboot_lab.cluster.tables import asked_for, since, table

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# What kubectl 1.32 sends (`kubectl get nodes -v=8`).
KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
# k8s.io/apimachinery/pkg/util/duration/duration_test.go, TestHumanDuration.
AGES = [
    (1, "1s"),
    (70, "70s"),
    (190, "3m10s"),
    (20 * 60, "20m"),
    (70 * 60, "70m"),
    (3 * 3600 + 60, "3h1m"),
    (47 * 3600, "47h"),
    (49 * 3600, "2d1h"),
    (63 * 3600, "2d15h"),
    (97 * 86400, "97d"),
]


@pytest.fixture
def server() -> Iterator[ClusterServer]:
    with ClusterServer(LabCluster()) as server:
        yield server


@pytest.mark.parametrize(("seconds", "said"), AGES)
def test_an_age_is_said_as_kubectl_says_it(seconds: int, said: str) -> None:
    assert since((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == said


def _made(thing: dict[str, Any], kind: Any) -> dict[str, str]:
    thing["metadata"] = {
        "name": "a",
        "creationTimestamp": "2026-01-01T11:59:00Z",
        **thing.get("metadata", {}),
    }
    found = table(kind, {"items": [thing], "metadata": {"resourceVersion": "7"}}, NOW)
    assert found["metadata"] == {"resourceVersion": "7"}
    (row,) = found["rows"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    return dict(zip((one["name"] for one in found["columnDefinitions"]), row["cells"], strict=True))


@pytest.mark.parametrize(
    ("ready", "cordoned", "said"),
    [
        ("True", False, "Ready"),
        ("False", False, "NotReady"),
        ("True", True, "Ready,SchedulingDisabled"),
        ("Unknown", False, "NotReady"),
        (None, False, "Unknown"),
    ],
)
def test_the_status_of_a_node_is_in_the_words_of_kubectl(
    ready: str | None, cordoned: bool, said: str
) -> None:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    node = {
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/os": "windows"}},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.36.5"}},
    }

    row = _made(node, NODES)

    assert (row["Status"], row["Roles"], row["Age"], row["Version"]) == (said, "worker", "60s", "v1.36.5")


def test_pods_requests_services_and_events_have_their_columns() -> None:
    pod = {
        "spec": {"containers": [{"name": "c"}], "nodeName": "win-1"},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"ready": False, "restartCount": 3, "state": {"waiting": {"reason": "Crash"}}}
            ],
        },
    }
    asked = {"spec": {"signerName": "s", "username": "u"}, "status": {"conditions": [{"type": "Approved"}]}}
    service = {"spec": {"clusterIP": "10.96.0.10", "ports": [{"port": 53, "protocol": "UDP"}]}}
    event = {
        "type": "Warning",
        "reason": "R",
        "involvedObject": {"kind": "Node", "name": "n"},
        "message": "m\n",
    }

    row = _made(pod, PODS)
    assert (row["Ready"], row["Status"], row["Restarts"], row["Node"]) == ("0/1", "Crash", "3", "win-1")
    assert _made(asked, CSRS)["Condition"] == "Approved"
    row = _made(service, SERVICES)
    assert (row["Type"], row["Port(s)"]) == ("ClusterIP", "53/UDP")
    row = _made(event, EVENTS)
    assert (row["Object"], row["Message"], row["Last Seen"]) == ("node/n", "m", "60s")


@pytest.mark.parametrize(
    ("accept", "is_one"),
    [
        (KUBECTL, True),
        ("application/json", False),
        ("application/json;as=PartialObjectMetadataList;v=v1", False),
        ("", False),
    ],
)
def test_a_client_that_requests_a_table_gets_one(accept: str, is_one: bool) -> None:
    assert asked_for(accept) is is_one


def test_discovery_has_the_short_names() -> None:
    found = {one["name"]: one.get("shortNames") for one in discovery("/api/v1", "1.36.5")["resources"]}

    assert (found["nodes"], found["namespaces"], found["secrets"]) == (["no"], ["ns"], None)
    (csr,) = discovery("/apis/certificates.k8s.io/v1", "1.36.5")["resources"]
    assert csr["shortNames"] == ["csr"]


def test_lists_objects_and_watches_are_tables(server: ClusterServer, tmp_path: Path) -> None:
    """Over the wire, with the columns once in a watch."""
    context = ssl.create_default_context(cadata=server.cluster.authority.pem)
    pair = server.cluster.admin()
    (tmp_path / "c").write_text(pair.certificate + pair.key, encoding="ascii")
    context.load_cert_chain(tmp_path / "c")

    def got(path: str) -> list[dict[str, Any]]:
        request = urllib.request.Request(server.url + path, headers={"Accept": KUBECTL})
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return [json.loads(line) for line in answer.read().splitlines() if line]

    (listed,) = got("/api/v1/nodes")
    assert (listed["kind"], listed["columnDefinitions"][1]["name"]) == ("Table", "Status")
    (one,) = got("/api/v1/nodes/control-plane?includeObject=Object")
    assert one["rows"][0]["object"]["kind"] == "Node"
    seen = got("/api/v1/namespaces?watch=true&timeoutSeconds=1")
    assert [event["object"]["kind"] for event in seen] == ["Table"] * len(seen)
    assert [bool(event["object"]["columnDefinitions"]) for event in seen] == [
        True,
        *[False] * (len(seen) - 1),
    ]


@pytest.mark.check
def test_a_real_kubectl_shows_the_usual_columns(server: ClusterServer, tmp_path: Path) -> None:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed (Debian package kubernetes-client)")
    server.write_admin_kubeconfig(tmp_path / "admin.conf")

    def shown(*words: str) -> list[str]:
        command = [
            program,
            "--kubeconfig",
            str(tmp_path / "admin.conf"),
            "--cache-dir",
            str(tmp_path),
            "get",
            *words,
        ]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return [" ".join(line.split()) for line in ended.stdout.splitlines()]

    assert shown("no")[0] == "NAME STATUS ROLES AGE VERSION"
    assert shown("no")[1].startswith("control-plane Ready control-plane ")
    assert shown("svc", "-A")[0] == "NAMESPACE NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE"
    assert "kube-system Active" in "\n".join(shown("ns"))

"""The lab's API over TLS, through a client library that knows nothing of the lab."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Node, ServiceAccountToken
from lightkube.types import PatchType
from winboot_lab.cluster import ClusterServer, LabCluster


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ClusterServer]:
    with ClusterServer(LabCluster()) as server:
        server.write_admin_kubeconfig(tmp_path / "admin.conf")
        yield server


@pytest.fixture
def client(server: ClusterServer, tmp_path: Path) -> Iterator[Client]:
    with Client(KubeConfig.from_file(tmp_path / "admin.conf")) as client:
        yield client


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=dict(data))


def test_objects_are_made_changed_and_removed(client: Client) -> None:
    client.create(config_map("a", x="1"))
    client.patch(ConfigMap, "a", {"data": {"y": "2"}}, namespace="default", patch_type=PatchType.MERGE)

    changed = client.get(ConfigMap, "a", namespace="default")
    client.delete(ConfigMap, "a", namespace="default")

    assert changed.data == {"x": "1", "y": "2"}
    with pytest.raises(ApiError) as caught:
        client.get(ConfigMap, "a", namespace="default")
    assert caught.value.status.reason == "NotFound"


def test_a_watch_shows_what_is_and_what_comes(client: Client) -> None:
    client.create(config_map("a"))
    seen: list[tuple[str, str]] = []

    def follow() -> None:
        for kind, found in client.watch(ConfigMap, namespace="default", server_timeout=20):
            assert found.metadata is not None
            seen.append((kind, found.metadata.name or ""))
            if len(seen) == 2:
                client.create(config_map("b"))
            if kind == "DELETED":
                return

    thread = threading.Thread(target=follow)
    thread.start()
    client_waits = threading.Event()
    while len(seen) < 3 and thread.is_alive():
        client_waits.wait(0.02)
    client.delete(ConfigMap, "a", namespace="default")
    thread.join(10)

    assert seen == [("ADDED", "a"), ("ADDED", "kube-root-ca.crt"), ("ADDED", "b"), ("DELETED", "a")]


def test_nodes_are_found_by_label(client: Client) -> None:
    found = [n.metadata.name for n in client.list(Node, labels={"kubernetes.io/os": "linux"}) if n.metadata]

    assert found == ["control-plane"]


def test_an_administrator_may_mint_a_service_account_token(client: Client) -> None:
    wanted = ServiceAccountToken(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[]))
    made = client.create(wanted, "flannel", namespace="kube-flannel")

    assert made.status is not None and made.status.token.count(".") == 2


def test_a_client_without_credentials_is_anonymous(server: ClusterServer, tmp_path: Path) -> None:
    config = KubeConfig.from_file(tmp_path / "admin.conf")
    user = config.users["lab"]
    user.client_cert_data = user.client_key_data = None

    with Client(config) as nobody, pytest.raises(ApiError) as caught:
        nobody.get(Node, "control-plane")

    assert caught.value.status.code == 403
    assert "system:anonymous" in (caught.value.status.message or "")


def test_closing_the_server_ends_open_watches(tmp_path: Path) -> None:
    with ClusterServer(LabCluster()) as server:
        server.write_admin_kubeconfig(tmp_path / "admin.conf")
        client = Client(KubeConfig.from_file(tmp_path / "admin.conf"))
        events = client.watch(Node)
        assert next(iter(events))[0] == "ADDED"

    client.close()
    assert not any(t.name == "lab-cluster" for t in threading.enumerate())

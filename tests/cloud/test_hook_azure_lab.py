"""The story of a scale set with machines of the lab behind its instances: joined over WinRM, drained at a scheduled event.

ARM is the stand-in behind TLS; the metadata service is reached by the machines alone, as in Azure.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.cli.staging import stage
from winboot_lab.cluster.identity import user
from winboot_lab.up import Lab, NodePlan
from winboot_lab.windows.sockets import Request, Response

from tests.cloud.azure_arm import SUBSCRIPTION, Arm
from tests.cloud.azure_fixtures import an_arm, an_azure
from tests.cloud.test_hook_azure import NOTICE, written
from winboot.cli.targets import run_context
from winboot.config.annotations import EVENTS
from winboot.node.run import Patience, Quiet, Stop
from winboot.operations.hook import Settings, Worker
from winboot.operations.hook.metrics import Log
from winboot.operations.hook.work import NodeWork
from winboot.operations.join import Options
from winboot.remote.cloud.azure_queue import AzureQueue
from winboot.remote.cloud.metadata import ADDRESS
from winboot.remote.cloud.pool import Pool
from winboot.remote.cluster.claims import Claimant

INVENTORY = {
    "subscription_id": SUBSCRIPTION,
    "profile": "profile.yaml",
    "compose": {"address": "'127.0.0.1'", "port": "tags['winrm-port']"},
    "defaults": {
        "os": "2022",
        "connection": {
            "scheme": "http",
            "auth": "ntlm",
            "user": ".\\Administrator",
            "password": {"env": "WINBOOT_LAB_PASSWORD"},
            "poll_s": 0.05,
        },
    },
}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Arm, str, Worker, Lab]]:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with (
        an_arm(tmp_path) as (arm, certificate),
        Lab(nodes=[NodePlan("win-0", "2022", "10.0.250.10")]) as lab,
        run_context([], Quiet()) as (context, _),
    ):
        staged = stage(lab, tmp_path / "files")
        monkeypatch.setenv(staged.password_variable, staged.password)
        file = tmp_path / "files" / "pool.azure.yaml"
        file.write_text(yaml.safe_dump(INVENTORY), encoding="utf-8")

        def metadata(request: Request) -> Response:
            status, body = arm.metadata(request.method, bytes(request.body).decode())
            return Response(status, body.encode())

        lab.world.serve(ADDRESS, 80, metadata)
        pool = Pool.read(file)
        pool._opened = an_azure(arm, certificate)
        options = Options(ready=60.0, patience=Patience(first=0.5, reconnect=30.0))
        work = NodeWork(pool, context, options, join_timeout=60.0, drain_timeout=5.0, again=0.2)
        azure: Any = pool.provider
        queue = AzureQueue(azure, work, context.connect, context.stop.wait, Log(StringIO()), every=0.2)
        worker = Worker(
            queue=queue,
            work=work,
            claimant=Claimant("worker", lambda: 0.0),
            leases=lambda cluster: cluster.leases("kube-system"),
            stop=Stop(),
            settings=Settings(idle=2.0, heartbeat=5.0),
            log=Log(StringIO()),
        )
        pool_of_azure = arm.add_set("pool", virtualMachineProfile=NOTICE, singlePlacementGroup=True)
        yield arm, pool_of_azure, worker, lab
        azure.close()
        assert not arm.unknown


def start(arm: Arm, lab: Lab, scale_set: str, size: int) -> None:
    """Instances, and a machine of the lab behind each."""
    arm.scale(scale_set, size)
    for one in arm.children(scale_set):
        number = int(one["name"])
        node = lab.add(NodePlan(f"pool{number:06}", "2022", f"10.0.200.{10 + number}"))
        one["tags"] = {"winrm-port": str(node.endpoint.http_port)}
        nic = arm.resources[f"{one['id']}/networkInterfaces/nic".lower()]
        nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] = f"10.0.200.{10 + number}"


def ready(worker: Worker) -> list[str]:
    (cluster,) = {id(one.cluster): one.cluster for one in worker.work.targets()}.values()
    return sorted(one.name for one in cluster.nodes() if one.operating_system == "windows" and one.ready)


@pytest.mark.nightly
def test_a_scale_set_goes_from_0_to_3_to_1_with_machines_of_the_lab(
    scene: tuple[Arm, str, Worker, Lab],
) -> None:
    arm, scale_set, worker, lab = scene
    start(arm, lab, scale_set, 3)
    worker.run()
    assert ready(worker) == ["pool000000", "pool000001", "pool000002"]

    arm.scale_in(scale_set, 1)
    for event in arm.events:
        # What the task \\winboot\\events does; tests/steps/test_azure_events.py runs it.
        name = f"pool{int(event['Resources'][0].rpartition('_')[2]):06}"
        patch = {"metadata": {"annotations": {EVENTS: written(event)}}}
        kind = "application/merge-patch+json"
        kubelet = user(f"system:node:{name}", "system:nodes")
        lab.cluster.request(kubelet, "PATCH", f"/api/v1/nodes/{name}", patch, content_type=kind)
    worker.run()
    assert ready(worker) == ["pool000000"]
    assert len(arm.approved) == 2 and arm.events == []
    assert [one["name"] for one in arm.children(scale_set)] == ["0"]

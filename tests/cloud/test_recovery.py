"""`repair --by reimage|replace`: the order of things, and what is refused before anything is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cloud.azure_arm import Arm
from tests.cloud.azure_fixtures import an_arm, an_azure
from tests.config.scene import a_spec
from tests.join.fakes import FakeCluster, a_node
from winboot.base.errors import (
    CloudError,
    Interrupted,
    LoginRefused,
    NodeFailed,
    NotDone,
    Unreachable,
    UsageError,
)
from winboot.config.node_spec import NodeSpec
from winboot.operations.recovery import ASKS_S, Depth, Means, Recovery, planned, recover
from winboot.remote.cloud.azure import Azure
from winboot.remote.cloud.base import CloudHost, Provider, Query


class Cluster(FakeCluster):
    """A cluster that can lose a Node, too."""

    def delete_node(self, name: str) -> bool:
        self._call("delete_node", name)
        self.node_facts = None
        return True


class Bench:
    """A scale set of two, one of which is the node."""

    def __init__(self, folder: Path, arm: Arm, azure: Azure) -> None:
        self.arm, self.azure = arm, azure
        self.set = arm.add_set("pool", 2)
        host = next(azure.hosts(Query()))
        self.provider_id = azure.identity(host).provider_id
        spec = a_spec(folder)
        self.spec = replace(spec, machine=replace(spec.machine, provider_id=self.provider_id))
        self.cluster = Cluster(node_facts=a_node(provider_id=self.provider_id))
        self.silent = 0
        self.error: Exception = Unreachable("nothing answers")
        self.said: list[str] = []
        self.waits = 0

    def machine_of(self, provider_id: str) -> tuple[Provider, CloudHost]:
        host = self.azure.host(provider_id)
        assert host is not None
        return self.azure, host

    def plan(self, depth: Depth, spec: NodeSpec | None = None) -> Recovery:
        (one,) = planned([spec or self.spec], depth, self.machine_of, lambda spec: self.cluster)  # type: ignore[arg-type, return-value]
        return one

    def recover(self, depth: Depth, *, stop: bool = False, answers_s: float = 60.0) -> None:
        def answers(spec: NodeSpec) -> None:
            if self.silent:
                self.silent -= 1
                raise self.error

        def wait(seconds: float) -> bool:
            self.waits += 1
            return stop

        means = Means(
            self.cluster, answers, wait, lambda node, text: self.said.append(text), answers_s=answers_s
        )  # type: ignore[arg-type]
        recover(self.plan(depth), means)

    @property
    def reimaged(self) -> list[str]:
        return [key.rpartition("/")[2] for key, one in self.arm.resources.items() if one.get("reimaged")]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[[], Bench]]:
    with an_arm(tmp_path) as (arm, certificate):
        azure = an_azure(arm, certificate)
        yield lambda: Bench(tmp_path, arm, azure)
        azure.close()
        assert not arm.unknown


def test_a_reimage_drains_first_and_waits_until_the_machine_answers(bench: Callable[[], Bench]) -> None:
    scene = bench()
    scene.silent = 3
    scene.recover("reimage")
    assert scene.cluster.names == ["cordon", "drain", "delete_node"]
    assert scene.reimaged == ["0"]
    assert scene.waits == 3
    protections = [
        body["properties"]["protectionPolicy"] for path, body in scene.arm.bodies if "properties" in body
    ]
    assert [one["protectFromScaleIn"] for one in protections] == [True, False]


def test_a_replace_leaves_the_set_as_large_as_it_was(bench: Callable[[], Bench]) -> None:
    scene = bench()
    scene.recover("replace")
    assert scene.cluster.names == ["cordon", "drain", "delete_node"]
    assert [one["name"] for one in scene.arm.children(scene.set)] == ["1", "2"]


def test_pods_that_will_not_go_keep_the_machine(bench: Callable[[], Bench]) -> None:
    scene = bench()
    scene.cluster.pods_left = (("shop/cart", "disruption budget"),)
    with pytest.raises(NodeFailed, match="could not drain the node"):
        scene.recover("reimage")
    assert scene.reimaged == []
    assert "delete_node" not in scene.cluster.names


def test_a_reimage_that_azure_gives_up_keeps_the_node_and_takes_the_protection_away(
    bench: Callable[[], Bench],
) -> None:
    scene = bench()
    one = scene.plan("reimage")
    scene.azure.protect(one.host, protected=True)
    scene.azure.protect(one.host, protected=False)
    original = scene.arm._post

    def failing(path: str, body: object) -> object:
        scene.arm.next_error = {"code": "OSProvisioningTimedOut", "message": "too late"}
        return original(path, body)

    scene.arm._post = failing  # type: ignore[assignment, method-assign]
    with pytest.raises(CloudError, match="OSProvisioningTimedOut"):
        scene.recover("reimage")
    assert "delete_node" not in scene.cluster.names
    host = scene.azure.host(scene.provider_id)
    assert host is not None
    assert host.data["protected"] is False


def test_a_machine_that_never_answers_is_named_and_waiting_ends(bench: Callable[[], Bench]) -> None:
    """The clock ends it, and these waits do not move it: there is time for the first ones only."""
    scene = bench()
    scene.silent = 10**9
    with pytest.raises(NodeFailed, match="does not answer") as caught:
        scene.recover("reimage", answers_s=ASKS_S + 0.1)
    assert "winboot join" in caught.value.hint
    assert scene.waits > 0


def test_a_login_that_is_refused_is_not_tried_again(bench: Callable[[], Bench]) -> None:
    scene = bench()
    scene.silent, scene.error = 1000, LoginRefused("no")
    with pytest.raises(NodeFailed, match="does not answer"):
        scene.recover("reimage")
    assert scene.waits == 0


def test_waiting_can_be_stopped(bench: Callable[[], Bench]) -> None:
    scene = bench()
    scene.silent = 1000
    with pytest.raises(Interrupted):
        scene.recover("reimage", stop=True)


def test_the_plan_says_what_is_lost_and_changes_nothing(bench: Callable[[], Bench]) -> None:
    scene = bench()
    one = scene.plan("reimage")
    assert one.steps[0] == "drain the Node"
    assert "all data on it is lost" in one.steps[1]
    assert "virtualMachineScaleSets/pool/virtualMachines/0" in one.steps[1]
    assert one.steps[-1] == "wait until the machine answers, and join it"
    assert scene.cluster.names == []
    assert scene.reimaged == []
    scene.cluster.node_facts = None
    assert len(scene.plan("replace").steps) == 2


def test_what_the_cloud_cannot_do_is_refused_before_anything_is_touched(bench: Callable[[], Bench]) -> None:
    scene = bench()
    identifier = scene.arm.add_machine("win-9", address="10.1.0.9")
    alone = replace(scene.spec, machine=replace(scene.spec.machine, provider_id=f"azure://{identifier}"))
    with pytest.raises(NotDone, match="no group"):
        scene.plan("replace", alone)
    flexible = scene.arm.add_machine("flex_1", address="10.1.0.8", scale_set="flex")
    one = replace(scene.spec, machine=replace(scene.spec.machine, provider_id=f"azure://{flexible}"))
    with pytest.raises(NotDone, match="Flexible"):
        scene.plan("replace", one)
    with pytest.raises(UsageError, match="Flexible"):
        scene.azure.replace(scene.machine_of(f"azure://{flexible}")[1])
    unknown = replace(scene.spec, machine=replace(scene.spec.machine, provider_id=None))
    scene.cluster.node_facts = a_node(provider_id="")
    with pytest.raises(NotDone, match="provider id"):
        scene.plan("reimage", unknown)
    assert scene.cluster.names == []

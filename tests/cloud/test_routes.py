"""`routes: auto | winboot | none`: kops and hand-made clusters without a route controller, whose pods have addresses of
their own in the VPC. The pod CIDR is the Node's, and the route tables are those with the cluster's tag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.aws import CLUSTER_TAG, AwsSite

from tests.cloud.hook_bench import Bench, Tap, a_bench
from tests.cloud.test_hook_adversity import queue
from tests.config.scene import a_spec
from tests.join.fakes import a_node
from winboot.base.errors import CloudRefused, InvalidInput
from winboot.cli.join import _forward
from winboot.config.networks import choose
from winboot.node import cloud_routes
from winboot.remote.cloud.settings import AwsFile
from winboot.remote.cluster.base import NodeFacts

Make = Callable[..., Bench]


@pytest.fixture
def bench(aws: AwsSite) -> Iterator[Make]:
    """A bench whose inventory says this of routes; the VPC's main route table carries the cluster's tag."""
    with ExitStack() as stack:

        def make(**routes: str) -> Bench:
            subnet = aws.network()
            aws.group("pool", subnet)
            (table,) = tables(aws, subnet)
            aws.client("ec2").create_tags(
                Resources=[table["RouteTableId"]], Tags=[{"Key": CLUSTER_TAG, "Value": "owned"}]
            )
            wanted = {"regions": ["eu-west-1"], "cluster": "prod", **routes}
            return stack.enter_context(a_bench(aws.folder, "pool.aws.yaml", **wanted))

        yield make


def tables(aws: AwsSite, subnet: str) -> list[dict[str, Any]]:
    vpc = aws.client("ec2").describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"]
    found: list[dict[str, Any]] = aws.client("ec2").describe_route_tables(
        Filters=[{"Name": "vpc-id", "Values": [vpc]}]
    )["RouteTables"]
    return found


def routes_to(aws: AwsSite, instance: str) -> list[str]:
    return [
        route["DestinationCidrBlock"]
        for table in aws.client("ec2").describe_route_tables()["RouteTables"]
        for route in table["Routes"]
        if route.get("InstanceId") == instance
    ]


def checked(aws: AwsSite, instance: str) -> bool:
    found = aws.client("ec2").describe_instances(InstanceIds=[instance])
    return bool(found["Reservations"][0]["Instances"][0]["SourceDestCheck"])


def joined(aws: AwsSite, made: Bench) -> tuple[str, dict[str, Any]]:
    """A machine that the group starts, brought to Ready: the instance, and what the log says last."""
    aws.scale("pool", 1)
    worker = made.worker(queue(aws, made))
    assert made.drive(worker) == ["continue"]
    (instance,) = aws.states("pool")
    return instance, made.said(worker)[-1]


def test_a_node_of_a_hand_made_cluster_gets_its_route_and_forwards(aws: AwsSite, bench: Make) -> None:
    """The hook adds the route; a second look changes nothing, and `winboot join` restores a changed route."""
    made = bench()
    instance, done = joined(aws, made)

    (node,) = made.nodes()
    assert routes_to(aws, instance) == [node["spec"]["podCIDR"]]
    assert checked(aws, instance) is False
    assert "source/destination check" in done["reason"] and node["spec"]["podCIDR"] in done["reason"]

    work = made.work(Tap())
    (target,) = work.targets()
    assert work._forwarded(target) == ()

    aws.client("ec2").modify_instance_attribute(InstanceId=instance, SourceDestCheck={"Value": True})
    _forward(made.pool, [target.spec], work.context, {target.spec.node.name})
    assert checked(aws, instance) is False
    assert len(work.context.listener.said) == 1  # type: ignore[attr-defined]


def test_what_is_wrong_with_routes_comes_after_the_report(tmp_path: Path) -> None:
    """The nodes are Ready: their report must not be lost to an error of the cloud."""
    file = tmp_path / "pool.aws.yaml"
    file.write_text("nonsense: none\n")
    context: Any = None

    assert isinstance(_forward(file, [], context, set()), InvalidInput)


def test_none_writes_nothing(aws: AwsSite, bench: Make) -> None:
    instance, done = joined(aws, bench(routes="none"))
    assert routes_to(aws, instance) == [] and checked(aws, instance) is True
    assert done["reason"] == ""


class Known:
    """A cluster with one Node."""

    def __init__(self, **facts: Any) -> None:
        self.facts = a_node(**facts)

    def node(self, name: str) -> NodeFacts:
        return self.facts


class Refusing:
    """A cloud that allows nothing."""

    def ensure_forwarding(self, host: Any, pod_cidrs: tuple[str, ...]) -> tuple[str, ...]:
        raise CloudRefused("AWS: UnauthorizedOperation", hint="`winboot cloud policy aws`")


def settled(folder: Path, node: Known, **keys: str) -> tuple[str, ...]:
    """What becomes of a node of flannel host-gw in a cloud that allows nothing."""
    spec = a_spec(folder, profile="network: {cni: flannel, mode: host-gw}")
    file = AwsFile(cluster="prod", **keys)
    host: Any = None
    return cloud_routes.settle(Refusing(), host, spec, node, file)  # type: ignore[arg-type]


def test_the_route_controller_of_the_cluster_is_left_to_its_work(tmp_path: Path) -> None:
    routed = Known(network_reason="RouteCreated")
    assert settled(tmp_path, routed) == ()
    with pytest.raises(CloudRefused):
        settled(tmp_path, routed, routes="winboot")
    assert cloud_routes.somebody_routes(a_node(network_reason="FlannelIsUp")) is False


def test_auto_says_what_it_may_not_do_and_winboot_fails(tmp_path: Path) -> None:
    (said,) = settled(tmp_path, Known())
    assert "UnauthorizedOperation" in said and "winboot cloud policy aws" in said
    with pytest.raises(CloudRefused):
        settled(tmp_path, Known(), routes="winboot")
    (none,) = settled(tmp_path, Known(pod_cidrs=()))
    assert "no pod CIDR" in none


@pytest.mark.parametrize(
    ("cni", "mode", "keys", "may"),
    [
        ("flannel", "host-gw", {"cluster": "prod"}, True),
        ("flannel", "host-gw", {}, False),
        ("flannel", "host-gw", {"routes": "winboot"}, True),
        ("flannel", "vxlan", {"cluster": "prod", "routes": "winboot"}, False),
        ("win-bridge", None, {"cluster": "prod", "routes": "none"}, False),
    ],
    ids=["auto", "auto without a cluster", "winboot", "overlay", "none"],
)
def test_the_roles_that_may_write_routes(cni: str, mode: str | None, keys: dict[str, str], may: bool) -> None:
    assert cloud_routes.may_write(choose(cni, mode), AwsFile(**keys)) is may

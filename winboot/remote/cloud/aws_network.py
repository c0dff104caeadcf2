"""What a VPC does with the packets of pods: the source/destination check of an instance, and routes to its pods.

cloud-provider-aws makes both where its route controller runs (pkg/providers/v1/aws_routes.go): winboot changes them only
for `routes: winboot`.
"""

from __future__ import annotations

from typing import Any, Final

from winboot.base.errors import UsageError
from winboot.remote.cloud.aws_calls import Calls, translated
from winboot.remote.cloud.base import CloudHost, Forwarding, PodRoute

_NETWORK_CARD: Final = ("InstanceId", "NetworkInterfaceId", "GatewayId", "NatGatewayId", "TransitGatewayId")


class AwsNetwork:
    """Forwarding in the VPC of one cluster. Its route tables carry the tag kubernetes.io/cluster/NAME."""

    def __init__(self, calls: Calls, cluster: str) -> None:
        self._calls = calls
        self._cluster = cluster

    def look(self, host: CloudHost, pod_cidrs: tuple[str, ...]) -> Forwarding:
        """As it is now."""
        routes = tuple(
            _route(table["RouteTableId"], route)
            for table in self._tables(host)
            for route in table.get("Routes", [])
            if route.get("DestinationCidrBlock", "") in pod_cidrs
        )
        return Forwarding(forwards=host.data.get("source_dest_check") is False, routes=routes)

    def ensure(self, host: CloudHost, pod_cidrs: tuple[str, ...]) -> tuple[str, ...]:
        """Make it forward; a sentence for each change, and for routes that no table of the cluster can take.

        Only tables that are tagged as the cluster's are written.
        """
        if not self._cluster:
            raise UsageError(
                "routes: winboot needs the cluster's name",
                hint="Set `cluster: NAME`, the NAME of the tag kubernetes.io/cluster/NAME on the route tables.",
            )
        said = [] if host.data.get("source_dest_check") is False else [self._forward(host)]
        ec2 = self._calls.client("ec2", host.region)
        tables = self._tables(host)
        if pod_cidrs and not tables:
            said.append(
                f"no route to {', '.join(pod_cidrs)} made: no route table of {host.data.get('vpc_id')} has the tag "
                f"kubernetes.io/cluster/{self._cluster}"
            )
        for table in tables:
            known = {route.get("DestinationCidrBlock"): route for route in table.get("Routes", [])}
            for cidr in pod_cidrs:
                there = known.get(cidr)
                wanted: Any = {
                    "RouteTableId": table["RouteTableId"],
                    "DestinationCidrBlock": cidr,
                    "InstanceId": host.id,
                }
                if there is None:
                    with translated(f"making the route to {cidr}"):
                        ec2.create_route(**wanted)
                    said.append(f"route {cidr} to {host.id} made in {table['RouteTableId']}")
                elif there.get("InstanceId") != host.id or there.get("State") == "blackhole":
                    with translated(f"replacing the route to {cidr}"):
                        ec2.replace_route(**wanted)
                    said.append(f"route {cidr} in {table['RouteTableId']} points to {host.id} now")
        return tuple(said)

    def _forward(self, host: CloudHost) -> str:
        with translated(f"switching off the source/destination check of {host.id}"):
            self._calls.client("ec2", host.region).modify_instance_attribute(
                InstanceId=host.id, SourceDestCheck={"Value": False}
            )
        return f"the source/destination check of {host.id} is off now"

    def _tables(self, host: CloudHost) -> list[Any]:
        filters: Any = [{"Name": "vpc-id", "Values": [host.data.get("vpc_id", "")]}]
        if self._cluster:
            filters.append({"Name": "tag-key", "Values": [f"kubernetes.io/cluster/{self._cluster}"]})
        pages = self._calls.client("ec2", host.region).get_paginator("describe_route_tables")
        with translated("listing route tables"):
            return [table for page in pages.paginate(Filters=filters) for table in page["RouteTables"]]


def _route(table: str, route: Any) -> PodRoute:
    target = next((route[key] for key in _NETWORK_CARD if route.get(key)), "")
    return PodRoute(table, route["DestinationCidrBlock"], target, route.get("State") == "blackhole")

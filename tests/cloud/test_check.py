"""Findings between a node and its cloud: each check says its own thing, and nothing about a node that is right."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.cloud.azure_arm import SUBSCRIPTION
from tests.join.fakes import a_node
from winboot.base.errors import NoSuchHost, UsageError
from winboot.cli import run
from winboot.config.networks import choose
from winboot.node.cloud_check import Sight, findings
from winboot.remote.cloud.azure_policy import ACTIONS, actions
from winboot.remote.cloud.base import CloudHost, Forwarding, NodeIdentity, PodRoute, Provider
from winboot.remote.cloud.lookup import machine_of
from winboot.remote.cloud.metadata import Answer

AZURE_ID = "azure:///subscriptions/s/resourceGroups/pool/providers/Microsoft.Compute/virtualMachines/win-1"
AWS_ID = "aws:///eu-west-1a/i-0abc"
TO_PODS = PodRoute("nodes", "10.244.1.0/24", "10.0.1.11")


def a_sight(provider: str = "azure", **changes: object) -> Sight:
    """A node that is as its cloud sees it."""
    identifier = AZURE_ID if provider == "azure" else AWS_ID
    sight = Sight(
        name="win-1",
        network=choose("flannel", "host-gw"),
        host=CloudHost(
            provider="azure" if provider == "azure" else "aws",
            id=identifier.rpartition("/")[2],
            name="win-1",
            state="running",
            region="westeurope",
            zone="westeurope-1",
            private_ip="10.0.1.11",
            windows=True,
        ),
        identity=NodeIdentity("win-1", identifier, "10.0.1.11", "westeurope", "westeurope-1", "size"),
        # Azure's services write the words of an id in different cases.
        node=a_node(provider_id=identifier.replace("resourceGroups/pool", "resourcegroups/POOL")),
        forwarding=Forwarding(True, (TO_PODS,)),
        metadata=Answer(400),
        clock=timedelta(seconds=2),
    )
    return replace(sight, **changes)  # type: ignore[arg-type]


def ids(sight: Sight) -> list[tuple[str, str]]:
    return [(one.id, one.level) for one in findings(sight)]


@pytest.mark.parametrize("provider", ["aws", "azure"])
def test_a_node_that_is_right_has_no_findings(provider: str) -> None:
    assert ids(a_sight(provider)) == []


def test_a_cluster_that_is_not_asked_is_not_judged() -> None:
    assert ids(a_sight(node=None, forwarding=None, metadata=None, clock=None)) == []


@pytest.mark.parametrize(
    ("provider", "changes", "expected"),
    [
        ("azure", {"host": replace(a_sight().host, state="stopped")}, ("cloud-state", "error")),
        ("azure", {"name": "win-2"}, ("cloud-node-name", "error")),
        ("azure", {"node": a_node(provider_id="")}, ("cloud-provider-id", "warning")),
        ("azure", {"node": a_node(provider_id=AZURE_ID + "0")}, ("cloud-provider-id", "error")),
        ("aws", {"node": a_node(provider_id=AWS_ID.upper())}, ("cloud-provider-id", "error")),
        ("aws", {"metadata": Answer(0, problem="Timeout")}, ("cloud-metadata", "warning")),
        ("aws", {"forwarding": Forwarding(False, (TO_PODS,))}, ("cloud-forwarding", "error")),
        ("azure", {"forwarding": Forwarding(True)}, ("cloud-pod-route", "error")),
        ("aws", {"forwarding": Forwarding(True)}, ("cloud-pod-route", "warning")),
        (
            "aws",
            {"forwarding": Forwarding(True, (replace(TO_PODS, blackhole=True),))},
            ("cloud-pod-route", "error"),
        ),
        (
            "azure",
            {"forwarding": Forwarding(True, (replace(TO_PODS, target="10.0.1.9"),))},
            ("cloud-pod-route", "error"),
        ),
        ("azure", {"clock": timedelta(seconds=-30)}, ("cloud-clock", "warning")),
        ("azure", {"clock": timedelta(minutes=6)}, ("cloud-clock", "error")),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_each_thing_that_is_wrong_is_one_finding(
    provider: str, changes: dict[str, object], expected: tuple[str, str]
) -> None:
    sight = a_sight(provider, **changes)
    assert ids(sight) == [expected]
    (one,) = findings(sight)
    assert one.reason
    assert one.fix
    assert one.nodes == (sight.name,)


def test_the_cloud_does_not_see_the_pods_of_an_overlay() -> None:
    assert ids(a_sight(network=choose("flannel", "vxlan"), forwarding=Forwarding(False))) == []


def test_the_fix_of_a_source_destination_check_names_the_instance() -> None:
    (one,) = findings(a_sight("aws", forwarding=Forwarding(False, (TO_PODS,))))
    assert "--instance-id i-0abc" in one.fix


@pytest.mark.parametrize("text", ["gce://project/zone/name", "aws:///eu-west-1a/vm-7", "azure:///win-1"])
def test_an_id_of_another_cloud_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        machine_of(text)


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("eu-west-1a", "eu-west-1"),
        ("us-west-2-lax-1a", "us-west-2"),
        ("us-gov-east-1b", "us-gov-east-1"),
        ("eusc-de-east-1a", "eusc-de-east-1"),
    ],
)
def test_a_region_is_found_in_the_zone_of_a_provider_id(zone: str, region: str) -> None:
    """Availability Zones, a Local Zone, GovCloud and the European Sovereign Cloud (AWS's list of Regions)."""
    asked: list[dict[str, object]] = []

    class Nothing:
        def host(self, id: str) -> None:
            assert id == "i-0abc"

    def connect(name: str, **settings: object) -> Provider:
        asked.append(settings)
        return Nothing()  # type: ignore[return-value]

    with pytest.raises(NoSuchHost):
        machine_of(f"aws:///{zone}/i-0abc", connect)
    assert asked == [{"regions": (region,)}]


def test_the_azure_policy_is_a_role_that_az_reads(capsys: pytest.CaptureFixture[str]) -> None:
    scope = f"/subscriptions/{SUBSCRIPTION}"
    assert run(["cloud", "policy", "azure", "--scope", scope]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["IsCustom"] is True
    assert told["AssignableScopes"] == [scope]
    assert told["Actions"] == [one.name for one in ACTIONS]
    assert not [name for name in told["Actions"] if "*" in name]


def test_reading_alone_needs_reading_alone() -> None:
    assert actions(("inventory", "check"))
    assert all(name.endswith("/read") for name in actions(("inventory", "check")))


def test_a_check_of_a_group_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.config.scene import an_inventory

    text = "groups: {pool: {profile: profile.yaml, os: '2022', connection: {user: u, password: {env: P}}, hosts: {win-1: {}}}}"
    inventory = an_inventory(tmp_path, text)
    assert run(["cloud", "check", "pool", "-i", str(inventory)]) == 64
    assert "group" in capsys.readouterr().err

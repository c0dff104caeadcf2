"""A group scales out and in by itself: its machines become Ready nodes, and are drained before they go.

EC2, Auto Scaling and SQS are moto's server; behind each instance is a machine of the lab with its own WinRM endpoint, and
the cluster is the lab's. Worker, inventory, join and drain are the product's, over real sockets. What takes minutes runs
in `make fuzz`; tests/cloud/test_hook_adversity.py has the same and more with canned machines.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.aws import AwsSite
from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab, NodePlan

from winboot.cli.targets import run_context
from winboot.node.run import Patience, Quiet, Stop
from winboot.operations.hook import Settings, Worker
from winboot.operations.hook.metrics import Log, MetricsServer
from winboot.operations.hook.work import NodeWork
from winboot.operations.join import Options
from winboot.remote.cloud.pool import Pool
from winboot.remote.cluster.claims import Claimant


@dataclass
class Story:
    """A lab behind the instances of a group, and workers on its queue."""

    aws: AwsSite
    lab: Lab
    pool: Path
    said: list[dict[str, Any]] = field(default_factory=list)
    # How many machines that a group starts from now on never answer.
    dead: int = 0

    def started(self, instance: Any) -> None:
        """What stands behind an instance: a lab machine with its address, reached at the port in its tag."""
        name = f"ip-{instance.private_ip}".replace(".", "-")
        port = 9
        if self.dead:
            self.dead -= 1
        else:
            port = self.lab.add(NodePlan(name, "2022", instance.private_ip)).endpoint.http_port or 9
        instance.add_tags({"winrm-port": str(port)})

    def worker(self, name: str = "worker", **settings: Any) -> Worker:
        """A new process."""
        out = io.StringIO()
        pool = Pool.read(self.pool)
        with run_context([], Quiet()) as (context, _):
            work = NodeWork(
                pool,
                context,
                Options(ready=60.0, patience=Patience(first=0.5, reconnect=30.0)),
                join_timeout=1.0,
                drain_timeout=5.0,
                again=0.2,
            )
        provider: Any = pool.provider
        queue = provider.hooks(self.aws.queue())
        queue._long_poll = 1
        return Worker(
            queue=queue,
            work=work,
            claimant=Claimant(name, time.monotonic, duration=1),
            leases=lambda cluster: cluster.leases("kube-system"),
            stop=Stop(),
            settings=Settings(**{"idle": 4.0, "heartbeat": 0.3, "visibility": 3, **settings}),
            log=Log(out),
        )

    def run(self, worker: Worker) -> list[dict[str, Any]]:
        """Let it work until the queue is quiet; what it logged."""
        worker.run()
        stream: Any = worker.log._stream
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    def nodes(self) -> dict[str, bool]:
        """Windows nodes of the cluster, and whether each is Ready."""
        from winboot.remote.cluster import connect

        with connect(self.pool.parent / "kubeconfig") as cluster:
            return {one.name: one.ready for one in cluster.nodes() if one.operating_system == "windows"}

    def waiting(self) -> int:
        """Messages in the queue, delivered or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.aws.client("sqs").get_queue_attributes(QueueUrl=self.aws.queue(), AttributeNames=names)
        return sum(int(value) for value in found["Attributes"].values())


@pytest.fixture
def story(aws: AwsSite) -> Iterator[Story]:
    folder = aws.folder / "lab"
    with Lab(nodes=[NodePlan("win-0", "2022", "10.0.250.10")]) as lab:
        staged = stage(lab, folder)
        pool = folder / "pool.aws.yaml"
        wanted = {
            "regions": ["eu-west-1"],
            "cluster": "prod",
            "profile": "profile.yaml",
            "compose": {"address": "'127.0.0.1'", "port": "tags['winrm-port']"},
            "defaults": {
                "os": "2022",
                "connection": {
                    "scheme": "http",
                    "auth": "ntlm",
                    "user": ".\\Administrator",
                    "password": {"ec2_key": str(aws.key_file)},
                    "poll_s": 0.05,
                },
            },
        }
        pool.write_text(yaml.safe_dump(wanted), encoding="utf-8")
        assert staged.kubeconfig.exists()
        aws.password = lab.password
        made = Story(aws, lab, pool)
        aws.launched = made.started
        aws.group("pool", aws.network())
        yield made


@pytest.mark.nightly
def test_a_group_scales_from_0_to_3_to_1_without_a_command(story: Story) -> None:
    story.aws.copies = 2  # every message is delivered twice
    story.aws.scale("pool", 3)
    story.run(story.worker())

    assert list(story.aws.states("pool").values()) == ["InService"] * 3
    assert list(story.nodes().values()) == [True] * 3
    assert story.waiting() == 0

    story.aws.scale("pool", 1)
    story.run(story.worker())

    (left,) = story.aws.states("pool")
    described = story.aws.client("ec2").describe_instances(InstanceIds=[left])
    name = described["Reservations"][0]["Instances"][0]["PrivateDnsName"].lower()
    assert story.nodes() == {name: True}
    assert [result for _, result in story.aws.completed] == ["CONTINUE"] * 5
    assert story.waiting() == 0


@pytest.mark.nightly
def test_a_machine_that_never_answers_is_abandoned_with_a_reason(story: Story) -> None:
    story.dead = 1
    story.aws.scale("pool", 1)

    said = story.run(story.worker())

    (done,) = [line for line in said if line["message"] == "done"]
    assert done["result"] == "ABANDON"
    assert "127.0.0.1" in done["reason"] or "refused" in done["reason"]
    assert story.aws.states("pool") == {}
    assert story.aws.heartbeats


def test_another_clusters_machine_is_left_alone(story: Story) -> None:
    story.aws.group("theirs", story.aws.network(), cluster="kubernetes.io/cluster/other")
    story.aws.scale("theirs", 1)

    # It stays in the queue, where it comes again after its visibility timeout.
    said = story.run(story.worker(visibility=60, idle=0.5))

    assert any(line["message"].startswith("skipped: the inventory") for line in said)
    assert list(story.aws.states("theirs").values()) == ["Pending:Wait"]
    assert story.aws.completed == [] and story.nodes() == {}
    assert story.waiting() == 1


@pytest.mark.nightly
def test_a_message_that_comes_late_or_says_nothing_is_deleted(story: Story) -> None:
    story.aws.scale("pool", 1)
    (instance,) = story.aws.states("pool")
    story.run(story.worker())
    story.aws.send({"Service": "AWS Auto Scaling", "Event": "autoscaling:TEST_NOTIFICATION"})
    story.aws.send(
        {
            "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING",
            "EC2InstanceId": instance,
            "AutoScalingGroupName": "pool",
            "LifecycleHookName": "launching",
        }
    )

    said = story.run(story.worker())

    assert {"no work in a message", "no lifecycle hook waits for it"} <= {line["message"] for line in said}
    assert story.aws.completed == [(instance, "CONTINUE")]
    assert story.waiting() == 0


@pytest.mark.check
def test_a_started_machine_becomes_a_node_over_winrm_and_the_metrics_say_so(story: Story) -> None:
    """The one join with a machine of the lab that is in every run."""
    from urllib.request import urlopen

    worker = story.worker(idle=0.5)
    story.aws.scale("pool", 1)
    story.run(worker)
    assert list(story.aws.states("pool").values()) == ["InService"]
    assert list(story.nodes().values()) == [True]
    with MetricsServer(worker.metrics, lambda: worker.healthy, address="127.0.0.1", port=0) as server:
        text = urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5).read().decode()
        health = urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=5)

    assert 'winboot_hook_messages_total{kind="launch",outcome="continue"} 1.0' in text
    assert health.status == 200


class Broken(io.StringIO):
    """The pipe to a log that has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_log_without_a_reader_ends_no_work() -> None:
    Log(Broken())("joined", node="n1")

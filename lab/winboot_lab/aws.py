"""AWS on loopback: moto's server, with what it lacks of lifecycle hooks and Windows passwords added to its own classes.

Added, after the API reference of Auto Scaling and EC2: instances of a group with hooks wait in Pending:Wait and
Terminating:Wait and a message says so; CompleteLifecycleAction and RecordLifecycleActionHeartbeat; GetPasswordData gives
what the key pair encrypts. `tests/cloud/test_aws_site.py` holds that each addition works, so that a new moto that renames
its insides fails there.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from moto.autoscaling.models import FakeAutoScalingGroup
from moto.autoscaling.responses import AutoScalingResponse
from moto.core import DEFAULT_ACCOUNT_ID  # type: ignore[attr-defined]
from moto.core.responses import EmptyResult
from moto.ec2.models import amis
from moto.ec2.models.windows import WindowsBackend
from moto.moto_api._internal import moto_api_backend  # type: ignore[attr-defined]
from moto.server import ThreadedMotoServer

REGION = "eu-west-1"
CLUSTER_TAG = "kubernetes.io/cluster/prod"
LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


@dataclass
class AwsSite:
    """The stand-in of one test: clients, what a group did, and switches for faults."""

    endpoint: str
    folder: Path
    key: rsa.RSAPrivateKey
    # (instance, result) in the order they were completed, and the instances that a heartbeat came for.
    completed: list[tuple[str, str]] = field(default_factory=list)
    heartbeats: list[str] = field(default_factory=list)
    # Instances whose Windows has not set its password yet, and what the others answer.
    booting: set[str] = field(default_factory=set)
    password: str = "the password of EC2"
    launched: Callable[[Any], None] = lambda instance: None
    envelope: Callable[[dict[str, Any]], dict[str, Any]] = lambda message: message
    copies: int = 1
    clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A client of the test's own, which no recorder sees."""
        if service not in self.clients:
            self.clients[service] = boto3.session.Session().client(
                service, region_name=REGION, endpoint_url=self.endpoint
            )
        return self.clients[service]

    @property
    def key_file(self) -> Path:
        """The key pair's private key as AWS hands it out."""
        path = self.folder / "pair.pem"
        path.write_bytes(
            self.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        )
        return path

    def queue(self) -> str:
        """The URL of the queue that hooks write to."""
        url: str = self.client("sqs").create_queue(QueueName="hooks", Attributes={"VisibilityTimeout": "30"})[
            "QueueUrl"
        ]
        return url

    def network(self) -> str:
        """A subnet in a VPC; machines get its addresses."""
        ec2 = self.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet: str = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZone=f"{REGION}a")[
            "Subnet"
        ]["SubnetId"]
        return subnet

    def instance(self, subnet: str = "", *, windows: bool = True, **tags: str) -> dict[str, Any]:
        """Start one instance; `tags` use `_` for `/` in the cluster's tag only by the keyword `cluster`."""
        given = {(CLUSTER_TAG if key == "cluster" else key): value for key, value in tags.items()}
        ec2 = self.client("ec2")
        started = ec2.run_instances(
            ImageId=image(windows=windows),
            MinCount=1,
            MaxCount=1,
            InstanceType="m5.large",
            **({"SubnetId": subnet} if subnet else {}),
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in given.items()]}
            ],
        )
        made: dict[str, Any] = started["Instances"][0]
        return made

    def group(self, name: str, subnet: str, *, cluster: str = CLUSTER_TAG, hooks: bool = True) -> None:
        """An empty Auto Scaling group of Windows machines, with a hook at each end."""
        ec2, scaling = self.client("ec2"), self.client("autoscaling")
        data = {"ImageId": image(), "InstanceType": "m5.large", "KeyName": "pair"}
        ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=0,
            MaxSize=10,
            DesiredCapacity=0,
            VPCZoneIdentifier=subnet,
            LaunchTemplate={"LaunchTemplateName": name},
            Tags=[
                {
                    "Key": cluster,
                    "Value": "owned",
                    "PropagateAtLaunch": True,
                    "ResourceId": name,
                    "ResourceType": "auto-scaling-group",
                }
            ],
        )
        for transition in (LAUNCHING, TERMINATING) if hooks else ():
            scaling.put_lifecycle_hook(
                LifecycleHookName=transition.rpartition("_")[2].lower(),
                AutoScalingGroupName=name,
                LifecycleTransition=transition,
                HeartbeatTimeout=300,
            )

    def scale(self, group: str, size: int) -> None:
        """What an autoscaler asks for."""
        self.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=size)

    def states(self, group: str) -> dict[str, str]:
        """Instance → lifecycle state."""
        found = self.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
        return {
            one["InstanceId"]: one["LifecycleState"] for one in found["AutoScalingGroups"][0]["Instances"]
        }

    def send(self, message: dict[str, Any]) -> None:
        """Put a message into the queue as a hook would, as often as the test says."""
        for _ in range(self.copies):
            self.client("sqs").send_message(
                QueueUrl=self.queue(), MessageBody=json.dumps(self.envelope(message))
            )

    # What moto calls back.

    def hook(self, group: Any, instance: str, transition: str) -> bool:
        """Write the message of a transition; False where the group has no such hook."""
        hooks = hooks_of(group, transition)
        for one in hooks:
            self.send(
                {
                    "Origin": "EC2",
                    "Service": "AWS Auto Scaling",
                    "LifecycleHookName": one.name,
                    "AccountId": DEFAULT_ACCOUNT_ID,
                    "AutoScalingGroupName": group.name,
                    "LifecycleActionToken": str(uuid.uuid4()),
                    "EC2InstanceId": instance,
                    "LifecycleTransition": transition,
                    "Time": "2026-01-01T00:00:00Z",
                }
            )
        return bool(hooks)


def hooks_of(group: Any, transition: str) -> list[Any]:
    """The hooks of a group, by moto's backend."""
    known = group.autoscaling_backend.describe_lifecycle_hooks(group.name)
    return [one for one in known if one.lifecycle_transition == transition]


# moto's catalogue takes seconds to load for each test; these two of it are all that is needed.
IMAGES: dict[bool, Any] = {
    windows: next(one for one in amis.AMIS if (one.get("platform") == "windows") is windows)
    for windows in (True, False)
}


def image(*, windows: bool = True) -> str:
    """The id of an image."""
    return str(IMAGES[windows]["ami_id"])


@contextmanager
def gaps_closed(site: AwsSite) -> Iterator[None]:
    """moto with the additions, for as long as the test runs."""
    plain_launch = FakeAutoScalingGroup.replace_autoscaling_group_instances
    plain_set = FakeAutoScalingGroup.set_desired_capacity

    def launch(group: Any, count: int, tags: dict[str, str]) -> None:
        before = {state.instance.id for state in group.instance_states}
        plain_launch(group, count, tags)
        for state in group.instance_states:
            if state.instance.id not in before:
                site.launched(state.instance)
                if site.hook(group, state.instance.id, LAUNCHING):
                    state.lifecycle_state = "Pending:Wait"

    def set_capacity(group: Any, size: int | None) -> None:
        """A group that shrinks: the machines wait for their hooks, oldest first."""
        leaving = [s for s in group.instance_states if s.lifecycle_state.startswith("Terminating")]
        staying = [s for s in group.instance_states if s not in leaving]
        if size is None or size >= len(staying) or not hooks_of(group, TERMINATING):
            plain_set(group, size)
            return
        group.desired_capacity = size
        for state in staying[: len(staying) - size]:
            state.lifecycle_state = "Terminating:Wait"
            site.hook(group, state.instance.id, TERMINATING)

    def complete(response: Any) -> EmptyResult:
        instance, result = response._get_param("InstanceId"), response._get_param("LifecycleActionResult")
        group, state = state_of(response, instance)
        if state is None or not state.lifecycle_state.endswith(":Wait"):
            raise validation_error("No active Lifecycle Action found with instance ID " + instance)
        site.completed.append((instance, result))
        if state.lifecycle_state == "Pending:Wait" and result == "CONTINUE":
            state.lifecycle_state = "InService"
        else:
            group.instance_states.remove(state)
            group.autoscaling_backend.ec2_backend.terminate_instances([instance])
        return EmptyResult()

    def heartbeat(response: Any) -> EmptyResult:
        instance = response._get_param("InstanceId")
        _, state = state_of(response, instance)
        if state is None or not state.lifecycle_state.endswith(":Wait"):
            raise validation_error("No active Lifecycle Action found with instance ID " + instance)
        site.heartbeats.append(instance)
        return EmptyResult()

    def password(backend: Any, instance_id: str) -> str:
        if instance_id in site.booting:
            return ""
        sealed = site.key.public_key().encrypt(site.password.encode(), PKCS1v15())
        return base64.b64encode(sealed).decode()

    with (
        patch.object(FakeAutoScalingGroup, "replace_autoscaling_group_instances", launch),
        patch.object(FakeAutoScalingGroup, "set_desired_capacity", set_capacity),
        patch.object(AutoScalingResponse, "complete_lifecycle_action", complete, create=True),
        patch.object(AutoScalingResponse, "record_lifecycle_action_heartbeat", heartbeat, create=True),
        patch.object(WindowsBackend, "get_password_data", password),
    ):
        yield


def state_of(response: Any, instance: str) -> tuple[Any, Any]:
    """moto's group and instance state, or None."""
    group = response.autoscaling_backend.autoscaling_groups[response._get_param("AutoScalingGroupName")]
    return group, next((one for one in group.instance_states if one.instance.id == instance), None)


def validation_error(text: str) -> Exception:
    """What Auto Scaling answers to a completion that comes too late."""
    from moto.autoscaling.exceptions import ValidationError

    return ValidationError(text)


@contextmanager
def serving() -> Iterator[str]:
    """moto's server on loopback; gives its address. It has one account a process, which `aws_site` empties."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    # A line for each request is no news.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def aws_site(folder: Path, endpoint: str) -> Iterator[AwsSite]:
    """An empty account at a server of this process, and the environment that leads to it; both end with the context."""
    with (
        patch.dict(os.environ, environment(endpoint, folder)),
        patch.object(amis, "AMIS", list(IMAGES.values())),
    ):
        moto_api_backend.reset()
        site = AwsSite(endpoint, folder, rsa.generate_private_key(65537, 2048))
        with gaps_closed(site):
            yield site


def environment(endpoint: str, folder: Path) -> dict[str, str]:
    """What leads an AWS SDK to the server and to nothing else."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": str(folder / "no-config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "no-credentials"),
        "WINBOOT_STATE": str(folder / "state"),
        # Its meaning for moto: load no more than AMIS.
        "MOTO_AMIS_PATH": "set",
    }

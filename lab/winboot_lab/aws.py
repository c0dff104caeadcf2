"""AWS on loopback: an account of one test, and what a group of machines does in it.

The server is in moto_gaps.py: with its catalogues it takes three seconds and 140 MiB of every process that imports it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

# moto's only one.
ACCOUNT = "123456789012"
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
    # By instance: the token of the lifecycle action that waits.
    tokens: dict[str, str] = field(default_factory=dict)
    envelope: Callable[[dict[str, Any]], dict[str, Any]] = lambda message: message
    copies: int = 1
    clients: dict[str, Any] = field(default_factory=dict)
    # The ids of an image with Windows (True) and of one without.
    images: dict[bool, str] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A client of the test's own, which no recorder sees."""
        import boto3

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
            ImageId=self.images[windows],
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
        data = {"ImageId": self.images[True], "InstanceType": "m5.large", "KeyName": "pair"}
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
        token = str(uuid.uuid4())
        if hooks:
            self.tokens[instance] = token
        for one in hooks:
            self.send(
                {
                    "Origin": "EC2",
                    "Service": "AWS Auto Scaling",
                    "LifecycleHookName": one.name,
                    "AccountId": ACCOUNT,
                    "AutoScalingGroupName": group.name,
                    "LifecycleActionToken": token,
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

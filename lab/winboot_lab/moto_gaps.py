"""AWS on loopback: moto's server, with what it lacks of lifecycle hooks and Windows passwords added to its own classes.

The additions follow the API reference of Auto Scaling and EC2. Instances of a group with hooks wait in Pending:Wait and
Terminating:Wait, and a message announces it. CompleteLifecycleAction and RecordLifecycleActionHeartbeat work.
GetPasswordData returns the password that the key pair encrypts. `tests/cloud/test_aws_site.py` checks each addition, so
that a new moto that renames its insides fails there.
"""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import FakeAutoScalingGroup
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import EmptyResult
from moto.ec2.models import amis, instance_types
from moto.ec2.models.windows import WindowsBackend
from moto.moto_api._internal import moto_api_backend  # type: ignore[attr-defined]
from moto.server import ThreadedMotoServer

from winboot_lab.aws import LAUNCHING, REGION, TERMINATING, AwsSite, environment, hooks_of

# Where a machine is after CONTINUE (Auto Scaling user guide, "Use lifecycle hooks with a warm pool").
AFTER = {"Pending:Wait": "InService", "Warmed:Pending:Wait": "Warmed:Stopped"}

# moto lists the instance types of each region in 50 MiB; keep only this region's.
for of_regions in instance_types.INSTANCE_TYPE_OFFERINGS.values():
    for region in of_regions.keys() - {REGION}:
        del of_regions[region]

# moto's catalogue takes seconds to load for each test; these two of it are all that is needed.
IMAGES: dict[bool, Any] = {
    windows: next(one for one in amis.AMIS if (one.get("platform") == "windows") is windows)
    for windows in (True, False)
}


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
        refuse_inactive(site, response, group, state, instance)
        site.completed.append((instance, result))
        site.tokens.pop(instance, None)
        if state.lifecycle_state in AFTER and result == "CONTINUE":
            state.lifecycle_state = AFTER[state.lifecycle_state]
        else:
            group.instance_states.remove(state)
            group.autoscaling_backend.ec2_backend.terminate_instances([instance])
        return EmptyResult()

    def heartbeat(response: Any) -> EmptyResult:
        instance = response._get_param("InstanceId")
        group, state = state_of(response, instance)
        refuse_inactive(site, response, group, state, instance)
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


def refuse_inactive(site: AwsSite, response: Any, group: Any, state: Any, instance: str) -> None:
    """An answer counts only for a hook of this name and transition, and for the token of the action that waits (Auto Scaling
    API reference, CompleteLifecycleAction)."""
    waits = state.lifecycle_state if state is not None else ""
    transition = TERMINATING if "Terminating" in waits else LAUNCHING
    names = [one.name for one in hooks_of(group, transition)]
    token, active = response._get_param("LifecycleActionToken"), site.tokens.get(instance)
    if (
        not waits.endswith(":Wait")
        or response._get_param("LifecycleHookName") not in names
        or (token is not None and active is not None and token != active)
    ):
        raise validation_error("No active Lifecycle Action found with instance ID " + instance)


def validation_error(text: str) -> Exception:
    """What Auto Scaling answers to a completion that comes too late."""
    return ValidationError(text)


@contextmanager
def emptied() -> Iterator[dict[bool, str]]:
    """moto's account without anything in it, and with two images alone: their ids, by whether they have Windows."""
    with patch.object(amis, "AMIS", list(IMAGES.values())):
        moto_api_backend.reset()
        yield {windows: str(one["ami_id"]) for windows, one in IMAGES.items()}


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
    with patch.dict(os.environ, environment(endpoint, folder)), emptied() as images:
        site = AwsSite(endpoint, folder, rsa.generate_private_key(65537, 2048), images=images)
        with gaps_closed(site):
            yield site

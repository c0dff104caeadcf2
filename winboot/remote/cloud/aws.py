"""AWS: EC2 instances as hosts, their identity in a cluster, and what winboot may do to them."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from winboot.base.errors import CloudError, InvalidInput, UsageError
from winboot.base.secret import Secret
from winboot.config.inventory.cloud_name import ProviderName
from winboot.remote.cloud.aws_calls import Calls, translated
from winboot.remote.cloud.aws_hooks import AwsHooks
from winboot.remote.cloud.aws_network import AwsNetwork
from winboot.remote.cloud.base import (
    CloudHost,
    Forwarding,
    HookQueue,
    Lifecycle,
    NodeIdentity,
    Query,
    State,
    Wait,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

# EC2's words for states, on winboot's list (EC2 API, InstanceState).
_STATES: Final[dict[str, State]] = {
    "pending": "pending",
    "running": "running",
    "shutting-down": "stopping",
    "stopping": "stopping",
    "stopped": "stopped",
    "terminated": "terminated",
}
_GROUP_TAG: Final = "aws:autoscaling:groupName"
_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# An instance whose type has no newest output (EC2 API, GetConsoleOutput, "Latest").
_NO_LATEST: Final = ("UnsupportedOperation", "InvalidParameterValue", "InvalidParameterCombination")
_PASSWORD_POLL_S: Final = 15.0
# A page has at most 1000 instances.
PAGE: Final = 500


def connect(*, regions: tuple[str, ...] = (), profile: str | None = None, cluster: str = "") -> AwsCloud:
    """AWS in these regions (none given: the session's). `cluster` is the name in the tag kubernetes.io/cluster/NAME."""
    calls = Calls(profile=profile)
    chosen = tuple(regions) or ((calls.region,) if calls.region else ())
    if not chosen:
        raise UsageError(
            "no AWS region is given", hint="Set `regions: [eu-west-1]` in the file, or AWS_REGION."
        )
    return AwsCloud(calls, chosen, cluster)


class AwsCloud:
    """One account in some regions; see `winboot.remote.cloud.base.Provider`."""

    def __init__(
        self,
        calls: Calls,
        regions: tuple[str, ...],
        cluster: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.calls: Final = calls
        self.regions: Final = regions
        self._network: Final = AwsNetwork(calls, cluster)
        self._account = ""

    @property
    def name(self) -> ProviderName:
        """`aws`."""
        return "aws"

    def account(self) -> str:
        """The profile or access key; no call is made for it."""
        return self.calls.identity()

    def account_id(self) -> str:
        """The number of the account, asked once. STS answers it to anybody without a right (API reference,
        GetCallerIdentity)."""
        if not self._account:
            with translated("reading the account's number"):
                answer = self.calls.client("sts", self.regions[0]).get_caller_identity()
            self._account = str(answer["Account"])
        return self._account

    def console(self, host: CloudHost) -> str:
        """What its serial console shows, or the last 64 KB of it; empty where there is nothing yet. The newest of it is had
        for instances on Nitro alone; else EC2 keeps what was there soon after a start (EC2 API, GetConsoleOutput)."""
        client = self.calls.client("ec2", host.region)
        with translated(f"reading the console of {host.id}"):
            try:
                answer = client.get_console_output(InstanceId=host.id, Latest=True)
            except client.exceptions.ClientError as error:
                if error.response.get("Error", {}).get("Code") not in _NO_LATEST:
                    raise
                answer = client.get_console_output(InstanceId=host.id)
        # botocore has taken it out of its base64 (handlers.decode_console_output).
        return str(answer.get("Output") or "")

    def hosts(self, query: Query) -> Iterator[CloudHost]:
        """The instances of all regions, page after page. Ids go as a filter: one that is gone is not an error then."""
        given = {**query.filters, **({"instance-id": query.ids} if query.ids else {})}
        filters: Any = [{"Name": name, "Values": list(values)} for name, values in given.items()]
        for region in self.regions:
            pages = self.calls.client("ec2", region).get_paginator("describe_instances")
            with translated(f"listing instances in {region}"):
                for page in pages.paginate(Filters=filters, PaginationConfig={"PageSize": PAGE}):
                    for reservation in page["Reservations"]:
                        for instance in reservation["Instances"]:
                            yield host_of(instance, region)

    def host(self, id: str) -> CloudHost | None:
        """One instance, wherever it runs."""
        return next(self.hosts(Query(ids=(id,))), None)

    def identity(self, host: CloudHost) -> NodeIdentity:
        """By the rules of cloud-provider-aws (docs/prerequisites.md; pkg/providers/v1/instances.go).

        The node is named as the instance's private DNS name in the default domain, be it by address or by resource.
        Windows' own name of 15 characters never equals it, so that --hostname-override is always set.
        """
        return NodeIdentity(
            node_name=(host.private_dns or host.id).lower(),
            provider_id=f"aws:///{host.zone}/{host.id}",
            node_ip=host.private_ip,
            region=host.region,
            zone=host.zone,
            instance_type=host.instance_type,
        )

    def password(self, host: CloudHost, key: Path, *, timeout: float, wait: Wait) -> Secret:
        """The password that EC2Launch made, decrypted with the key pair's private key.

        It is empty while Windows starts, for up to 15 minutes (EC2 API, GetPasswordData).
        """
        private, deadline = private_key(key), self._clock() + timeout
        while True:
            with translated(f"reading the password of {host.id}"):
                data = self.calls.client("ec2", host.region).get_password_data(InstanceId=host.id)[
                    "PasswordData"
                ]
            if data.strip():
                return Secret(_decrypted(private, data, key, host))
            left = deadline - self._clock()
            if left <= 0 or wait(min(_PASSWORD_POLL_S, left)):
                raise CloudError(
                    f"{host.id} has no password after {timeout:.0f} s",
                    hint="Its image must let EC2Launch set one at each launch, and the instance needs a key pair.",
                )

    def forwarding(self, host: CloudHost, pod_cidrs: tuple[str, ...]) -> Forwarding:
        """Source/destination check, and the routes to its pods."""
        return self._network.look(host, pod_cidrs)

    def ensure_forwarding(self, host: CloudHost, pod_cidrs: tuple[str, ...]) -> tuple[str, ...]:
        """Check off, one route a pod CIDR in the cluster's route tables."""
        return self._network.ensure(host, pod_cidrs)

    def hooks(self, url: str) -> HookQueue:
        """The queue that lifecycle hooks write to."""
        return AwsHooks(self.calls, url, self.regions[0])

    def lifecycle(self) -> Lifecycle:
        """Replace alone; EC2 has no reimage."""
        return AwsLifecycle(self.calls)


class AwsLifecycle:
    """What an Auto Scaling group can do with one of its instances."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def reimage(self, host: CloudHost) -> None:
        """EC2 cannot: the system disk is the instance."""
        raise UsageError(
            f"{host.id}: EC2 does not reimage instances", hint="`--by replace` starts another instance."
        )

    def replace(self, host: CloudHost) -> None:
        """Terminate it and leave the group's size: the group starts another."""
        self._group(host)
        with translated(f"replacing {host.id}"):
            self._calls.client("autoscaling", host.region).terminate_instance_in_auto_scaling_group(
                InstanceId=host.id, ShouldDecrementDesiredCapacity=False
            )

    def protect(self, host: CloudHost, *, protected: bool) -> None:
        """No command asks for it: an instance that waits for its hook is not a candidate of a scale-in. Only a reimage
        would take one out of a running group, and EC2 has no reimage. So the policy has no right for it."""
        raise UsageError(
            f"{host.id}: winboot does not protect EC2 instances",
            hint="`aws autoscaling set-instance-protection` does.",
        )

    @staticmethod
    def _group(host: CloudHost) -> str:
        if not host.group:
            raise UsageError(
                f"{host.id} is in no Auto Scaling group", hint="No group would start another instance."
            )
        return host.group


def host_of(instance: Mapping[str, Any], region: str) -> CloudHost:
    """Read one instance of DescribeInstances."""
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
    # EC2 leaves Platform out for Linux; PlatformDetails says `Windows with SQL Server …`, too.
    windows = (
        (instance.get("Platform") or instance.get("PlatformDetails") or "").lower().startswith("windows")
    )
    return CloudHost(
        provider="aws",
        id=instance["InstanceId"],
        name=tags.get("Name", ""),
        state=_STATES.get(instance.get("State", {}).get("Name", ""), "unknown"),
        region=region,
        zone=instance.get("Placement", {}).get("AvailabilityZone", ""),
        private_ip=instance.get("PrivateIpAddress", ""),
        windows=windows,
        tags=tags,
        private_dns=instance.get("PrivateDnsName", ""),
        public_ip=instance.get("PublicIpAddress", ""),
        public_dns=instance.get("PublicDnsName", ""),
        instance_type=instance.get("InstanceType", ""),
        image=instance.get("ImageId", ""),
        group=tags.get(_GROUP_TAG, ""),
        launched=instance.get("LaunchTime"),
        # `ec2_tags` since amazon.aws 11.2.0 (plugins/inventory/aws_ec2.py).
        data={
            **cast("dict[str, Any]", _plain(instance)),
            "tags": tags,
            "ec2_tags": tags,
            "region": region,
        },
    )


def _plain(value: Any) -> Any:
    """An answer in Ansible's words: snake case, times as text."""
    match value:
        case Mapping():
            return {snake(key): _plain(one) for key, one in value.items() if key != "UserData"}
        case list() | tuple():
            return [_plain(one) for one in value]
        case str() | int() | float() | bool() | None:
            return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def snake(word: str) -> str:
    """PrivateDnsName → private_dns_name."""
    return _WORD.sub("_", word).lower()


def private_key(path: Path) -> RSAPrivateKey:
    """The private key of a key pair (PEM, not encrypted). Windows instances take RSA keys alone."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"ec2_key: {path} cannot be read as a private key ({error})",
            hint="Use an unencrypted PEM file.",
        ) from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise InvalidInput(
            f"ec2_key: {path} is not an RSA key",
            hint="EC2 encrypts Windows passwords with RSA key pairs alone.",
        )
    return key


def _decrypted(key: RSAPrivateKey, data: str, path: Path, host: CloudHost) -> str:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

    try:
        return key.decrypt(base64.b64decode(data), PKCS1v15()).decode("utf-8")
    except ValueError as error:
        pair = host.data.get("key_name", "")
        raise CloudError(
            f"{host.id}: the password cannot be decrypted with {path}",
            hint=f"The instance's key pair is {pair!r}; give its private key.",
        ) from error

"""Azure by its own SDK: which instances there are, how they forward, and what can be done to them.

The SDK's objects stay in this module; what leaves it are the values of `base`. Lists come in bulk (machines, their
states, their interfaces: each one list, joined here), never one request per machine.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.core.rest import HttpRequest
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.compute.models import (
    Sku,
    VirtualMachineScaleSetUpdate,
    VirtualMachineScaleSetVMInstanceRequiredIDs,
)

from winboot.base.errors import (
    CloudError,
    CloudRefused,
    CloudUnreachable,
    Interrupted,
    NoSuchHost,
    UsageError,
)
from winboot.config.inventory.cloud_name import ProviderName
from winboot.remote.cloud.azure_names import ResourceId, node_name
from winboot.remote.cloud.base import (
    CloudHost,
    Forwarding,
    NodeIdentity,
    PodRoute,
    Query,
    State,
    Wait,
)

if TYPE_CHECKING:
    from pathlib import Path

    from azure.core.credentials import TokenCredential

    from winboot.base.secret import Secret

# One place for the versions of the API, so that an SDK update does not change the requests.
COMPUTE_API: Final = "2024-07-01"
NETWORK_API: Final = "2024-05-01"
# The lists of a scale set's interfaces belong to Microsoft.Network and know this version alone
# (learn.microsoft.com/dotnet/api …MockableNetworkResourceGroupResource: default 2018-10-01).
SCALE_SET_NETWORK_API: Final = "2018-10-01"
_NAME: Final = "Azure"
# On an instance that winboot protects while it works on it.
PROTECTED_TAG: Final = "winboot-protected"


@dataclass(frozen=True, slots=True)
class Repairs:
    """A scale set's automatic repairs: `grace` is ISO 8601 (PT30M), `action` Replace, Reimage or Restart."""

    enabled: bool
    grace: str = ""
    action: str = ""


@dataclass(frozen=True, slots=True)
class ScaleSet:
    """A scale set, as far as winboot acts on it. `notice` is how long a terminate event waits (PT10M; empty: no event)."""

    group: str
    name: str
    uniform: bool
    capacity: int
    repairs: Repairs
    notice: str = ""


_STATES: Final[dict[str, State]] = {
    "creating": "pending",
    "starting": "pending",
    "running": "running",
    "stopping": "stopping",
    "deallocating": "stopping",
    "stopped": "stopped",
    "deallocated": "stopped",
}


def connect(subscription: str = "", **settings: Any) -> Azure:
    """A client for one subscription: the one given, or that of AZURE_SUBSCRIPTION_ID; UsageError without either."""
    subscription = subscription or os.environ.get("AZURE_SUBSCRIPTION_ID", "")
    if not subscription:
        raise UsageError(
            "no Azure subscription is named",
            hint="Write `subscription_id: …` in the inventory, or set AZURE_SUBSCRIPTION_ID.",
        )
    return Azure(subscription, **settings)


class Azure:
    """One subscription. `credential` is found as the Azure CLI's tools find it where none is given.

    `poll` is how many seconds lie between two looks at a long operation; `wait` says stop by True.
    """

    def __init__(
        self,
        subscription: str,
        *,
        credential: TokenCredential | None = None,
        endpoint: str | None = None,
        poll: float = 5.0,
        wait: Wait | None = None,
        **transport: Any,
    ) -> None:
        self.subscription = subscription
        self._wait = wait or _sleep
        self._poll = poll
        self._client = ComputeManagementClient(
            credential or _default_credential(),
            subscription,
            base_url=endpoint,
            api_version=COMPUTE_API,
            polling_interval=poll,
            **transport,
        )

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    # What there is.

    @property
    def name(self) -> ProviderName:
        """Which cloud it is."""
        return "azure"

    def account(self) -> str:
        """The subscription."""
        return self.subscription

    def hosts(self, query: Query) -> Iterator[CloudHost]:
        """Virtual machines and the instances of scale sets, in the order of their ids. `scopes` are resource groups.

        Azure's lists have no filters of their own: a name of `filters` is `tag:<name>` or a key of `data`.
        """
        with _mapped("list machines"):
            sets = [
                one
                for one in self._client.virtual_machine_scale_sets.list_all()
                if _in(query.scopes, one["id"])
            ]
            found = [*self._machines(query.scopes)]
            for one in sets:
                if _orchestration(one) == "uniform":
                    found.extend(self._uniform(one))
        wanted = {ResourceId.parse(one).path.lower() for one in query.ids}
        for host in sorted(found, key=lambda one: one.id.lower()):
            if (not wanted or host.id.lower() in wanted) and _passes(host, query.filters):
                yield host

    def host(self, id: str) -> CloudHost | None:
        """One machine by its ARM id or provider id; None where Azure has no such machine (any more)."""
        resource = ResourceId.parse(id)
        return next(self.hosts(Query(ids=(resource.path,), scopes=(resource.group,))), None)

    def identity(self, host: CloudHost) -> NodeIdentity:
        """Its identity in the cluster, by the rules of cloud-provider-azure."""
        return NodeIdentity(
            node_name=node_name(host.host_name),
            provider_id=ResourceId.parse(host.id).provider_id,
            node_ip=host.private_ip,
            region=host.region,
            zone=host.zone,
            instance_type=host.instance_type,
        )

    def password(self, host: CloudHost, key: Path, *, timeout: float, wait: Wait) -> Secret | None:
        """None: in Azure the creator of the machine chooses the password."""
        return None

    def _machines(self, groups: tuple[str, ...]) -> Iterator[CloudHost]:
        """Virtual machines and the instances of Flexible scale sets. The state is in a list of its own
        (`statusOnly=true`); `expand` is for one scale set only."""
        machines = [one for one in self._client.virtual_machines.list_all() if _in(groups, one["id"])]
        if not machines:
            return
        listed = self._client.virtual_machines.list_all(status_only="true")
        states = {one["id"].lower(): _statuses(one) for one in listed}
        interfaces = self._interfaces(
            f"/subscriptions/{self.subscription}/providers/Microsoft.Network/networkInterfaces", NETWORK_API
        )
        for one in machines:
            key = one["id"].lower()
            yield _host(one, states.get(key, {}), interfaces.get(key, []))

    def _uniform(self, scale_set: Any) -> Iterator[CloudHost]:
        group, name = _group_of(scale_set["id"]), scale_set["name"]
        instances = list(self._client.virtual_machine_scale_set_vms.list(group, name, expand="instanceView"))
        if not instances:
            return
        path = (
            f"/subscriptions/{self.subscription}/resourceGroups/{group}/providers/Microsoft.Compute"
            f"/virtualMachineScaleSets/{name}/networkInterfaces"
        )
        interfaces = self._interfaces(path, SCALE_SET_NETWORK_API)
        # An instance of a Uniform set does not say it itself (VirtualMachineScaleSetVMProperties has no such member).
        priority = str(_at(scale_set, "properties", "virtualMachineProfile", "priority") or "")
        for one in instances:
            yield _host(one, _statuses(one), interfaces.get(one["id"].lower(), []), priority)

    def _interfaces(self, path: str, version: str) -> dict[str, list[dict[str, Any]]]:
        """The interfaces by the id of their machine, in lower case; the primary one first."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in self._listed(path, version):
            machine = str(_at(one, "properties", "virtualMachine", "id") or "").lower()
            found.setdefault(machine, []).append(_interface(one))
        for interfaces in found.values():
            interfaces.sort(key=lambda one: not one["primary"])
        return found

    def forwarding(self, host: CloudHost, pod_cidrs: tuple[str, ...]) -> Forwarding:
        """IP forwarding of the machine's interfaces, and the routes to its pods in its subnet's route table."""
        interfaces = host.data.get("network_interfaces") or []
        subnets = dict.fromkeys(one["subnet"] for one in interfaces if one["subnet"])
        with _mapped("read the route table"):
            routes = tuple(route for subnet in subnets for route in self._routes(subnet))
        return Forwarding(
            forwards=any(one["enable_ip_forwarding"] for one in interfaces if one["primary"]),
            routes=tuple(one for one in routes if one.destination in pod_cidrs),
        )

    def ensure_forwarding(self, host: CloudHost, pod_cidrs: tuple[str, ...]) -> tuple[str, ...]:
        """UsageError: on Azure the cloud controller manager writes the routes, or the owner of the route table."""
        raise UsageError(
            "winboot does not write Azure's route tables",
            hint="Run cloud-controller-manager with --configure-cloud-routes, or use an overlay network (`routes: none`).",
        )

    def _routes(self, subnet: str) -> Iterator[PodRoute]:
        """The entries of a subnet's route table; none where it has no table."""
        table = _at(self._got(subnet, NETWORK_API), "properties", "routeTable", "id")
        entries = _at(self._got(str(table), NETWORK_API), "properties", "routes") if table else None
        for one in entries or []:
            kind = str(_at(one, "properties", "nextHopType") or "")
            yield PodRoute(
                table=str(table).rpartition("/")[2],
                destination=str(_at(one, "properties", "addressPrefix") or ""),
                target=str(_at(one, "properties", "nextHopIpAddress") or kind),
                # learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview: None drops the packets.
                blackhole=kind == "None",
            )

    def lifecycle(self) -> Azure:
        """What may be done to machines as a whole: `reimage`, `replace` and `protect` below."""
        return self

    def scale_set(self, group: str, name: str) -> ScaleSet:
        """One scale set, with its automatic repairs and its terminate notice."""
        with _mapped(f"read the scale set {name}"):
            one = self._client.virtual_machine_scale_sets.get(group, name)
        properties = _at(one, "properties") or {}
        policy = _at(properties, "automaticRepairsPolicy") or {}
        notice = _at(
            properties, "virtualMachineProfile", "scheduledEventsProfile", "terminateNotificationProfile"
        )
        return ScaleSet(
            group=group,
            name=name,
            uniform=_orchestration(one) == "uniform",
            capacity=int(_at(one, "sku", "capacity") or 0),
            repairs=Repairs(
                enabled=bool(_at(policy, "enabled")),
                grace=str(_at(policy, "gracePeriod") or ""),
                action=str(_at(policy, "repairAction") or ""),
            ),
            notice=str(_at(notice, "notBeforeTimeout") or "") if _at(notice, "enable") else "",
        )

    # What can be done to it. Each call comes back when Azure says that it is done.

    def reimage(self, host: CloudHost) -> None:
        """Give the instance a fresh OS disk from its image; id and addresses stay."""
        resource, what = ResourceId.parse(host.id), f"reimage {host.name}"
        with _mapped(what):
            if resource.scale_set:
                vms = self._client.virtual_machine_scale_set_vms
                self._finish(vms.begin_reimage(resource.group, resource.scale_set, resource.name), what)
            else:
                machines = self._client.virtual_machines
                self._finish(machines.begin_reimage(resource.group, resource.name), what)

    def replace(self, host: CloudHost) -> None:
        """Delete the instance and let its scale set start another one, with a name of its own.

        Deleting takes one from the capacity (learn.microsoft.com/rest/api/compute, DeleteInstances); it is put back
        only if no other client has changed it meanwhile (If-Match).
        """
        if not host.group:
            raise UsageError(
                f"{host.name} is in no scale set, so no machine would replace it",
                hint="--by reimage gives a single virtual machine a fresh disk.",
            )
        resource, sets = ResourceId.parse(host.id), self._client.virtual_machine_scale_sets
        if not resource.scale_set:
            raise UsageError(
                f"{host.name} is an instance of the Flexible scale set {host.group}: winboot replaces those of Uniform ones",
                hint="Use --by reimage, or delete the virtual machine and raise the capacity.",
            )
        what = f"replace {host.name}"
        with _mapped(what):
            wanted = int(_at(sets.get(resource.group, host.group), "sku", "capacity") or 0)
            ids = VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=[resource.name])
            self._finish(sets.begin_delete_instances(resource.group, host.group, ids), what)
            now = sets.get(resource.group, host.group)
            if int(_at(now, "sku", "capacity") or 0) == wanted - 1:
                update = VirtualMachineScaleSetUpdate(sku=Sku(name=_at(now, "sku", "name"), capacity=wanted))
                self._finish(
                    sets.begin_update(
                        resource.group, host.group, update, headers={"If-Match": str(_at(now, "etag") or "*")}
                    ),
                    what,
                )

    def protect(self, host: CloudHost, *, protected: bool) -> None:
        """Keep an instance of a Uniform scale set from scale-in and from actions on the whole set, or let it go again.

        Flexible scale sets have no instance protection (learn.microsoft.com/azure/virtual-machine-scale-sets
        /virtual-machine-scale-sets-orchestration-modes): UsageError.
        """
        resource = ResourceId.parse(host.id)
        if not resource.scale_set:
            raise UsageError(
                f"{host.name} is not an instance of a Uniform scale set, and only those can be protected",
                hint="Put a resource lock on the virtual machine instead.",
            )
        what, vms = f"protect {host.name}", self._client.virtual_machine_scale_set_vms
        with _mapped(what):
            one = vms.get(resource.group, resource.scale_set, resource.name)
            by_winboot = PROTECTED_TAG in (_at(one, "tags") or {})
            there = bool(_at(one, "properties", "protectionPolicy", "protectFromScaleIn"))
            # A person's protection stays as it is, and winboot removes only its own.
            if not by_winboot and (there or not protected):
                return
            one["properties"]["protectionPolicy"] = {
                "protectFromScaleIn": protected,
                "protectFromScaleSetActions": protected,
            }
            # Whose protection it is: a worker that follows a killed one removes winboot's alone.
            others = {key: value for key, value in (_at(one, "tags") or {}).items() if key != PROTECTED_TAG}
            one["tags"] = {**others, PROTECTED_TAG: "true"} if protected else others
            self._finish(vms.begin_update(resource.group, resource.scale_set, resource.name, one), what)

    def _finish(self, poller: Any, what: str) -> None:
        while not poller.done():
            if self._wait(min(self._poll, 1.0)):
                raise Interrupted(f"stopped waiting for {_NAME} to {what}", hint="Azure continues by itself.")
        poller.result()

    # Requests that the compute client has no method for: azure-mgmt-network would be 31 MB for three of them.

    def _listed(self, path: str, version: str) -> Iterator[Any]:
        address: str | None = f"{path}?api-version={version}"
        while address:
            page = self._sent(address)
            yield from page.get("value", ())
            address = page.get("nextLink")

    def _got(self, path: str, version: str) -> Any:
        return self._sent(f"{path}?api-version={version}")

    def _sent(self, address: str) -> Any:
        response = self._client.send_request(HttpRequest("GET", address))
        if response.status_code >= 400:
            raise HttpResponseError(response=response)
        return response.json()


def _default_credential() -> TokenCredential:
    """Environment, workload identity, managed identity, Azure CLI: the first that has a token."""
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _at(node: Any, *path: str) -> Any:
    """The value at a path of an answer; None where a part of it is missing."""
    for key in path:
        if not isinstance(node, Mapping):
            return None
        node = node.get(key)
    return node


def _host(
    one: Any, statuses: Mapping[str, str], interfaces: list[dict[str, Any]], priority: str = ""
) -> CloudHost:
    properties, resource = _at(one, "properties") or {}, ResourceId.parse(str(one["id"]))
    member_of = str(_at(properties, "virtualMachineScaleSet", "id") or "")
    computer_name = str(_at(properties, "osProfile", "computerName") or "")
    location, zones = str(_at(one, "location") or ""), _at(one, "zones") or []
    system = str(_at(properties, "storageProfile", "osDisk", "osType") or "").lower()
    size = str(_at(properties, "hardwareProfile", "vmSize") or _at(one, "sku", "name") or "")
    image = _image(_at(properties, "storageProfile", "imageReference"))
    group, addresses = resource.scale_set or member_of.rpartition("/")[2], _addresses(interfaces)
    tags = dict(_at(one, "tags") or {})
    power = statuses.get("PowerState", "")
    return CloudHost(
        provider="azure",
        id=resource.path,
        name=resource.machine_name,
        state=_STATES.get(power, "unknown"),
        region=location,
        # The form of topology.kubernetes.io/zone on Azure (cloud-provider-azure pkg/provider/azure_zones.go).
        zone=f"{location}-{zones[0]}" if zones else "",
        private_ip=next(iter(addresses), ""),
        windows=system == "windows",
        tags=tags,
        host_name=computer_name,
        instance_type=size,
        image=image,
        group=group,
        launched=_time(_at(properties, "timeCreated")),
        data={
            # The words of azure.azcollection's azure_rm.
            "id": resource.path,
            "name": resource.machine_name,
            "computer_name": computer_name,
            "location": location,
            "resource_group": resource.group.lower(),
            "resource_type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
            if resource.scale_set
            else "Microsoft.Compute/virtualMachines",
            "powerstate": power,
            "provisioning_state": str(_at(properties, "provisioningState") or "").lower(),
            "virtual_machine_size": size,
            "vmid": str(_at(properties, "vmId") or ""),
            "os_profile": {"system": system},
            "image": image,
            "private_ipv4_addresses": addresses,
            "availability_zone": str(zones[0]) if zones else "",
            "vmss": {"name": group} if group else {},
            "tags": tags,
            # Words of our own.
            "priority": (priority or str(_at(properties, "priority") or "Regular")).lower(),
            "orchestration": "uniform" if resource.scale_set else "flexible" if group else "",
            "protected": bool(_at(properties, "protectionPolicy", "protectFromScaleIn")),
            "protected_by_winboot": PROTECTED_TAG in tags,
            "network_interfaces": interfaces,
        },
    )


def _addresses(interfaces: list[dict[str, Any]]) -> list[str]:
    return [address for one in interfaces for address in one["private_ipv4_addresses"]]


def _time(text: Any) -> datetime | None:
    """A time as Azure writes it; None where it says none. Seven digits of a second are one more than Python's six."""
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", str(text))) if text else None


def _passes(host: CloudHost, filters: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether each filter has the machine's value among its own."""
    return all(_value(host, name) in values for name, values in filters.items())


def _value(host: CloudHost, name: str) -> str:
    kind, _, tag = name.partition(":")
    return host.tags.get(tag, "") if kind == "tag" else str(host.data.get(name, ""))


def _image(reference: Any) -> str:
    """An image of one's own by its id, one of the marketplace as `az` writes it: publisher:offer:sku:version."""
    if _at(reference, "id"):
        return str(_at(reference, "id"))
    words = [str(_at(reference, key) or "") for key in ("publisher", "offer", "sku", "version")]
    return ":".join(words) if any(words) else ""


def _interface(one: Any) -> dict[str, Any]:
    """An interface in plain words: its addresses, its subnet, and whether it passes on packets for others."""
    configurations = _at(one, "properties", "ipConfigurations") or []
    ordered = sorted(configurations, key=lambda each: not _at(each, "properties", "primary"))
    addresses = (_at(each, "properties", "privateIPAddress") for each in ordered)
    subnets = (_at(each, "properties", "subnet", "id") for each in ordered)
    return {
        "private_ipv4_addresses": [str(address) for address in addresses if address],
        "subnet": next((str(subnet) for subnet in subnets if subnet), ""),
        "enable_ip_forwarding": bool(_at(one, "properties", "enableIPForwarding")),
        "primary": bool(_at(one, "properties", "primary")),
    }


def _statuses(one: Any) -> dict[str, str]:
    """`PowerState/running` and its like, as a map."""
    codes = (_at(each, "code") for each in _at(one, "properties", "instanceView", "statuses") or [])
    return {kind: value for kind, _, value in (str(code or "").partition("/") for code in codes)}


def _orchestration(scale_set: Any) -> str:
    return str(_at(scale_set, "properties", "orchestrationMode") or "Uniform").lower()


def _group_of(identifier: str) -> str:
    words = identifier.split("/")
    return words[4]


def _in(groups: tuple[str, ...], identifier: str) -> bool:
    return not groups or _group_of(identifier).lower() in {group.lower() for group in groups}


@contextmanager
def _mapped(what: str) -> Iterator[None]:
    """Every error of the SDK becomes a winboot error. Azure's code decides, never its text."""
    try:
        yield
    except ClientAuthenticationError as error:
        raise CloudRefused(
            f"{_NAME} does not accept these credentials: {_words(error)}",
            hint="Log in with `az login`, or give the process a managed identity or AZURE_CLIENT_ID and its secret.",
        ) from error
    except ResourceNotFoundError as error:
        raise NoSuchHost(
            f"{_NAME}: {what}: {_words(error)}", hint="The object may have been deleted meanwhile."
        ) from error
    except HttpResponseError as error:
        raise _refused_or_failed(what, error) from error
    except (ServiceRequestError, ServiceResponseError) as error:
        raise CloudUnreachable(
            f"{_NAME} does not answer: {error.message}", hint="Check the network and the proxy."
        ) from error


def _refused_or_failed(what: str, error: HttpResponseError) -> CloudError:
    if error.status_code in (401, 403):
        hint = "`winboot cloud policy azure` prints the role that winboot needs."
        return CloudRefused(f"{_NAME} refused to {what}: {_words(error)}", hint=hint)
    if error.status_code == 429 or (error.status_code or 0) >= 500:
        return CloudUnreachable(f"{_NAME} could not {what} for now: {_words(error)}", hint="Try again later.")
    return CloudError(
        f"{_NAME} could not {what}: {_words(error)}", hint="The text in brackets is Azure's error code."
    )


def _words(error: HttpResponseError) -> str:
    """Azure's own words and its code. Only these: the whole answer could hold a script that was sent."""
    known = error.error
    if known is not None and known.code:
        return f"{known.message} ({known.code})"
    return error.reason or type(error).__name__

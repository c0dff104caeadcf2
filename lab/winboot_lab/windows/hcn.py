"""The second version of HNS' API (computenetwork.dll): its objects are those of the first, written otherwise.

Shapes are those of microsoft/hcsshim, package hcn: HostComputeNetwork, HostComputeEndpoint, HostComputeLoadBalancer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.hns import NON_PERSISTENT, Json

SCHEMA: Final = {"Major": 2, "Minor": 0}
PATHS: Final = {"Network": "/networks/", "Endpoint": "/endpoints/", "LoadBalancer": "/policylists/"}
REMOTE: Final = 1  # EndpointFlagsRemoteEndpoint
DSR: Final = 1  # LoadBalancerFlagsDSR


def first_version(kind: str, document: Json) -> Json:
    """The request of the first version that makes the same object."""
    return _TO_FIRST[kind](document)


def second_version(kind: str, found: Json) -> Json:
    """An object of the first version as the second one shows it."""
    return {"ID": found["ID"], **_TO_SECOND[kind](found), "SchemaVersion": SCHEMA}


def fits(kind: str, found: Json, query: Json) -> bool:
    """Whether an object passes a query's filter: by ID, by name, or an endpoint by its network."""
    shown = {**second_version(kind, found), "VirtualNetwork": found.get("VirtualNetwork")}
    return all(str(shown.get(key, "")).lower() == str(value).lower() for key, value in query.items())


def _network(document: Json) -> Json:
    policies = document.get("Policies") or []
    adapter = next(
        (p["Settings"]["NetworkAdapterName"] for p in policies if p["Type"] == "NetAdapterName"), ""
    )
    made: Json = {
        "Name": document["Name"],
        "Type": document["Type"],
        "Flags": document.get("Flags", 0),
        "Subnets": [_subnet(one) for ipam in document["Ipams"] for one in ipam["Subnets"]],
    }
    return {**made, "NetworkAdapterName": adapter} if adapter else made


def _subnet(document: Json) -> Json:
    vsids = [p["Settings"]["IsolationId"] for p in document.get("Policies") or [] if p["Type"] == "VSID"]
    made: Json = {
        "AddressPrefix": document["IpAddressPrefix"],
        "GatewayAddress": next((one["NextHop"] for one in document.get("Routes") or []), ""),
    }
    return {**made, "Policies": [{"Type": "VSID", "VSID": one} for one in vsids]} if vsids else made


def _shown_network(found: Json) -> Json:
    policies = [_shown_policy(one) for one in found["Policies"]]
    if found["ManagementIP"]:
        policies.append({"Type": "ProviderAddress", "Settings": {"ProviderAddress": found["ManagementIP"]}})
    subnets = [
        {
            "IpAddressPrefix": one["AddressPrefix"],
            "Routes": [{"NextHop": one["GatewayAddress"], "DestinationPrefix": "0.0.0.0/0"}],
        }
        for one in found["Subnets"]
    ]
    flags = found["Flags"] & NON_PERSISTENT
    shown = {"Name": found["Name"], "Type": found["Type"], "Policies": policies, "Flags": flags}
    return {**shown, "Ipams": [{"Type": "Static", "Subnets": subnets}]}


def _shown_policy(policy: Json) -> Json:
    """The first version has a policy's settings next to its type."""
    settings = policy.get("Settings") or {key: value for key, value in policy.items() if key != "Type"}
    return {"Type": policy["Type"], "Settings": settings}


def _endpoint(document: Json) -> Json:
    dns, flags = document.get("Dns") or {}, document.get("Flags", 0)
    made: Json = {
        "Name": document.get("Name", ""),
        "VirtualNetwork": document["HostComputeNetwork"],
        "DNSServerList": ",".join(dns.get("ServerList") or []),
        "DNSSuffix": ",".join(dns.get("Search") or []),
        "MacAddress": document.get("MacAddress", ""),
        "Policies": document.get("Policies") or [],
        "IsRemoteEndpoint": bool(flags & REMOTE),
    }
    for one in document["IpConfigurations"]:
        made["IPv6Address" if ":" in one["IpAddress"] else "IPAddress"] = one["IpAddress"]
    for one in document.get("Routes") or []:
        made["GatewayAddressV6" if ":" in one["NextHop"] else "GatewayAddress"] = one["NextHop"]
    return made


def _shown_endpoint(found: Json) -> Json:
    addresses = [
        {"IpAddress": one, "PrefixLength": found["PrefixLength"]}
        for one in (found["IPAddress"], found.get("IPv6Address"))
        if one
    ]
    return {
        "Name": found["Name"],
        "HostComputeNetwork": found["VirtualNetwork"],
        "HostComputeNamespace": (found["Namespace"] or {}).get("ID", ""),
        "Policies": [_shown_policy(one) for one in found["Policies"]],
        "IpConfigurations": addresses,
        "MacAddress": found["MacAddress"],
        "Flags": REMOTE if found["IsRemoteEndpoint"] else 0,
    }


def _load_balancer(document: Json) -> Json:
    (ports,) = document["PortMappings"]
    policy = {
        "Type": "ELB",
        "VIPs": document.get("FrontendVIPs") or [],
        "ExternalPort": ports["ExternalPort"],
        "InternalPort": ports["InternalPort"],
        "Protocol": ports["Protocol"],
        "IsDSR": bool(document.get("Flags", 0) & DSR),
        "PortFlags": ports.get("Flags", 0),
    }
    if source := document.get("SourceVIP"):
        policy["SourceVIP"] = source
    return {
        "References": [f"/endpoints/{one}" for one in document["HostComputeEndpoints"]],
        "Policies": [policy],
    }


def _shown_load_balancer(found: Json) -> Json:
    policy = (found["Policies"] or [{}])[0]
    ports = {"Protocol": policy.get("Protocol", 6), "InternalPort": policy.get("InternalPort", 0)}
    return {
        "HostComputeEndpoints": [str(one).rpartition("/")[2] for one in found["References"]],
        "FrontendVIPs": policy.get("VIPs") or [],
        "PortMappings": [{**ports, "ExternalPort": policy.get("ExternalPort", 0)}],
    }


_TO_FIRST: Final[dict[str, Callable[[Json], Json]]] = {
    "Network": _network,
    "Endpoint": _endpoint,
    "LoadBalancer": _load_balancer,
}
_TO_SECOND: Final[dict[str, Callable[[Json], Json]]] = {
    "Network": _shown_network,
    "Endpoint": _shown_endpoint,
    "LoadBalancer": _shown_load_balancer,
}


def joins(settings: Json) -> tuple[str, bool]:
    """The endpoint that a change of a namespace is about, and whether it is added (AddNamespaceEndpoint) or removed."""
    how = settings["RequestType"]
    if settings["ResourceType"] != "Endpoint" or how not in ("Add", "Remove"):
        raise Refusal("value", str(settings), "a change of an HCN namespace other than of its endpoints")
    return str(settings["Settings"]["EndpointId"]), how == "Add"

"""Lists as tables, as `kubectl get` asks for them: the columns are the API server's, in its words and order.

The columns are those of kubernetes v1.36 pkg/printers/internalversion/printers.go (AddHandlers, print…); a kind without its own
there has Name and Age.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from winboot_lab.cluster.kinds import Kind, Object

Cells: TypeAlias = list[Any]
Column: TypeAlias = tuple[str, str, int]  # name, type, priority: those above 0 are `-o wide`'s

NONE: Final = "<none>"
_ROLE: Final = "node-role.kubernetes.io/"


def asked_for(accept: str) -> bool:
    """Whether the first form that a client takes is a table (kubernetes.io/docs/reference/using-api/api-concepts,
    "Receiving resources as Tables")."""
    first = accept.partition(",")[0].replace(" ", "").split(";")
    return first[0] == "application/json" and {"as=Table", "v=v1", "g=meta.k8s.io"} <= set(first[1:])


def table(kind: Kind, body: Object, now: datetime, *, include: str = "Metadata", head: bool = True) -> Object:
    """The table of a list or of one object. `include` is the query's includeObject: None, Metadata or Object."""
    columns, cells = _COLUMNS.get(kind.qualified, (_PLAIN, _plain))
    items = body.get("items", [body])
    kept = ("resourceVersion", "continue", "remainingItemCount")
    metadata = {key: value for key, value in body.get("metadata", {}).items() if key in kept}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(*one) for one in columns] if head else None,
        "rows": [_row(kind, one, cells(one, now), include) for one in items],
    }


def _definition(name: str, kind: str, priority: int) -> Object:
    return {
        "name": name,
        "type": kind,
        "format": "name" if name == "Name" else "",
        "description": name,
        "priority": priority,
    }


def _row(kind: Kind, thing: Object, cells: Cells, include: str) -> Object:
    row: Object = {"cells": cells}
    if include == "Object":
        row["object"] = {"kind": kind.kind, "apiVersion": kind.api_version, **thing}
    elif include == "Metadata":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": thing["metadata"],
        }
    return row


def since(then: str | None, now: datetime) -> str:
    """How long ago, as k8s.io/apimachinery/pkg/util/duration HumanDuration says it."""
    if not then:
        return "<unknown>"
    seconds = int((now - datetime.fromisoformat(then)).total_seconds())
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    return f"{days}d"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"


def _name(thing: Object) -> str:
    return str(thing["metadata"]["name"])


def _age(thing: Object, now: datetime) -> str:
    return since(thing["metadata"].get("creationTimestamp"), now)


def _plain(thing: Object, now: datetime) -> Cells:
    return [_name(thing), _age(thing, now)]


def _conditions(thing: Object) -> list[Mapping[str, Any]]:
    return thing.get("status", {}).get("conditions") or []


def _node(thing: Object, now: datetime) -> Cells:
    said = [
        "Ready" if one["status"] == "True" else "NotReady"
        for one in _conditions(thing)
        if one["type"] == "Ready"
    ]
    status = ",".join(
        [
            *(said or ["Unknown"]),
            *(["SchedulingDisabled"] if thing.get("spec", {}).get("unschedulable") else []),
        ]
    )
    labels = thing["metadata"].get("labels") or {}
    roles = sorted(one.removeprefix(_ROLE) for one in labels if one.startswith(_ROLE) and one != _ROLE)
    found = thing.get("status", {}).get("nodeInfo") or {}
    addresses = {one["type"]: one["address"] for one in thing.get("status", {}).get("addresses") or []}
    unknown = "<unknown>"
    return [
        _name(thing),
        status,
        ",".join(roles) or NONE,
        _age(thing, now),
        found.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        found.get("osImage") or unknown,
        found.get("kernelVersion") or unknown,
        found.get("containerRuntimeVersion") or unknown,
    ]


def _pod(thing: Object, now: datetime) -> Cells:
    spec, status = thing.get("spec", {}), thing.get("status", {})
    told = status.get("containerStatuses") or []
    ready = sum(bool(one.get("ready")) for one in told)
    reason = status.get("reason") or status.get("phase") or ""
    for one in told:
        state = one.get("state", {})
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason") or reason
    if thing["metadata"].get("deletionTimestamp"):
        reason = "Terminating"
    addresses = [one.get("ip") for one in status.get("podIPs") or []]
    return [
        _name(thing),
        f"{ready}/{len(spec.get('containers') or [])}",
        reason,
        str(sum(one.get("restartCount", 0) for one in told)),
        _age(thing, now),
        next((one for one in addresses if one), NONE),
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        NONE,
    ]


def _request(thing: Object, now: datetime) -> Cells:
    spec = thing.get("spec", {})
    types = [one["type"] for one in _conditions(thing)]
    said = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    said += ",Failed" if "Failed" in types else ""
    said += ",Issued" if thing.get("status", {}).get("certificate") else ""
    seconds = spec.get("expirationSeconds")
    asked = f"{seconds}s" if seconds else NONE
    return [_name(thing), _age(thing, now), spec.get("signerName"), spec.get("username"), asked, said]


def _service(thing: Object, now: datetime) -> Cells:
    spec = thing.get("spec", {})
    ports = [
        f"{one['port']}"
        + (f":{one['nodePort']}" if one.get("nodePort") else "")
        + f"/{one.get('protocol', 'TCP')}"
        for one in spec.get("ports") or []
    ]
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    return [
        _name(thing),
        spec.get("type") or "ClusterIP",
        spec.get("clusterIP") or NONE,
        ",".join(spec.get("externalIPs") or []) or NONE,
        ",".join(ports) or NONE,
        _age(thing, now),
        selector or NONE,
    ]


def _event(thing: Object, now: datetime) -> Cells:
    about = thing.get("involvedObject") or thing.get("regarding") or {}
    seen = thing.get("lastTimestamp") or thing.get("eventTime") or thing["metadata"].get("creationTimestamp")
    return [
        since(seen, now),
        thing.get("type", ""),
        thing.get("reason", ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        (thing.get("message") or thing.get("note") or "").strip(),
        _name(thing),
    ]


def _daemon_set(thing: Object, now: datetime) -> Cells:
    status = thing.get("status", {})
    names = ("desired", "current")
    wanted = [status.get(f"{one}NumberScheduled", 0) for one in names]
    rest = [status.get(one, 0) for one in ("numberReady", "updatedNumberScheduled", "numberAvailable")]
    chosen = thing.get("spec", {}).get("template", {}).get("spec", {}).get("nodeSelector") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(chosen.items()))
    return [_name(thing), *wanted, *rest, selector or NONE, _age(thing, now)]


def _deployment(thing: Object, now: datetime) -> Cells:
    status, wanted = thing.get("status", {}), thing.get("spec", {}).get("replicas", 1)
    ready = f"{status.get('readyReplicas', 0)}/{wanted}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [_name(thing), ready, *counts, _age(thing, now)]


def _lease(thing: Object, now: datetime) -> Cells:
    return [_name(thing), thing.get("spec", {}).get("holderIdentity") or "", _age(thing, now)]


def _config_map(thing: Object, now: datetime) -> Cells:
    count = len(thing.get("data") or {}) + len(thing.get("binaryData") or {})
    return [_name(thing), str(count), _age(thing, now)]


def _secret(thing: Object, now: datetime) -> Cells:
    return [_name(thing), thing.get("type") or "Opaque", str(len(thing.get("data") or {})), _age(thing, now)]


def _namespace(thing: Object, now: datetime) -> Cells:
    return [_name(thing), thing.get("status", {}).get("phase") or "Active", _age(thing, now)]


def _named(*columns: str, wide: Sequence[str] = ()) -> tuple[Column, ...]:
    shown = [(one, "string", 0) for one in columns]
    return (*shown, *((one, "string", 1) for one in wide))


_PLAIN: Final = _named("Name", "Age")
_Printer: TypeAlias = Callable[[Object, datetime], Cells]
_COLUMNS: Final[dict[str, tuple[tuple[Column, ...], _Printer]]] = {
    "nodes": (
        _named(
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        _node,
    ),
    "pods": (
        _named(
            "Name",
            "Ready",
            "Status",
            "Restarts",
            "Age",
            wide=("IP", "Node", "Nominated Node", "Readiness Gates"),
        ),
        _pod,
    ),
    "certificatesigningrequests.certificates.k8s.io": (
        _named("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"),
        _request,
    ),
    "services": (
        _named("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)),
        _service,
    ),
    "events": (_named("Last Seen", "Type", "Reason", "Object", "Message", wide=("Name",)), _event),
    "events.events.k8s.io": (
        _named("Last Seen", "Type", "Reason", "Object", "Message", wide=("Name",)),
        _event,
    ),
    "daemonsets.apps": (
        _named("Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age"),
        _daemon_set,
    ),
    "deployments.apps": (_named("Name", "Ready", "Up-to-date", "Available", "Age"), _deployment),
    "leases.coordination.k8s.io": (_named("Name", "Holder", "Age"), _lease),
    "configmaps": (_named("Name", "Data", "Age"), _config_map),
    "secrets": (_named("Name", "Type", "Data", "Age"), _secret),
    "namespaces": (_named("Name", "Status", "Age"), _namespace),
}

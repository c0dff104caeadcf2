"""The Host Network Service as lab programs use it: requests that either give an object or a Go error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from winboot_lab.programs.base import GoError

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine


def call(machine: Machine, method: str, path: str, request: Any = None) -> Any:
    """One HNSCall; GoError with the service's own words when it refuses."""
    text = "" if request is None else json.dumps(request)
    result = machine.invoke("hns.call", {"method": method, "path": path, "request": text})
    if result.errors:
        raise GoError(f"HNS failed with error : {result.errors[0].message}")
    answer = json.loads(str(result.objects[0]))
    if not answer.get("Success"):
        raise GoError(f"HNS failed with error : {answer.get('Error', 'Unknown')}")
    return answer.get("Output")


def add_host_route(machine: Machine, identity: str) -> None:
    """The policy HostRoute of an overlay; GoError where Windows is too old for it."""
    policies = [{"Type": "HostRoute", "Settings": {}}]
    request = {"ResourceType": "Policy", "RequestType": "Add", "Settings": {"Policies": policies}}
    result = machine.invoke("hcn.modify", {"id": identity, "settings": json.dumps(request)})
    if result.errors:
        raise GoError(f"hcnModifyNetwork failed in Win32: {result.errors[0].message}")


def networks(machine: Machine) -> list[dict[str, Any]]:
    """All networks; none where the service is not there."""
    return _all(machine, "/networks/")


def endpoints(machine: Machine) -> list[dict[str, Any]]:
    """All endpoints."""
    return _all(machine, "/endpoints/")


def _all(machine: Machine, path: str) -> list[dict[str, Any]]:
    if not machine.services.running("hns"):
        raise GoError("HNS failed with error : The Host Network Service is not running")
    found = call(machine, "GET", path)
    return [o for o in found or [] if isinstance(o, dict)]


def network(machine: Machine, name: str) -> dict[str, Any] | None:
    """The network of a name."""
    return next((n for n in networks(machine) if str(n.get("Name", "")).lower() == name.lower()), None)


def endpoint(machine: Machine, name: str) -> dict[str, Any] | None:
    """The endpoint of a name."""
    return next((e for e in endpoints(machine) if str(e.get("Name", "")).lower() == name.lower()), None)

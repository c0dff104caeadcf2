"""The Host Network Service as lab programs use it: requests that either give an object or a Go error."""

from __future__ import annotations

import json
from typing import Any, Final

from winboot_lab.programs.base import GoError
from winboot_lab.windows.hns import GUID
from winboot_lab.windows.session import Computer


def call(machine: Computer, method: str, path: str, request: Any = None) -> Any:
    """One HNSCall; GoError with the service's own words when it refuses."""
    text = "" if request is None else _compact(request)
    result = machine.invoke("hns.call", {"method": method, "path": path, "request": text})
    if result.errors:
        raise GoError(f"HNS failed with error : {result.errors[0].message}")
    answer = json.loads(str(result.objects[0]))
    if not answer.get("Success"):
        raise GoError(f"HNS failed with error : {answer.get('Error', 'Unknown')}")
    return answer.get("Output")


SCHEMA: Final = {"SchemaVersion": {"Major": 2, "Minor": 0}}


def find(machine: Computer, kind: str, **named: str) -> list[dict[str, Any]]:
    """The objects of a kind (Network, Endpoint, LoadBalancer) as the second version shows them; `named` is the filter of
    hcsshim's queries (hcn.go, HostComputeQuery)."""
    query = {**SCHEMA, "Filter": json.dumps(named, separators=(",", ":"))} if named else SCHEMA
    found: list[dict[str, Any]] = json.loads(
        _ask(machine, "hcn.list", f"Enumerate{kind}s", kind=kind, query=query)
    )
    return found


def create(machine: Computer, kind: str, document: dict[str, Any]) -> dict[str, Any]:
    """A new object of a kind, of the second version."""
    made: dict[str, Any] = json.loads(
        _ask(machine, "hcn.create", f"Create{kind}", kind=kind, settings=document)
    )
    return made


def delete(machine: Computer, kind: str, identity: str) -> None:
    """Remove an object of a kind."""
    _ask(machine, "hcn.delete", f"Delete{kind}", kind=kind, id=identity)


def add_to_namespace(machine: Computer, namespace: str, identity: str) -> None:
    """Give an endpoint to a sandbox (hcnnamespace.go, AddNamespaceEndpoint)."""
    _modify_namespace(machine, namespace, "Add", identity)


def remove_from_namespace(machine: Computer, namespace: str, identity: str) -> None:
    """Take an endpoint from a sandbox (RemoveNamespaceEndpoint)."""
    if namespace:
        _modify_namespace(machine, namespace, "Remove", identity)


def _modify_namespace(machine: Computer, namespace: str, how: str, identity: str) -> None:
    if not GUID.fullmatch(namespace):
        # modifyNamespace asks Microsoft/go-winio pkg/guid, FromString, before it asks Windows.
        raise GoError(f'invalid GUID "{namespace}"')
    request = {"ResourceType": "Endpoint", "RequestType": how, "Settings": {"EndpointId": identity}}
    _ask(machine, "hcn.join", "ModifyNamespace", namespace=namespace, settings=request)


def _ask(machine: Computer, command: str, call: str, **parameters: Any) -> str:
    given = {name: one if isinstance(one, str) else _compact(one) for name, one in parameters.items()}
    result = machine.invoke(command, given)
    if result.errors:
        raise GoError(f"hcn{call} failed in Win32: {_words(result.errors[0].message)}")
    return str(result.objects[0]) if result.objects else ""


def _words(message: str) -> str:
    """HNS' words and its HRESULT, as hcsshim puts them."""
    code, _, told = message.partition(" {")
    return f"{json.loads('{' + told)['Error']} ({code.lower()})" if told else message


def _compact(document: Any) -> str:
    """JSON as Go's encoder writes it."""
    return json.dumps(document, separators=(",", ":"))


def add_host_route(machine: Computer, identity: str) -> None:
    """The policy HostRoute of an overlay; GoError where Windows is too old for it."""
    modify(machine, identity, "Add", {"Type": "HostRoute", "Settings": {}})


def modify(machine: Computer, identity: str, how: str, policy: dict[str, Any]) -> None:
    """Add a policy to a network, or remove it (hcnnetwork.go, AddPolicy and RemovePolicy)."""
    request = {"ResourceType": "Policy", "RequestType": how, "Settings": {"Policies": [policy]}}
    _ask(machine, "hcn.modify", "ModifyNetwork", id=identity, settings=request)


def networks(machine: Computer) -> list[dict[str, Any]]:
    """All networks; none where the service is not there."""
    return _all(machine, "/networks/")


def endpoints(machine: Computer) -> list[dict[str, Any]]:
    """All endpoints."""
    return _all(machine, "/endpoints/")


def _all(machine: Computer, path: str) -> list[dict[str, Any]]:
    if not machine.services.running("hns"):
        raise GoError("HNS failed with error : The Host Network Service is not running")
    found = call(machine, "GET", path)
    return [o for o in found or [] if isinstance(o, dict)]


def network(machine: Computer, name: str) -> dict[str, Any] | None:
    """The network of a name."""
    return next((n for n in networks(machine) if str(n.get("Name", "")).lower() == name.lower()), None)


def endpoint(machine: Computer, name: str) -> dict[str, Any] | None:
    """The endpoint of a name."""
    return next((e for e in endpoints(machine) if str(e.get("Name", "")).lower() == name.lower()), None)

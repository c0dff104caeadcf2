"""Get-/Remove-HnsNetwork, -HnsEndpoint, -HnsPolicyList: the in-box module, there once containers are."""

from __future__ import annotations

import json
from typing import Any

from winboot_lab.windows.call import STRING, SWITCH, Call, as_text, cmdlet, parameter
from winboot_lab.windows.door import InSet, Parameter, Plain, Problem, Record
from winboot_lab.windows.session import Computer

_MODULE = "HostNetworkingService"
_OBJECT = "System.Management.Automation.PSCustomObject"


def has_hns(machine: Computer) -> bool:
    """The module comes with the features that bring the Host Network Service."""
    return machine.services.find("hns") is not None


def _plain(value: Any) -> Plain:
    if isinstance(value, dict):
        return Record(_OBJECT, {k: _plain(v) for k, v in value.items() if not k.startswith("_")})
    if isinstance(value, list):
        return [_plain(v) for v in value]
    assert value is None or isinstance(value, (bool, int, float, str))
    return value


def _ask(call: Call, method: str, path: str) -> Any:
    # A cmdlet takes no limit for its duration.
    if hanging := call.machine.hns.hanging(method, path):
        call.session.wait(hanging)
    answer = json.loads(call.machine.hns.call(method, path, ""))
    if answer["Success"]:
        return answer["Output"]
    identifier = f"{answer['Error']},{call.command.name}"
    exception = "System.Management.Automation.RuntimeException"
    call.fail(
        Problem(answer["Error"], identifier, "OperationStopped", exception, hresult=answer["ErrorCode"])
    )
    return None


def _get(call: Call, kind: str) -> None:
    path = f"/{kind}/" + call.text("Id")
    found = _ask(call, "GET", path)
    for item in found if isinstance(found, list) else [found] if found else []:
        call.give(_plain(item))


def _remove(call: Call, kind: str) -> None:
    for record in call.records("InputObjects"):
        _ask(call, "DELETE", f"/{kind}/{as_text(record['ID'])}")


_ID = parameter("Id", STRING, 0)
_INPUT = Parameter(
    "InputObjects", "System.Object[]", sets=(InSet(mandatory=True, position=0, by_value=True),)
)


@cmdlet("Get-HnsNetwork", _MODULE, _ID, parameter("Detailed", SWITCH), kind="Function", exists=has_hns)
def get_network(call: Call) -> None:
    """HNS networks."""
    if call.flag("Detailed"):
        raise call.refuse("Detailed")
    _get(call, "networks")


@cmdlet("Get-HnsEndpoint", _MODULE, _ID, kind="Function", exists=has_hns)
def get_endpoint(call: Call) -> None:
    """HNS endpoints."""
    _get(call, "endpoints")


@cmdlet("Get-HnsPolicyList", _MODULE, _ID, kind="Function", exists=has_hns)
def get_policy_list(call: Call) -> None:
    """HNS load balancers."""
    _get(call, "policylists")


@cmdlet("Remove-HnsNetwork", _MODULE, _INPUT, kind="Function", exists=has_hns)
def remove_network(call: Call) -> None:
    """Remove networks."""
    _remove(call, "networks")


@cmdlet("Remove-HnsEndpoint", _MODULE, _INPUT, kind="Function", exists=has_hns)
def remove_endpoint(call: Call) -> None:
    """Remove endpoints."""
    _remove(call, "endpoints")


@cmdlet("Remove-HnsPolicyList", _MODULE, _INPUT, kind="Function", exists=has_hns)
def remove_policy_list(call: Call) -> None:
    """Remove load balancers."""
    _remove(call, "policylists")

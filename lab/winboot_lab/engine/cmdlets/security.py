"""ConvertTo- and ConvertFrom-SecureString, Get- and Set-ExecutionPolicy."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import SECURITY, cmdlet
from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import enum_type
from winboot_lab.engine.values import PSCustomObject, enum_value

Value = Any


# -- execution policy

POLICY = "Microsoft.PowerShell.ExecutionPolicy"
SCOPE = "Microsoft.PowerShell.ExecutionPolicyScope"
enum_type(SCOPE, {"Process": 0, "CurrentUser": 1, "LocalMachine": 2, "UserPolicy": 3, "MachinePolicy": 4})

_SHELL = r"SOFTWARE\Microsoft\PowerShell\1\ShellIds\Microsoft.PowerShell"
_GROUP_POLICY = r"SOFTWARE\Policies\Microsoft\Windows\PowerShell"
_KEYS = {
    "MachinePolicy": rf"HKEY_LOCAL_MACHINE\{_GROUP_POLICY}",
    "UserPolicy": rf"HKEY_CURRENT_USER\{_GROUP_POLICY}",
    "CurrentUser": rf"HKEY_CURRENT_USER\{_SHELL}",
    "LocalMachine": rf"HKEY_LOCAL_MACHINE\{_SHELL}",
}
_ORDER = ("MachinePolicy", "UserPolicy", "Process", "CurrentUser", "LocalMachine")


def _policy(call: Call, scope: str) -> str:
    if scope == "Process":
        return ask_one(call.scope, "environment.get", name="PSExecutionPolicyPreference") or "Undefined"
    key = _KEYS[scope]
    if ask_one(call.scope, "registry.stat", key=key) is None:
        return "Undefined"
    record = ask_one(call.scope, "registry.get", key=key, name="ExecutionPolicy")
    return "Undefined" if record is None else str(record["value"])


@cmdlet(
    "Get-ExecutionPolicy",
    f"Scope: {SCOPE} position=0 name\nList: switch",
    module=SECURITY,
)
def get_execution_policy(call: Call) -> None:
    """The policy in force, that of one scope, or all."""
    if call.flag("List"):
        for scope in _ORDER:
            call.write(
                PSCustomObject.of(
                    {
                        "Scope": enum_value(SCOPE, scope),
                        "ExecutionPolicy": enum_value(POLICY, _policy(call, scope)),
                    }
                )
            )
        return
    if call.has("Scope"):
        call.write(enum_value(POLICY, _policy(call, str(call["Scope"]))))
        return
    found = next(
        (policy for scope in _ORDER if (policy := _policy(call, scope)) != "Undefined"), "RemoteSigned"
    )
    call.write(enum_value(POLICY, found))

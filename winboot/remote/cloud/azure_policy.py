"""What winboot asks of Azure Resource Manager, as one table. The custom role is made from it. A test compares it with
the calls that a recording stand-in has seen.

Actions are those of learn.microsoft.com/azure/role-based-access-control/permissions/compute and …/networking.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Literal

Part = Literal["inventory", "check", "hook", "repair", "protect"]
PARTS: Final[tuple[Part, ...]] = ("inventory", "check", "hook", "repair", "protect")


@dataclass(frozen=True, slots=True)
class Action:
    """One right, the parts of winboot that use it, and what for."""

    name: str
    parts: tuple[Part, ...]
    why: str


# Where each resource provider says what its operations are.
_REFERENCE: Final = "https://learn.microsoft.com/azure/role-based-access-control/permissions/"
SOURCES: Final = {
    "Microsoft.Compute": _REFERENCE + "compute#microsoftcompute",
    "Microsoft.Network": _REFERENCE + "networking#microsoftnetwork",
}

ACTIONS: Final = (
    Action(
        "Microsoft.Compute/virtualMachines/read",
        ("inventory", "check", "hook", "repair"),
        "list the machines",
    ),
    Action(
        "Microsoft.Compute/virtualMachineScaleSets/read",
        ("inventory", "hook", "repair"),
        "list the scale sets; their repairs and their notice",
    ),
    Action(
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
        ("inventory", "check", "hook", "repair", "protect"),
        "list the instances of Uniform scale sets",
    ),
    Action(
        "Microsoft.Network/networkInterfaces/read",
        ("inventory", "check", "hook"),
        "addresses and IP forwarding",
    ),
    Action(
        "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces/read",
        ("inventory", "check", "hook"),
        "the same for Uniform scale sets",
    ),
    Action("Microsoft.Network/virtualNetworks/subnets/read", ("check",), "which route table a node has"),
    Action("Microsoft.Network/routeTables/read", ("check",), "the route to a node's pods"),
    Action("Microsoft.Compute/virtualMachines/reimage/action", ("repair",), "repair --by reimage"),
    Action(
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/reimage/action", ("repair",), "the same"
    ),
    Action("Microsoft.Compute/virtualMachineScaleSets/delete/action", ("repair",), "repair --by replace"),
    Action(
        "Microsoft.Compute/virtualMachineScaleSets/write",
        ("repair",),
        "start the new instance (`repair --by replace`)",
    ),
    Action(
        "Microsoft.Compute/locations/operations/read",
        ("hook", "repair", "protect"),
        "wait until a change is done",
    ),
    Action(
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write",
        ("hook", "protect"),
        "protect an instance from scale-in while winboot works on it",
    ),
)


def actions(parts: tuple[Part, ...] = ()) -> tuple[str, ...]:
    """The rights that these parts of winboot need; all of them without a name."""
    return tuple(one.name for one in ACTIONS if not parts or set(parts) & set(one.parts))


def role(scope: str, parts: tuple[Part, ...] = ()) -> str:
    """A custom role as `az role definition create --role-definition @file` reads it. `scope` is
    /subscriptions/<id>, or a resource group below it."""
    definition = {
        "Name": "winboot controller",
        "IsCustom": True,
        "Description": "What winboot needs: read machines and routes, reimage or replace instances that it repairs.",
        "Actions": list(actions(parts)),
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": [scope],
    }
    return json.dumps(definition, indent=2) + "\n"

"""The cmdlets the machine implements, by family; importing this package registers them."""

from __future__ import annotations

from winboot_lab.windows.cmdlets import (
    addresses,
    certificates,
    cim,
    computer,
    defender,
    events,
    features,
    firewall,
    hns,
    interfaces,
    processes,
    services,
    tasks,
)

__all__ = [
    "addresses",
    "certificates",
    "cim",
    "computer",
    "defender",
    "events",
    "features",
    "firewall",
    "hns",
    "interfaces",
    "processes",
    "services",
    "tasks",
]

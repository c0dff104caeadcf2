"""Clones of a lab machine: its disk on other hardware, generalized by sysprep or copied as it is.

Sysprep: a new security identifier, a new MachineGuid, no event logs
(learn.microsoft.com/windows-hardware/manufacture/desktop/sysprep--generalize--a-windows-installation).
"""

from __future__ import annotations

import copy
from typing import Any

from winboot_lab.up import NodePlan
from winboot_lab.windows.machine import Machine

from tests.lab.site import Site

HKLM = "HKEY_LOCAL_MACHINE"
CONTROL = rf"{HKLM}\SYSTEM\ControlSet001\Control"
# What comes from the hardware, or is made at the first start of a generalized image.
OWN = (
    rf"{HKLM}\SOFTWARE\Microsoft\Cryptography",
    rf"{HKLM}\SYSTEM\ControlSet001\Services\Tcpip\Parameters",
    rf"{HKLM}\SYSTEM\ControlSet001\Services\Tcpip6\Parameters",
    rf"{CONTROL}\ComputerName",
    rf"{CONTROL}\Network",
    rf"{CONTROL}\Class",
)


def clone(site: Site, template: Machine, plan: NodePlan, *, generalized: bool = True) -> Machine:
    """A machine of the site with the template's disk, switched on; without `generalized` it keeps the template's name."""
    made = site.machine_of(plan, plan.name if generalized else template.name)
    template.power_off()
    made.power_off()
    own = {path: made.registry.find(path) for path in OWN}
    memo: dict[int, Any] = {id(template): made, id(template.lock): made.lock, id(template.time): made.time}
    memo |= {id(one): one for one in (template.programs, template.world)}
    made.files.volumes = copy.deepcopy(template.files.volumes, memo)
    made.registry._machine_hive = copy.deepcopy(template.registry._machine_hive, memo)
    made.registry._own_rules = template.registry._own_rules
    made.services._services = copy.deepcopy(template.services._services, memo)
    made.services.in_box |= template.services.in_box
    made.tasks._known = copy.deepcopy(template.tasks._known, memo)
    made.features._known = copy.deepcopy(template.features._known, memo)
    made.defender.state = copy.deepcopy(template.defender.state, memo)
    made.network.ports = dict(template.network.ports)
    if not generalized:
        made.events._entries = copy.deepcopy(template.events._entries, memo)
        made.hns.networks = copy.deepcopy(template.hns.networks, memo)
    for path, key in own.items():
        above, _, name = path.rpartition("\\")
        found = made.registry.find(above)
        if key is not None and found is not None:
            found.keys[name.lower()] = key
    made.power_on()
    return made

"""Findings that a look reports and winboot never changes: another program owns them, or only a person can fix them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from winboot_lab.programs import hcn
from winboot_lab.windows.network import Route
from winboot_lab.windows.registry import CBS_PENDING

from tests.lab.actions import STATE, Hand, all_of, boot_id, regedit, write
from tests.lab.site import Site

SERVICING = (
    r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootInProgress"
)


@dataclass(frozen=True, slots=True)
class Notice:
    """A finding about a node; `joined` is false if it shows only before the join."""

    name: str
    whats: tuple[str, ...]
    do: Hand
    joined: bool = True
    exit_code: int = 0


def _nat(site: Site) -> None:
    subnet = {"AddressPrefix": "172.20.0.0/16", "GatewayAddress": "172.20.0.1"}
    hcn.call(site.machine, "POST", "/networks/", {"Name": "nat", "Type": "NAT", "Subnets": [subnet]})


def _docker(site: Site) -> None:
    site.machine.services.create("docker", r"C:\Program Files\docker\dockerd.exe")


def _domain_member(site: Site) -> None:
    site.machine.power.join_domain("corp.example", netbios="CORP")


def _team(site: Site) -> None:
    uplink = site.machine.network.management()
    assert uplink is not None
    uplink.description = "Microsoft Network Adapter Multiplexor Driver"


def _slow_start(site: Site) -> None:
    """As the startup task notes it."""
    noted = {"boot_id": boot_id(site), "seconds": 45}
    write(rf"{STATE}\slow-containerd.json", json.dumps(noted))(site)


def _second_gateway(site: Site) -> None:
    """A card for backups, with a gateway by DHCP (apache/cloudstack#2213)."""
    adapter = site.machine.network.plug_in_another("Backup", "172.21.0.5")
    site.machine.network.add_route(Route("0.0.0.0/0", "172.21.0.1", adapter.index, 9000))
    site.join()  # records the settings of the new card


def _nothing(site: Site) -> None:
    """A virtual machine as it is."""


NOTICES: tuple[Notice, ...] = (
    Notice(
        "servicing waits for a restart",
        ("pending restart",),
        lambda site: site.machine.registry.create(CBS_PENDING, volatile=True),
    ),
    Notice(
        "Windows is installing an update",
        ("servicing in progress",),
        lambda site: site.machine.registry.create(SERVICING, volatile=True),
    ),
    Notice("containerd came up late", ("service containerd: time to start",), _slow_start),
    Notice("Docker is installed", ("competing software: service docker",), _docker),
    Notice("there is Docker's network", ("competing software: HNS network nat",), _nat),
    Notice(
        "the clock is half an hour late",
        ("clock",),
        lambda site: site.machine.faults.skew(-1800),
        exit_code=2,
    ),
    Notice(
        "the firewall's service is disabled",
        ("firewall service",),
        regedit(r"SYSTEM\CurrentControlSet\Services\mpssvc", "Start", "DWord", 4),
    ),
    Notice("a second card has a gateway", ("default routes",), _second_gateway),
    Notice("the machine is a virtual one", ("hypervisor port: other MAC addresses",), _nothing, joined=False),
    Notice("nothing encrypts the disk", ("BitLocker",), _nothing, joined=False),
    Notice(
        "a virus scanner is installed",
        ("competing software: virus scanner OtherFilter",),
        regedit(r"SYSTEM\CurrentControlSet\Services\OtherFilter", "Group", "String", "FSFilter Anti-Virus"),
        joined=False,
    ),
    Notice("the adapters are a team", ("competing software: NIC team",), _team, joined=False),
    Notice(
        "a bad update is installed",
        ("Windows update KB5040437",),
        regedit(r"SOFTWARE\Microsoft\Windows NT\CurrentVersion", "UBR", "DWord", 2600),
    ),
    Notice(
        "a policy ignores local firewall rules",
        ("firewall DomainProfile: local rules",),
        lambda site: site.machine.faults.policy_without_local_rules("Domain"),
    ),
    Notice("a domain member has another name", ("computer name",), _domain_member, joined=False),
    Notice(
        "a policy locks Defender's exclusions",
        ("Defender exclusion process •",),
        all_of(
            lambda site: site.machine.defender.drop(
                "ExclusionProcess", site.machine.defender.exclusions("ExclusionProcess")
            ),
            regedit(r"SOFTWARE\Policies\Microsoft\Windows Defender", "DisableLocalAdminMerge", "DWord", 1),
        ),
    ),
)

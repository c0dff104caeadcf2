"""The firewall."""

from __future__ import annotations

import pytest
from winboot_lab.windows.firewall import RULES
from winboot_lab.windows.machine import Machine

from lab_windows.conftest import ask, one, refused, shown

RULE = {"Name": "winboot-kubelet", "DisplayName": "kubelet", "Protocol": "TCP", "LocalPort": ["10250"]}


def test_a_rule_stands_in_the_registry_as_one_line(machine: Machine) -> None:
    """A prefix becomes a mask."""
    ask(machine, "New-NetFirewallRule", **RULE, RemoteAddress=["10.0.0.0/16", "LocalSubnet"], Action="Allow")
    text = one(machine, "registry.get", key=RULES, name="winboot-kubelet")["value"]
    assert text == (
        "v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|"
        "RA4=10.0.0.0/255.255.0.0|RA42=LocalSubnet|Name=kubelet|"
    )


def test_filters_show_what_a_rule_says(machine: Machine) -> None:
    """One value is a text, several are a list, none is Any."""
    rule = one(
        machine,
        "New-NetFirewallRule",
        Name="n",
        DisplayName="n",
        Protocol="UDP",
        LocalPort=["4789", "30000-32767"],
    )
    ports = one(machine, "Get-NetFirewallPortFilter", AssociatedNetFirewallRule=rule)
    assert (ports["Protocol"], ports["LocalPort"]) == ("UDP", ["4789", "30000-32767"])
    assert (
        one(machine, "Get-NetFirewallAddressFilter", AssociatedNetFirewallRule=rule)["RemoteAddress"] == "Any"
    )


def test_a_rule_of_the_same_name_is_not_made_twice(machine: Machine) -> None:
    """Windows System Error 183."""
    ask(machine, "New-NetFirewallRule", **RULE)
    assert (
        refused(machine, "New-NetFirewallRule", **RULE).id == "Windows System Error 183,New-NetFirewallRule"
    )


def test_a_missing_rule_is_named_by_its_instance_id(machine: Machine) -> None:
    """CDXML queries InstanceID for -Name."""
    problem = refused(machine, "Get-NetFirewallRule", Name=["none"])
    assert problem.id == "CmdletizationQuery_NotFound_InstanceID,Get-NetFirewallRule"


@pytest.mark.parametrize(
    "wrong",
    [{"LocalPort": ["70000"]}, {"RemoteAddress": ["10.0.0.300"]}, {"Protocol": "Any", "LocalPort": ["1"]}],
)
def test_wrong_ports_and_addresses_are_refused(machine: Machine, wrong: dict[str, list[str]]) -> None:
    """Windows System Error 87."""
    parameters = {**RULE, **wrong}
    assert (
        refused(machine, "New-NetFirewallRule", **parameters).id
        == "Windows System Error 87,New-NetFirewallRule"
    )


def test_rules_let_in_what_they_name(machine: Machine) -> None:
    """Until they are disabled; blocking wins."""
    assert not machine.firewall.lets_in("TCP", 10250)
    ask(machine, "New-NetFirewallRule", **RULE, RemoteAddress=["10.0.0.0/16"])
    assert machine.firewall.lets_in("TCP", 10250, "10.0.3.4")
    assert not machine.firewall.lets_in("TCP", 10250, "192.168.1.1")
    ask(machine, "New-NetFirewallRule", Name="b", DisplayName="b", Protocol="TCP", Action="Block")
    assert not machine.firewall.lets_in("TCP", 10250, "10.0.3.4")
    ask(machine, "Remove-NetFirewallRule", Name=["b"])
    ask(machine, "Disable-NetFirewallRule", Name=["winboot-kubelet"])
    assert not machine.firewall.lets_in("TCP", 10250, "10.0.3.4")


def test_group_policy_can_make_local_rules_count_for_nothing(machine: Machine) -> None:
    """They are there and do nothing; the profile says so in the active store."""
    ask(machine, "New-NetFirewallRule", **RULE)
    machine.faults.policy_without_local_rules("Public")
    assert not machine.firewall.lets_in("TCP", 10250)
    active = one(machine, "Get-NetFirewallProfile", Name=["Public"], PolicyStore="ActiveStore")
    assert shown(active, "AllowLocalFirewallRules") == "False"
    assert (
        shown(one(machine, "Get-NetFirewallProfile", Name=["Public"]), "AllowLocalFirewallRules")
        == "NotConfigured"
    )
    assert shown(one(machine, "Get-NetFirewallRule", Name=["winboot-kubelet"]), "PrimaryStatus") == "Inactive"


def test_a_rule_can_be_changed_in_place(machine: Machine) -> None:
    """What is not named stays."""
    ask(machine, "New-NetFirewallRule", **RULE)
    ask(
        machine,
        "Set-NetFirewallRule",
        Name=["winboot-kubelet"],
        LocalPort=["10255"],
        Profile="Domain, Private",
    )
    rule = machine.firewall.find("winboot-kubelet")
    assert rule is not None
    assert (rule.local_ports, rule.profiles, rule.protocol) == (["10255"], ["Domain", "Private"], "TCP")


def test_remote_management_is_let_in_from_the_start(machine: Machine) -> None:
    """winboot needs WinRM for its first connection."""
    assert machine.reachable(5985)
    machine.firewall.remove("WINRM-HTTP-In-TCP-PUBLIC")
    assert not machine.reachable(5985)

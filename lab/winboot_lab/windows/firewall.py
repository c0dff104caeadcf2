"""Windows Firewall: rules as the registry holds them, profiles, and what Group Policy says about both."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Literal

from winboot_lab.windows.host import Host
from winboot_lab.windows.network import Network
from winboot_lab.windows.registry import POLICIES, SERVICES
from winboot_lab.windows.snapshot import Tree

POLICY = SERVICES + r"\SharedAccess\Parameters\FirewallPolicy"
RULES = POLICY + r"\FirewallRules"
GROUP_POLICY = POLICIES + r"\WindowsFirewall"
GROUP_RULES = GROUP_POLICY + r"\FirewallRules"

PROFILES = ("Domain", "Private", "Public")
PROTOCOLS = {"TCP": 6, "UDP": 17, "ICMPv4": 1, "ICMPv6": 58}
_VERSIONS = {17763: "v2.29", 20348: "v2.31", 26100: "v2.33"}
_WORDS = frozenset(("Any", "LocalSubnet", "DNS", "DHCP", "WINS", "DefaultGateway", "Internet", "Intranet"))


@dataclass(slots=True)
class FirewallRule:
    """One rule. Empty lists mean any; an empty `profiles` means all."""

    name: str
    display: str
    enabled: bool = True
    direction: Literal["Inbound", "Outbound"] = "Inbound"
    action: Literal["Allow", "Block"] = "Allow"
    protocol: str = "Any"
    local_ports: list[str] = field(default_factory=list)
    remote_ports: list[str] = field(default_factory=list)
    local_addresses: list[str] = field(default_factory=list)
    remote_addresses: list[str] = field(default_factory=list)
    profiles: list[str] = field(default_factory=list)
    program: str = ""
    service: str = ""
    description: str = ""
    group: str = ""
    edge: bool = False
    policy: bool = False


def rule_text(rule: FirewallRule, build: int) -> str:
    """The rule as a registry value."""
    parts = [
        _VERSIONS[build],
        f"Action={rule.action}",
        f"Active={'TRUE' if rule.enabled else 'FALSE'}",
        f"Dir={'In' if rule.direction == 'Inbound' else 'Out'}",
    ]
    if rule.protocol != "Any":
        parts.append(f"Protocol={PROTOCOLS.get(rule.protocol, rule.protocol)}")
    parts += [f"Profile={p}" for p in rule.profiles]
    parts += [_port("LPort", p) for p in rule.local_ports]
    parts += [_port("RPort", p) for p in rule.remote_ports]
    parts += [_address("LA", a) for a in rule.local_addresses]
    parts += [_address("RA", a) for a in rule.remote_addresses]
    parts += [f"App={rule.program}"] if rule.program else []
    parts += [f"Svc={rule.service}"] if rule.service else []
    parts.append(f"Name={rule.display}")
    parts += [f"Desc={rule.description}"] if rule.description else []
    parts += [f"EmbedCtxt={rule.group}"] if rule.group else []
    parts += ["Edge=TRUE"] if rule.edge else []
    return "|".join(parts) + "|"


def _port(key: str, port: str) -> str:
    return f"{key}2_10={port}" if "-" in port else f"{key}={port}"


def _address(key: str, address: str) -> str:
    # Words have keys of their own (RA42), plain addresses show their family (RA4, RA6).
    if address in _WORDS:
        return f"{key}42={address}"
    return f"{key}{6 if ':' in address else 4}={address}"


def read_rule(name: str, text: str, *, policy: bool = False) -> FirewallRule:
    """A rule from its registry value."""
    rule = FirewallRule(name, name, enabled=False, policy=policy)
    numbers = {str(v): k for k, v in PROTOCOLS.items()}
    for part in text.split("|")[1:]:
        key, _, value = part.partition("=")
        match key:
            case "Action":
                rule.action = "Allow" if value == "Allow" else "Block"
            case "Active":
                rule.enabled = value.upper() == "TRUE"
            case "Dir":
                rule.direction = "Inbound" if value == "In" else "Outbound"
            case "Protocol":
                rule.protocol = numbers.get(value, value)
            case "Profile":
                rule.profiles.append(value)
            case "LPort" | "LPort2_10":
                rule.local_ports.append(value)
            case "RPort" | "RPort2_10":
                rule.remote_ports.append(value)
            case "LA4" | "LA6" | "LA42":
                rule.local_addresses.append(value)
            case "RA4" | "RA6" | "RA42":
                rule.remote_addresses.append(value)
            case "App":
                rule.program = value
            case "Svc":
                rule.service = value
            case "Name":
                rule.display = value
            case "Desc":
                rule.description = value
            case "EmbedCtxt":
                rule.group = value
            case "Edge":
                rule.edge = value.upper() == "TRUE"
    return rule


def canonical_address(text: str) -> str:
    """An address as the firewall shows it back: prefixes become masks, words keep their spelling."""
    for word in _WORDS:
        if text.lower() == word.lower():
            return word
    if "-" in text:
        first, last = text.split("-", 1)
        return f"{ipaddress.ip_address(first.strip())}-{ipaddress.ip_address(last.strip())}"
    if "/" in text:
        network = ipaddress.ip_network(text, strict=False)
        if network.num_addresses == 1:
            return str(network.network_address)
        if network.version == 4:
            return f"{network.network_address}/{network.netmask}"
        return str(network)
    return str(ipaddress.ip_address(text))


class Firewall:
    """The firewall of the machine."""

    def __init__(self, machine: Host, network: Network) -> None:
        self._machine, self._network = machine, network

    def local(self) -> list[FirewallRule]:
        """The rules of the persistent store."""
        return self._read(RULES, policy=False)

    def by_policy(self) -> list[FirewallRule]:
        """The rules that Group Policy brings."""
        return self._read(GROUP_RULES, policy=True)

    def _read(self, path: str, *, policy: bool) -> list[FirewallRule]:
        key = self._machine.registry.find(path)
        values = key.values.values() if key else ()
        return [read_rule(v.name, v.data, policy=policy) for v in values if isinstance(v.data, str)]

    def find(self, name: str) -> FirewallRule | None:
        """A local rule by its name (id)."""
        value = self._machine.registry.value(RULES, name)
        return (
            read_rule(value.name, value.data) if value is not None and isinstance(value.data, str) else None
        )

    def save(self, rule: FirewallRule) -> None:
        """Write a local rule."""
        self._machine.registry.set(RULES, rule.name, "String", rule_text(rule, self._machine.build))

    def remove(self, name: str) -> None:
        """Take a local rule away."""
        self._machine.registry.forget(RULES, name)

    # ---- profiles --------------------------------------------------------------------------------------

    def setting(self, profile: str, name: str, default: int) -> tuple[int, bool]:
        """A profile's setting and whether Group Policy decides it."""
        # Group Policy calls the profile Private; the machine's own settings still call it Standard.
        held = self._machine.registry.value(f"{GROUP_POLICY}\\{profile}Profile", name)
        if held is not None and isinstance(held.data, int):
            return held.data, True
        own = ("Standard" if profile == "Private" else profile) + "Profile"
        return self._machine.registry.number(f"{POLICY}\\{own}", name, default), False

    def enabled(self, profile: str) -> bool:
        """Whether the profile filters at all."""
        return self.setting(profile, "EnableFirewall", 1)[0] != 0

    def local_rules_count(self, profile: str) -> bool:
        """Whether local rules count in addition to Group Policy's."""
        return self.setting(profile, "AllowLocalPolicyMerge", 1)[0] != 0

    def active_profiles(self) -> list[str]:
        """The profiles of the connected networks."""
        words = {"DomainAuthenticated": "Domain"}
        found = {
            words.get(a.category, a.category)
            for a in self._network.adapters
            if not a.loopback and a.up and a.switch is None and a.ipv4
        }
        return [p for p in PROFILES if p in found] or ["Public"]

    def lets_in(self, protocol: str, port: int, source: str = "") -> bool:
        """Whether a packet from outside passes."""
        profile = self.active_profiles()[0]
        if not self.enabled(profile) or self.setting(profile, "DefaultInboundAction", 1)[0] == 0:
            return True
        rules = self.by_policy() + (self.local() if self.local_rules_count(profile) else [])
        fitting = [r for r in rules if _fits(r, protocol, port, profile, source)]
        return bool(fitting) and all(r.action == "Allow" for r in fitting)

    def tree(self) -> Tree:
        """Only the profiles: the registry holds the rules."""
        return {p: {"enabled": self.enabled(p), "local rules": self.local_rules_count(p)} for p in PROFILES}


def _fits(rule: FirewallRule, protocol: str, port: int, profile: str, source: str) -> bool:
    if not rule.enabled or rule.direction != "Inbound" or rule.protocol not in ("Any", protocol):
        return False
    if rule.profiles and profile not in rule.profiles:
        return False
    if rule.local_ports and not any(_in_range(p, port) for p in rule.local_ports):
        return False
    named = [a for a in rule.remote_addresses if a not in _WORDS]
    return not (named and source) or any(_covers(a, source) for a in named)


def _in_range(text: str, port: int) -> bool:
    first, _, last = text.partition("-")
    return first.isdigit() and int(first) <= port <= int(last or first)


def _covers(text: str, source: str) -> bool:
    address = ipaddress.ip_address(source)
    if "-" in text:
        first, last = (ipaddress.ip_address(p) for p in text.split("-"))
        return first.version == address.version and int(first) <= int(address) <= int(last)
    return address in ipaddress.ip_network(text, strict=False)

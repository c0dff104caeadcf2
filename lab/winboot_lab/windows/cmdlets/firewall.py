"""Get-/New-/Set-/Remove-/Enable-/Disable-NetFirewallRule, their filters, and Get-NetFirewallProfile."""

from __future__ import annotations

import uuid

from winboot_lab.windows.call import STRING, STRINGS, Call, as_text, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import (
    CIM,
    enum,
    instance,
    nothing_fits,
    select,
    uint32,
    windows_error,
)
from winboot_lab.windows.door import InSet, Parameter, Plain, Problem, Record, Typed
from winboot_lab.windows.firewall import PROFILES, PROTOCOLS, FirewallRule, canonical_address

_MODULE = "NetSecurity"
_KIND = "Microsoft.PowerShell.Cmdletization.GeneratedTypes.NetSecurity"
_RULE = "MSFT_NetFirewallRule"
_PROFILE_BITS = {"Domain": 1, "Private": 2, "Public": 4}


def _profiles(rule: FirewallRule) -> Typed:
    if not rule.profiles:
        return enum(f"{_KIND}.Profile", 0, "Any")
    names = [p for p in PROFILES if p in rule.profiles]
    return enum(f"{_KIND}.Profile", sum(_PROFILE_BITS[p] for p in names), ", ".join(names))


def _show(call: Call, rule: FirewallRule) -> Record:
    machine = call.machine
    profiles = rule.profiles or list(PROFILES)
    counts = rule.policy or any(
        machine.firewall.local_rules_count(p) for p in machine.firewall.active_profiles() if p in profiles
    )
    store = "GroupPolicy" if rule.policy else "Local"
    return instance(
        _RULE,
        {
            "Name": rule.name,
            "ID": rule.name,
            "InstanceID": rule.name,
            "DisplayName": rule.display,
            "Description": rule.description,
            "Group": rule.group,
            "DisplayGroup": rule.group,
            "RuleGroup": rule.group,
            "Enabled": enum(
                f"{_KIND}.Enabled", 1 if rule.enabled else 2, "True" if rule.enabled else "False"
            ),
            "Direction": enum(f"{_KIND}.Direction", 1 if rule.direction == "Inbound" else 2, rule.direction),
            "Action": enum(f"{_KIND}.Action", 2 if rule.action == "Allow" else 4, rule.action),
            "Profile": _profiles(rule),
            "EdgeTraversalPolicy": enum(
                f"{_KIND}.EdgeTraversal", int(rule.edge), "Allow" if rule.edge else "Block"
            ),
            "PolicyStoreSource": "PersistentStore" if not rule.policy else "Group Policy",
            "PolicyStoreSourceType": enum(f"{_KIND}.PolicyStoreType", 2 if rule.policy else 1, store),
            "PrimaryStatus": enum(
                f"{_KIND}.PrimaryStatus", 1 if counts else 3, "OK" if counts else "Inactive"
            ),
            "Status": "The rule was parsed successfully from the store. (65536)",
            "Owner": None,
        },
        text=f'{_RULE} (InstanceID = "{rule.name}")',
    )


def _unreachable(call: Call) -> bool:
    """Whether the firewall's service is off, and the cmdlet has failed with what New-NetFirewallRule reports then
    (prometheus-community/windows_exporter#2105). Reading rules fails as well (falahati/WindowsFirewallHelper#24, by COM).
    Unsourced: cmdlets-without-a-firewall.
    """
    if call.machine.services.running("mpssvc"):
        return False
    message = "There are no more endpoints available from the endpoint mapper. "
    call.fail(windows_error(call, 1753, message, target=f"{_RULE}:root/standardcimv2/{_RULE}"))
    return True


_STORES = ("persistentstore", "activestore", "rsop", "")


def _rules(call: Call) -> list[FirewallRule]:
    if _unreachable(call):
        return []
    firewall = call.machine.firewall
    if call.has("InputObject"):
        found = [firewall.find(as_text(r["InstanceID"])) for r in call.records("InputObject")]
        return [r for r in found if r is not None]
    store = call.text("PolicyStore").lower()
    if store not in _STORES:
        raise call.refuse("PolicyStore", store)
    every = firewall.local() if store in ("", "persistentstore") else []
    if store in ("activestore", "rsop"):
        every = firewall.by_policy() + (firewall.local() if store == "activestore" else [])
    every = select(call, every, "Name", "InstanceID", _RULE, lambda r: r.name)
    every = select(call, every, "DisplayName", "DisplayName", _RULE, lambda r: r.display)
    every = select(call, every, "Group", "RuleGroup", _RULE, lambda r: r.group)
    before = bool(every)
    words = (
        ("Direction", lambda r: r.direction),
        ("Action", lambda r: r.action),
        ("Enabled", lambda r: str(r.enabled)),
    )
    for name, text in words:
        if call.has(name):
            every = [r for r in every if text(r).lower() == call.text(name).lower()]
    if before and not every:
        call.fail(nothing_fits(call, _RULE))
    return every


_CHOICE = (
    Parameter("Name", STRINGS, ("ID",), sets=(InSet("ByName", mandatory=True, position=0, by_name=True),)),
    Parameter("DisplayName", STRINGS, sets=(InSet("ByDisplayName", mandatory=True),)),
    Parameter("Group", STRINGS, sets=(InSet("ByGroup", mandatory=True),)),
    parameter("PolicyStore"),
)
_FILTERS = (
    parameter("Enabled", f"{_KIND}.Enabled", words=("True", "False")),
    parameter("Direction", f"{_KIND}.Direction", words=("Inbound", "Outbound")),
    parameter("Action", f"{_KIND}.Action", words=("NotConfigured", "Allow", "Block")),
)
_INPUT = Parameter(
    "InputObject", f"{CIM}#{_RULE}[]", sets=(InSet("InputObject", mandatory=True, by_value=True),)
)


@cmdlet(
    "Get-NetFirewallRule",
    _MODULE,
    *_CHOICE,
    *_FILTERS,
    switch("All", sets=("GetAll",)),
    kind="Function",
    default_set="GetAll",
)
def get_rule(call: Call) -> None:
    """Rules of the persistent store, or of what is in force with -PolicyStore ActiveStore."""
    call.give(*(_show(call, r) for r in _rules(call)))


_SETTINGS = (
    parameter("Description"),
    parameter("Enabled", f"{_KIND}.Enabled", words=("True", "False")),
    parameter("Profile", f"{_KIND}.Profile[]"),
    parameter("Direction", f"{_KIND}.Direction", words=("Inbound", "Outbound")),
    parameter("Action", f"{_KIND}.Action", words=("NotConfigured", "Allow", "Block")),
    parameter(
        "EdgeTraversalPolicy", f"{_KIND}.EdgeTraversal", words=("Block", "Allow", "DeferToUser", "DeferToApp")
    ),
    parameter("LocalAddress", STRINGS),
    parameter("RemoteAddress", STRINGS),
    parameter("Protocol"),
    parameter("LocalPort", STRINGS),
    parameter("RemotePort", STRINGS),
    parameter("Program"),
    parameter("Service"),
    parameter("PolicyStore"),
)


def _apply(call: Call, rule: FirewallRule) -> Problem | None:
    if call.has("Profile"):
        words = [w.strip() for w in ",".join(call.texts("Profile")).split(",")]
        rule.profiles = [p for p in PROFILES if p.lower() in [w.lower() for w in words]]
    rule.description = call.text("Description", rule.description)
    rule.enabled = call.flag("Enabled", rule.enabled)
    if call.has("Direction"):
        rule.direction = "Inbound" if call.text("Direction").lower() == "inbound" else "Outbound"
    if call.has("Action"):
        word = call.text("Action").lower()
        if word not in ("allow", "block"):
            raise call.refuse("Action", word)
        rule.action = "Allow" if word == "allow" else "Block"
    if call.has("EdgeTraversalPolicy"):
        rule.edge = call.text("EdgeTraversalPolicy").lower() == "allow"
    rule.program = _any(call.text("Program", rule.program or "Any"))
    rule.service = _any(call.text("Service", rule.service or "Any"))
    if call.has("Protocol"):
        rule.protocol = _protocol(call)
    try:
        for name, field in (("LocalAddress", "local_addresses"), ("RemoteAddress", "remote_addresses")):
            if call.has(name):
                setattr(rule, field, [canonical_address(a) for a in call.texts(name) if a.lower() != "any"])
    except ValueError:
        message = "The address is invalid. Addresses may be specified as IP addresses, ranges, or subnets."
        return windows_error(call, 87, message, category="InvalidArgument", target=_RULE)
    for name, field in (("LocalPort", "local_ports"), ("RemotePort", "remote_ports")):
        if call.has(name):
            ports = [p.replace(" ", "") for p in call.texts(name) if p.lower() != "any"]
            if not all(_is_port(p) for p in ports):
                message = "One or more ports is invalid. Port numbers must be 0-65535."
                return windows_error(call, 87, message, category="InvalidArgument", target=_RULE)
            setattr(rule, field, ports)
    if (rule.local_ports or rule.remote_ports) and rule.protocol not in ("TCP", "UDP"):
        message = "The port number can only be specified with TCP or UDP. "
        return windows_error(call, 87, message, category="InvalidArgument", target=_RULE)
    return None


def _any(text: str) -> str:
    return "" if text.lower() == "any" else text


def _protocol(call: Call) -> str:
    word = call.text("Protocol")
    if word.isdigit():
        numbers = {str(v): k for k, v in PROTOCOLS.items()}
        return numbers.get(word, word)
    names = {k.lower(): k for k in (*PROTOCOLS, "Any")}
    if word.lower() not in names:
        raise call.refuse("Protocol", word)
    return names[word.lower()]


def _is_port(text: str) -> bool:
    first, dash, last = text.partition("-")
    if text in ("RPC", "RPCEPMap", "IPHTTPSIn", "PlayToDiscovery", "Teredo"):
        return True
    parts = [first, last] if dash else [first]
    return all(p.isdigit() and int(p) <= 65535 for p in parts)


@cmdlet(
    "New-NetFirewallRule",
    _MODULE,
    parameter("Name", aliases=("ID",)),
    parameter("DisplayName", mandatory=True),
    parameter("Group"),
    *_SETTINGS,
    kind="Function",
    should_process=True,
)
def new_rule(call: Call) -> None:
    """Make a rule; it allows, inbound, any protocol, by default."""
    firewall = call.machine.firewall
    if call.text("PolicyStore").lower() not in ("", "persistentstore"):
        raise call.refuse("PolicyStore", call.text("PolicyStore"))
    if _unreachable(call):
        return
    name = call.text("Name") or "{" + str(uuid.uuid4()) + "}"
    if firewall.find(name) is not None:
        message = "Cannot create a file when that file already exists. "
        call.fail(windows_error(call, 183, message, target=f"{_RULE}:root/standardcimv2/{_RULE}"))
        return
    rule = FirewallRule(name, call.text("DisplayName"), group=call.text("Group"))
    problem = _apply(call, rule)
    if problem is not None:
        call.fail(problem)
        return
    firewall.save(rule)
    call.give(_show(call, rule))


@cmdlet(
    "Set-NetFirewallRule",
    _MODULE,
    *(p for p in _CHOICE if p.name != "PolicyStore"),
    _INPUT,
    parameter("NewDisplayName"),
    *_SETTINGS,
    switch("PassThru"),
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def set_rule(call: Call) -> None:
    """Change rules."""
    keys = ("Name", "DisplayName", "Group", "InputObject", "PolicyStore")
    choice = Call(
        call.session, call.command, {k: v for k, v in call.parameters.items() if k in keys}, call.result
    )
    for rule in _rules(choice):
        rule.display = call.text("NewDisplayName", rule.display)
        problem = _apply(call, rule)
        if problem is not None:
            call.fail(problem)
            return
        call.machine.firewall.save(rule)
        if call.flag("PassThru"):
            call.give(_show(call, rule))


@cmdlet(
    "Remove-NetFirewallRule",
    _MODULE,
    *_CHOICE,
    _INPUT,
    *_FILTERS,
    switch("All", sets=("GetAll",)),
    switch("PassThru"),
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def remove_rule(call: Call) -> None:
    """Take rules away."""
    for rule in _rules(call):
        call.machine.firewall.remove(rule.name)
        if call.flag("PassThru"):
            call.give(_show(call, rule))


def _switch_rules(call: Call, on: bool) -> None:
    for rule in _rules(call):
        rule.enabled = on
        call.machine.firewall.save(rule)
        if call.flag("PassThru"):
            call.give(_show(call, rule))


@cmdlet(
    "Enable-NetFirewallRule",
    _MODULE,
    *_CHOICE,
    _INPUT,
    switch("PassThru"),
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def enable_rule(call: Call) -> None:
    """Switch rules on."""
    _switch_rules(call, True)


@cmdlet(
    "Disable-NetFirewallRule",
    _MODULE,
    *_CHOICE,
    _INPUT,
    switch("PassThru"),
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def disable_rule(call: Call) -> None:
    """Switch rules off."""
    _switch_rules(call, False)


# ---- filters -------------------------------------------------------------------------------------------


def _words(values: list[str]) -> Plain:
    # One value comes as a text, several as a list, none as the word Any.
    if not values:
        return "Any"
    return values[0] if len(values) == 1 else [*values]


def _of_rules(call: Call) -> list[FirewallRule]:
    firewall = call.machine.firewall
    if not call.has("AssociatedNetFirewallRule"):
        return firewall.local()
    names = [as_text(r["InstanceID"]) for r in call.records("AssociatedNetFirewallRule")]
    every = {r.name.lower(): r for r in [*firewall.by_policy(), *firewall.local()]}
    return [every[n.lower()] for n in names if n.lower() in every]


_ASSOCIATED = Parameter(
    "AssociatedNetFirewallRule", f"{CIM}#{_RULE}", sets=(InSet("ByRule", mandatory=True, by_value=True),)
)


@cmdlet(
    "Get-NetFirewallPortFilter",
    _MODULE,
    _ASSOCIATED,
    switch("All", sets=("GetAll",)),
    kind="Function",
    default_set="GetAll",
)
def get_port_filter(call: Call) -> None:
    """Protocol and ports of rules."""
    for rule in _of_rules(call):
        call.give(
            instance(
                "MSFT_NetProtocolPortFilter",
                {
                    "InstanceID": rule.name,
                    "Protocol": rule.protocol,
                    "LocalPort": _words(rule.local_ports),
                    "RemotePort": _words(rule.remote_ports),
                    "IcmpType": "Any",
                },
            )
        )


@cmdlet(
    "Get-NetFirewallAddressFilter",
    _MODULE,
    _ASSOCIATED,
    switch("All", sets=("GetAll",)),
    kind="Function",
    default_set="GetAll",
)
def get_address_filter(call: Call) -> None:
    """Addresses of rules."""
    for rule in _of_rules(call):
        call.give(
            instance(
                "MSFT_NetAddressFilter",
                {
                    "InstanceID": rule.name,
                    "LocalAddress": _words(rule.local_addresses),
                    "LocalIP": _words(rule.local_addresses),
                    "RemoteAddress": _words(rule.remote_addresses),
                    "RemoteIP": _words(rule.remote_addresses),
                },
            )
        )


@cmdlet(
    "Get-NetFirewallApplicationFilter",
    _MODULE,
    _ASSOCIATED,
    switch("All", sets=("GetAll",)),
    kind="Function",
    default_set="GetAll",
)
def get_application_filter(call: Call) -> None:
    """Programs of rules."""
    for rule in _of_rules(call):
        properties: dict[str, Plain] = {
            "InstanceID": rule.name,
            "Program": rule.program or "Any",
            "AppPath": rule.program or "Any",
            "Package": None,
        }
        call.give(instance("MSFT_NetApplicationFilter", properties))


# ---- profiles ------------------------------------------------------------------------------------------


@cmdlet(
    "Get-NetFirewallProfile",
    _MODULE,
    Parameter("Name", STRINGS, ("Profile",), sets=(InSet("ByName", position=0, by_name=True),)),
    parameter("PolicyStore", STRING),
    switch("All", sets=("GetAll",)),
    kind="Function",
    default_set="ByName",
)
def get_profile(call: Call) -> None:
    """Profiles; with -PolicyStore ActiveStore what Group Policy and the machine come to together."""
    store = call.text("PolicyStore").lower()
    if store not in ("", "persistentstore", "activestore"):
        raise call.refuse("PolicyStore", store)
    active = store == "activestore"
    for profile in select(call, PROFILES, "Name", "Name", "MSFT_NetFirewallProfile", lambda p: p):
        call.give(_show_profile(call, profile, active=active))


def _show_profile(call: Call, profile: str, *, active: bool) -> Record:
    firewall = call.machine.firewall

    def setting(name: str, default: int) -> int | None:
        value, by_policy = firewall.setting(profile, name, default)
        if active:
            return value
        return None if by_policy or value == default else value

    def truth(value: int | None) -> Typed:
        word = {None: "NotConfigured", 0: "False"}.get(value, "True")
        return enum(f"{_KIND}.GpoBoolean", {None: 2, 0: 0}.get(value, 1), word)

    def action(value: int | None) -> Typed:
        word = {None: "NotConfigured", 0: "Allow"}.get(value, "Block")
        return enum(f"{_KIND}.Action", {None: 0, 0: 2}.get(value, 4), word)

    enabled = firewall.setting(profile, "EnableFirewall", 1)[0]
    return instance(
        "MSFT_NetFirewallProfile",
        {
            "Name": profile,
            "Profile": profile,
            "Enabled": truth(enabled),
            "DefaultInboundAction": action(setting("DefaultInboundAction", 1)),
            "DefaultOutboundAction": action(setting("DefaultOutboundAction", 0)),
            "AllowInboundRules": truth(setting("AllowInboundRules", 1)),
            "AllowLocalFirewallRules": truth(setting("AllowLocalPolicyMerge", 1)),
            "NotifyOnListen": truth(0),
            "LogFileName": r"%systemroot%\system32\LogFiles\Firewall\pfirewall.log",
            "LogMaxSizeKilobytes": uint32(4096),
        },
    )

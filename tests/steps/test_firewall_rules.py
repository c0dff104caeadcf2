"""Open what the kubelet, kube-proxy and the network must be able to receive, and nothing else."""

from typing import Literal

from tests.steps.bench import Bench
from tests.steps.builders import a_spec, a_spec_of
from winboot.report.hints import HINTS
from winboot.script.steps.firewall_rules import FIREWALL_RULES, OURS


def test_rules_have_stable_names_of_our_own():
    rules = FIREWALL_RULES.inputs(a_spec())["rules"]

    assert rules
    assert all(rule["name"].startswith("winboot-") for rule in rules)


def test_rules_are_open_to_every_address_unless_the_profile_restricts_them():
    scoped = {"update_hold: false": "update_hold: false\n  firewall: {sources: [10.0.0.0/16]}"}

    assert {tuple(rule["sources"]) for rule in FIREWALL_RULES.inputs(a_spec())["rules"]} == {("Any",)}
    assert {tuple(rule["sources"]) for rule in FIREWALL_RULES.inputs(a_spec(**scoped))["rules"]} == {
        ("10.0.0.0/16",)
    }


STEP = "firewall-rules"


def test_rules_are_made_once(bench: Bench):
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}


def test_a_rule_that_was_changed_by_hand_is_made_again(bench: Bench):
    bench.run(STEP)
    bench.machine.console.invoke("Disable-NetFirewallRule", {"Name": ["winboot-kubelet"]})

    assert bench.look(STEP).differences(STEP) == {
        "firewall rule winboot-kubelet": ("inactive", "in TCP 10250 from Any")
    }
    assert bench.run(STEP).states == {STEP: "changed"}


def test_rules_with_source_ranges_read_back_as_they_were_meant():
    scoped = {
        "update_hold: false": "update_hold: false\n  firewall: {sources: [10.0.0.0/16, 192.168.1.7/32]}"
    }
    bench = Bench(spec=a_spec(**scoped))

    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}


def test_a_policy_that_ignores_local_rules_is_reported(bench: Bench):
    key = r"HKEY_LOCAL_MACHINE\SOFTWARE\Policies\Microsoft\WindowsFirewall\DomainProfile"
    bench.machine.console.invoke("registry.create", {"key": key})
    bench.machine.console.invoke(
        "registry.set", {"key": key, "name": "AllowLocalPolicyMerge", "kind": "DWord", "value": 0}
    )
    bench.run(STEP)

    told = bench.run(STEP)

    assert told.states == {STEP: "ok"}
    assert told.differences(STEP)["firewall DomainProfile: local rules"][0] == "ignored by Group Policy"


def test_undo_removes_our_rules(bench: Bench):
    bench.run(STEP)
    bench.undo(STEP)

    assert len(bench.look(STEP).differences(STEP)) == 4


def set_firewall(bench: Bench, status: Literal["Running", "Stopped"], start: int) -> None:
    service = bench.machine.services.need("mpssvc")
    service.status = status
    bench.machine.services.change(service, start=start)


def test_a_live_node_gets_no_rules_without_the_firewalls_service(bench: Bench):
    set_firewall(bench, "Stopped", 4)

    problem = bench.run(STEP, facts={"NodeIsLive": True}).problem(STEP)

    assert problem.id == "FirewallServiceOff"
    assert HINTS["FirewallServiceOff"] in problem.hint


def test_an_undo_without_the_firewalls_service_fails_and_keeps_its_notes(bench: Bench):
    """Get-NetFirewallRule shows no rule then: they would stay, and be forgotten."""
    bench.run(STEP)
    set_firewall(bench, "Stopped", 4)

    assert bench.undo(STEP).problem(STEP).id == "FirewallServiceOff"

    set_firewall(bench, "Running", 2)
    assert bench.undo(STEP).states == {STEP: "changed"}
    assert len(bench.look(STEP).differences(STEP)) == 4


def test_a_bare_machine_refuses_every_connection(bench: Bench):
    found = bench.look("firewall-rules").differences("firewall-rules")

    assert found["firewall rule winboot-kubelet"] == (None, "in TCP 10250 from Any")
    assert all(is_ is None for is_, _ in found.values())


def test_rules_of_others_are_left_alone(bench: Bench):
    before = {rule.name for rule in bench.machine.firewall.local()}
    bench.run("firewall-rules")
    assert before < {rule.name for rule in bench.machine.firewall.local()}
    bench.undo("firewall-rules")

    assert {rule.name for rule in bench.machine.firewall.local()} == before


def test_an_opening_that_is_not_wanted_any_more_is_closed(bench: Bench):
    """`node_ports: false` left the rules of the join before."""
    bench.run(STEP)
    closed = {"update_hold: false": "update_hold: false\n  firewall: {node_ports: false}"}
    bench.spec = a_spec(**closed)

    assert bench.look(STEP).differences(STEP) == {
        f"firewall rule winboot-node-ports-{name}": (f"in {name.upper()} 30000-32767 from Any", None)
        for name in ("tcp", "udp")
    }
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    assert not [one for one in bench.machine.firewall.local() if "node-ports" in one.name]


def test_every_rule_that_any_network_opens_is_known_as_ours():
    """Else it would stay open when the profile changes."""
    for profile in ("flannel-host-gw", "flannel-vxlan", "calico-node", "azure", "win-overlay"):
        assert {rule.id for rule in a_spec_of(profile).firewall} <= OURS

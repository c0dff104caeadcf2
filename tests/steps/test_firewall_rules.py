"""Open what the kubelet, kube-proxy and the network must be able to receive, and nothing else."""

from tests.steps.builders import a_spec
from winboot.steps.firewall_rules import FIREWALL_RULES


def test_rules_have_stable_names_of_our_own():
    rules = FIREWALL_RULES.inputs(a_spec())["rules"]

    assert rules
    assert all(rule["name"].startswith("winboot-") for rule in rules)


def test_rules_are_open_to_everyone_unless_the_profile_says_who_may_come():
    scoped = {"update_hold: false": "update_hold: false\n  firewall: {sources: [10.0.0.0/16]}"}

    assert {tuple(rule["sources"]) for rule in FIREWALL_RULES.inputs(a_spec())["rules"]} == {("Any",)}
    assert {tuple(rule["sources"]) for rule in FIREWALL_RULES.inputs(a_spec(**scoped))["rules"]} == {
        ("10.0.0.0/16",)
    }

"""No printed role can become more than it says: each is held against the rights by which Kubernetes' users escalate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.scene import a_spec
from tests.config.test_gmsa import a_profile
from winboot.config.node_spec import NodeSpec
from winboot.operations.fleet.manifest import fleet_needs
from winboot.operations.hook_manifest import hook_needs
from winboot.operations.worker_pod import account_roles
from winboot.remote.cluster.rights import SYSTEM, VERIFIED
from winboot.remote.manifests import manifest

Object = dict[str, Any]
# https://kubernetes.io/docs/concepts/security/rbac-good-practices/, "Kubernetes RBAC - privilege escalation risks", and the
# answer to a DELETE of a Secret (winboot.remote.manifests, token_policy): verbs and resource, as patterns.
ESCALATING = (
    ("*", "secrets"),
    (
        "create|update|patch",
        "pods|replicationcontrollers|deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs",
    ),
    ("*", "pods/exec|pods/attach|pods/portforward|pods/ephemeralcontainers"),
    ("*", "nodes/*"),
    ("create", "persistentvolumes"),
    ("escalate|bind|create|update|patch", "roles|clusterroles|rolebindings|clusterrolebindings"),
    ("impersonate", "*"),
    ("*", "certificatesigningrequests/approval|signers"),
    ("create", "serviceaccounts/token"),
    ("*", "validatingwebhookconfigurations|mutatingwebhookconfigurations|validatingadmissionpolic*"),
    ("create|update|patch|delete", "namespaces"),
    ("*", "configmaps"),
)
# What a role keeps of these, with where it holds. docs/threat-model.md says what each can become.
REMAINING = {
    ("update", "certificatesigningrequests/approval", "", ""),
    ("approve", "signers", "", "kubernetes.io/kubelet-serving"),
    ("create", "secrets", SYSTEM, ""),
    ("delete", "secrets", SYSTEM, ""),
    ("get", "configmaps", "", "kube-flannel-cfg"),
    ("get", "configmaps", "", "cilium-config"),
    ("get", "configmaps", "", "kube-proxy"),
    ("get", "configmaps", "", "antrea-windows-config"),
    ("list", "mutatingwebhookconfigurations", "", ""),
    ("list", "validatingwebhookconfigurations", "", ""),
}
IN_VERIFIED = ("pods", "pods/exec", "pods/portforward", "secrets")
THREATS = Path(__file__).parent.parent / "docs" / "threat-model.md"


@dataclass(frozen=True)
class Right:
    """One verb on one kind of thing; `space` and `name` are empty for all of them."""

    verb: str
    resource: str
    space: str
    name: str

    @property
    def escalates(self) -> bool:
        return any(
            _matches(self.verb, verbs) and _matches(self.resource, resources)
            for verbs, resources in ESCALATING
        )


def _matches(word: str, patterns: str) -> bool:
    return word == "*" or any(fnmatchcase(word, one) for one in patterns.split("|"))


def rights_of(objects: list[Object]) -> Iterator[Right]:
    for role in (one for one in objects if one["kind"] in ("Role", "ClusterRole")):
        for rule in role["rules"]:
            for verb in rule["verbs"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames") or [""]:
                        yield Right(verb, resource, role["metadata"].get("namespace", ""), name)


def a_gmsa_spec(folder: Path) -> NodeSpec:
    return a_spec(folder, profile=a_profile())


def printed(folder: Path) -> dict[str, list[Object]]:
    """Every role that winboot prints for its users and workers, by what prints it."""
    names = ("operator", "remover", "verifier")
    found = {name: list(yaml.safe_load_all(manifest(name, [a_spec(folder)]))) for name in names}
    found["operator with gmsa"] = list(yaml.safe_load_all(manifest("operator", [a_gmsa_spec(folder)])))
    for number, given in enumerate(
        [
            {"self_registering": False},
            {"self_registering": True},
            {"self_registering": False, "bootstrap": True},
        ]
    ):
        found[f"hook {number}"] = account_roles("h", "h", "w", hook_needs(mints=True, gmsa=True, **given))
    for drains in (False, True):
        found[f"fleet {drains}"] = account_roles(
            "f", "f", "w", fleet_needs(mints=True, drains=drains, gmsa=True)
        )
    return found


def test_no_printed_role_escalates_but_for_what_the_threat_model_lists(tmp_path: Path) -> None:
    for name, objects in printed(tmp_path).items():
        for right in rights_of(objects):
            known = (right.verb, right.resource, right.space, right.name) in REMAINING
            there = right.space == VERIFIED and right.resource in IN_VERIFIED
            assert not right.escalates or known or there, (name, right)


def test_the_operator_may_read_what_preflight_reads_and_gmsa_only_where_it_is_wanted(tmp_path: Path) -> None:
    found = printed(tmp_path)
    plain, more = (
        {(one.verb, one.resource, one.name) for one in rights_of(found[name])}
        for name in ("operator", "operator with gmsa")
    )

    assert ("get", "configmaps", "antrea-windows-config") in plain
    assert more - plain == {
        ("list", "gmsacredentialspecs", ""),
        ("list", "mutatingwebhookconfigurations", ""),
        ("list", "validatingwebhookconfigurations", ""),
    }
    assert ("create", "pods", "") not in more


def test_no_role_of_join_hook_and_fleet_reads_secrets(tmp_path: Path) -> None:
    for name, objects in printed(tmp_path).items():
        reads = {
            one
            for one in rights_of(objects)
            if one.resource in ("secrets", "*") and one.verb not in ("create", "delete")
        }
        assert name == "verifier" or reads == set(), name


def test_accounts_that_may_make_and_delete_secrets_are_limited_to_bootstrap_tokens(tmp_path: Path) -> None:
    """Else a finalizer makes the API server answer a DELETE with the whole Secret."""
    for name, objects in printed(tmp_path).items():
        makes = any(one.resource == "secrets" and one.space == SYSTEM for one in rights_of(objects))
        policies = [one for one in objects if one["kind"] == "ValidatingAdmissionPolicy"]
        bound = [
            one["spec"]["policyName"] for one in objects if one["kind"] == "ValidatingAdmissionPolicyBinding"
        ]
        assert [one["metadata"]["name"] for one in policies] == bound, name
        assert bool(policies) == makes, name
        for one in policies:
            (condition,) = one["spec"]["matchConditions"]
            assert re.search("winboot:operators|system:serviceaccount:w:[hf]'", condition["expression"])
            assert one["spec"]["matchConstraints"]["resourceRules"][0]["operations"] == [
                "CREATE",
                "UPDATE",
                "DELETE",
            ]


def test_the_role_for_all_namespaces_says_what_it_equals(tmp_path: Path) -> None:
    text = manifest("verifier-anywhere", [a_spec(tmp_path)])
    head = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("#"))

    assert "this role equals cluster-admin" in head


@pytest.mark.parametrize("right", sorted({(verb, resource) for verb, resource, _, _ in REMAINING}))
def test_the_threat_model_lists_each_right_that_remains(right: tuple[str, str]) -> None:
    assert f"`{right[0]} {right[1]}`" in THREATS.read_text(encoding="utf-8")

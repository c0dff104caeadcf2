"""`winboot manifests operator` and `rbac` give what a whole run asks for, and nothing else.

The lab's API keeps every request that it authorizes. The operator's user has the rights of the manifest alone, so a call
without its right is refused; a right that no call has used is one too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from winboot_lab.cli.staging import Staged, stage
from winboot_lab.cluster import ClusterPlan
from winboot_lab.cluster.authority import CLIENT_AUTH, Subject
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.cluster.kubeconfig import write_kubeconfig
from winboot_lab.cluster.rbac import Action, node_allows, rule_allows
from winboot_lab.up import Lab

from tests.lab.damages import PLUGINS
from winboot.cli import run
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import resolve
from winboot.remote.cluster import connect
from winboot.remote.cluster.claims import NAMESPACE
from winboot.remote.manifests import OPERATORS, manifest

RBAC = "rbac.authorization.k8s.io"
PATHS = {
    "ClusterRole": f"/apis/{RBAC}/v1/clusterroles",
    "ClusterRoleBinding": f"/apis/{RBAC}/v1/clusterrolebindings",
    "Role": f"/apis/{RBAC}/v1/namespaces/{{space}}/roles",
    "RoleBinding": f"/apis/{RBAC}/v1/namespaces/{{space}}/rolebindings",
    "Namespace": "/api/v1/namespaces",
}
# Asked where a DaemonSet runs kube-proxy on Windows, and where the network is Antrea.
NOT_HERE = [(["get"], ["configmaps"], [name]) for name in ("kube-proxy", "antrea-windows-config")]
# What every user may ask about itself: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
OF_EVERYBODY = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")


def objects(name: str, staged: Staged) -> list[dict[str, Any]]:
    """A manifest's objects for the lab's inventory."""
    specs = [resolve(machine.profile, machine) for machine in load_inventory(staged.inventory)]
    return list(yaml.safe_load_all(manifest(name, specs)))


class Story:
    """A lab whose cluster grants only the rights of the two manifests; the commands run as the operator."""

    def __init__(self, lab: Lab, staged: Staged) -> None:
        self.lab = lab
        self.staged = staged
        # The lab's API server evaluates no CEL of admission policies.
        self.rights = {
            name: [one for one in objects(name, staged) if one["kind"] in PATHS]
            for name in ("operator", "rbac")
        }
        for one in (one for several in self.rights.values() for one in several):
            lab.cluster.request(
                ADMIN, "POST", PATHS[one["kind"]].format(space=one["metadata"].get("namespace")), one
            )
        pair = lab.cluster.authority.issue(Subject("operator", (OPERATORS,)), (CLIENT_AUTH,))
        write_kubeconfig(staged.kubeconfig, lab.server.url, lab.cluster.authority.pem, pair)
        lab.cluster.audit = []

    def __call__(self, command: str, *words: str, code: int = 0) -> None:
        assert run([*command.split(), "-i", str(self.staged.inventory), *words]) == code, command

    def asked(self, user: str) -> set[Action]:
        """What a user has asked for; paths that everybody may read, and the reviews of oneself, left out."""
        assert self.lab.cluster.audit is not None
        found = {action for who, action in self.lab.cluster.audit if who.name == user and not action.path}
        return {one for one in found if one.resource not in OF_EVERYBODY}

    def rules(self, name: str) -> Iterator[tuple[dict[str, Any], str]]:
        """Each rule that a manifest's bindings give, with its namespace; empty for the whole cluster."""
        store = self.lab.cluster.store
        for one in self.rights[name]:
            if one["kind"].endswith("Binding"):
                roles = "roles" if one["kind"] == "RoleBinding" else "clusterroles"
                space = one["metadata"].get("namespace", "")
                found = next(
                    role
                    for role in store.everything()
                    if role["kind"].lower() + "s" == roles
                    and role["metadata"]["name"] == one["roleRef"]["name"]
                    and role["metadata"].get("namespace", "") == space
                )
                for rule in found["rules"]:
                    yield rule, space


def single(rule: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A rule as the single rights that it gives."""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield {**rule, "apiGroups": [group], "resources": [resource], "verbs": [verb]}


# Its own story of a whole cluster; `make test` has the manifests' own tests and the API's contract.
pytestmark = pytest.mark.check


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A whole life: preflight, plan, join, a killed run's token, a drain, a second join, and the requests by hand."""
    folder = tmp_path_factory.mktemp("rights")
    with pytest.MonkeyPatch.context() as patch, Lab(nodes=1, cluster=ClusterPlan(grant_nodes=False)) as lab:
        patch.setenv("WINBOOT_STATE", str(folder / "state"))
        told = Story(lab, stage(lab, folder))
        told("preflight")
        told("join")
        pod = {"metadata": {"name": "web"}, "spec": {"nodeName": "win-1", "containers": []}}
        lab.cluster.request(ADMIN, "POST", "/api/v1/namespaces/default/pods", pod)
        # A deleted network may be there again before the drain; a deleted plug-in is not.
        files = lab.nodes["win-1"].machine.files
        files.write(rf"{PLUGINS}\host-local.exe", b"of somebody else")
        told("join", "--drain")
        told("plan")
        # What a join of two nodes asks first: which of them are done.
        with connect(told.staged.kubeconfig) as cluster:
            assert [claim.node for claim in cluster.leases(NAMESPACE).all()] == ["win-1"]
        told("csr list")
        told("csr approve")
        told("csr watch", "--for", "1")
        yield told


def test_nothing_is_asked_for_that_is_not_granted(story: Story) -> None:
    """Not even a question whose refusal would be taken calmly."""
    granted = list(story.rules("operator"))

    for action in story.asked("operator"):
        assert any(
            rule_allows(rule, action) and space in ("", action.namespace) for rule, space in granted
        ), action


def test_nothing_is_granted_that_is_never_asked_for(story: Story) -> None:
    asked = story.asked("operator")

    unused = [
        (right["verbs"], right["resources"], space)
        for rule, space in story.rules("operator")
        for right in single(rule)
        if not any(rule_allows(right, one) and space in ("", one.namespace) for one in asked)
        if (right["verbs"], right["resources"], right.get("resourceNames")) not in NOT_HERE
    ]

    assert unused == []


def test_each_binding_of_the_nodes_gives_a_call_that_a_kubelet_may_not_make(story: Story) -> None:
    """Nothing that the node's programs asked for was refused, and without a binding something would have been."""
    store = story.lab.cluster.store
    asked = {one for one in story.asked("system:node:win-1") if not node_allows(store, "win-1", one)}

    assert asked, "flanneld and kube-proxy have asked for nothing that a kubelet may not do"
    names = {one["metadata"]["name"] for one in story.rights["rbac"] if one["kind"].endswith("Binding")}
    needed = set()
    for binding in (one for one in story.rights["rbac"] if one["kind"] == "ClusterRoleBinding"):
        role = next(
            one
            for one in store.everything()
            if one["kind"] == "ClusterRole" and one["metadata"]["name"] == binding["roleRef"]["name"]
        )
        if any(rule_allows(rule, action) for rule in role["rules"] for action in asked):
            needed.add(binding["metadata"]["name"])
    assert needed == names


def test_no_call_of_the_operator_is_a_watch(story: Story) -> None:
    """What winboot waits for it asks for again: there is no watch that could be closed, or that could be too old."""
    assert {one.verb for one in story.asked("operator")} <= {
        "get",
        "list",
        "create",
        "update",
        "patch",
        "delete",
        "approve",
    }

"""Routes to the pods of the other nodes, where no other program makes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from winboot_lab.windows.network import Route

from tests.lab.site import Site
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

STEP = "pod-routes"
OTHERS = "10.244.0.0/24"
NEAR = "10.0.0.10"


def routes(node: Node) -> dict[str, str]:
    """Where the pods of others are, as the machine sees it."""
    return {one.prefix: one.next_hop for one in node.machine.network.routes if one.next_hop != "0.0.0.0"}


def lead(prefix: str, hop: str) -> Callable[[Site], None]:
    """Make a route as an administrator."""

    def hand(site: Site) -> None:
        adapter = site.machine.network.management()
        assert adapter is not None
        site.machine.network.add_route(Route(prefix, hop, adapter.index))

    return hand


def forget(prefix: str) -> Callable[[Site], None]:
    """A route is gone."""

    def hand(site: Site) -> None:
        net = site.machine.network
        for one in [one for one in net.routes if one.prefix == prefix]:
            net.remove_route(one)

    return hand


@pytest.mark.parametrize("profile", ["flannel-host-gw", "win-overlay", "azure", "win-bridge"])
def test_where_another_program_makes_the_routes_there_is_no_such_step(profile: str):
    assert STEP not in Bench(spec=a_spec_of(profile)).look(STEP).states


def test_before_the_node_is_registered_they_are_known_after_the_join(joined: Callable[[str], Node]):
    node = joined("own network").after(lambda site: site.admin("DELETE", "/api/v1/nodes/win-1"))

    assert node.look(STEP).differences(STEP) == {
        "routes to the pods of other nodes": (None, "(known after join)")
    }


def test_they_are_made_once_removed_and_made_again(joined: Callable[[str], Node]):
    node = joined("own network")
    assert routes(node)[OTHERS] == NEAR
    assert node.undo(STEP).states == {STEP: "changed"}
    assert OTHERS not in routes(node)
    assert node.look(STEP).differences(STEP) == {f"route to {OTHERS}": (None, f"via {NEAR}")}
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.differs == []


@pytest.mark.parametrize(
    ("hand", "found"),
    [
        (forget(OTHERS), {f"route to {OTHERS}": (None, f"via {NEAR}")}),
        (lead("10.244.77.0/24", "10.0.0.77"), {"route to 10.244.77.0/24": ("via 10.0.0.77", None)}),
    ],
    ids=["gone", "of a node that is no more"],
)
def test_a_difference_is_reported_and_repaired(
    joined: Callable[[str], Node],
    hand: Callable[[Site], None],
    found: dict[str, tuple[str | None, str | None]],
):
    node = joined("own network").after(hand)

    assert node.look(STEP).differences(STEP) == found
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.differs == []


def test_a_route_of_another_owner_comes_back_with_an_undo(joined: Callable[[str], Node]):
    """Into another pod network of the cluster, by the site's router: winboot notes it before it deletes it."""
    node = joined("own network").after(lead("10.244.99.0/24", "10.0.0.254"))
    assert node.change(STEP).states == {STEP: "changed"}
    assert "10.244.99.0/24" not in routes(node)

    assert node.undo(STEP).states == {STEP: "changed"}

    assert routes(node)["10.244.99.0/24"] == "10.0.0.254"
    assert OTHERS not in routes(node)


def test_routes_to_elsewhere_are_not_winboots(joined: Callable[[str], Node]):
    node = joined("own network").after(lead("10.77.0.0/16", "10.0.0.77"))

    assert node.look(STEP).states == {STEP: "ok"}
    node.after(forget(OTHERS))
    node.change(STEP)
    node.undo(STEP)
    assert routes(node)["10.77.0.0/16"] == "10.0.0.77"


def test_a_node_that_may_not_list_the_others_says_which_binding_is_missing(joined: Callable[[str], Node]):
    node = joined("own network")
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    for one in node.site.admin("GET", bindings)["items"]:
        if "node" in one["roleRef"]["name"] or "winboot" in one["metadata"]["name"]:
            node.site.admin("DELETE", f"{bindings}/{one['metadata']['name']}")

    problem = node.look(STEP).problem(STEP)

    assert problem.id == "NodesForbidden"
    assert "cannot be listed" in problem.message
    assert "winboot manifests rbac" in problem.hint

"""Addresses that no pod may get, and those that a hard restart has leaked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.lab.actions import Hand, delete, stop, write
from tests.lab.site import Site
from tests.lab.test_networks import run_pod
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

STEP = "ipam-reservations"
STORE = r"C:\var\lib\cni\networks\cbr0"
NOBODY = "0" * 64
GATEWAY = "reserved address for winboot gateway"
ENDPOINT = "reserved address for winboot endpoint"


def address(site: Site, last: int) -> str:
    """An address of the node's pod network."""
    return f"{site.node()['spec']['podCIDR'].rpartition('.')[0]}.{last}"


def taken(last: int, content: str | None) -> Hand:
    """Another pod took an address some time ago, or returns it."""

    def hand(site: Site) -> None:
        path = rf"{STORE}\{address(site, last)}"
        (delete(path) if content is None else write(path, content))(site)
        if content is not None:
            file = site.machine.files.need(path)[1]
            file.created = file.modified = site.time.datetime() - timedelta(minutes=11)

    return hand


def test_a_node_with_another_owner_of_addresses_has_no_such_step():
    assert STEP not in Bench(spec=a_spec_of("azure")).look(STEP).states


def test_on_a_bare_machine_the_addresses_are_known_after_the_join(bench: Bench):
    assert bench.look(STEP).differences(STEP) == {
        GATEWAY: (None, "(known after join)"),
        ENDPOINT: (None, "(known after join)"),
    }


def test_before_there_is_a_pod_network_a_change_says_what_is_missing(bench: Bench):
    problem = bench.run(STEP).problem(STEP)

    assert problem.id == "NotKnownYet"
    assert "no pod CIDR" in problem.message
    assert "spec.podCIDR" in problem.hint


def test_they_are_reserved_once_given_back_and_reserved_again(node: Node):
    first = address(node.site, 1)
    assert node.file(rf"{STORE}\{first}") == b"winboot\r\ngateway"
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.file(rf"{STORE}\{first}") is None
    assert node.look(STEP).differences(STEP)[GATEWAY] == (None, f"{first}: winboot gateway")
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.differs == []


@pytest.mark.parametrize(
    ("hand", "whats"),
    [
        (taken(1, None), {GATEWAY}),
        (taken(2, "somebody\r\nelse"), {ENDPOINT}),
        (taken(77, NOBODY + "\r\neth0"), {"leaked address <77>"}),
        (write(rf"{STORE}\10.99.0.7", "somebody\r\nthing"), {"leaked address 10.99.0.7"}),
    ],
    ids=["given back", "taken by another pod", "of a pod that is gone", "of another pod network"],
)
def test_a_difference_is_reported_and_repaired(node: Node, hand: Hand, whats: set[str]):
    node.after(hand)
    found = {what.replace(address(node.site, 77), "<77>") for what in node.look(STEP).differences(STEP)}

    assert found == whats
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.differs == []


def test_an_address_of_a_running_pod_is_not_taken_from_it(node: Node):
    run_pod(node.site, "web")
    own = next(
        path
        for path, found in node.machine.files.walk(STORE)
        if not found.directory and len(found.content.split(b"\r\n")[0]) == len(NOBODY)
    )
    node.after(taken(1, node.machine.files.text(own)))

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "AddressInUse"
    assert (
        problem.message == f"a pod has the address {address(node.site, 1)}, which is kept for winboot gateway"
    )
    assert "Delete that pod" in problem.hint


@pytest.mark.check
def test_the_address_of_a_pod_that_is_being_created_stays_its_own(node: Node):
    """containerd lists a sandbox only when its shim has started, after the plug-ins gave it the address."""
    node.after(write(rf"{STORE}\{address(node.site, 78)}", NOBODY + "\r\neth0"))

    assert node.look(STEP).states == {STEP: "ok"}
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.file(rf"{STORE}\{address(node.site, 78)}") is not None
    node.site.settle(11 * 60)
    assert set(node.look(STEP).differences(STEP)) == {f"leaked address {address(node.site, 78)}"}
    node.change(STEP)


def test_another_programs_reservation_inside_the_pod_network_stays(node: Node):
    node.after(taken(200, "printer\r\n"))

    assert node.look(STEP).states == {STEP: "ok"}
    node.change(STEP)
    assert node.file(rf"{STORE}\{address(node.site, 200)}") == b"printer\r\n"
    node.after(taken(200, None))


def test_without_an_answer_from_containerd_nothing_is_known_to_be_leaked(node: Node):
    node.after(taken(77, NOBODY + "\r\neth0"), stop("containerd"))

    assert node.look(STEP).states == {STEP: "ok"}


def test_an_overlay_reserves_the_address_of_kube_proxy_and_keeps_it(joined: Callable[[str], Node]):
    node = joined("vxlan")
    what = "reserved address for kube-proxy source-vip"
    assert node.undo(STEP).states == {STEP: "changed"}
    first = node.look(STEP).differences(STEP)[what][1]
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.look(STEP).states == {STEP: "ok"}
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.look(STEP).differences(STEP)[what][1] == first
    node.change(STEP)

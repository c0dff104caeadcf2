"""The network solution with its mode, owner, name, families and exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from winboot.config import networks
from winboot.config.networks.base import destination_name, destinations
from winboot.config.profile import sections
from winboot.config.profile.checks.draft import Draft
from winboot.config.source import Complaint, PathParts, nearest


def check(draft: Draft) -> Iterator[Complaint]:
    """Whether these keys choose a solution, and what that one allows."""
    network = draft.network
    if network is None:
        return
    modes = networks.modes(network.cni)
    if network.mode is not None and network.mode not in modes:
        expected = " | ".join(modes) or f"no key mode: {network.cni} has only one mode"
        yield draft.at(("network", "mode"), repr(network.mode), expected, nearest(network.mode, modes))
    solution = draft.solution
    if solution is None:
        if network.managed_by is not None and network.mode in (None, *modes):
            wrong = f"{network.cni} cannot be managed by {network.managed_by}"
            owners = dict.fromkeys(one.managed_by for one in networks.NETWORKS if one.cni == network.cni)
            yield draft.at(("network", "managed_by"), wrong, " | ".join(owners))
        return
    if solution.later:
        yield draft.at(
            ("network", "cni"),
            f"{network.cni} is not offered: {solution.later}",
            "another solution; docs/networks.md compares them",
        )
    if solution.test_signed and network.antrea.testsigning is None:
        wrong = f"{solution.id} has a test-signed driver, so Windows must allow every test-signed driver"
        expected = "antrea: {testsigning: accepted} under network, if you accept this"
        yield draft.at(("network", "cni"), wrong, expected)
    yield from _vxlan(draft, network, solution)
    yield from _network_name(draft, network, solution)
    if network.routes == "winboot" and not solution.can_route:
        wrong = f"{solution.id} makes the routes itself"
        able = _names(one for one in networks.NETWORKS if one.can_route)
        yield draft.at(("network", "routes"), wrong, f"no such key; only {able} has this choice", key=True)
    if network.ipam is not None and network.ipam not in solution.ipams:
        wrong = f"{solution.id} always assigns pod addresses itself"
        able = _names(one for one in networks.NETWORKS if one.ipams)
        yield draft.at(("network", "ipam"), wrong, f"no such key; only {able} has this choice", key=True)
    yield from _two_families(draft, solution)
    yield from _nat_exceptions(draft, network.nat_exceptions, solution)


def _names(solutions: Iterable[networks.Network]) -> str:
    """Their `cni`, each once: `win-bridge or none`."""
    names = list(dict.fromkeys(one.cni for one in solutions))
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _two_families(draft: Draft, solution: networks.Network) -> Iterator[Complaint]:
    if not draft.dual_stack:
        return
    path: PathParts = ("cluster", "pod_cidr")
    able = [one for one in networks.NETWORKS if one.dual_stack]
    if not solution.dual_stack:
        yield draft.at(path, f"{solution.id} supports only IPv4", f"one IPv4 network, or {_names(able)}")
    elif solution.dual_stack_note:
        whole = _names(one for one in able if not one.dual_stack_note)
        expected = f"{whole} for pods with IPv6"
        yield draft.at(path, solution.dual_stack_note, expected, warning=True)


def _nat_exceptions(
    draft: Draft, wanted: sections.NatExceptions, solution: networks.Network
) -> Iterator[Complaint]:
    path: PathParts = ("network", "nat_exceptions")
    cluster = draft.cluster
    if cluster is None or not (wanted.add or wanted.remove):
        return
    if not solution.exceptions:
        wrong = f"winboot does not write the CNI configuration of {solution.id}"
        yield draft.at(
            path,
            wrong,
            f"no nat_exceptions in the profile; change them in the CNI configuration of {solution.id}",
            key=True,
        )
        return
    nets = [
        [str(one) for one in cidrs] for cidrs in (cluster.pod_cidr, cluster.service_cidr, cluster.node_cidr)
    ]
    own = [destination_name(one) for one in destinations(solution.exceptions, *nets)]
    fixed = [destination_name(one) for one in destinations(solution.fixed_exceptions, *nets)]
    for index, cidr in enumerate(wanted.add):
        if str(cidr) in own and str(cidr) not in wanted.remove:
            yield draft.at((*path, "add", index), "it is already an exception", "no such entry", warning=True)
        elif cidr.version == 6 and not solution.dual_stack:
            yield draft.at((*path, "add", index), f"{solution.id} supports only IPv4", "an IPv4 network")
    for index, name in enumerate(wanted.remove):
        if name in fixed:
            wrong = f"{solution.id} needs the exception {name}: its plug-in would add it again"
            yield draft.at((*path, "remove", index), wrong, "no such entry")
        elif name not in own:
            expected = " | ".join(one for one in own if one not in fixed)
            wrong = f"{solution.id} does not have the exception {name}"
            yield draft.at((*path, "remove", index), wrong, expected, nearest(name, own))


def _vxlan(draft: Draft, network: sections.Network, solution: networks.Network) -> Iterator[Complaint]:
    if network.vxlan is None:
        return
    if solution.hns_type != "Overlay":
        yield draft.at(
            ("network", "vxlan"), f"{solution.id} is not an overlay", "mode: vxlan, or no vxlan", key=True
        )
        return
    if not 4096 <= network.vxlan.vni < 2**24:
        wrong = f"{network.vxlan.vni} is too small; Windows supports VNIs from 4096"
        yield draft.at(("network", "vxlan", "vni"), wrong, "4096 to 16777215, the same in the whole cluster")
    if network.vxlan.port != 4789:
        wrong = f"{network.vxlan.port} is not possible; Windows supports only one VXLAN port"
        yield draft.at(("network", "vxlan", "port"), wrong, "4789, the same in the whole cluster")


def _network_name(draft: Draft, network: sections.Network, solution: networks.Network) -> Iterator[Complaint]:
    name = network.network_name
    if name is None:
        runs_proxy = draft.kube_proxy is None or draft.kube_proxy.managed_by != "operator"
        if not solution.default_name and runs_proxy:
            yield draft.at(
                ("network",),
                "kube-proxy needs the name of the HNS network, which cni: none does not define",
                "network_name: the name, or kube_proxy.managed_by: operator",
                key=True,
            )
        return
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        yield draft.at(("network", "network_name"), repr(name), "letters, digits, ., _ and - (at most 63)")
    owners = networks.hns_owners(name)
    makes = solution.owners.hns_network != "operator"
    if makes and owners and solution.cni not in owners and name != solution.default_name:
        wrong = f"{name} is the HNS network of {' and '.join(owners)}"
        yield draft.at(("network", "network_name"), wrong, "another name")

"""Each network solution as a value: what it makes on the node, the owner of each piece, and the files it needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from fnmatch import fnmatchcase
from typing import Final

from winboot.base.errors import UsageError
from winboot.config.networks.antrea import ANTREA
from winboot.config.networks.azure import AZURE_BRIDGE, AZURE_TUNNEL
from winboot.config.networks.base import Choices, Download, HnsName, Known, Network
from winboot.config.networks.calico import CALICO_OPERATOR, CALICO_OWN, CALICO_SERVICES
from winboot.config.networks.cluster import InCluster
from winboot.config.networks.flannel import FLANNEL_HOST_GW, FLANNEL_VXLAN
from winboot.config.networks.others import CILIUM, NONE
from winboot.config.networks.ovn import OVN_HYBRID
from winboot.config.networks.reference import WIN_BRIDGE, WIN_OVERLAY
from winboot.config.source import nearest

__all__ = [
    "AGENTS",
    "CNIS",
    "IPAMS",
    "NETWORKS",
    "NSSM_AGENTS",
    "STEPS_AFTER",
    "STEPS_BEFORE",
    "Choices",
    "Download",
    "Known",
    "Network",
    "choose",
    "cluster_settings",
    "comparison",
    "download",
    "explain",
    "hns_owners",
    "mode_list",
    "modes",
    "written_forms",
]

NETWORKS: Final[tuple[Network, ...]] = (
    FLANNEL_HOST_GW,
    FLANNEL_VXLAN,
    WIN_BRIDGE,
    WIN_OVERLAY,
    AZURE_BRIDGE,
    AZURE_TUNNEL,
    CALICO_OPERATOR,
    CALICO_SERVICES,
    CALICO_OWN,
    ANTREA,
    OVN_HYBRID,
    NONE,
    CILIUM,
)

# HNS networks of programs that no profile chooses.
_OTHERS: Final = {
    "docker": (HnsName("nat", "moby/moby runconfig/hostconfig_windows.go, DefaultDaemonNetworkMode"),),
}

# What the profile may say below `network`, each once and in the order of NETWORKS.
CNIS: Final = tuple(dict.fromkeys(one.cni for one in NETWORKS))
IPAMS: Final = tuple(dict.fromkeys(ipam for one in NETWORKS for ipam in one.ipams))
# Services of agents, those that need NSSM, and the steps of solutions, which come before and after the pod network.
AGENTS: Final = tuple(dict.fromkeys(one.agent_service for one in NETWORKS if one.agent_service))
NSSM_AGENTS: Final = tuple(dict.fromkeys(one.agent_service for one in NETWORKS if one.agent_nssm))
STEPS_BEFORE: Final = tuple(dict.fromkeys(step for one in NETWORKS for step in one.steps_before))
STEPS_AFTER: Final = tuple(dict.fromkeys(step for one in NETWORKS for step in one.steps_after))


def cluster_settings() -> tuple[InCluster, ...]:
    """What solutions have in the cluster, each once and in the order of NETWORKS."""
    found: list[InCluster] = []
    for one in NETWORKS:
        if one.in_cluster is not None and one.in_cluster not in found:
            found.append(one.in_cluster)
    return tuple(found)


def modes(cni: str) -> tuple[str, ...]:
    """The modes of a CNI, the default first; empty where it has none."""
    return tuple(dict.fromkeys(one.mode for one in NETWORKS if one.cni == cni and one.mode))


def choose(
    cni: str, mode: str | None = None, managed_by: str | None = None, *, named: Collection[str] = ()
) -> Network:
    """The solution for the profile's keys; what is None takes the first that fits. ValueError where nothing
    fits. `named`: the keys below `artifacts` that the profile sets, which can choose a form of its own."""
    fitting = [
        one
        for one in NETWORKS
        if one.cni == cni
        and mode in (None, one.mode)
        and managed_by in (None, one.managed_by)
        and (not one.chosen_by or (one.chosen_by in named and managed_by == one.managed_by))
    ]
    if not fitting:
        raise ValueError(f"no network {cni} with mode {mode or 'unset'}, managed by {managed_by or 'anyone'}")
    return next((one for one in fitting if one.chosen_by), fitting[0])


def hns_owners(name: str) -> tuple[str, ...]:
    """What makes HNS networks of this name: `cni` of solutions, and `docker`; empty for a name of no program's own."""
    made = [(one.cni, one.hns_names) for one in NETWORKS] + [*_OTHERS.items()]
    found = [owner for owner, names in made if any(_is_named(name, one) for one in names)]
    return tuple(dict.fromkeys(found))


def _is_named(name: str, known: HnsName) -> bool:
    return fnmatchcase(name.lower(), known.name.lower())


def download(key: str) -> Download:
    """The download whose version a key below `artifacts` names; KeyError for a key of no network's."""
    return {one.key: one for network in NETWORKS for one in network.downloads}[key]


def written_forms() -> str:
    """What `winboot init --network NAME` takes: `cni` or `cni:mode`, for people. It accepts no test signing for its user."""
    forms = [
        f"{one.cni}:{one.mode}" if len(modes(one.cni)) > 1 else one.cni
        for one in NETWORKS
        if not one.later and not one.test_signed
    ]
    shown = list(dict.fromkeys(forms))
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def mode_list() -> str:
    """The modes of every CNI that has several, or one that must be known: `flannel: host-gw | vxlan; …`."""
    shown = {one.cni: " | ".join(modes(one.cni)) for one in NETWORKS if one.mode}
    return "; ".join(f"{cni}: {choices}" for cni, choices in shown.items())


def explain(name: str) -> str:
    """Lines about one solution, or about all forms of what a profile calls `cni`; UsageError where the name is
    unknown, with the nearest one."""
    wanted = name.strip().lower().replace("_", "-")
    ids = [network.id for network in NETWORKS]
    found = [one for one in NETWORKS if one.id == wanted] or [one for one in NETWORKS if one.cni == wanted]
    if found:
        return "\n\n".join("\n".join(_lines(network)) for network in found)
    meant = nearest(wanted, ids)
    hint = f"Did you mean {meant!r}?" if meant else "One of " + ", ".join(ids) + "."
    raise UsageError(f"winboot does not know a network {name!r}", hint=hint)


def comparison() -> str:
    """All solutions side by side: kind of network, what makes each piece, and for what one takes it."""
    rows = [("network", "kind", "HNS by", "CNI by", "kube-proxy by", "what")]
    for one in NETWORKS:
        owners = one.owners
        what = f"not offered: {one.later}" if one.later else one.what
        rows.append(
            (one.id, one.hns_type or "-", owners.hns_network, owners.cni_conf, owners.kube_proxy, what)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]])
        for row in rows
    )


def _lines(network: Network) -> list[str]:
    mode = f", mode: {network.mode}" if network.mode else ""
    lines = [
        f"{network.id} (cni: {network.cni}{mode}, managed_by: {network.managed_by})",
        f"  {network.what}",
    ]
    if network.chosen_by:
        lines.append(f"  chosen by       artifacts.{network.chosen_by}: its version")
    if network.later:
        lines.append(f"  not offered: {network.later}")
    if network.hns_type:
        lines.append(f"  HNS network     {network.hns_type}, named {network.default_name.format(vni=4096)}")
    owners = network.owners
    lines += [f"  {one.name.replace('_', ' '):<16}{getattr(owners, one.name)}" for one in fields(owners)]
    lines += [f"  {f'{port.protocol} {port.ports} {port.direction}':<16}{port.why}" for port in network.ports]
    lines += [f"  needs {need.check}: {need.why}" for need in network.needs]
    return lines

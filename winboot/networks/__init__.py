"""Each network solution as a value: what it makes on the node, who owns what, and the files it needs."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from winboot.errors import UsageError
from winboot.networks.azure import AZURE_BRIDGE, AZURE_TUNNEL
from winboot.networks.base import Choices, Known, Network
from winboot.networks.calico import CALICO_OPERATOR, CALICO_OWN, CALICO_SERVICES
from winboot.networks.flannel import FLANNEL_HOST_GW, FLANNEL_VXLAN
from winboot.networks.others import NONE, OVN
from winboot.networks.reference import WIN_BRIDGE, WIN_OVERLAY
from winboot.source import nearest

__all__ = ["NETWORKS", "Choices", "Known", "Network", "choose", "comparison", "explain", "modes"]

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
    NONE,
    OVN,
)


def modes(cni: str) -> tuple[str, ...]:
    """The modes of a CNI, the default first; empty where it has none."""
    return tuple(dict.fromkeys(one.mode for one in NETWORKS if one.cni == cni and one.mode))


def choose(
    cni: str, mode: str | None = None, managed_by: str | None = None, *, installs: bool = False
) -> Network:
    """The solution for the profile's keys; what is None takes the first that fits. ValueError where nothing
    fits. `installs`: the profile names the version of an agent that winboot shall bring."""
    for network in NETWORKS:
        if network.makes_own is not (installs and managed_by == "winboot"):
            continue
        if network.cni == cni and mode in (None, network.mode) and managed_by in (None, network.managed_by):
            return network
    raise ValueError(f"no network {cni} with mode {mode or 'unset'}, managed by {managed_by or 'anyone'}")


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
    raise UsageError(f"no network {name!r} is known", hint=hint)


def comparison() -> str:
    """All solutions side by side: kind of network, who makes what, and for what one takes it."""
    rows = [("network", "kind", "HNS by", "CNI by", "kube-proxy by", "what")]
    for one in NETWORKS:
        owners = one.owners
        what = f"later: {one.later}" if one.later else one.what
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
    if network.makes_own:
        lines.append(f"  chosen by       artifacts.{network.artifacts[0]}: its version")
    if network.later:
        lines.append(f"  not yet: {network.later}")
    if network.hns_type:
        lines.append(f"  HNS network     {network.hns_type}, named {network.default_name.format(vni=4096)}")
    owners = network.owners
    lines += [f"  {one.name.replace('_', ' '):<16}{getattr(owners, one.name)}" for one in fields(owners)]
    lines += [f"  {f'{port.protocol} {port.ports} {port.direction}':<16}{port.why}" for port in network.ports]
    lines += [f"  needs {need.check}: {need.why}" for need in network.needs]
    return lines

"""A network that another tool brings, and those that winboot knows and does not offer."""

from __future__ import annotations

from winboot.config.networks.base import ClusterNeed, Network, Owners

NONE = Network(
    id="none",
    cni="none",
    mode=None,
    what="another program makes the whole network; winboot runs kubelet, containerd and (with network_name) kube-proxy",
    hns_type=None,
    default_name="",
    owners=Owners(
        hns_network="operator",
        binaries="operator",
        cni_conf="operator",
        ipam_store="operator",
        routes="operator",
        kube_proxy="winboot",
    ),
    owner_hint="Another program must make the network network_name of the profile.",
    dual_stack=True,
    needs=(
        ClusterNeed(
            "kube-proxy-rbac", "kube-proxy reads services and endpoint slices with the node's certificate"
        ),
    ),
)

CILIUM = Network(
    id="cilium",
    cni="cilium",
    mode=None,
    what="Cilium, which runs only on Linux nodes",
    hns_type=None,
    default_name="",
    owners=Owners(
        hns_network="none",
        binaries="none",
        cni_conf="none",
        ipam_store="none",
        routes="none",
        kube_proxy="none",
    ),
    # cilium/cilium#31873 and #34929 ask for one and are closed.
    later="Cilium has no agent for Windows, so a cluster with Cilium alone has no network for Windows nodes",
    source="https://github.com/cilium/cilium",
)

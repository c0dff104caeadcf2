"""Each network solution as a value: the owner of each part, and the exact files the plugins read."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any

import pytest

from tests.every import assert_none_wrong, differs, untrue
from winboot.base.errors import UsageError
from winboot.config.networks import NETWORKS, choose, comparison, explain, hns_owners, modes
from winboot.config.networks.base import Choices, Data, Known, Network, Owners
from winboot.config.networks.vxlan import Vxlan
from winboot.config.node_spec.node import Paths

CHOICES = Choices(
    network_name="cbr0",
    pod_cidrs=("10.244.0.0/16",),
    service_cidrs=("10.96.0.0/12",),
    dns_service_ips=("10.96.0.10",),
    dns_domain="cluster.local",
    vxlan=Vxlan(),
    node_ip=Known("node_ip"),
    dsr=False,
    node_name="win-1",
    calls={"startup": ("-startup", "-complete-startup"), "felix": ("-felix",)},
    # The names of one solution are no other's: `test_no_two_solutions_share_a_name_for_a_place`.
    paths={**asdict(Paths()), **{name: path for one in NETWORKS for name, path in one.paths.items()}},
)
BY_ID = {network.id: network for network in NETWORKS}


def _plain(data: Data) -> Any:
    """Known values as `<name>`, so that files can be compared with what is written down here."""

    def default(value: object) -> str:
        assert isinstance(value, Known)
        return f"{value.prefix}<{value.name}>{value.suffix}"

    return json.loads(json.dumps(data, default=default))


def _conf(id: str, choices: Choices = CHOICES) -> Any:
    network = BY_ID[id]
    assert network.cni_conf is not None
    return _plain(network.cni_conf(choices))


def _policy(kind: str, **settings: object) -> dict[str, object]:
    return {"name": "EndpointPolicy", "value": {"Type": kind, "Settings": settings}}


def test_flannel_host_gw_hands_pods_to_win_bridge() -> None:
    """apiVersion 2, flannel's network as the first exception, services and the own node through the host."""
    assert _conf("flannel-host-gw") == {
        "name": "cbr0",
        "cniVersion": "1.0.0",
        "plugins": [
            {
                "type": "flannel",
                "capabilities": {"portMappings": True, "dns": True},
                "delegate": {
                    "type": "win-bridge",
                    "apiVersion": 2,
                    "policies": [
                        _policy("OutBoundNAT", Exceptions=["10.244.0.0/16", "10.96.0.0/12", "<node_subnet>"]),
                        _policy("SDNRoute", DestinationPrefix="10.96.0.0/12", NeedEncap=True),
                        _policy("SDNRoute", DestinationPrefix="<node_ip>/32", NeedEncap=True),
                    ],
                },
            }
        ],
    }


def test_flannel_vxlan_hands_pods_to_win_overlay() -> None:
    """The provider address is the node's; the node's subnet is no exception. The network of its own pods is one: else
    win-overlay would add it in a policy of its own (lab/contracts/cni.yaml, overlay-masquerades-for-the-nodes-own-subnet)."""
    delegate = _conf("flannel-vxlan")["plugins"][0]["delegate"]

    assert delegate == {
        "type": "win-overlay",
        "apiVersion": 2,
        "endpointMacPrefix": "0E-2A",
        "policies": [
            _policy("OutBoundNAT", Exceptions=["10.244.0.0/16", "10.96.0.0/12", "<pod_cidr>"]),
            _policy("SDNRoute", DestinationPrefix="10.96.0.0/12", NeedEncap=True),
            _policy("ProviderAddress", ProviderAddress="<node_ip>"),
        ],
    }


def test_flanneld_gets_one_network_by_file_and_one_name_by_environment() -> None:
    """The names in net-conf must be those of the CNI configuration and of kube-proxy."""
    vxlan = BY_ID["flannel-vxlan"]
    assert vxlan.net_conf is not None
    assert vxlan.agent is not None
    agent = vxlan.agent(CHOICES)

    assert _plain(vxlan.net_conf(CHOICES)) == {
        "Network": "10.244.0.0/16",
        "Backend": {"Type": "vxlan", "VNI": 4096, "Port": 4789, "Name": "cbr0", "MacPrefix": "0E-2A"},
    }
    assert agent.arguments["iface"] == Known("node_ip")
    assert agent.environment == {"NODE_NAME": "win-1"}


def test_win_bridge_takes_addresses_from_the_pod_subnet_behind_the_hosts_own() -> None:
    """Gateway is base + 2, the first pod base + 3. The plug-in takes no second address, and no policy of its family."""
    dual = replace(
        CHOICES, pod_cidrs=("10.244.0.0/16", "fd00::/56"), service_cidrs=("10.96.0.0/12", "fd00:96::/112")
    )

    assert _conf("win-bridge")["plugins"][0]["ipam"] == {
        "type": "host-local",
        "ranges": [[{"subnet": "<pod_cidr>", "rangeStart": "<pod_first>", "gateway": "<pod_endpoint>"}]],
    }
    assert _conf("win-bridge", dual) == _conf("win-bridge")


def test_azure_has_its_older_schema_and_loses_the_route_with_direct_server_return() -> None:
    """AdditionalArgs with ExceptionList; the plugin turns loopback on where DSR is."""
    without, having = (_conf("azure", replace(CHOICES, dsr=dsr))["plugins"][0] for dsr in (False, True))

    assert [one["Value"]["Type"] for one in without["AdditionalArgs"][:-4]] == ["OutBoundNAT", "ROUTE"]
    assert [one["Value"]["Type"] for one in having["AdditionalArgs"][:-4]] == ["OutBoundNAT"]
    assert having["windowsSettings"]["enableLoopbackDSR"] is True
    assert without["dns"] == {"Nameservers": ["10.96.0.10", "168.63.129.16"], "Search": ["svc.cluster.local"]}
    assert _conf("azure-tunnel")["plugins"][0]["mode"] == "tunnel"


def _arguments(choices: Choices) -> list[dict[str, Any]]:
    return [one["Value"] for one in _conf("azure", choices)["plugins"][0]["AdditionalArgs"]]


def test_only_with_the_container_networking_service_azure_runs_in_its_swift_mode() -> None:
    """Without it pods get no NAT to the fabric's DNS (getNATInfo of azure-container-networking, network_windows.go)."""
    modes = {
        ipam: _conf("azure", replace(CHOICES, ipam=ipam))["plugins"][0].get("executionMode")
        for ipam in ("", "azure-vnet-ipam", "azure-cns")
    }

    assert modes == {"": None, "azure-vnet-ipam": None, "azure-cns": "v4swift"}


def test_azures_pods_do_not_reach_the_hosts_service() -> None:
    """Its two ports are closed to pods and all else passes, as AgentBaker's azurecnifunc.ps1 has it."""
    rules = [one for one in _arguments(CHOICES) if one["Type"] == "ACL"]

    blocked = [one for one in rules if one["Action"] == "Block"]
    assert [one["RemotePorts"] for one in blocked] == ["80", "32526"]
    assert {(one["RemoteAddresses"], one["Protocols"], one["Direction"]) for one in blocked} == {
        ("168.63.129.16/32", "6", "Out")
    }
    assert [(one["Action"], one["Direction"], one["Priority"]) for one in rules[2:]] == [
        ("Allow", "In", 65500),
        ("Allow", "Out", 65500),
    ]


def test_azures_exceptions_are_the_whole_virtual_network() -> None:
    """Where the profile says it; else the node's own subnet."""
    named = replace(CHOICES, node_cidrs=("10.0.0.0/16", "10.1.0.0/16"))

    assert _arguments(CHOICES)[0]["ExceptionList"] == ["10.244.0.0/16", "<node_subnet>", "10.96.0.0/12"]
    assert _arguments(named)[0]["ExceptionList"] == [
        "10.244.0.0/16",
        "10.0.0.0/16",
        "10.1.0.0/16",
        "10.96.0.0/12",
    ]


def test_windows_2019_gets_of_exceptions_with_one_first_address_the_widest() -> None:
    """It drops the prefix lengths, then what is there twice (AgentBaker, GetBroadestRangesForEachAddress)."""
    vnet = replace(CHOICES, node_cidrs=("10.244.0.0/24", "10.96.0.0/11"))

    assert _arguments(replace(vnet, build=17763))[0]["ExceptionList"] == ["10.244.0.0/16", "10.96.0.0/11"]
    assert len(_arguments(replace(vnet, build=20348))[0]["ExceptionList"]) == 4


def test_the_profile_adds_nat_exceptions_and_takes_some_away() -> None:
    """In every configuration that winboot writes; the rest of the list stays as it is."""
    removed = {"10.96.0.0/12", "<node_subnet>"}
    changed = replace(CHOICES, nat_add=("172.16.0.0/12",), nat_remove=("10.96.0.0/12", "node_subnet"))
    lists = {
        one.id: (_exceptions(one, CHOICES), _exceptions(one, changed)) for one in NETWORKS if one.exceptions
    }

    assert_none_wrong(
        {
            id: differs(after, [*(one for one in before if one not in removed), "172.16.0.0/12"])
            or untrue(had_the_services_network="10.96.0.0/12" in before)
            for id, (before, after) in lists.items()
        }
    )


def _exceptions(network: Network, choices: Choices) -> list[str]:
    """The one list of NAT exceptions, wherever the solution's configuration has it."""
    found = [one for one in _leaves(_conf(network.id, choices)) if one[0] in ("Exceptions", "ExceptionList")]
    assert len(found) == 1
    return list(found[0][1])


def _leaves(value: Any) -> Any:
    if isinstance(value, dict):
        for key, below in value.items():
            yield key, below
            yield from _leaves(below)
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below)


def test_what_a_solution_says_of_its_agent_is_what_its_agent_is() -> None:
    """The service is known without a profile; steps and downloads are those that exist."""
    assert_none_wrong(
        {
            one.id: untrue(
                service=one.agent_service == ("" if one.agent is None else one.agent(CHOICES).service),
                programs=set(dict(one.programs).values()) <= set(one.paths),
                fixed_exceptions=set(one.fixed_exceptions) <= set(one.exceptions),
                exceptions=bool(one.exceptions) is (one.cni_conf is not None),
                owner_hint=one.owners.hns_network != "operator" or one.owner_hint.endswith("."),
            )
            for one in NETWORKS
        }
    )


def test_calico_by_services_gets_its_own_key_case() -> None:
    """Name and Value, SDNROUTE and ExceptionList: as Calico's plugin reads them."""
    conf = _conf("calico-vxlan-services")

    assert (conf["type"], conf["vxlan_vni"], conf["ipam"]) == ("calico", 4096, {"type": "calico-ipam"})
    assert conf["policies"][1]["Value"] == {
        "Type": "SDNROUTE",
        "DestinationPrefix": "10.96.0.0/12",
        "NeedEncap": True,
    }


def test_what_winboot_owns_it_can_write_and_what_others_own_it_cannot() -> None:
    """An owner and a function go together; every piece has an owner."""
    known = {"winboot", "agent", "operator", "none"}

    assert_none_wrong(
        {
            one.id: untrue(
                cni_conf=one.later or (one.cni_conf is not None) is (one.owners.cni_conf == "winboot"),
                reservations=one.later or bool(one.reservations) is (one.owners.ipam_store == "winboot"),
                downloads=one.later or bool(one.downloads) is (one.owners.binaries == "winboot"),
                owners={getattr(one.owners, part.name) for part in fields(Owners)} <= known,
                source_vip=one.later or (one.hns_type == "Overlay") is one.source_vip,
                source_vip_endpoint=one.source_vip_endpoint is None or one.source_vip,
            )
            for one in NETWORKS
        }
    )


def test_every_configuration_is_plain_json_with_the_networks_name() -> None:
    """`name` is not cosmetic: the plugins look the HNS network up by it."""
    confs = {one.id: _conf(one.id) for one in NETWORKS if one.cni_conf}

    assert_none_wrong(
        {
            id: untrue(
                name=conf["name"] == "cbr0",
                file=BY_ID[id].conf_file.endswith(".conflist" if "plugins" in conf else ".conf"),
                key="ExceptionList" not in json.dumps(conf) or BY_ID[id].cni in ("azure", "calico"),
            )
            for id, conf in confs.items()
        }
    )


def test_a_solution_is_chosen_by_the_profiles_keys() -> None:
    """The first that fits; nothing fitting is an error."""
    assert choose("flannel").id == "flannel-host-gw"
    assert choose("flannel", "vxlan").id == "flannel-vxlan"
    assert choose("calico").id == "calico-vxlan"
    assert choose("calico", None, "winboot").id == "calico-vxlan-services"
    assert choose("calico", None, "winboot", named=("calico",)).id == "calico-vxlan-node"
    assert modes("flannel") == ("host-gw", "vxlan")
    assert modes("none") == ()
    with pytest.raises(ValueError, match="no network flannel"):
        choose("flannel", "udp")


def test_every_solution_is_explained() -> None:
    """Owners, ports and needs, and one table of all."""
    table = comparison().splitlines()

    assert len(table) == len(NETWORKS) + 1
    for network in NETWORKS:
        assert network.what in explain(network.id)
    assert "not offered: Cilium has no agent for Windows" in explain("cilium")
    with pytest.raises(UsageError) as caught:
        explain("flannel-vxlann")
    assert "flannel-vxlan" in caught.value.hint


def test_calicos_agent_makes_its_network_first_and_then_stays() -> None:
    """One service, as Calico's own scripts run it: what fails is begun again by NSSM."""
    solution = BY_ID["calico-vxlan-node"]
    assert solution.agent is not None
    agent = solution.agent(replace(CHOICES, network_name="Calico"))

    assert agent.words == (
        "/c",
        r"C:\k\calico-node.exe -startup -complete-startup && C:\k\calico-node.exe -felix",
    )
    assert agent.runs == r"C:\k\calico-node.exe"
    assert agent.environment["KUBECONFIG"] == r"C:\k\calico.kubeconfig"
    assert {
        agent.environment[name] for name in ("NODENAME", "CALICO_K8S_NODE_REF", "FELIX_FELIXHOSTNAME")
    } == {"win-1"}
    assert {agent.environment[name] for name in ("VXLAN_VNI", "FELIX_VXLANVNI")} == {"4096"}
    assert _conf("calico-vxlan-node")["nodename_file"] == "C:/k/calico-nodename"
    assert _conf("calico-vxlan-node")["kubernetes"] == {"kubeconfig": r"C:\k\calico.kubeconfig"}


def test_the_networks_of_a_solution_have_names_with_sources() -> None:
    """What winboot names itself has no name of its own: the reference plug-ins take the configuration's."""
    nameless = ("win-bridge", "win-overlay", "none", "cilium")

    assert_none_wrong(
        {
            one.id: untrue(
                names=bool(one.hns_names) is (one.cni not in nameless),
                sources=all("/" in name.source for name in one.hns_names),
                first_switch=one.first_switch is None or one.cni in hns_owners(one.first_switch),
            )
            for one in NETWORKS
        }
    )


@pytest.mark.parametrize(
    ("name", "owners"),
    [
        ("External", ("flannel", "calico")),
        ("flannel.4096", ("flannel",)),
        ("calico", ("calico",)),
        ("Antrea-HnsNetwork", ("antrea",)),
        ("BaseOVNKubernetesHybridOverlayNetwork", ("ovn-hybrid",)),
        ("ext", ("azure",)),
        ("nat", ("docker",)),
        ("external-2", ()),
    ],
)
def test_a_network_is_known_by_its_name(name: str, owners: tuple[str, ...]) -> None:
    assert hns_owners(name) == owners


@pytest.mark.parametrize(
    ("solution", "annotation", "networks"),
    [
        ("ovn-hybrid", "10.9.0.0/24", ("10.9.0.0/24",)),
        ("ovn-hybrid", "", ()),
        ("win-bridge", "10.9.0.0/24", ("10.244.1.0/24",)),
    ],
)
def test_only_the_network_that_reads_the_annotation_takes_its_cidr(
    solution: str, annotation: str, networks: tuple[str, ...]
) -> None:
    annotations = {"k8s.ovn.org/hybrid-overlay-node-subnet": annotation}

    assert BY_ID[solution].pod_networks(("10.244.1.0/24",), annotations) == networks


def test_antrea_finds_its_folders_where_its_script_writes() -> None:
    """Install-WindowsCNI.ps1 of antrea-io/antrea has no other."""
    assert (Paths().cni_bin, Paths().cni_conf) == (r"C:\opt\cni\bin", r"C:\etc\cni\net.d")
    assert BY_ID["antrea"].owners.kube_proxy == "none"


def test_no_two_solutions_share_a_name_for_a_place() -> None:
    """Nor does one take a name of winboot's own; forms of one CNI have theirs in common."""
    places: dict[str, str] = asdict(Paths())
    for network in NETWORKS:
        for name, path in network.paths.items():
            assert places.setdefault(name, path) == path, (network.id, name)
        assert {*network.configuration, *network.written} <= set(network.paths)


def test_a_cloud_must_forward_for_pods_that_have_addresses_of_their_own() -> None:
    """Bridged without addresses of the nodes' network: flannel's host-gw and the reference bridge."""
    assert {one.id for one in NETWORKS if one.routed} == {"flannel-host-gw", "win-bridge"}

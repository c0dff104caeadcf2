"""From profile and machine to a NodeSpec: what is chosen, what is merged, what stays open until the join."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.config.scene import CA, a_profile, a_spec, complaints
from tests.every import assert_none_wrong, differs
from winboot.base.errors import InvalidInput
from winboot.config.compat import Compat
from winboot.config.compat.flags import whole_maps
from winboot.config.inventory import load_inventory
from winboot.config.networks.base import Known
from winboot.config.node_spec import resolve, unresolved
from winboot.config.node_spec.components import kubelet_config
from winboot.config.node_spec.node import Paths


def test_a_node_address_without_a_name_in_the_inventory_is_known_after_the_join(tmp_path: Path) -> None:
    """It goes into the flags, the CNI configuration and the service's arguments; a named address is there from the start."""
    spec = a_spec(tmp_path)
    named = a_spec(tmp_path, host="{address: 10.0.1.11, node_ip: 10.0.1.11}")

    assert spec.kubelet.arguments["node-ip"] == Known("node_ip")
    assert Known("node_ip", prefix="--node-ip=") in spec.services["kubelet"].arguments
    assert "--node-ip=10.0.1.11" in named.services["kubelet"].arguments
    assert str(Known("node_ip", suffix="/32")) == "(known after join)/32"


def test_the_users_configuration_lies_over_winboots(tmp_path: Path) -> None:
    """Values replace winboot's, a null takes a field of winboot's away; moved flags come between."""
    spec = a_spec(
        tmp_path,
        profile="""
kubelet:
  config: {maxPods: 50, authorization: {webhook: {cacheAuthorizedTTL: 1m}}, runtimeRequestTimeout: null}
  flags: {max-open-files: null, registry-qps: 20, windows-priorityclass: null}
""",
    )

    config = spec.kubelet.config
    assert config["maxPods"] == 50
    assert config["authorization"] == {"mode": "Webhook", "webhook": {"cacheAuthorizedTTL": "1m"}}
    assert "runtimeRequestTimeout" not in config
    assert config["registryPullQPS"] == 20
    assert "registry-qps" not in spec.kubelet.arguments
    assert "windows-priorityclass" not in spec.kubelet.arguments


_ONE: Mapping[str, Mapping[str, object]] = {
    "thresholds": {"memory.available": "300Mi"},
    "reclaims": {"memory.available": "100Mi"},
    "grace-periods": {"memory.available": "1m"},
    "resources": {"memory": "2.5Gi"},
    "text-map": {"some-name": "some value"},
    "texts-map": {"X-Some": ["value"]},
    "percentages": {"memory": "50%"},
}


@pytest.mark.parametrize("field", sorted(whole_maps(Compat(), "kubelet")))
@pytest.mark.parametrize("value", ["none", "one"])
def test_a_map_of_the_kubelet_replaces_winboots_whole(field: str, value: str, tmp_path: Path) -> None:
    """As the kubelet reads its file: a map that is there is the default's instead, key by key or empty."""
    wanted = {} if value == "none" else _ONE[Compat().section("kubelet_fields")[field]["type"]]
    profile = a_profile("", tmp_path)
    config = profile.kubelet.model_copy(update={"config": {field: wanted}})

    spec = kubelet_config(
        profile.model_copy(update={"kubelet": config}), Compat(), (), (), Paths(), endpoint=""
    )

    assert spec[field] == wanted


@pytest.mark.parametrize(
    ("flags", "field", "wanted"),
    [
        ('eviction-hard: ""', "evictionHard", {}),
        ("eviction-hard: 'memory.available<300Mi'", "evictionHard", {"memory.available": "300Mi"}),
        ('system-reserved: ""', "systemReserved", {}),
        ("system-reserved: memory=2.5Gi", "systemReserved", {"memory": "2.5Gi"}),
    ],
)
def test_a_flag_replaces_its_whole_map(flags: str, field: str, wanted: object, tmp_path: Path) -> None:
    """AKS' own value for Windows is an empty --eviction-hard; EKS names two of three thresholds."""
    spec = a_spec(tmp_path, profile=f"kubelet: {{flags: {{{flags}}}}}")

    assert spec.kubelet.config[field] == wanted


def test_a_null_alone_takes_one_of_winboots_keys(tmp_path: Path) -> None:
    """It says nothing about the other keys of the map."""
    spec = a_spec(tmp_path, profile="kubelet: {config: {evictionHard: {imagefs.available: null}}}")

    assert spec.kubelet.config["evictionHard"] == {"memory.available": "500Mi", "nodefs.available": "10%"}


def test_gates_of_the_user_stand_beside_winboots(tmp_path: Path) -> None:
    """Below 1.33 direct server return needs its gate, whatever else the user turns on."""
    text = "kubernetes: {version: 1.32.9}\nkube_proxy: {dsr: 'on', config: {featureGates: {TopologyAwareHints: true}}}"

    gates = a_spec(tmp_path, profile=text).kube_proxy.config["featureGates"]

    assert gates == {"WinDSR": True, "TopologyAwareHints": True}


def test_a_kubelet_on_windows_gets_the_settings_that_it_cannot_guess(tmp_path: Path) -> None:
    """The values without which it does not start, or pods do not."""
    config = a_spec(tmp_path).kubelet.config

    assert config["cgroupsPerQOS"] is False
    assert config["enforceNodeAllocatable"] == []
    assert config["resolvConf"] == ""
    assert config["containerRuntimeEndpoint"] == "npipe:////./pipe/containerd-containerd"
    assert config["clusterDNS"] == ["10.96.0.10"]
    assert config["serverTLSBootstrap"] is True
    assert config["registerWithTaints"] == [
        {"key": "os", "value": "windows", "effect": "NoSchedule"},
        {"key": "winboot.io/starting", "value": "true", "effect": "NoSchedule"},
    ]


def test_services_start_in_the_order_they_need_each_other(tmp_path: Path) -> None:
    """containerd, kubelet, flanneld, kube-proxy; flanneld under NSSM whatever the others have."""
    services = a_spec(tmp_path).services

    assert [service.name for service in services.all] == ["containerd", "kubelet", "flanneld", "kube-proxy"]
    assert [service.depends_on for service in services.all] == [
        (),
        ("containerd",),
        ("kubelet",),
        ("kubelet", "flanneld"),
    ]
    assert [service.manager for service in services.all] == ["sc", "sc", "nssm", "sc"]


def test_only_a_native_service_answers_the_service_manager(tmp_path: Path) -> None:
    """Under NSSM the programs get no such flag, and no log runner."""
    sc = a_spec(tmp_path).services
    nssm = a_spec(tmp_path, profile="services: {manager: nssm}").services

    assert "--windows-service=true" in sc["kubelet"].arguments
    assert "--run-service" in sc["containerd"].arguments
    assert sc["kubelet"].log_runner
    for service in nssm.all:
        assert service.manager == "nssm"
        assert not service.log_runner
        assert "--windows-service=true" not in service.arguments
        assert "--run-service" not in service.arguments


@pytest.mark.parametrize(
    ("version", "os", "dsr", "expected"),
    [
        ("1.34.8", "2022", "auto", True),
        ("1.32.13", "2022", "auto", False),
        ("1.34.8", "2019", "auto", False),
        ("1.34.8", "2022", "off", False),
        ("1.32.13", "2019", "on", True),
    ],
)
def test_direct_server_return_is_on_where_it_comes_by_itself(
    version: str, os: str, dsr: str, expected: bool, tmp_path: Path
) -> None:
    """auto follows version and build; on and off are obeyed, in kube-proxy and in the CNI configuration."""
    profile = f'kubernetes: {{version: "{version}"}}\nkube_proxy: {{dsr: {dsr}}}'

    spec = a_spec(tmp_path, profile=profile, os=os)

    assert spec.kube_proxy.dsr is expected
    winkernel = spec.kube_proxy.config["winkernel"]
    assert isinstance(winkernel, dict)
    assert winkernel["enableDSR"] is expected
    assert ("loopbackDSR" in str(spec.network.cni_conf)) is expected
    assert bool(spec.updates) is (expected and os == "2019")


def test_an_overlay_gives_kube_proxy_a_source_address(tmp_path: Path) -> None:
    """Only the node knows it; an L2 bridge has the host's endpoint instead."""
    overlay = a_spec(tmp_path, profile="network: {cni: flannel, mode: vxlan}").kube_proxy.config["winkernel"]
    bridge = a_spec(tmp_path).kube_proxy.config["winkernel"]

    assert isinstance(overlay, dict)
    assert isinstance(bridge, dict)
    assert overlay["sourceVip"] == Known("source_vip")
    assert overlay["networkName"] == "flannel.4096"
    assert bridge["rootHnsEndpointName"] == "cbr0_ep"
    assert "sourceVip" not in bridge


def test_no_proxy_holds_all_that_must_be_reached_directly(tmp_path: Path) -> None:
    """Cluster, pods, services, the node, loopback and metadata; then the user's; nothing without a proxy."""
    profile = "proxy: {http: 'http://p:3128', no_proxy: [.corp.example, localhost]}"

    spec = a_spec(tmp_path, profile=profile, host="{address: win, node_ip: 10.0.1.11}")

    assert spec.proxy.no_proxy == (
        "localhost",
        "127.0.0.1",
        "10.0.0.10",
        "10.0.1.11",
        "10.244.0.0/16",
        "10.96.0.0/12",
        ".svc",
        ".cluster.local",
        "169.254.169.254",
        ".corp.example",
    )
    assert set(spec.services["containerd"].environment) == {"HTTP_PROXY", "NO_PROXY"}
    assert a_spec(tmp_path).proxy.environment == {}


def test_what_a_network_needs_directly_is_not_asked_of_the_proxy(tmp_path: Path) -> None:
    """Azure's fabric answers at an address of the machine's own host, which no proxy reaches."""
    proxy = "proxy: {http: 'http://p:3128'}"
    azure = f"{proxy}\nnetwork: {{cni: azure}}\nartifacts: {{azure_cni: 1.6.48}}"

    assert "168.63.129.16" in a_spec(tmp_path, profile=azure).proxy.no_proxy
    assert "168.63.129.16" not in a_spec(tmp_path, profile=proxy).proxy.no_proxy


def test_nat_exceptions_of_the_profile_are_in_the_file(tmp_path: Path) -> None:
    """What is added comes last; the node's own subnet goes by its name."""
    wanted = "network: {nat_exceptions: {add: [172.16.0.0/12, 192.0.2.0/24], remove: node_subnet}}"

    conf = a_spec(tmp_path, profile=wanted).network.cni_conf
    plain = a_spec(tmp_path).network.cni_conf
    assert conf is not None and plain is not None
    assert _exceptions(plain) == ["10.244.0.0/16", "10.96.0.0/12", Known("node_subnet")]
    assert _exceptions(conf) == ["10.244.0.0/16", "10.96.0.0/12", "172.16.0.0/12", "192.0.2.0/24"]


def _exceptions(conf: Any) -> list[object]:
    (nat,) = [
        one["value"]
        for one in conf["plugins"][0]["delegate"]["policies"]
        if one["value"]["Type"] == "OutBoundNAT"
    ]
    return list(nat["Settings"]["Exceptions"])


REGISTRY_WORDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ca": (r"ca: 'C:\c\ca.pem'", {"ca": r"C:\c\ca.pem"}),
    "client": (
        r"client: {cert: 'C:\c\a.pem', key: 'C:\c\b.pem'}",
        {"client": [[r"C:\c\a.pem", r"C:\c\b.pem"]]},
    ),
    "skip_verify": ("skip_verify: true", {"skip_verify": True}),
    "header": ("header: {X-Team: a}", {"header": {"X-Team": "a"}}),
    "override_path": ("override_path: true", {"override_path": True}),
}


@pytest.mark.parametrize(
    "mirrors", [(), ("https://m.example/hub",), ("https://a.example", "https://b.example")]
)
def test_every_word_of_a_registry_stands_where_containerd_reads_it(
    mirrors: tuple[str, ...], tmp_path: Path
) -> None:
    """The root of hosts.toml is about `server`, a host's table about the host (containerd
    core/remotes/docker/config/hosts.go, parseHostsFile)."""
    sets = [one for size in range(6) for one in itertools.combinations(REGISTRY_WORDS, size)]

    # A registry's own address has no path: winboot refuses that.
    assert_none_wrong(
        {
            "+".join(words) or "nothing": _misplaced(words, mirrors, tmp_path)
            for words in sets
            if mirrors or "override_path" not in words
        }
    )


def _misplaced(words: tuple[str, ...], mirrors: tuple[str, ...], folder: Path) -> str:
    keys = [f"mirrors: {list(mirrors)}", *(REGISTRY_WORDS[one][0] for one in words)]
    profile = f"runtime: {{registries: {{r.example: {{{', '.join(keys)}}}}}}}"
    expected = {key: value for one in words for key, value in REGISTRY_WORDS[one][1].items()}

    (registry,) = a_spec(folder, profile=profile).runtime.registries

    found = tomllib.loads(registry.hosts_toml)
    hosts = list(found.pop("host", {}).items())
    of_a_host = {"capabilities": ["pull", "resolve"], **expected}
    return differs(
        (found, hosts),
        (
            {"server": "https://r.example", **({} if mirrors else expected)},
            [(mirror, of_a_host) for mirror in mirrors],
        ),
    )


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        (
            "{mirrors: ['https://r.example/', 'https://m.example/hub']}",
            ["r.example/v2/", "m.example/hub/v2/"],
        ),
        ("{mirrors: ['https://m.example/hub/v2/']}", ["m.example/hub/v2/", "r.example/v2/"]),
        ("{mirrors: ['https://m/v2/hub'], override_path: true}", ["m/v2/hub/", "r.example/v2/"]),
        ("{ca: 'C:\\c\\ca.pem'}", ["r.example/v2/"]),
        ("{header: {X-Team: a}}", ["r.example/"]),
    ],
)
def test_a_registry_is_asked_where_containerd_asks_it(keys: str, asked: list[str], tmp_path: Path) -> None:
    """Each address once, with /v2 at its end where containerd appends it (hosts.go, parseHostConfig)."""
    spec = a_spec(tmp_path, profile=f"runtime: {{registries: {{r.example: {keys}}}}}")

    assert spec.runtime.registry_urls["r.example"] == tuple(f"https://{one}" for one in asked)


def test_a_registry_credential_is_a_reference_beside_the_text(tmp_path: Path) -> None:
    """hosts.toml holds mirrors; the password has a name among the secrets and stands nowhere."""
    profile = """
runtime:
  registries:
    registry.corp.example:5000: {mirrors: ['https://a', 'https://b'], user: me, password: {env: NO_SUCH}}
    docker.io: {mirrors: ['https://m'], skip_verify: true}
"""
    first, second = a_spec(tmp_path, profile=profile).runtime.registries

    hosts = tomllib.loads(first.hosts_toml)
    assert first.folder == "registry.corp.example_5000_"
    assert (first.secret, first.user) == ("registry/registry.corp.example:5000", "me")
    assert first.authorize == ("https://a", "https://b")
    assert list(hosts["host"]) == ["https://a", "https://b"]
    assert tomllib.loads(second.hosts_toml)["server"] == "https://registry-1.docker.io"
    assert second.secret is None


def test_downloads_come_from_upstream_a_mirror_or_a_folder(tmp_path: Path) -> None:
    """Mirrors and folders have the same layout, with the version in the path."""
    upstream, mirror, folder = (
        {
            one.name: one.url
            for one in a_spec(tmp_path, profile=f"artifacts: {{source: '{source}'}}").artifacts
        }
        for source in ("upstream", "https://mirror.corp.example/", r"D:\bundle")
    )

    assert upstream["kubernetes"] == "https://dl.k8s.io/v1.36.5/kubernetes-node-windows-amd64.tar.gz"
    assert mirror["kubectl"] == "https://mirror.corp.example/kubectl/1.36.5/kubectl.exe"
    assert folder["flannel"] == r"D:\bundle\flannel\0.28.9\flanneld.exe"


def test_only_programs_that_run_are_downloaded(tmp_path: Path) -> None:
    """No kube-proxy where an operator runs it, no NSSM where nothing needs it, no plugin of another network."""
    names = {one.name for one in a_spec(tmp_path, profile="network: {cni: calico}").artifacts}
    bridge = a_spec(tmp_path, profile="network: {cni: win-bridge}")
    members = {member.destination for one in bridge.artifacts for member in one.members}

    assert names == {"containerd", "kubernetes", "kubectl", "crictl"}
    assert r"C:\k\versions\cni-plugins-1.9.1\win-bridge.exe" in members
    assert not [one for one in members if one.endswith(r"\win-overlay.exe")]
    assert not [one for one in members if one.endswith(r"\nssm.exe")]


def test_what_init_has_to_find_out_is_listed(tmp_path: Path) -> None:
    """Missing hashes, and a CA with only a hash; a hash in the profile reaches its download and its member."""
    profile = f"""
artifacts:
  sha256:
    kubectl/1.36.5/kubectl.exe: {"ab" * 32}
    crictl/1.36.0/crictl-v1.36.0-windows-amd64.tar.gz!crictl.exe: sha256:{"cd" * 32}
"""

    spec = a_spec(tmp_path, profile=profile)

    by_name = {one.name: one for one in spec.artifacts}
    assert by_name["kubectl"].sha256 == by_name["kubectl"].members[0].sha256 == "ab" * 32
    assert by_name["crictl"].members[0].sha256 == "cd" * 32
    assert by_name["nssm"].sha256 is not None
    assert "artifacts.sha256: kubernetes/1.36.5/kubernetes-node-windows-amd64.tar.gz" in unresolved(spec)
    assert "artifacts.sha256: kubectl/1.36.5/kubectl.exe" not in unresolved(spec)


def test_the_ca_is_the_same_bytes_on_every_node(tmp_path: Path) -> None:
    """Whatever line ends the file here has."""
    spec = a_spec(tmp_path)
    (tmp_path / "ca.crt").write_bytes(CA.replace("\n", "\r\n").encode() + b"\r\n")
    machine = load_inventory(tmp_path / "inventory.yaml")["win-1"]

    assert resolve(machine.profile, machine).cluster.ca_sha256 == spec.cluster.ca_sha256


def test_a_ca_file_without_a_certificate_is_refused(tmp_path: Path) -> None:
    """Before anything is rendered from it."""
    a_spec(tmp_path)
    (tmp_path / "ca.crt").write_text("nothing", encoding="utf-8")
    machine = load_inventory(tmp_path / "inventory.yaml")["win-1"]
    with pytest.raises(InvalidInput, match="does not contain a certificate"):
        resolve(machine.profile, machine)


def test_own_steps_come_with_their_texts(tmp_path: Path) -> None:
    """Files are read when the spec is made, so that the preview shows them."""
    for block in ("look", "change"):
        (tmp_path / f"{block}.ps1").write_text(f"# {block}", encoding="utf-8")
    profile = "steps: [{name: time-zone, needs: [directories], look: look.ps1, change: change.ps1}]"

    (step,) = a_spec(tmp_path, profile=profile).steps

    assert (step.name, step.needs, step.look, step.undo) == ("time-zone", ("directories",), "# look", "")


def test_the_firewall_opens_what_the_node_offers(tmp_path: Path) -> None:
    """The kubelet always; kube-proxy's health and NodePorts by choice; VXLAN with an overlay."""
    profile = "network: {cni: flannel, mode: vxlan}\nwindows: {firewall: {node_ports: false}}"

    rules = a_spec(tmp_path, profile=profile).firewall

    assert [(rule.protocol, rule.ports) for rule in rules] == [
        ("TCP", "10250"),
        ("TCP", "10256"),
        ("UDP", "4789"),
    ]


def test_a_known_fix_brings_its_values_with_reason_and_source(tmp_path: Path) -> None:
    """Opt in, by name."""
    fixes = a_spec(tmp_path, profile="windows: {known_fixes: [tcp-keepalive]}").fixes

    assert [fix.name for fix in fixes] == ["KeepAliveTime", "KeepAliveInterval"]
    assert all(fix.reason and fix.source and fix.reboot for fix in fixes)


def test_services_take_the_profiles_variables_and_priority(tmp_path: Path) -> None:
    """In addition to the proxy's variables, for each service; a null drops one of winboot's variables."""
    profile = """
proxy: {http: 'http://proxy:3128'}
services:
  overrides: {kube-proxy: nssm}
  environment: {containerd: {GODEBUG: netdns=go, NO_COLOR: "1"}, flanneld: {NODE_NAME: null}}
  priority: {kube-proxy: HIGH_PRIORITY_CLASS}
"""
    services = a_spec(tmp_path, profile=profile).services

    assert services["containerd"].environment["GODEBUG"] == "netdns=go"
    assert services["containerd"].environment["HTTP_PROXY"] == "http://proxy:3128"
    assert "GODEBUG" not in services["kubelet"].environment
    assert services["flanneld"].environment == {}
    assert services["kube-proxy"].priority_class == "HIGH_PRIORITY_CLASS"


def test_an_https_proxy_is_for_services_where_the_machine_downloads_nothing() -> None:
    """The services' Go programs take it; what the machine copies from a folder goes through no proxy."""
    text = "proxy: {https: 'https://proxy.corp.example:3128'}\nartifacts: {source: 'D:\\bundle'}\n"

    assert [str(one) for one in complaints(text) if one.level == "error"] == []


def test_a_plain_file_keeps_the_name_that_it_has_at_the_users_address(tmp_path: Path) -> None:
    text = "network: {cni: ovn-hybrid}\nartifacts: {hybrid_overlay: 1.3.0, urls: {hybrid-overlay-node: 'https://x.example/build-7.exe'}}\n"

    found = next(one for one in a_spec(tmp_path, profile=text).artifacts if one.name == "hybrid-overlay-node")

    assert (found.file, [one.path for one in found.members]) == ("build-7.exe", ["build-7.exe"])

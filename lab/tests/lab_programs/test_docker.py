"""dockerd, dockershim and cri-dockerd: what made nodes of their time work, and what broke them."""

from __future__ import annotations

from typing import Any

import pytest
from winboot_lab.cluster import ClusterPlan
from winboot_lab.docker_node import DAEMON_JSON, FOLDER, bridge_conf, docker, install_engine
from winboot_lab.engine.refusal import Refusal
from winboot_lab.mirror import program
from winboot_lab.programs import hcn
from winboot_lab.programs.base import GoError
from winboot_lab.programs.plugins import WinBridge
from winboot_lab.windows.files import COMPRESSED
from winboot_lab.windows.firewall import FirewallRule
from winboot_lab.windows.machine import Machine

from lab_programs.conftest import IP, KUBELET, KUBELET_CONFIG, Node

PAUSE = "mcr.microsoft.com/oss/kubernetes/pause:1.4.1"
CONF = r"C:\etc\cni\net.d\10-flannel.conf"
ENDPOINT = "--docker-endpoint=npipe:////./pipe/docker_engine"
# Of dockershim, and of cri-dockerd with the same meaning.
CNI = ["--network-plugin=cni", r"--cni-bin-dir=C:\opt\cni\bin", r"--cni-conf-dir=C:\etc\cni\net.d"]


class DockerNode(Node):
    """A machine of Windows Server 2019 with Docker instead of containerd."""

    def __init__(self, version: str = "1.20.15", engine: str = "20.10.9", config: Any = None) -> None:
        super().__init__(ClusterPlan(version=version), version=version, release="2019")
        self.outside.images.builds[PAUSE] = (17763,)
        install_engine(self.machine, engine, config)
        self.binaries()
        self.configuration()
        self.machine.files.delete(r"C:\etc\cni\net.d\10-flannel.conflist")
        self.conf = bridge_conf("cbr0", "10.244.0.0/16", "10.96.0.0/12", "10.0.0.0/24", IP)
        self.kubelet_config = {k: v for k, v in KUBELET_CONFIG.items() if k != "containerRuntimeEndpoint"}

    def start(self, *flags: str) -> int:
        """Start the kubelet, and flanneld for its network."""
        self.file(r"C:\var\lib\kubelet\config.yaml", self.kubelet_config)
        self.file(CONF, self.conf)
        code = self.service(
            "kubelet", *KUBELET, *flags, f"--pod-infra-container-image={PAUSE}", depends="docker"
        )
        self.settle(20)
        return code

    def ready_after_flanneld(self, *flags: str) -> dict[str, str]:
        """The Ready condition of a whole node."""
        assert self.start(*flags) == 0
        self.flanneld()
        self.settle(60)
        return self.ready()


def shim(node: DockerNode, *more: str) -> dict[str, str]:
    """A node with dockershim."""
    return node.ready_after_flanneld(ENDPOINT, *CNI, *more)


def test_a_kubelet_with_dockershim_is_ready_and_names_docker() -> None:
    node = DockerNode()

    condition = shim(node)

    assert condition["status"] == "True", condition
    assert node.node()["status"]["nodeInfo"]["containerRuntimeVersion"] == "docker://20.10.9"
    node.pod("web")
    node.settle(15)
    (sandbox,) = docker(node.machine, "ps", "-q").split()
    assert node.machine.files.exists(rf"C:\var\lib\dockershim\sandbox\{sandbox}")
    pod = node.admin("GET", "/api/v1/namespaces/default/pods/web")
    assert pod["status"]["podIP"].startswith("10.244.")


def test_a_stop_of_docker_ends_its_pods_and_a_start_makes_them_again() -> None:
    node = DockerNode()
    shim(node)
    node.pod("web")
    node.settle(15)
    before = docker(node.machine, "ps", "-q")

    assert node.sc("stop", "kubelet") == 0
    node.settle(5)
    assert node.sc("stop", "docker") == 0
    node.settle(5)
    assert node.sc("start", "docker") == 0
    assert docker(node.machine, "ps", "-q") == "" != before
    assert node.sc("start", "kubelet") == 0
    node.settle(60)

    assert node.ready()["status"] == "True"
    after = docker(node.machine, "ps", "-q")
    assert len(after.split()) == 1 and after != before


def test_cri_dockerd_serves_a_kubelet_of_today_under_nssm() -> None:
    node = DockerNode("1.30.14", "28.5.2")
    node.outside.images.builds["registry.k8s.io/pause:3.9"] = (17763,)
    node.file(r"C:\k\cri-dockerd.exe", program("cri-dockerd", "0.4.3"))
    pause = "--pod-infra-container-image=registry.k8s.io/pause:3.9"
    assert (
        node.run(
            r"C:\k\nssm.exe", "install", "cri-dockerd", r"C:\k\cri-dockerd.exe", ENDPOINT, *CNI, pause
        ).code
        == 0
    )
    assert node.sc("start", "cri-dockerd") == 0
    node.kubelet_config["containerRuntimeEndpoint"] = "npipe:////./pipe/cri-dockerd"

    condition = node.ready_after_flanneld()

    assert condition["status"] == "True", condition
    assert node.node()["status"]["nodeInfo"]["containerRuntimeVersion"] == "docker://28.5.2"
    node.file(r"C:\k\crictl.yaml", "runtime-endpoint: npipe:////./pipe/cri-dockerd\n")
    assert (
        b"RuntimeName:  docker"
        in node.run(r"C:\k\crictl.exe", "--config", r"C:\k\crictl.yaml", "version").stdout
    )


def _second_version(node: DockerNode) -> None:
    node.conf["delegate"]["apiVersion"] = 2


# How the configuration is wrong, and what the Ready condition says.
WRONG: dict[str, tuple[Any, str]] = {
    "the API of HNS version 2": (_second_version, "failed to set up sandbox container"),
    "cniVersion 1.0.0": (
        lambda node: node.conf.update(cniVersion="1.0.0"),
        'unsupported CNI result version "1.0.0"',
    ),
    "no configuration": (lambda node: node.conf.update(name=""), "cni config uninitialized"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_cni_configuration_keeps_a_docker_node_unready(wrong: str) -> None:
    node = DockerNode()
    damage, message = WRONG[wrong]
    damage(node)

    condition = shim(node)

    assert condition["status"] == "False"
    assert message in condition["message"]


# Version of Kubernetes and of the engine, flags, configuration of the daemon; what the kubelet's log says.
REFUSED: list[tuple[str, str, list[str], dict[str, Any] | None, str]] = [
    ("1.20.15", "29.0.4", CNI, None, "client version 1.40 is too old. Minimum supported API version is 1.44"),
    ("1.23.17", "29.0.4", CNI, None, "client version 1.41 is too old. Minimum supported API version is 1.44"),
    ("1.20.15", "29.0.4", [ENDPOINT, *CNI], None, ""),
    ("1.20.15", "29.0.4", CNI, {"min-api-version": "1.24"}, ""),
    ("1.20.15", "29.7.2", CNI, None, ""),
    ("1.24.17", "20.10.9", CNI, None, "unknown flag: --network-plugin"),
]


@pytest.mark.parametrize(("version", "engine", "flags", "config", "words"), REFUSED)
def test_docker_refuses_a_client_below_its_lowest_api(
    version: str, engine: str, flags: list[str], config: dict[str, Any] | None, words: str
) -> None:
    node = DockerNode(version, engine, config)

    node.start(*flags)

    log = node.log("kubelet")
    assert words in log
    assert ("command failed" in log) is bool(words)


def test_up_to_1_20_dockershim_refuses_the_cgroup_driver_of_systemd() -> None:
    for version, refused in (("1.20.15", True), ("1.21.14", False)):
        node = DockerNode(version)
        node.kubelet_config["cgroupDriver"] = "systemd"
        node.start(ENDPOINT, *CNI)
        assert ('kubelet cgroup driver: \\"systemd\\" is different' in node.log("kubelet")) is refused, (
            version
        )


# ---- the engine


def engine(config: Any = None, version: str = "20.10.9") -> Node:
    """A machine with a running engine."""
    node = Node(release="2019")
    install_engine(node.machine, version, config)
    return node


def restart(node: Node) -> bool:
    """Whether it runs after a stop and a start."""
    node.sc("stop", "docker")
    node.settle(5)
    node.sc("start", "docker")
    return node.machine.services.running("docker")


def names(node: Node) -> dict[str, str]:
    """Docker's networks: name to driver."""
    lines = docker(node.machine, "network", "ls", "--format", "{{.Name}} {{.Driver}}").splitlines()
    return dict(line.split() for line in lines)  # type: ignore[misc]


def nat_id(node: Node) -> str:
    """Docker's id of the network nat."""
    lines = docker(node.machine, "network", "ls", "--format", "{{.Name}} {{.ID}}").splitlines()
    return dict(line.split() for line in lines)["nat"]  # type: ignore[misc]


def test_docker_takes_over_the_networks_of_hns_under_new_ids() -> None:
    node = engine()
    assert names(node) == {"none": "null", "nat": "nat"}
    hcn.call(node.machine, "POST", "/networks/", {"Name": "cbr0", "Type": "L2Bridge", "Subnets": [
        {"AddressPrefix": "10.244.3.0/24", "GatewayAddress": "10.244.3.1"}]})  # fmt: skip
    first = nat_id(node)
    docker(node.machine, "network", "create", "-d", "nat", "host")

    assert restart(node)

    assert names(node) == {"none": "null", "nat": "nat", "host": "nat", "cbr0": "l2bridge"}
    assert nat_id(node) != first
    docker(node.machine, "network", "rm", "cbr0")
    assert hcn.network(node.machine, "cbr0") is None


def test_with_bridge_none_docker_makes_no_network() -> None:
    assert names(engine({"bridge": "none"})) == {"none": "null"}


# daemon.json, the service's flags and the engine's version; what the event log says, '' where it starts.
FILES: list[tuple[bytes, list[str], str, str]] = [
    (b'{"bridge": "none", "log-opts": {"max-size": "50m"}}', [], "20.10.9", ""),
    (b'{"live-restore": true}', [], "20.10.9", "don't match any configuration option: live-restore"),
    (b'{"min-api-version": "1.24"}', [], "28.5.2", "don't match any configuration option: min-api-version"),
    (b'{"min-api-version": "1.24"}', [], "29.0.4", ""),
    (b'\xef\xbb\xbf{"bridge": "none"}', [], "20.10.9", "looking for beginning of value"),
    (b'\xef\xbb\xbf{"bridge": "none"}', [], "29.7.2", ""),
    (
        b'{"data-root": "D:\\\\docker"}',
        [r"--data-root=C:\d"],
        "20.10.9",
        "both as a flag and in the configuration file",
    ),
]


@pytest.mark.parametrize(("content", "flags", "version", "words"), FILES)
def test_docker_starts_with_the_keys_of_windows_only(
    content: bytes, flags: list[str], version: str, words: str
) -> None:
    node = Node(release="2019")
    install_engine(node.machine, version, flags=flags)
    node.file(DAEMON_JSON, content)

    runs = restart(node)

    events = [one.message for one in node.machine.events.query("Application") if one.provider == "docker"]
    assert runs is (words == "")
    assert words in "".join(events[-1:])


def test_docker_needs_the_feature_containers() -> None:
    bare = Machine("WIN-2", release="2019", address="10.0.0.22", programs=Node().machine.programs)

    install_engine(bare)

    assert not bare.services.running("docker")
    (event,) = [one for one in bare.events.query("Application") if one.provider == "docker"]
    assert "ensure the Containers feature is installed" in event.message


def test_an_image_lies_in_layers_that_only_the_host_compute_service_deletes() -> None:
    node = engine()
    node.outside.images.builds[PAUSE] = (17763,)
    docker(node.machine, "pull", PAUSE)

    listed = docker(node.machine, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}")
    assert listed.split() == [PAUSE]
    (layer,) = node.machine.files.list(r"C:\ProgramData\docker\windowsfilter")
    assert layer.node.layer


def test_the_flag_data_root_moves_dockers_folder() -> None:
    node = Node(release="2019")
    install_engine(node.machine, flags=[r"--data-root=C:\d"])

    assert docker(node.machine, "info", "--format", "{{.DockerRootDir}}").strip() == r"C:\d"
    assert node.machine.files.exists(r"C:\d\network\files\local-kv.db")


# Flags of the service and daemon.json, and what the lab names.
LISTENERS: list[tuple[list[str], dict[str, Any] | None, str]] = [
    (["--host=tcp://0.0.0.0:2375"], None, "--host"),
    (["-H", "tcp://0.0.0.0:2375"], None, "--H"),
    (["--exec-opt=isolation=hyperv"], None, "--exec-opt"),
    ([], {"hosts": ["tcp://0.0.0.0:2375"]}, "hosts"),
]


@pytest.mark.parametrize(("flags", "config", "named"), LISTENERS)
def test_other_listeners_and_exec_options_are_refused_by_name(
    flags: list[str], config: dict[str, Any] | None, named: str
) -> None:
    with pytest.raises(Refusal, match=named):
        install_engine(Node(release="2019").machine, config=config, flags=flags)


def test_in_a_compressed_folder_no_container_starts() -> None:
    node = DockerNode()
    node.machine.files.need(r"C:\ProgramData\docker")[1].attributes |= COMPRESSED

    condition = shim(node)

    assert "Virtual hard disk files must be uncompressed" in condition["message"]


def pod(node: DockerNode) -> str:
    """The container of a pod that runs."""
    shim(node)
    node.pod("web")
    node.settle(15)
    return docker(node.machine, "ps", "-q").strip()


def test_docker_removes_no_unknown_container_and_by_force_alone_one_that_runs() -> None:
    node = DockerNode()
    one = pod(node)

    unknown = node.run(rf"{FOLDER}\docker.exe", "rm", "-f", "0123")
    assert (unknown.code, b"No such container: 0123" in unknown.stderr) == (1, True)
    with pytest.raises(Refusal, match="--force"):
        docker(node.machine, "rm", one)
    docker(node.machine, "rm", "--force", one)
    assert one not in docker(node.machine, "ps", "-a", "-q")


def test_an_unknown_field_of_a_template_is_refused() -> None:
    with pytest.raises(Refusal, match="Sorrow"):
        docker(engine().machine, "network", "ls", "--format", "{{.Name}} {{.Sorrow}}")


def test_a_sandbox_whose_network_does_not_go_is_stopped_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise GoError("HNS failed")

    node = DockerNode()
    one = pod(node)
    with monkeypatch.context() as patch:
        patch.setattr(WinBridge, "delete", fail)
        node.admin("DELETE", "/api/v1/namespaces/default/pods/web")
        node.settle(30)

    assert 'networkPlugin cni failed to teardown pod \\"web_default\\" network' in node.log("kubelet")
    assert docker(node.machine, "ps", "-q") == ""
    assert docker(node.machine, "ps", "-a", "-q").strip() == one
    node.settle(30)
    assert docker(node.machine, "ps", "-a", "-q") == ""


def test_the_error_of_add_is_not_hidden_by_that_of_del() -> None:
    node = DockerNode()
    node.machine.files.delete(r"C:\opt\cni\bin\flannel.exe")

    condition = shim(node)

    assert "failed to set up sandbox container" in condition["message"]
    assert "failed to clean up sandbox container" in condition["message"]


def test_without_log_queries_the_kubelet_lists_its_log_folder() -> None:
    node = DockerNode()
    shim(node)
    node.machine.firewall.save(FirewallRule("kubelet", "kubelet"))
    listed = node.admin("GET", "/api/v1/nodes/win-1/proxy/logs/", query={"query": "kubelet"})

    assert '<a href="kubelet/">kubelet/</a>' in str(listed)

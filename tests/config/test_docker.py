"""Docker as the runtime: what is refused with its reason, and what becomes of a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.config.scene import a_spec, complaints
from winboot.base.errors import InvalidInput
from winboot.config.compat import Version, load
from winboot.config.compat.docker import check_docker_build, daemon_keys
from winboot.config.networks.first_form import in_form

# Kubernetes, the runtime's further keys, the network; the level and a part of the complaint, '' where all is well.
CASES: list[tuple[str, str, str, str, str]] = [
    ("1.18.20", "", "{cni: flannel}", "error", "certificates.k8s.io/v1beta1"),
    ("1.19.16", "", "{cni: flannel}", "warning", "support of this minor ended"),
    ("1.23.17", "docker: 20.10.24", "{cni: win-bridge}", "error", ""),
    ("1.23.17", "docker: 19.03.15", "{cni: flannel}", "error", "20.10 or later"),
    ("1.23.17", "cri_dockerd: 0.4.3", "{cni: flannel}", "error", "uses Docker without"),
    ("1.30.14", "cri_dockerd: 0.4.3", "{cni: win-overlay}", "warning", "support of this minor ended"),
    ("1.31.14", "", "{cni: flannel}", "warning", "cri-dockerd has the libraries of Kubernetes 1.30"),
    ("1.30.14", "containerd: 1.7.13", "{cni: flannel}", "error", "runtime.name is docker"),
    (
        "1.30.14",
        "registries: {r.example: {mirrors: ['https://m']}}",
        "{cni: flannel}",
        "error",
        "registry-mirrors",
    ),
    ("1.30.14", "isolation: [hypervisor]", "{cni: flannel}", "error", "no handler for Hyper-V"),
    ("1.30.14", "config: {live-restore: true}", "{cni: flannel}", "error", "the key 'live-restore'"),
    (
        "1.30.14",
        "config: {min-api-version: '1.24'}",
        "{cni: flannel}",
        "error",
        "does not know the key 'min-api-version'",
    ),
    ("1.30.14", "docker: 29.0.4, config: {min-api-version: '1.44'}", "{cni: flannel}", "error", ""),
    ("1.30.14", "config: {bridge: none}", "{cni: flannel}", "error", ""),
    ("1.30.14", "", "{cni: calico, managed_by: operator}", "error", "needs HostProcess pods"),
    ("1.30.14", "", "{cni: antrea}", "error", "needs HostProcess pods"),
]


@pytest.mark.parametrize(("version", "keys", "network", "level", "says"), CASES)
def test_docker_goes_with_what_it_can_do(
    version: str, keys: str, network: str, level: str, says: str
) -> None:
    runtime = f"{{name: docker{', ' if keys else ''}{keys}}}"

    found = complaints(f"kubernetes: {{version: {version}}}\nruntime: {runtime}\nnetwork: {network}\n")

    told = [str(one) for one in found if one.level == level]
    assert any(says in one for one in told) if says else told == []


def test_keys_of_docker_are_refused_with_containerd() -> None:
    (found,) = [one for one in complaints("runtime: {docker: 20.10.24}\n") if one.level == "error"]

    assert "runtime.name is containerd" in str(found)


@pytest.mark.parametrize(
    ("build", "version", "refused"),
    [
        (17763, "1.23.17", False),
        (19042, "1.23.17", True),
        (20348, "1.23.17", True),
        (20348, "1.30.14", False),
    ],
)
def test_dockershim_runs_on_server_2019_alone(build: int, version: str, refused: bool) -> None:
    assert bool(list(check_docker_build(load(), Version.parse(version), build))) is refused


def spec(folder: Path, version: str, more: str = "", os: str = "2019") -> Any:
    return a_spec(
        folder, profile=f"kubernetes: {{version: {version}}}\nruntime: {{name: docker{more}}}\n", os=os
    )


def test_dockershim_gets_every_setting_by_flags(tmp_path: Path) -> None:
    node = spec(tmp_path, "1.19.16")

    flags = node.kubelet.arguments
    assert flags["container-runtime"] == "docker"
    assert flags["docker-endpoint"] == "npipe:////./pipe/docker_engine"
    assert flags["network-plugin"] == "cni"
    assert flags["image-pull-progress-deadline"] == "20m"
    assert flags["pod-infra-container-image"] == "mcr.microsoft.com/oss/kubernetes/pause:1.4.0"
    # The flag came with 1.20, and an unknown one ends the kubelet.
    assert "windows-priorityclass" not in flags
    assert node.kube_proxy.config["mode"] == "kernelspace"
    assert [(one.name, one.manager) for one in node.services.all] == [
        ("docker", "sc"), ("kubelet", "nssm"), ("flanneld", "nssm"), ("kube-proxy", "nssm")]  # fmt: skip
    assert node.services["kubelet"].depends_on == ("docker",)
    assert [one.name for one in node.artifacts][:1] == ["docker"]
    assert node.artifacts[0].sha256 == "a925b1ef9cb71c5ea35fe8ef459b231ab14be22764b84529a2d15883f3e9b571"


def test_cri_dockerd_is_a_service_between_docker_and_the_kubelet(tmp_path: Path) -> None:
    node = spec(tmp_path, "1.30.14", os="2022")

    assert [one.name for one in node.services.all][:3] == ["docker", "cri-dockerd", "kubelet"]
    assert node.services["cri-dockerd"].manager == "nssm"
    assert node.services["cri-dockerd"].depends_on == ("docker",)
    assert node.services["kubelet"].depends_on == ("cri-dockerd",)
    assert "docker-endpoint" not in node.kubelet.arguments
    assert node.kubelet.config["containerRuntimeEndpoint"] == "npipe:////./pipe/cri-dockerd"
    assert "--docker-endpoint=npipe:////./pipe/docker_engine" in node.services["cri-dockerd"].arguments


def test_the_profile_is_laid_over_daemon_json_and_logs_rotate(tmp_path: Path) -> None:
    more = (
        ", log: {max_size_mib: 7, max_files: 3}, config: {registry-mirrors: ['https://m'], exec-opts: null}"
    )
    node = spec(tmp_path, "1.30.14", more)

    assert json.loads(node.runtime.config_text) == {
        "log-driver": "json-file",
        "log-opts": {"max-file": "3", "max-size": "7m"},
        "registry-mirrors": ["https://m"],
    }


@pytest.mark.parametrize(("driver", "rotates"), [("local", True), ("json-file", True), ("etwlogs", False)])
def test_only_drivers_with_log_files_get_their_options(tmp_path: Path, driver: str, rotates: bool) -> None:
    node = spec(tmp_path, "1.30.14", f", config: {{log-driver: {driver}}}")

    found = json.loads(node.runtime.config_text)
    assert (found["log-driver"], "log-opts" in found) == (driver, rotates)


@pytest.mark.parametrize(("key", "first"), [("default-network-opts", "24.0.0"), ("log-format", "25.0.0")])
def test_a_key_of_a_later_engine_is_refused_before_it(key: str, first: str) -> None:
    facts = load()

    assert key not in daemon_keys(facts, Version.parse("20.10.24"))
    assert key in daemon_keys(facts, Version.parse(first))


def test_a_windows_server_that_dockershim_does_not_run_on_is_refused_by_the_inventory(tmp_path: Path) -> None:
    from tests.config.scene import an_inventory
    from winboot.config.inventory import load_inventory

    profile = (
        'kubernetes: {version: "1.23.17"}\nruntime: {name: docker}\n'
        "cluster: {server: 'https://10.0.0.10:6443', ca: {file: ca.crt}, pod_cidr: 10.244.0.0/16, service_cidr: 10.96.0.0/12}\n"
        "network: {cni: flannel}\n"
    )
    path = an_inventory(
        tmp_path,
        'groups: {pool: {profile: profile.yaml, os: "2022", hosts: {win-1: {address: 10.0.1.11}}}}\n',
        profile,
    )

    with pytest.raises(InvalidInput) as caught:
        load_inventory(path)

    assert "dockershim only on Windows Server 2019" in str(caught.value.problems)


def test_the_cni_configuration_takes_the_form_of_hns_version_1() -> None:
    settings: dict[str, Any] = {
        "OutBoundNAT": {"Exceptions": ["10.0.0.0/8"]},
        "SDNRoute": {"DestinationPrefix": "10.96.0.0/12", "NeedEncap": True},
        "ProviderAddress": {"ProviderAddress": "10.0.0.5"},
    }
    policies = [
        {"name": "EndpointPolicy", "value": {"Type": kind, "Settings": one}} for kind, one in settings.items()
    ]
    delegate = {"type": "win-overlay", "apiVersion": 2, "policies": policies}
    conf: Any = {"name": "x", "cniVersion": "1.0.0", "plugins": [{"type": "flannel", "delegate": delegate}]}

    assert in_form(2, conf) is conf
    assert in_form(1, conf) == {
        "name": "x",
        "cniVersion": "0.3.0",
        "plugins": [{"type": "flannel", "delegate": {"type": "win-overlay", "policies": [
            {"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.0.0.0/8"]}},
            {"name": "EndpointPolicy", "value": {"Type": "ROUTE", "DestinationPrefix": "10.96.0.0/12", "NeedEncap": True}},
            {"name": "EndpointPolicy", "value": {"Type": "PA", "PA": "10.0.0.5"}},
        ]}}],
    }  # fmt: skip

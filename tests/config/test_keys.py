"""A key in the wrong place, or with another tool's name, is answered with where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.scene import GOOD, an_inventory
from winboot.cli import run
from winboot.config.keys import _OF_OTHERS, home_of, key_named, keys

HOSTS = "groups: {p: {profile: profile.yaml, os: '2022', hosts: {win-1: {address: 10.0.0.11}}}}\n"


@pytest.mark.parametrize(
    ("text", "place", "home"),
    [
        ("kubelet: {maxPods: 60}", "profile.yaml:10:11", "kubelet.config.maxPods"),
        ("kubelet: {max_pods: 60}", "profile.yaml:10:11", "kubelet.config.maxPods"),
        ("maxPods: 60", "profile.yaml:10:1", "kubelet.config.maxPods"),
        ("kubelet: {node-labels: a=b}", "profile.yaml:10:11", "node.labels"),
        ("kube_proxy: {metricsBindAddress: x}", "profile.yaml:10:14", "kube_proxy.config.metricsBindAddress"),
        ("labels: {a: b}", "profile.yaml:10:1", "node.labels"),
        ("taints: []", "profile.yaml:10:1", "node.taints"),
        ("registries: {}", "profile.yaml:10:1", "runtime.registries"),
        ("HTTP_PROXY: http://a:1", "profile.yaml:10:1", "proxy.http"),
        ("proxy: {HTTP_PROXY: http://a:1}", "profile.yaml:10:9", "proxy.http"),
        ("proxy: {NO_PROXY: a}", "profile.yaml:10:9", "proxy.no_proxy"),
        ("pod_subnet: 10.0.0.0/8", "profile.yaml:10:1", "cluster.pod_cidr"),
        ("podSubnet: 10.0.0.0/8", "profile.yaml:10:1", "cluster.pod_cidr"),
        ("networking: {podSubnet: 10.0.0.0/8}", "profile.yaml:10:1", "network"),
        ("pause_image: x", "profile.yaml:10:1", "runtime.pause_image"),
        ("sandbox_image: x", "profile.yaml:10:1", "runtime.pause_image"),
        ("containerd_version: 2.3.6", "profile.yaml:10:1", "runtime.containerd"),
        ("ntp: [a]", "profile.yaml:10:1", "windows.time_servers"),
    ],
)
def test_a_key_of_a_profile_finds_its_place(
    text: str, place: str, home: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    an_inventory(tmp_path, HOSTS, f"{GOOD.rstrip()}\n{text}\n")

    assert run(["check", str(tmp_path / "profile.yaml")]) == 64

    (line,) = [one for one in capsys.readouterr().err.splitlines() if "unknown key" in one]
    assert place in line
    assert home in line.partition("unknown key")[2]


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("hosts: {win-1: {address: 10.0.0.11}}", "groups.NAME.hosts, in an inventory"),
        ("profile: profile.yaml", "groups.NAME.profile, in an inventory"),
        ("apiVersion: v1", "belong to a Kubernetes object"),
        ("kubelet: {config: {}}", "this is a key of a profile"),
        ("groups2: {}", "did you mean 'groups'"),
    ],
)
def test_a_file_that_is_another_one_than_it_is_taken_for_says_so(
    text: str, home: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, f"{HOSTS}{text}\n", GOOD)

    assert run(["check", str(path)]) == 64

    (line,) = [one for one in capsys.readouterr().err.splitlines() if "unknown key" in one]
    assert f"{path}:2:1: " in line
    assert home in line


def test_an_inventory_that_is_named_as_a_profile_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, HOSTS.replace("profile.yaml", "inventory.yaml"), GOOD)

    assert run(["check", str(path)]) == 64

    assert "instead: a profile here: an inventory has groups" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "home"),
    [
        ("ansible_host: 10.0.0.11", "address"),
        ("ansible_user: a", "connection.user"),
        ("ansible_port: 5985", "connection.port"),
        ("labels: {a: b}", "node.labels"),
        ("username: a", "connection.user"),
        ("ip: 10.0.0.11", "address"),
        ("hostname: A", "computer_name"),
        ("port: 5985", "connection.port"),
        ("user: a", "connection.user"),
        ("password: {env: A}", "connection.password"),
        ("scheme: http", "connection.scheme"),
        ("maxPods: 60", "kubelet.config.maxPods"),
    ],
)
def test_a_key_of_a_host_finds_its_place(
    host: str, home: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, HOSTS.replace("address: 10.0.0.11", host))

    for command in (["check", str(path)], ["plan", "-i", str(path)]):
        assert run(command) == 64
        assert f"; instead: {home}" in capsys.readouterr().err


def test_a_network_in_one_word_is_taken_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = GOOD.replace("cni: flannel", "cni: flannel-host-gw")
    an_inventory(tmp_path, HOSTS, profile)

    assert run(["check", str(tmp_path / "profile.yaml")]) == 64
    assert "instead: cni: flannel, mode: host-gw" in capsys.readouterr().err


def test_every_place_that_is_named_is_there() -> None:
    assert _OF_OTHERS
    assert set(_OF_OTHERS.values()) - set(keys()) == set()


@pytest.mark.parametrize("word", ["kubernets", "foo", "", "x y"])
def test_what_is_called_like_nothing_gets_no_place(word: str) -> None:
    assert home_of(word, word) == ""
    assert key_named("foo") is None

"""Every minor, network, manager and Windows version: the spec uses only what that version has."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.scene import a_profile, a_spec, an_inventory
from tests.every import assert_none_wrong, differs
from winboot.config import networks
from winboot.config.compat import Version, check_field, check_flag, load
from winboot.config.compat.flags import Component
from winboot.config.compat.platform import support
from winboot.config.inventory import Machine, load_inventory
from winboot.config.networks import NETWORKS
from winboot.config.networks.base import Known, Network, Owner
from winboot.config.node_spec import NodeSpec, resolve
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

FACTS = load()
OFFERED = [network for network in NETWORKS if not network.later]
# A patch of each minor that is not known to be bad.
PATCH = {"1.31": 9}
MANAGERS = ("sc", "nssm")
# Release → build.
RELEASES = {"2019": 17763, "2022": 20348, "2025": 26100}


def _profile(minor: str, network: Network, manager: str) -> str:
    keys = {
        "cni": network.cni,
        "mode": network.mode,
        "network_name": "corp" if network.cni == "none" else None,
        "antrea": "{testsigning: accepted}" if network.cni == "antrea" else None,
    }
    if network.cni == "calico":
        keys["managed_by"] = network.managed_by
    artifacts = "calico: 3.32.0" if network.chosen_by else "azure_cni: 1.6.48"
    if network.cni == "ovn-hybrid":
        artifacts = "hybrid_overlay: 1.3.0, source: https://mirror.corp.example"
    chosen = ", ".join(f"{key}: {value}" for key, value in keys.items() if value)
    return f"""
kubernetes: {{version: "{minor}.{PATCH.get(minor, 0)}"}}
network: {{{chosen}}}
services: {{manager: {manager}}}
artifacts: {{{artifacts}}}
"""


def a_machine_of_each(releases: Iterable[str], folder: Path) -> dict[str, Machine]:
    groups = "".join(
        f'  r{os}: {{profile: profile.yaml, os: "{os}", hosts: {{win-{os}: {{address: 10.0.1.{at}}}}}}}\n'
        for at, os in enumerate(releases, 11)
    )
    machines = load_inventory(an_inventory(folder, f"groups:\n{groups}"))
    return {os: machines[f"win-{os}"] for os in releases}


def _text(value: object) -> str:
    return "10.0.1.11" if isinstance(value, Known) else str(value)


def _filled_in(value: Any) -> Any:
    """A configuration as it is on the node, where every address is known."""
    if isinstance(value, dict):
        return {key: _filled_in(item) for key, item in value.items()}
    return "10.0.0.1" if isinstance(value, Known) else value


def _findings(spec: NodeSpec) -> list[str]:
    """What the data has against winboot's own flags and fields; nothing, one hopes."""
    version = spec.kubernetes.version
    parts: list[tuple[Component, Any, Any]] = [
        ("kubelet", spec.kubelet.arguments, spec.kubelet.config),
        ("kube-proxy", spec.kube_proxy.arguments, spec.kube_proxy.config),
    ]
    found = []
    for component, arguments, config in parts:
        for name, value in arguments.items():
            found += [
                f"{component} --{one}" for one in check_flag(FACTS, component, name, _text(value), version)
            ]
        found += [
            str(one)
            for _, one in check_field(FACTS, component, _filled_in(config), version)
            if one.level != "info"
        ]
    return found


def test_a_spec_uses_only_flags_and_fields_that_its_version_has(tmp_path: Path) -> None:
    """No unknown, removed, future, ignored or misused one, in any minor, under either manager, on any supported Windows."""
    machines = a_machine_of_each(RELEASES, tmp_path)
    findings = {}
    for network, minor, manager in itertools.product(OFFERED, FACTS.minors(), MANAGERS):
        profile = a_profile(_profile(minor, network, manager), tmp_path)
        for os, build in RELEASES.items():
            if support(FACTS, Version.parse(minor), build) != "refused":
                spec = resolve(profile, replace(machines[os], profile=profile))
                findings[f"{network.id}, {minor}, {manager}, {os}"] = _findings(spec)

    assert_none_wrong(findings)


def test_the_script_that_runs_names_only_what_its_version_has(tmp_path: Path) -> None:
    """Read from the text itself: the command lines of the services, and the configuration files that it writes."""
    assert_none_wrong(
        {
            f"{minor}, {manager}": _findings_of_script(
                a_spec(tmp_path, profile=_profile(minor, NETWORKS[0], manager))
            )
            for minor, manager in itertools.product(FACTS.minors(), MANAGERS)
        }
    )


def _findings_of_script(spec: NodeSpec) -> list[str]:
    version = spec.kubernetes.version
    script = render(make_plan(spec, STEPS), spec)
    files = {file.path: file.text for file in script.files}
    parts: list[tuple[Component, str]] = [
        ("kubelet", spec.paths.kubelet_config),
        ("kube-proxy", spec.paths.kube_proxy_config),
    ]
    found = []
    for component, path in parts:
        # What the program is asked whether it takes is made of the same words.
        lines = [one for one in script.text.splitlines() if f"--config={path}" in one]
        (line,) = [one for one in lines if "takes = @{" not in one]
        flags = re.findall(r"--([a-z0-9-]+)=([^ '\"]*)", line[line.index("--config=") :])

        assert {"config", "v"} <= {name for name, _ in flags}, line
        for name, value in flags:
            found += [f"{component} --{one}" for one in check_flag(FACTS, component, name, value, version)]
        config = yaml.safe_load(files[path])
        found += [
            str(one)
            for _, one in check_field(FACTS, component, _filled_in(config), version)
            if one.level != "info"
        ]
    return found


def _in_every_minor(folder: Path, profile: str = "") -> dict[str, NodeSpec]:
    return {
        minor: a_spec(folder, profile=f'kubernetes: {{version: "{minor}.{PATCH.get(minor, 0)}"}}\n{profile}')
        for minor in FACTS.minors()
    }


def test_kubelet_settings_stand_exactly_once(tmp_path: Path) -> None:
    """The runtime's endpoint is a flag up to 1.26 and a field from 1.27 on, never both, never neither."""
    specs = _in_every_minor(tmp_path)
    places = {
        minor: (
            "container-runtime-endpoint" in spec.kubelet.arguments,
            "containerRuntimeEndpoint" in spec.kubelet.config,
        )
        for minor, spec in specs.items()
    }

    fields = [minor for minor, place in places.items() if place == (False, True)]
    assert fields == [minor for minor, spec in specs.items() if spec.kubernetes.version.at_least("1.27")]
    assert {minor for minor, place in places.items() if place == (True, False)} == {*specs} - {*fields}


def test_gates_of_the_network_are_named_while_they_must_be_and_never_after(tmp_path: Path) -> None:
    """WinDSR up to 1.32 where DSR is on; from 1.33 on nothing, for a locked gate must not be named."""
    specs = _in_every_minor(tmp_path, "network: {cni: flannel, mode: vxlan}\nkube_proxy: {dsr: on}\n")
    named = {"WinDSR": True, "WinOverlay": True}

    assert_none_wrong(
        {
            minor: differs(
                spec.kube_proxy.config.get("featureGates"),
                None if spec.kubernetes.version.at_least("1.33") else named,
            )
            for minor, spec in specs.items()
        }
    )


@pytest.mark.parametrize("containerd", ["1.6.39", "1.7.34", "2.0.11", "2.1.9"])
def test_containerds_configuration_is_toml_with_the_pause_image_where_that_version_reads_it(
    containerd: str, tmp_path: Path
) -> None:
    """Version 2 and version 3 have it in different tables; backslashes survive."""
    profile = f'kubernetes: {{version: "1.34.8"}}\nruntime: {{containerd: "{containerd}"}}'
    spec = a_spec(tmp_path, profile=profile)

    config = tomllib.loads(spec.runtime.config_text)

    plugins = config["plugins"]
    assert config["version"] == spec.runtime.config_version
    assert config["grpc"]["address"] == r"\\.\pipe\containerd-containerd"
    if config["version"] == 2:
        cri = plugins["io.containerd.grpc.v1.cri"]
        assert cri["sandbox_image"] == spec.runtime.pause_image
        cni = cri["cni"]
    else:
        assert plugins["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"] == spec.runtime.pause_image
        cni = plugins["io.containerd.cri.v1.runtime"]["cni"]
    # Both together are an error from 2.1 on.
    assert ("bin_dirs" in cni) is (containerd == "2.1.9")
    assert ("bin_dir" in cni) is (containerd != "2.1.9")
    assert cni["conf_dir"] == r"C:\etc\cni\net.d"


# Of each piece the owners that it can have; what winboot writes itself needs a function that the network gives.
_HNS: tuple[Owner, ...] = ("winboot", "agent", "operator", "none")
_STORE: tuple[Owner, ...] = ("winboot", "agent", "operator")
_OTHERS: tuple[Owner, ...] = ("winboot", "operator")
COMBINATIONS = list(itertools.product(_HNS, _STORE, _OTHERS, _OTHERS))


@pytest.mark.parametrize("network", OFFERED, ids=lambda network: network.id)
def test_a_network_renders_whoever_owns_its_pieces(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step knows a solution by its name: what it needs to know is a field of the value."""
    (machine,) = a_machine_of_each(["2022"], tmp_path).values()
    for hns, store, conf, proxy in COMBINATIONS:
        owners = replace(network.owners, hns_network=hns, ipam_store=store, cni_conf=conf, kube_proxy=proxy)
        foreign = replace(
            network,
            id="foreign",
            owners=owners,
            cni_conf=network.cni_conf if conf == "winboot" else None,
            chosen_by="",
        )
        others = [one for one in NETWORKS if one.cni != network.cni]
        monkeypatch.setattr(networks, "NETWORKS", (foreign, *others))
        profile = a_profile(_profile("1.36", network, "sc"), tmp_path)
        spec = resolve(profile, replace(machine, profile=profile))
        plan = make_plan(spec, STEPS)
        names = {one.name for one in plan.steps}

        assert render(plan, spec).text
        assert ("operator-network" in names) is (hns == "operator")
        assert ("cni-config" in names) is (spec.network.cni_conf is not None)
        assert ("kube-proxy" in names) is (proxy == "winboot")

"""`winboot manifests`: YAML for the cluster, made from what the nodes are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.scene import a_spec
from tests.config.test_gmsa import a_profile
from tests.every import assert_none_wrong, untrue
from winboot.base.errors import UsageError
from winboot.remote.manifests import MANIFESTS, manifest


def _objects(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def test_every_manifest_is_yaml_that_says_what_it_is_for(tmp_path: Path) -> None:
    """A comment first, then objects with kind and name."""
    plain, gmsa = (a_spec(tmp_path, profile=one) for one in ("", a_profile()))
    texts = {
        one.name: manifest(one.name, [gmsa if one.name.startswith("gmsa") else plain]) for one in MANIFESTS
    }

    assert_none_wrong(
        {
            name: untrue(
                comment=text.startswith("# "),
                # What Helm reads has no kind.
                kind_and_name=name == "gmsa-webhook"
                or all(
                    one["kind"] and one["apiVersion"] and one["metadata"]["name"] for one in _objects(text)
                ),
            )
            for name, text in texts.items()
        }
    )


def test_rbac_names_what_these_nodes_need_and_no_more(tmp_path: Path) -> None:
    """flannel's role only with flannel; kube-proxy's binding only where winboot runs it with the node's certificate."""
    flannel = _objects(manifest("rbac", [a_spec(tmp_path)]))
    bridge = _objects(manifest("rbac", [a_spec(tmp_path, profile="network: {cni: win-bridge}")]))

    assert [one["metadata"]["name"] for one in flannel] == [
        "winboot:node-proxier",
        "winboot:flannel",
        "winboot:flannel",
    ]
    assert [one["roleRef"]["name"] for one in bridge] == ["system:node-proxier"]
    with pytest.raises(UsageError):
        manifest("rbac", [a_spec(tmp_path, profile="network: {cni: calico}")])


def test_rbac_documents_its_subjects_and_their_separation(tmp_path: Path) -> None:
    """Every kubelet of the cluster gets the right to patch the status of Nodes."""
    text = manifest("rbac", [a_spec(tmp_path)])

    notes = [line for line in text.splitlines() if line.startswith("#")]
    assert any("NodeRestriction" in line for line in notes)
    assert any("Linux" in line for line in notes)


def test_a_runtime_class_for_each_windows_version_and_isolation(tmp_path: Path) -> None:
    """Node selector by build, tolerations by the nodes' taints, handler by the runtime's table."""
    hyperv = "runtime: {isolation: [process, hypervisor]}\nwindows: {features: [Containers, Hyper-V]}"
    specs = [a_spec(tmp_path, os="2022", profile=hyperv), a_spec(tmp_path, os="2025")]

    classes = {one["metadata"]["name"]: one for one in _objects(manifest("runtimeclass", specs))}

    assert set(classes) == {"windows-2022", "windows-2022-hyperv", "windows-2025"}
    assert classes["windows-2022-hyperv"]["handler"] == "runhcs-wcow-hypervisor"
    scheduling = classes["windows-2025"]["scheduling"]
    assert scheduling["nodeSelector"]["node.kubernetes.io/windows-build"] == "10.0.26100"
    assert scheduling["tolerations"] == [
        {"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}
    ]


def test_calicos_own_agent_gets_calicos_own_roles(tmp_path: Path) -> None:
    """They come with Calico's manifests; only their binding to nodes is missing."""
    node = a_spec(
        tmp_path, profile="network: {cni: calico, managed_by: winboot}\nartifacts: {calico: 3.32.0}"
    )

    bindings = {one["metadata"]["name"]: one["roleRef"]["name"] for one in _objects(manifest("rbac", [node]))}

    assert bindings == {
        "winboot:node-proxier": "system:node-proxier",
        "winboot:calico-node": "calico-node",
        "winboot:calico-cni-plugin": "calico-cni-plugin",
    }


def test_flannels_config_map_is_one_for_the_whole_cluster(tmp_path: Path) -> None:
    """Windows' VNI and port, none of its names; two different networks are refused."""
    vxlan = a_spec(tmp_path, profile="network: {cni: flannel, mode: vxlan}")

    (config,) = _objects(manifest("flannel", [vxlan, vxlan]))

    assert yaml.safe_load(config["data"]["net-conf.json"])["Backend"] == {
        "Type": "vxlan",
        "VNI": 4096,
        "Port": 4789,
    }
    with pytest.raises(UsageError, match="different flannel networks"):
        manifest("flannel", [vxlan, a_spec(tmp_path)])


def test_the_web_server_runs_on_every_windows_version(tmp_path: Path) -> None:
    """One Deployment for each, one Service for all; the variants change the user and put LogMonitor in front."""
    specs = [a_spec(tmp_path, os=os) for os in ("2019", "2022")]

    service, *servers = _objects(manifest("webserver", specs))
    as_user = _objects(manifest("webserver-as-user", specs))[1]
    monitored = _objects(manifest("webserver-logmonitor", specs))[2]

    assert service["spec"]["type"] == "NodePort"
    images = [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in servers]
    assert [image.rpartition(":")[2] for image in images] == ["ltsc2019", "ltsc2022"]
    pod = as_user["spec"]["template"]["spec"]
    assert pod["securityContext"]["windowsOptions"]["runAsUserName"] == "ContainerUser"
    assert (
        monitored["spec"]["template"]["spec"]["containers"][0]["command"][0]
        == r"C:\LogMonitor\LogMonitor.exe"
    )


def test_the_web_servers_command_survives_a_windows_command_line(tmp_path: Path) -> None:
    """No double quotation mark, and nothing that Kubernetes would take for a variable."""
    for one in _objects(manifest("webserver", [a_spec(tmp_path)]))[1:]:
        script = one["spec"]["template"]["spec"]["containers"][0]["command"][-1]
        assert '"' not in script
        assert "$(" not in script


def test_an_unknown_manifest_is_wrong_use_with_a_guess(tmp_path: Path) -> None:
    """The nearest name, or all."""
    with pytest.raises(UsageError) as caught:
        manifest("runtime-classes", [a_spec(tmp_path)])
    assert "runtimeclass" in caught.value.hint

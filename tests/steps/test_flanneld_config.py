"""flanneld's network and its credentials."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.lab.actions import replace
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

STEP = "flanneld-config"
NET_CONF = r"C:\etc\kube-flannel\net-conf.json"
KUBECONFIG = r"C:\k\flanneld.kubeconfig"


def test_a_node_without_flannel_has_no_such_step():
    assert STEP not in Bench(spec=a_spec_of("win-bridge")).look(STEP).states


def test_a_bare_machine_lacks_both_files(bench: Bench):
    assert set(bench.look(STEP).differences(STEP)) == {
        f"file {NET_CONF}: content",
        f"file {KUBECONFIG}: content",
    }


def test_it_is_written_once_and_removed_again(bench: Bench):
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    bench.undo(STEP)
    assert (bench.file(NET_CONF), bench.file(KUBECONFIG)) == (None, None)


def test_the_network_has_the_name_and_kind_that_cni_and_kube_proxy_know(bench: Bench):
    bench.run(STEP)

    net_conf = json.loads(bench.file(NET_CONF) or b"")
    assert net_conf["Network"] == "10.244.0.0/16"
    assert net_conf["Backend"] == {"Type": "host-gw", "Name": "cbr0"}


def test_its_credentials_are_the_kubelets_own_and_no_secret(bench: Bench):
    """They name the certificate that the kubelet renews."""
    bench.run(STEP)

    user = json.loads(bench.file(KUBECONFIG) or b"")["users"][0]["user"]
    assert set(user.values()) == {bench.spec.paths.kubelet_client_certificate}


def test_a_former_file_comes_back(bench: Bench):
    bench.write(NET_CONF, b"{}")
    bench.run(STEP)
    bench.undo(STEP)

    assert bench.file(NET_CONF) == b"{}"


@pytest.mark.matrix
def test_another_network_is_put_right_and_flanneld_started_again(joined: Callable[[str], Node]):
    node = joined("vxlan").after(replace(NET_CONF, "4096", "4711"))

    assert set(node.look(STEP).differences(STEP)) == {f"file {NET_CONF}: content"}
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.look("flanneld").differences("flanneld")["service flanneld: configuration in use"] == (
        "older",
        "current",
    )
    node.change("flanneld", "kube-proxy")
    node.site.settle(60)
    assert node.differs == []

"""kube-proxy's configuration, and the credential of its own that a profile may name."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml

from tests.lab.actions import Hand, delete, let_in, replace, write
from tests.lab.site import Site
from tests.steps.bench import Bench
from tests.steps.builders import a_spec, a_spec_of
from tests.steps.nodes import Node
from winboot.base.errors import InvalidInput
from winboot.base.secret import Secret
from winboot.operations.join.secrets import own_kubeconfig
from winboot.script.steps.kube_proxy_config import KUBE_PROXY_CONFIG

OWN = {"kube_proxy:": "kube_proxy:\n  kubeconfig: {file: ./kube-proxy.kubeconfig}"}
WHERE = "win-a1: kube_proxy.kubeconfig"


def kubeconfig(**user: object) -> Secret:
    """A kubeconfig of another cluster with this user."""
    return Secret(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "b",
                "contexts": [
                    {"name": "a", "context": {"cluster": "c", "user": "nobody"}},
                    {"name": "b", "context": {"cluster": "c", "user": "me"}},
                ],
                "clusters": [{"name": "c", "cluster": {"server": "https://elsewhere:6443"}}],
                "users": [{"name": "nobody", "user": {"token": "other"}}, {"name": "me", "user": user}],
            }
        )
    )


def written(**user: object) -> dict[str, object]:
    """The user that the node's file names, and the cluster it is for."""
    config = json.loads(own_kubeconfig(kubeconfig(**user), a_spec(), WHERE).reveal())
    (cluster,), (found,) = config["clusters"], config["users"]
    assert cluster["cluster"] == {
        "server": a_spec().cluster.server,
        "certificate-authority": a_spec().paths.cluster_ca,
    }
    return dict(found["user"])


def test_a_token_of_the_current_context_travels_below_the_clusters_own_server():
    assert written(token="t0k3n") == {"token": "t0k3n"}


def test_a_certificate_travels_with_its_key():
    pair = {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}

    assert written(**pair) == pair


@pytest.mark.parametrize(
    "user",
    [
        {},
        {"client-certificate": "/home/me/cert.pem", "client-key": "/home/me/key.pem"},
        {"client-certificate-data": "Y2VydA=="},
        {"exec": {"command": "aws"}},
        {"token": ""},
    ],
    ids=["nothing", "files", "no key", "a program", "empty"],
)
def test_what_exists_only_on_this_computer_is_refused(user: dict[str, object]):
    with pytest.raises(InvalidInput, match=r"win-a1: kube_proxy.kubeconfig: its user has no token"):
        own_kubeconfig(kubeconfig(**user), a_spec(), WHERE)


def test_an_impersonating_user_is_not_sent_with_rights_of_its_own():
    acting = {"token": "hunter2", "as": "reader"}

    with pytest.raises(InvalidInput, match="impersonates another user") as refused:
        own_kubeconfig(kubeconfig(**acting), a_spec(), WHERE)

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "a: {", "contexts: []\ncurrent-context: x"])
def test_a_text_that_is_no_kubeconfig_is_refused_without_being_quoted(text: str):
    with pytest.raises(InvalidInput, match="it is not a kubeconfig") as refused:
        own_kubeconfig(Secret(text + "\n# hunter2"), a_spec(), WHERE)

    assert refused.value.__cause__ is None
    assert "hunter2" not in str(refused.value)


def test_a_credential_of_its_own_is_a_secret_and_no_file_of_the_preview():
    spec = a_spec(**OWN)

    assert KUBE_PROXY_CONFIG.secrets(spec) == ("kube-proxy-kubeconfig",)
    assert list(KUBE_PROXY_CONFIG.files(spec)) == [spec.paths.kube_proxy_config]
    assert KUBE_PROXY_CONFIG.secrets(a_spec()) == ()


STEP = "kube-proxy-config"
CONFIG = r"C:\k\kube-proxy.yaml"
KUBECONFIG = r"C:\k\kube-proxy.kubeconfig"


def test_a_bare_machine_lacks_both_files(bench: Bench):
    assert set(bench.look(STEP).differences(STEP)) == {
        f"file {CONFIG}: content",
        f"file {KUBECONFIG}: content",
    }


def test_it_is_written_once_removed_and_written_again(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert (node.file(CONFIG), node.file(KUBECONFIG)) == (None, None)
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.change("kube-proxy").states == {"kube-proxy": "changed"}, "it reads them when it starts"
    node.site.settle(60)
    assert node.differs == []


def test_a_former_file_comes_back(bench: Bench):
    bench.write(CONFIG, b"kind: KubeProxyConfiguration\n")
    bench.run(STEP)
    bench.undo(STEP)

    assert bench.file(CONFIG) == b"kind: KubeProxyConfiguration\n"


def test_before_an_overlay_has_its_address_for_kube_proxy_it_cannot_be_written():
    bench = Bench(spec=a_spec_of("flannel-vxlan"))

    assert bench.look(STEP).differences(STEP)[f"file {CONFIG}: content"] == (None, "(known after join)")
    assert bench.run(STEP).problem(STEP).id == "NotKnownYet"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [(CONFIG, "cbr0", "other"), (CONFIG, "kernelspace", "iptables"), (KUBECONFIG, "10.0.0.10", "10.9.9.9")],
    ids=["another network", "another mode", "another cluster"],
)
def test_a_difference_is_reported_and_repaired(node: Node, path: str, old: str, new: str):
    node.after(replace(path, old, new))

    assert set(node.look(STEP).differences(STEP)) == {f"file {path}: content"}
    assert node.change(STEP, "kube-proxy").states == {STEP: "changed", "kube-proxy": "changed"}
    node.site.settle(60)
    assert node.differs == []


def token(site: Site) -> str:
    """The credential that the profile's owner has."""
    return own_kubeconfig(
        Secret((site.folder / "kube-proxy.kubeconfig").read_text()), site.specs()[0], WHERE
    ).reveal()


@pytest.mark.parametrize(
    ("what", "hand"),
    [
        ("credential", delete(KUBECONFIG)),
        ("form", write(KUBECONFIG, "apiVersion: v1\nkind: Config\n")),
        ("access", let_in(KUBECONFIG)),
        ("server", replace(KUBECONFIG, "10.0.0.10", "10.9.9.9")),
        ("CA", replace(KUBECONFIG, "ca.crt", "other.crt")),
    ],
)
def test_of_a_credential_of_its_own_all_but_itself_is_compared(
    joined: Callable[[str], Node], what: str, hand: Hand
):
    node = joined("own credential").after(hand)
    given = {"kube-proxy-kubeconfig": token(node.site)}

    told = node.look(STEP)
    assert set(told.differences(STEP)) == {f"file {KUBECONFIG}: {what}"}
    assert node.change(STEP, "kube-proxy", secrets=given).states == {STEP: "changed", "kube-proxy": "changed"}
    node.site.settle(60)
    assert node.differs == []


def test_a_credential_that_was_not_sent_is_named(joined: Callable[[str], Node]):
    node = joined("own credential").after(delete(KUBECONFIG))

    problem = node.change(STEP, secrets={}).problem(STEP)

    assert problem.id == "SecretMissing"
    assert problem.message.endswith("kube-proxy-kubeconfig")

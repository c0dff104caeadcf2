"""kube-proxy's configuration, and the credential of its own that a profile may name."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.steps.builders import a_spec
from winboot.errors import InvalidInput
from winboot.secret import Secret
from winboot.steps.kube_proxy_config import KUBE_PROXY_CONFIG, own_kubeconfig

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


@pytest.mark.parametrize("text", ["", "[]", "a: {", "contexts: []\ncurrent-context: x"])
def test_a_text_that_is_no_kubeconfig_is_refused_without_being_quoted(text: str):
    with pytest.raises(InvalidInput, match="it is no kubeconfig") as refused:
        own_kubeconfig(Secret(text + "\n# hunter2"), a_spec(), WHERE)

    assert refused.value.__cause__ is None
    assert "hunter2" not in str(refused.value)


def test_a_credential_of_its_own_is_a_secret_and_no_file_of_the_preview():
    spec = a_spec(**OWN)

    assert KUBE_PROXY_CONFIG.secrets(spec) == ("kube-proxy-kubeconfig",)
    assert list(KUBE_PROXY_CONFIG.files(spec)) == [spec.paths.kube_proxy_config]
    assert KUBE_PROXY_CONFIG.secrets(a_spec()) == ()

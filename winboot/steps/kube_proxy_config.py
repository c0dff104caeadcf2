"""Tell kube-proxy which network it serves, from which address it answers, and who it is.

By default it is the kubelet's certificate: nothing to renew. A credential of its own (`kube_proxy.kubeconfig`) is
taken out of the kubeconfig that the profile names and written on the node below the cluster's own server and CA; the
node compares all of that file but the credential itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from winboot.errors import InvalidInput
from winboot.networks import STEPS_AFTER
from winboot.secret import Secret
from winboot.spec import NodeSpec
from winboot.steps.step import Step
from winboot.steps.texts import json_text, kubeconfig_text, node_kubeconfig_text

KUBECONFIG_SECRET: Final = "kube-proxy-kubeconfig"
USER: Final = "kube-proxy"
_CREDENTIALS: Final = (("token",), ("client-certificate-data", "client-key-data"))


def own_kubeconfig(kubeconfig: Secret, spec: NodeSpec, where: str) -> Secret:
    """What is written on the node for the credential of a kubeconfig; `where` names its origin in complaints.

    InvalidInput where its current user has no credential that can travel (a token, or certificate and key inline).
    """
    user = _current_user(kubeconfig, where)
    for names in _CREDENTIALS:
        found = {name: user[name] for name in names if isinstance(user.get(name), str) and user[name]}
        if len(found) == len(names):
            return Secret(kubeconfig_text(spec, user=USER, credential=found))
    raise InvalidInput(
        f"{where}: its user has no token and no certificate with its key in the file itself",
        hint="Files and login programs of this computer do not exist on the node; give a token, "
        "or client-certificate-data with client-key-data.",
    )


def _current_user(kubeconfig: Secret, where: str) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(kubeconfig.reveal())
        context = _named(config["contexts"], config["current-context"])["context"]
        return dict(_named(config["users"], context["user"])["user"])
    except (yaml.YAMLError, KeyError, TypeError, ValueError, StopIteration):
        # The reason is not shown: it could quote the text.
        raise InvalidInput(
            f"{where}: it is no kubeconfig with a current context and its user",
            hint="`kubectl config view --minify --flatten --raw` makes one.",
        ) from None


def _named(entries: list[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next(one for one in entries if one["name"] == name)


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    own: dict[str, object] | None = None
    if spec.kube_proxy.kubeconfig is not None:
        own = {
            "path": spec.paths.kube_proxy_kubeconfig,
            "server": spec.cluster.server,
            "ca_path": spec.paths.cluster_ca,
            "secret": KUBECONFIG_SECRET,
        }
    return {"credential": own}


def _files(spec: NodeSpec) -> Mapping[str, str]:
    files = {spec.paths.kube_proxy_config: json_text(spec.kube_proxy.config)}
    if spec.kube_proxy.kubeconfig is None:
        files[spec.paths.kube_proxy_kubeconfig] = node_kubeconfig_text(spec, USER)
    return files


def _secrets(spec: NodeSpec) -> tuple[str, ...]:
    return () if spec.kube_proxy.kubeconfig is None else (KUBECONFIG_SECRET,)


def kube_proxy_wanted(spec: NodeSpec) -> bool:
    """Whether kube-proxy runs on this node as a service of ours."""
    return spec.kube_proxy.wanted


KUBE_PROXY_CONFIG = Step(
    name="kube-proxy-config",
    why="kube-proxy must name the HNS network, the host's endpoint and the node exactly, or services fail on this node",
    inputs=_inputs,
    needs=(
        "directories",
        "registration",
        "ipam-reservations",
        "pod-network",
        *STEPS_AFTER,
        "operator-network",
    ),
    wanted=kube_proxy_wanted,
    secrets=_secrets,
    files=_files,
)

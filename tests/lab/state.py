"""What a machine and its Node are, without what differs between two equal joins: ids, times, logs and history."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from winboot_lab.cluster.kinds import CSRS, NODES, SECRETS
from winboot_lab.windows.snapshot import Tree, diff, without_chance

from tests.lab.site import Site

# Files of which only their presence and their access rules count: keys and certificates are new each time.
# host-local records where its last search ended. winboot records the files that it has hashed, with their times, the
# adapters of this boot, and whether a node was seen Ready with its versions.
_BY_CHANCE: Final = re.compile(
    r"(?i)\\(kubelet-client-.*\.pem|kubelet-server-.*\.pem|last_reserved_ip\.\d|hashes\.json|network\.json"
    r"|versions\.json)$"
)
# What happened, not how it is: logs, winboot's journal, fence and notes of runs that are over, and what flannel's
# plugin writes down of each sandbox, under its id.
_HISTORY: Final = re.compile(
    r"(?i)^C:\\(var\\log\\|var\\lib\\cni\\flannel\\|ProgramData\\winboot\\"
    r"(journal(\.1)?\.jsonl|fence\.json|boot\.json|start(ed|ing)\.json|reboot\.json|restored\.json|"
    r"detached\\|former\\|downloads\\))"
)
_IMAGES: Final = re.compile(r"(?i)\\io\.containerd\.(?:metadata|snapshotter)\.[^\\]+\\meta(?:data)?\.db$")
# An overlay's address on the wire is drawn when its network is made.
_VTEP: Final = re.compile(r',?\\"VtepMAC\\":\\"[^"]*"')
# The snapshotter counts its layers on: an image that was removed and pulled again has another number.
_LAYER: Final = re.compile(r"(snapshotter\.v1\.windows\\\\snapshots\\\\)\d+")
_DATED: Final = re.compile(r"-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d")


# kube-proxy uses the node's address only in the run that makes the endpoint of a backend outside the cluster. Source:
# kubernetes, pkg/proxy/winkernel/proxier.go, syncProxyRules: containsPublicIP is set where no endpoint is found.
_SOURCE: Final = re.compile(r'(SourceVIP\\*": \\*")[\d.]+')
_OF_AN_ENDPOINT = re.compile(r"0\.0\.0\.0/0 via \S+ on vEthernet \(\w+_ep\) ")


def state(site: Site) -> dict[str, Tree]:
    """Machines and Nodes of a site as one tree that is equal for equal states."""
    text = _LAYER.sub(r"\1<n>", _VTEP.sub("", _SOURCE.sub(r"\1<source>", json.dumps(_state(site)))))
    # Which subnet a Node is given is chance; that everything on the node agrees with it is not.
    for node in site.cluster.store.all(NODES):
        for cidr in node["spec"].get("podCIDRs") or []:
            text = text.replace(cidr.rpartition(".")[0] + ".", f"<{node['metadata']['name']}>.")
    found: dict[str, Tree] = json.loads(text)
    return found


def _state(site: Site) -> dict[str, Tree]:
    return {
        "machines": {name: _machine(site, name) for name in site.machines},
        "nodes": {node["metadata"]["name"]: _node(node) for node in site.cluster.store.all(NODES)},
        "pending requests": sum(not csr.get("status", {}).get("certificate") for csr in _all(site, CSRS)),
        "bootstrap tokens": sum(
            secret["metadata"]["name"].startswith("bootstrap-token-") for secret in _all(site, SECRETS)
        ),
    }


def expire_lost_tokens(site: Site) -> None:
    """Delete the bootstrap tokens that have an end, as the cluster does after it.

    (kube-controller-manager, pkg/controller/bootstrap/tokencleaner.go.) A run that was killed without a claim leaves its
    token so: no role of winboot can list Secrets, and only a claim names the run that is gone.
    """
    for secret in _all(site, SECRETS):
        metadata = secret["metadata"]
        if metadata["name"].startswith("bootstrap-token-") and "expiration" in secret["data"]:
            site.cluster.store.delete(SECRETS, metadata["namespace"], metadata["name"])


def changes(before: dict[str, Tree], after: dict[str, Tree]) -> list[str]:
    """What differs between two states, a line each."""
    return diff(before, after)


def _all(site: Site, kind: Any) -> list[Any]:
    return list(site.cluster.store.all(kind))


def without_endpoint_routes(network: Tree) -> Tree:
    """Without the default route of the host's endpoint: HNS adds it when it attaches the endpoint, and winboot ignores it."""
    assert isinstance(network, dict)
    routes = network["routes"]
    assert isinstance(routes, list)
    return network | {"routes": [one for one in routes if not _OF_AN_ENDPOINT.match(str(one))]}


def _machine(site: Site, name: str) -> Tree:
    tree = without_chance(site.machines[name].snapshot())
    assert isinstance(tree, dict)
    files = tree["files"]
    assert isinstance(files, dict)
    registry = tree["registry"]
    assert isinstance(registry, dict)
    # The network part has the settings of interfaces by name; here their keys are ids.
    tree["registry"] = registry = {
        k: v for k, v in registry.items() if "\\Parameters\\Interfaces\\{" not in k
    }
    for values in registry.values():
        # Not delayed, in so many words: what sc.exe leaves of a start type that was delayed for a while.
        if isinstance(values, dict) and values.get("DelayedAutostart") == 0:
            del values["DelayedAutostart"]
    tree["network"] = without_endpoint_routes(tree["network"])
    # The guard starts and ends by itself: whether it runs just now is not a change.
    tasks = tree["tasks"]
    assert isinstance(tasks, dict)
    for task, settings in tasks.items():
        if task.lower() == r"\winboot\guard" and isinstance(settings, dict):
            settings.pop("state", None)
    tree["files"] = {
        _DATED.sub("-<date>", path): _file(path, shown)
        for path, shown in files.items()
        if not _HISTORY.match(path)
    }
    return tree


def _file(path: str, shown: Tree) -> Tree:
    assert isinstance(shown, dict)
    if not _BY_CHANCE.search(path):
        content = shown.get("content")
        if _IMAGES.search(path) and isinstance(content, dict):
            return {**shown, "content": _without_layers(str(content["text"]))}
        # Compare the text alone: hashes would differ for addresses that count as equal.
        return (
            {**shown, "content": content["text"]}
            if isinstance(content, dict) and "text" in content
            else shown
        )
    return {key: _DATED.sub("-<date>", str(value)) for key, value in shown.items() if key != "content"}


def _without_layers(records: str) -> Tree:
    """containerd's records but for the numbers of its layers; of these only how many there are counts."""
    records = json.loads(records)
    assert isinstance(records, dict)
    counted = {"layers", "layer_of"}
    return {
        **{key: value for key, value in records.items() if key not in counted},
        "layers": len(records.get("layer_of") or {}),
    }


def _node(node: dict[str, Any]) -> Tree:
    metadata, spec, status = node["metadata"], node["spec"], node["status"]
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    return {
        "labels": metadata.get("labels") or {},
        "annotations": metadata.get("annotations") or {},
        "taints": spec.get("taints") or [],
        "pod CIDRs": spec.get("podCIDRs") or [],
        "unschedulable": spec.get("unschedulable", False),
        "addresses": status.get("addresses") or [],
        "ready": ready["status"],
        "reason": ready["message"],
    }

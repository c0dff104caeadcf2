"""Labels and taints of the Node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.values import label_key, label_value
from winboot.config.source import Complaint, PathParts, Wrong

_STARTUP_TAINT: Final = "winboot.io/starting"

# The kubelet itself sets these, from what the machine is (pkg/kubelet/kubelet_node_status.go, initialNode).
_KUBELET_LABELS: Final = frozenset(
    {
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/windows-build",
    }
)


def check(draft: Draft) -> Iterator[Complaint]:
    """Keys, values and effects as Kubernetes takes them; none that another program owns."""
    node = draft.labels_and_taints
    if node is None:
        return
    rules = draft.facts.section("label_rules")
    for label, value in node.labels.items():
        yield from _label(draft, label, value, rules)
    seen: set[tuple[str, str]] = set()
    given = [("node", index, taint) for index, taint in enumerate(node.taints)]
    if draft.boot is not None:
        given += [("boot", index, taint) for index, taint in enumerate(draft.boot.taints)]
    for section, index, taint in given:
        path: PathParts = (section, "taints", index)
        key, _, effect = taint.partition(":")
        key = key.partition("=")[0]
        if key == _STARTUP_TAINT:
            yield draft.at(path, f"winboot adds and removes its own taint {key} itself", "no such taint")
        if (key, effect) in seen:
            yield draft.at(path, f"two taints have the key {key} and the effect {effect}", "one of them")
        seen.add((key, effect))
    if "os=windows" not in {taint.partition(":")[0] for taint in node.taints}:
        wrong = "without the taint os=windows, the scheduler may place Linux pods on the node"
        if node.model_fields_set & {"taints"}:
            yield draft.at(("node", "taints"), wrong, "a list with os=windows:NoSchedule", warning=True)


def _label(
    draft: Draft, label: str, value: str | None, rules: Mapping[str, list[str]]
) -> Iterator[Complaint]:
    path: PathParts = ("node", "labels", label)
    try:
        label_key(label)
    except Wrong as error:
        yield draft.wrong(path, error, key=True)
        return
    try:
        label_value(value or "")
    except Wrong as error:
        yield draft.wrong(path, error)
    if label in _KUBELET_LABELS:
        yield draft.at(path, "the kubelet sets this label itself", "another label", key=True)
        return
    prefix = label.rpartition("/")[0]
    reserved = prefix.split(".")[-2:] in (["kubernetes", "io"], ["k8s", "io"])
    # winboot sets labels through the API with the operator's rights, so even reserved ones could be written. They
    # belong to Kubernetes, but for the one that names a node's role, which administrators are to set
    # (kubernetes.io/docs/reference/labels-annotations-taints, node-role.kubernetes.io/*).
    allowed = (
        prefix == "node-role.kubernetes.io"
        or label in rules["labels"]
        or any(prefix == space or prefix.endswith(f".{space}") for space in rules["namespaces"])
    )
    if reserved and not allowed:
        wrong = f"{label} has a prefix that kubelets may not use"
        yield draft.at(path, wrong, "another prefix, such as example.com/name", key=True)

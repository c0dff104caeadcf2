"""What the sections of a profile say about one another: every check gives complaints, none stops the others.

One module a section. A section that is itself wrong is None in the draft; the checks that need it are passed over, the
others still run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from winboot.config.profile.checks import (
    artifacts,
    cluster,
    components,
    containerd,
    docker,
    gmsa,
    kubelet,
    kubernetes,
    network,
    node,
    proxy,
    runtime,
    services,
    steps,
    storage,
    windows,
)
from winboot.config.profile.checks.draft import Draft
from winboot.config.source import Complaint

CHECKS: Final[tuple[Callable[[Draft], Iterator[Complaint]], ...]] = (
    kubernetes.check,
    cluster.check,
    network.check,
    runtime.check,
    containerd.check,
    docker.check,
    services.check,
    kubelet.check,
    components.check_of("kubelet"),
    components.check_of("kube-proxy"),
    node.check,
    proxy.check,
    windows.check,
    storage.check,
    gmsa.check,
    artifacts.check,
    steps.check,
)


def all_complaints(draft: Draft) -> list[Complaint]:
    """Everything that is wrong or worth knowing, check by check."""
    return [complaint for check in CHECKS for complaint in check(draft)]

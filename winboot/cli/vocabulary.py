"""All names that `winboot explain` answers."""

from __future__ import annotations


def names() -> list[str]:
    """All that a bare word may be."""
    from winboot.config.compat.facts import load
    from winboot.config.keys import keys
    from winboot.config.networks import NETWORKS
    from winboot.script.problems import failures, problems
    from winboot.script.steps import STEPS

    facts = load()
    sections = ("kubelet_flags", "kube_proxy_flags", "kubelet_fields", "kube_proxy_fields", "gates")
    return [
        *(one.id for one in problems()),
        *(one.__name__ for one in failures()),
        *(one.id for one in NETWORKS),
        *(step.name for step in STEPS),
        *keys(),
        *(name for section in sections for name in facts.section(section)),
    ]

"""The version of Kubernetes, with what the compatibility data says of it."""

from __future__ import annotations

from collections.abc import Iterator

from winboot.config import compat
from winboot.config.compat import age
from winboot.config.profile.checks.draft import Draft
from winboot.config.source import Complaint


def check(draft: Draft) -> Iterator[Complaint]:
    """The version itself, and how old the data about versions is."""
    if draft.version is None:
        return
    traits = set()
    if draft.solution and draft.solution.hns_type == "L2Bridge":
        traits.add("l2bridge")
    if draft.dual_stack:
        traits.add("dual-stack")
    runtime = draft.runtime.name if draft.runtime else "containerd"
    findings = compat.check_kubernetes(draft.facts, draft.version, traits=frozenset(traits), runtime=runtime)
    yield from draft.found(("kubernetes", "version"), findings)
    old = age.said(draft.facts)
    if old is not None:
        # Of no place: it is of the data, and reported once however many profiles there are.
        instead = (
            "a newer winboot, or kubernetes.overlay: a file with newer facts and their date (docs/compat.md)"
        )
        yield Complaint(None, "", old, level="warning", instead=instead)

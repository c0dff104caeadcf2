"""Apply every rule to a document: the first cause, its consequences, and what stands apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from winboot.operations.doctor.document import Document
from winboot.operations.doctor.rules import RULES, Rule
from winboot.operations.doctor.subject import Subject

# A fault explains findings of these layers and rules, unless its rule names others.
EXPLAINS: Final[Mapping[str, tuple[str, ...]]] = {
    "access": ("node", "kubelet", "network", "proxy"),
    "machine": ("windows", "services", "runtime", "credentials", "kubelet", "network", "proxy", "node"),
    "windows": ("services", "runtime", "kubelet", "network", "proxy", "node"),
    "services": ("service-stopped", "runtime", "kubelet", "network", "proxy", "node"),
    "runtime": ("kubelet", "network", "proxy", "node"),
    "credentials": ("services", "kubelet", "network", "proxy", "node"),
    "kubelet": ("node",),
    "network": ("runtime", "proxy", "node"),
    "proxy": (),
    "node": (),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that fired. `cause` is the rule that explains it; empty for a cause of its own."""

    rule: Rule
    evidence: tuple[str, ...]
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with one node: `first` is the first cause, None if the node is healthy."""

    document: Document
    findings: tuple[Finding, ...]
    unread: tuple[str, ...]

    @property
    def first(self) -> Finding | None:
        """The first finding that no other explains, faults before warnings."""
        own = [one for one in self.findings if not one.cause]
        faults = [one for one in own if one.rule.severity != "warning"]
        return next(iter(faults or own), None)

    @property
    def node(self) -> str:
        """The node's name."""
        return self.document.node


def judge(documents: Sequence[Document]) -> tuple[Verdict, ...]:
    """A verdict for each document; rules see the other documents as siblings."""
    return tuple(_verdict(one, [other for other in documents if other.node != one.node]) for one in documents)


def _verdict(document: Document, siblings: Sequence[Document]) -> Verdict:
    subject = Subject(document, siblings)
    found = [
        Finding(rule, evidence) for rule in RULES if (evidence := tuple(dict.fromkeys(rule.check(subject))))
    ]
    return Verdict(document, tuple(_explained(found)), tuple(_unread(document)))


def _explained(found: Sequence[Finding]) -> Iterator[Finding]:
    """Each finding with the first one that explains it."""
    for index, one in enumerate(found):
        cause = next((other.rule.id for other in found[:index] if _explains(other.rule, one.rule)), "")
        yield Finding(one.rule, one.evidence, cause)


def _explains(cause: Rule, effect: Rule) -> bool:
    if cause.explains is not None:
        return effect.id in cause.explains or effect.layer in cause.explains
    explained = EXPLAINS[cause.layer]
    return cause.severity == "fault" and (effect.layer in explained or effect.id in explained)


def _unread(document: Document) -> Iterator[str]:
    """The facts that are missing, with the reason."""
    if document.login_problem:
        yield f"the machine: {document.login_problem}"
    if document.api_problem:
        yield f"the cluster: {document.api_problem}"
    for subject, problem in document.problems.items():
        yield f"{subject}: {problem}"

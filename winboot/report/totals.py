"""What a plan costs: restarts of machines, network blips, services that restart, nodes whose pods are disturbed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from winboot.report.results import NodeReport, Report


@dataclass(frozen=True, slots=True)
class Totals:
    """Over some nodes. One restart of a machine serves all steps that need one."""

    steps: int = 0
    restarts: int = 0
    blips: int = 0
    services: int = 0
    disturbed: int = 0

    def __str__(self) -> str:
        numbers = (self.steps, self.restarts, self.blips, self.services, self.disturbed)
        parts = [
            _counted(self.steps, "step to change", "steps to change"),
            _counted(self.restarts, "restart of the machine", "restarts of machines"),
            _counted(self.blips, "network blip", "network blips"),
            _counted(self.services, "service restarted", "services restarted"),
            _counted(self.disturbed, "node whose pods are disturbed", "nodes whose pods are disturbed"),
        ]
        return ", ".join(part for number, part in zip(numbers, parts, strict=True) if number)


def totals_of(node: NodeReport) -> Totals:
    """What a join of this node would cost, by the differences that were found; what others hold is not counted."""
    found = [(step.name, one) for step in node.steps for one in step.differences if not one.policy]
    rough = [one for _, one in found if one.reboot or one.disrupts or one.disturbs]
    return Totals(
        steps=len({name for name, _ in found}),
        restarts=int(any(one.reboot for _, one in found)),
        blips=len({name for name, one in found if one.disrupts}),
        services=len(
            {
                name
                for name, one in found
                if (one.disrupts or one.disturbs) and one.key.startswith(("service:", "file:"))
            }
        ),
        disturbed=int(bool(node.live and rough)),
    )


def in_all(report: Report) -> Totals:
    """The sum over all nodes of a run."""
    return _sum(totals_of(node) for node in report.nodes)


def _sum(totals: Iterable[Totals]) -> Totals:
    listed = list(totals)
    return Totals(
        *(
            sum(getattr(one, name) for one in listed)
            for name in ("steps", "restarts", "blips", "services", "disturbed")
        )
    )


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"

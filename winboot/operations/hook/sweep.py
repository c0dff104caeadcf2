"""Machines that join by themselves: finish what they leave to the hook, also those that no message names."""

from __future__ import annotations

from contextlib import suppress

from winboot.base.errors import ClusterError, WinbootError
from winboot.operations.hook.shared import Shared
from winboot.operations.hook.work import Target


class Sweep:
    """Looks at all machines every `settings.sweep` seconds."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._due = 0.0
        self._logged: set[tuple[str, str]] = set()

    def when_due(self) -> None:
        """Sweep, if it is time; a failure is logged."""
        shared, every = self._shared, self._shared.settings.sweep
        if every is None or shared.pace.now() < self._due:
            return
        self._due = shared.pace.now() + every
        try:
            self.sweep()
        except WinbootError as error:
            shared.metrics.left("sweep")
            shared.log("nothing swept", problem=error.problem, hint=error.hint)

    def sweep(self) -> None:
        """Judge certificate requests, also later ones, and finish machines whose group had no hook yet or whose message was
        lost."""
        verdicts, waiting = self._shared.work.settle()
        for one in verdicts:
            if not one.approved:
                self._shared.metrics.left("certificate request")
            what = "approved" if one.approved else "refused"
            self._log_once(f"certificate request {what}", one.request, reason="; ".join(one.reasons))
        for target in waiting:
            self._finish(target)

    def _finish(self, target: Target) -> None:
        shared, node = self._shared, target.spec.node.name
        leases = shared.leases(target.cluster)
        claim = shared.claimant.take(leases, node, shared.work.notes(target))
        if claim is None:
            return
        try:
            outcome = shared.work.finish(target)
            if not outcome.good:
                shared.metrics.left("machine")
            self._log_once("finished" if outcome.good else "not finished", node, reason=outcome.reason)
        finally:
            # Only what is still ours is given back.
            with suppress(ClusterError):
                leases.renew(claim)
                leases.delete(node)

    def _log_once(self, message: str, about: str, *, reason: str) -> None:
        """Log what a sweep sees again and again the first time only."""
        if (message, f"{about} {reason}") not in self._logged:
            self._logged.add((message, f"{about} {reason}"))
            self._shared.log(message, about=about, reason=reason)

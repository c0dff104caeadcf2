"""Which limits of a group's hooks the hook cannot meet, logged once for each group."""

from __future__ import annotations

from winboot.base.errors import WinbootError
from winboot.operations.hook.shared import Shared


class Limits:
    """The groups that were checked."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._checked: set[str] = set()

    def check_all(self) -> None:
        """The groups that have machines, at the start, when a person looks."""
        try:
            groups = self._shared.work.groups()
        except WinbootError as error:
            self._shared.log("the groups were not listed", problem=error.problem)
            return
        for group in groups:
            self.check(group)

    def check(self, group: str) -> None:
        """One group, where it is new."""
        if not group or group in self._checked:
            return
        self._checked.add(group)
        shared = self._shared
        try:
            problems = shared.queue.unfit(group, shared.settings.needs(shared.work, shared.claimant.duration))
        except WinbootError as error:
            shared.log(
                "the lifecycle hooks of the group could not be read, so their timeouts were not checked",
                group=group,
                problem=error.problem,
            )
            return
        for problem in problems:
            shared.log("the group does not fit", group=group, problem=problem)

"""Which item next: terminations and notices at once, joins when a machine answers and a worker is free."""

from __future__ import annotations

from functools import partial

from winboot.base.errors import InternalError, WinbootError
from winboot.node.run import Stop
from winboot.operations.hook.item import Next, State, WorkItem
from winboot.operations.hook.launch import Launch
from winboot.operations.hook.notices import Notices
from winboot.operations.hook.shared import Shared
from winboot.operations.hook.termination import Termination


class Scheduler:
    """Starts a thread for each item that has something to do; at most `settings.workers` joins at a time."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._launch = Launch(shared)
        self._termination = Termination(shared)
        self._notices = Notices(shared)
        self.looked = shared.pace.now()

    def run(self, over: Stop) -> None:
        """Look at items at rest, until `over`."""
        shared = self._shared
        while not over.requested:
            self.looked = shared.pace.now()
            try:
                self.look()
            except WinbootError as error:
                shared.metrics.left("scheduler")
                shared.log("poll failed", problem=error.problem, hint=error.hint)
            except Exception as error:  # noqa: BLE001 - a bug at one machine must not end the work on the others
                shared.log("a bug in winboot itself", problem=f"{type(error).__name__}: {error}")
            over.wait(shared.settings.look)

    def look(self) -> None:
        """Start what is due, unless the worker stops."""
        shared = self._shared
        if shared.stop.requested:
            return
        now = shared.pace.now()
        due = [item for item in shared.items.at_rest() if item.due <= now]
        for item in due:
            if item.action.kind != "launch":
                self.drain(item)
        launches = [item for item in due if item.action.kind == "launch"]
        self._launch.ask([item for item in launches if not item.answers and not item.ending])
        free = shared.settings.workers - shared.items.joining()
        for item in launches:
            free -= self._next(item, free)

    def drain(self, item: WorkItem) -> None:
        """Begin a termination or a notice at once, in parallel with all others."""
        self._start(item, "draining", item.action.hook)

    def _next(self, item: WorkItem, free: int) -> bool:
        """What a launch does next; whether it takes a free worker."""
        if item.ending or item.halt.requested or item.target is None or self._launch.is_over(item):
            self._start(item)
        elif item.answers:
            return free > 0 and self._start(item, "joining", "a worker is free")
        else:
            item.due = self._shared.pace.now() + self._shared.work.again
        return False

    def _start(self, item: WorkItem, state: State | None = None, reason: str = "") -> bool:
        if not self._shared.items.take(item, state, reason):
            return False
        self._shared.pace.spawn(f"hook-{item.action.instance}", partial(self._work, item))
        return True

    def _work(self, item: WorkItem) -> None:
        after = self._tried(item)
        try:
            self._shared.items.put_back(item, after)
        except InternalError as error:
            self._shared.log("a bug in winboot itself", **item.about(), problem=error.problem)
            self._shared.items.put_back(item, Next("failed", error.problem, outcome="bug"))

    def _tried(self, item: WorkItem) -> Next:
        shared = self._shared
        try:
            after = self._act(item)
        except WinbootError as error:
            shared.log("work failed", **item.about(), problem=error.problem, hint=error.hint)
            return self._after_error(item, error)
        except Exception as error:  # noqa: BLE001 - a bug at one machine must not end the work on the others
            problem = f"{type(error).__name__}: {error}"
            shared.log("a bug in winboot itself", **item.about(), problem=problem)
            return Next("failed", problem, outcome="bug")
        item.errors = 0
        return after

    def _act(self, item: WorkItem) -> Next:
        match item.action.kind:
            case "launch":
                return self._launch.work(item)
            case "terminate":
                return self._termination.work(item)
            case _:
                return self._notices.work(item)

    def _after_error(self, item: WorkItem, error: WinbootError) -> Next:
        item.errors += 1
        if item.errors > self._shared.settings.gone_after:
            # What fails again and again is left to the queue, which counts its deliveries.
            return Next("failed", f"left in the queue: {error.problem}", outcome="error")
        # A cordon has five seconds.
        later = min(2.0 ** (item.errors - 1), self._shared.settings.again)
        return Next("waiting", error.problem, later)

"""Cloud messages to work items: every message is received at once, so that one that waits holds no worker."""

from __future__ import annotations

from winboot.base.errors import CloudRefused, UsageError, WinbootError
from winboot.operations.hook.item import WorkItem
from winboot.operations.hook.limits import Limits
from winboot.operations.hook.scheduler import Scheduler
from winboot.operations.hook.shared import Shared
from winboot.operations.hook.sweep import Sweep
from winboot.remote.cloud.base import HookAction, Message, Nothing


class Receiver:
    """The loop that receives. `receives` while the last request was answered."""

    def __init__(self, shared: Shared, scheduler: Scheduler) -> None:
        self._shared = shared
        self._scheduler = scheduler
        self._sweep = Sweep(shared)
        self.limits = Limits(shared)
        self.receives = False
        self.looked = shared.pace.now()

    def run(self) -> None:
        """Receive until the worker is to stop, or was idle for `settings.idle`. Raises UsageError and CloudRefused
        where the queue does not exist, or not for this account, at the first request."""
        shared, idle = self._shared, self._shared.settings.idle
        quiet, first = shared.pace.now(), True
        while not shared.stop.requested:
            self.looked = shared.pace.now()
            self._sweep.when_due()
            messages = self.receive(first=first)
            first = False
            for message in messages:
                self.accept(message)
            if messages or len(shared.items):
                quiet = shared.pace.now()
            if idle is not None and not messages and shared.pace.now() - quiet >= idle:
                break

    def receive(self, *, first: bool = False) -> list[Message]:
        """One request; nothing where it fails, which is logged."""
        shared = self._shared
        try:
            messages = shared.queue.receive(10, shared.settings.visibility)
        except WinbootError as error:
            # A fault that does not correct itself is an error at the start.
            if first and isinstance(error, UsageError | CloudRefused):
                raise
            problem, hint = error.problem, error.hint
        except Exception as error:  # noqa: BLE001 - a bug about one machine must not end the work on the others
            problem, hint = f"a bug in winboot itself: {type(error).__name__}: {error}", ""
        else:
            self.receives = True
            return messages
        self.receives = False
        shared.metrics.left("queue")
        shared.log("receive failed", problem=problem, hint=hint)
        shared.stop.wait(shared.settings.pause)
        return []

    def accept(self, message: Message) -> None:
        """Hold what a message asks for; terminations and notices begin at once."""
        shared, action = self._shared, message.action
        if isinstance(action, Nothing):
            self._ignore(message, action)
            return
        item = self._item(message, action)
        if not shared.items.add(item):
            return
        if action.kind == "launch":
            self.limits.check(action.group)
        else:
            self._scheduler.drain(item)

    def _item(self, message: Message, action: HookAction) -> WorkItem:
        now = self._shared.pace.now()
        messages = {message.id or message.handle: message}
        return WorkItem(action, messages, now, self._shared.pace.stop(), due=now)

    def _ignore(self, message: Message, nothing: Nothing) -> None:
        """Delete what asks for nothing. What is not understood may be meant for another program, and stays in the queue."""
        shared = self._shared
        shared.metrics.ended("other", "ignored" if nothing.understood else "not understood")
        if not nothing.understood:
            shared.log("unknown message: it stays in the queue", reason=nothing.reason)
            return
        shared.log("no work in a message", reason=nothing.reason)
        try:
            shared.queue.delete(message)
        except WinbootError as error:
            shared.log("a message was not deleted", problem=error.problem)

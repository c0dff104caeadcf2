"""Time that passes at once: threads of which one runs at a time, and a clock that jumps to the shortest wait.

So code that sleeps, spawns threads and waits for signals runs unchanged, hours of it in tenths of a second, and the same seed
always gives the same run.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from winboot.node.run import Stop
from winboot.operations.hook.pace import Pace

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The process of this thread is no more."""


class Task:
    """One thread of a process. `waits` is the number of its current wait: an older wake-up has no effect."""

    def __init__(self, kernel: Kernel, process: str, work: Callable[[], object]) -> None:
        self.kernel, self.process, self.work = kernel, process, work
        self.turn = threading.Semaphore(0)
        self.waits = 0
        self.ended = False
        self.over = VirtualStop(kernel)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.turn.acquire()
        try:
            self.kernel.check(self)
            self.work()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - told by Kernel.run, in the test's own thread
            self.kernel.errors.append(error)
        self.ended = True
        self.over.request()
        self.kernel.back.release()

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return not self.ended

    def join(self) -> None:
        """Wait for its end."""
        while not self.ended:
            self.over.wait(3600.0)


class Kernel:
    """The clock, and whose turn it is."""

    def __init__(self) -> None:
        self.now = 0.0
        self.back = threading.Semaphore(0)
        self.current: Task | None = None
        self.tasks: list[Task] = []
        self.dead: set[str] = set()
        # By process: until when it is paused, with all its threads.
        self.paused: dict[str, float] = {}
        self.errors: list[BaseException] = []
        self._numbers = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, when: float, do: Callable[[], None]) -> None:
        """Call this at that time; it may not wait."""
        heapq.heappush(self._due, (max(when, self.now), next(self._numbers), do))

    def spawn(self, process: str, work: Callable[[], object]) -> Task:
        """A thread of a process, which begins now."""
        task = Task(self, process, work)
        self.tasks.append(task)
        self.at(self.now, lambda: self._resume(task, 0))
        return task

    def check(self, task: Task | None = None) -> None:
        """Raises Killed in a thread of a process that is no more."""
        task = task or self.current
        if task is not None and task.process in self.dead:
            raise Killed

    def sleep(self, seconds: float, stop: VirtualStop | None = None) -> None:
        """Let others run for so long, or until the signal comes."""
        task = self.current
        assert task is not None
        self.check(task)
        task.waits += 1
        self._wake_at(task, self.now + seconds)
        if stop is not None:
            stop.waiting.append((task, task.waits))
        self.back.release()
        task.turn.acquire()
        self.check(task)

    def pause(self, seconds: float) -> None:
        """Pause the process whose turn it is: none of its threads does anything for so long."""
        assert self.current is not None
        self.paused[self.current.process] = self.now + seconds
        self.sleep(seconds)

    def wake(self, task: Task, number: int) -> None:
        """End its wait, if it is still in that one."""
        self.at(self.now, lambda: self._resume(task, number))

    def kill(self, process: str) -> None:
        """End a process: none of its threads does anything more."""
        self.dead.add(process)
        for task in self.tasks:
            if task.process == process and not task.ended:
                self.wake(task, task.waits)

    def run(self, until: float) -> None:
        """Until that time."""
        while self._due and self._due[0][0] <= until:
            self.now, _, do = heapq.heappop(self._due)
            do()
            if self.errors:
                raise self.errors[0]
        self.now = until

    def close(self) -> None:
        """End all threads."""
        for process in {task.process for task in self.tasks}:
            self.kill(process)
        for _ in range(100):
            if all(task.ended for task in self.tasks):
                return
            self.run(self.now)

    def _wake_at(self, task: Task, when: float) -> None:
        number = task.waits
        self.at(when, lambda: self._resume(task, number))

    def _resume(self, task: Task, number: int) -> None:
        if task.ended or task.waits != number:
            return
        until = self.paused.get(task.process, 0.0)
        if until > self.now and task.process not in self.dead:
            self.at(until, lambda: self._resume(task, number))
            return
        self.current = task
        task.turn.release()
        self.back.acquire()
        self.current = None


class VirtualStop(Stop):
    """A signal in virtual time."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self._kernel = kernel
        self.waiting: list[tuple[Task, int]] = []

    def request(self, signal: int | None = None) -> None:
        """See `Stop`."""
        super().request(signal)
        waiting, self.waiting = self.waiting, []
        for task, number in waiting:
            self._kernel.wake(task, number)

    def wait(self, seconds: float) -> bool:
        """See `Stop`."""
        if not self.requested:
            self._kernel.sleep(seconds, self)
        return self.requested


class VirtualPace(Pace):
    """Time and threads of one process."""

    def __init__(self, kernel: Kernel, process: str) -> None:
        self._kernel, self.process = kernel, process

    def now(self) -> float:
        """See `Pace`."""
        return self._kernel.now

    def today(self) -> datetime:
        """See `Pace`."""
        return EPOCH + timedelta(seconds=self._kernel.now)

    def stop(self) -> Stop:
        """See `Pace`."""
        return VirtualStop(self._kernel)

    def spawn(self, name: str, work: Callable[[], object]) -> Task:
        """See `Pace`."""
        return self._kernel.spawn(self.process, work)

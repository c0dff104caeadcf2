"""Scheduled tasks: what is registered, and really running it on a thread of its own."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Literal

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.clock import Timer
from winboot_lab.windows.door import Interrupted, MachineStopped
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.host import Actor, Host
from winboot_lab.windows.paths import leaf
from winboot_lab.windows.processes import Processes, split_arguments
from winboot_lab.windows.snapshot import Tree

# What Get-ScheduledTaskInfo shows before the first run and during one.
NEVER_RAN = 267011
STILL_RUNNING = 267009
TERMINATED = 267014


@dataclass(slots=True)
class Action:
    """What a task executes."""

    execute: str
    arguments: str = ""
    directory: str = ""


@dataclass(slots=True)
class Trigger:
    """When a task starts by itself. `at` is local time; with `interval_seconds` it starts again and again."""

    kind: Literal["Once", "Startup"]
    at: datetime | None = None
    delay_seconds: float = 0.0
    interval_seconds: float = 0.0


@dataclass(eq=False, slots=True)
class Task:
    """One registered task."""

    name: str
    path: str
    actions: list[Action]
    triggers: list[Trigger]
    user: str = "SYSTEM"
    highest: bool = False
    description: str = ""
    author: str = ""
    priority: int = 7
    limit_seconds: float = 259200.0
    enabled: bool = True
    on_battery: bool = False
    start_when_available: bool = False
    last_run: datetime | None = None
    last_result: int = NEVER_RAN
    running: Actor | None = None
    timers: list[Timer] = field(default_factory=list)

    @property
    def resident(self) -> bool:
        """Whether it may run without end: then time does not pass for its sake, and no actor waits for its end."""
        return self.limit_seconds == 0

    @property
    def state(self) -> str:
        """Ready, Running or Disabled."""
        if self.running is not None:
            return "Running"
        return "Ready" if self.enabled else "Disabled"


class Tasks:
    """All tasks. A refusal that a task's script ran into goes to `machine.refusals`, for the lab's caller."""

    def __init__(self, machine: Host, processes: Processes) -> None:
        self._machine, self._processes = machine, processes
        self._known: dict[str, Task] = {}
        self._threads: list[threading.Thread] = []
        self._residents: list[threading.Thread] = []

    def all(self) -> list[Task]:
        """Every task, by path and name."""
        return [self._known[k] for k in sorted(self._known)]

    def find(self, name: str, path: str = "\\") -> Task | None:
        """A task by name in a folder (`\\` or `\\Folder\\`)."""
        return self._known.get((path + name).lower())

    def register(self, task: Task) -> None:
        """Take a task up; its once-triggers are set."""
        self._known[(task.path + task.name).lower()] = task
        for trigger in task.triggers:
            if trigger.kind == "Once" and trigger.at is not None:
                self._wait_for(task, trigger)

    def _wait_for(self, task: Task, trigger: Trigger) -> None:
        """Start the task at the trigger's next time; a time that is over counts only with a repetition."""
        assert trigger.at is not None
        seconds = (trigger.at - self._machine.local(self._machine.now())).total_seconds()
        if trigger.interval_seconds:
            seconds = seconds % trigger.interval_seconds or trigger.interval_seconds
        if seconds < 0:
            return

        def due() -> None:
            task.timers.remove(timer)
            self.start(task)
            if trigger.interval_seconds:
                self._wait_for(task, trigger)

        timer = self._machine.after(seconds, due, lasting=True)
        task.timers.append(timer)

    def unregister(self, task: Task) -> None:
        """Forget a task; a running instance continues, as on Windows."""
        for timer in task.timers:
            self._machine.timers.cancel(timer)
        self._known.pop((task.path + task.name).lower(), None)

    def start(self, task: Task, *, on_demand: bool = False) -> None:
        """Run it now, unless it runs already (the default for several instances is to ignore the new one). Its limit holds for
        a start by a trigger alone (learn.microsoft.com, ITaskSettings::get_ExecutionTimeLimit)."""
        if task.running is not None or not task.enabled or not self._machine.running:
            return
        task.last_run = self._machine.local(self._machine.now())
        task.last_result = STILL_RUNNING
        session = self._machine.session(task.user, logon="batch")
        session.resident = task.resident
        task.running = session
        if task.limit_seconds and not on_demand:
            limit = self._machine.after(task.limit_seconds, lambda: self.stop(task))
            task.timers.append(limit)
        thread = threading.Thread(
            target=self._run,
            args=(task, session),
            name=f"{'resident ' if task.resident else ''}task {task.name}",
            daemon=True,
        )
        # It counts as busy from this moment on, not only when its thread gets the processor.
        self._machine.time.hand_over(self._machine)
        thread.start()
        # Another thread may join the threads in the list right now; only a started thread can be joined.
        (self._residents if task.resident else self._threads).append(thread)

    def _run(self, task: Task, session: Actor) -> None:
        result = 1
        with self._machine.time.taken_over(self._machine):
            try:
                for action in task.actions:
                    result = self._act(action, session)
            except Refusal as refusal:
                self._machine.refusals.append(refusal)
            except (MachineStopped, Interrupted):
                result = TERMINATED
            except Failure as failed:
                result = failed.win32 or 1
            finally:
                with self._machine.lock:
                    if task.running is session:
                        task.running, task.last_result = None, result
                session.close()

    def _act(self, action: Action, session: Actor) -> int:
        program = leaf(action.execute.strip('"')).lower().removesuffix(".exe")
        if program == "powershell":
            return session.powershell(split_arguments("powershell.exe " + action.arguments)[1:])
        with self._machine.lock:
            line = f'"{action.execute}" {action.arguments}'.rstrip()
            process = self._processes.spawn(line, token=session.token, environment=session.environment)
            return self._processes.run(process).code

    def stop(self, task: Task) -> None:
        """End a running instance."""
        session = task.running
        if session is not None:
            task.running, task.last_result = None, TERMINATED
            session.interrupt()

    def wait_idle(self, timeout: float = 10.0) -> None:
        """For tests: wait (real seconds) until no task's thread is at work; a resident one sleeps then."""
        for thread in list(self._threads):
            thread.join(timeout)
        self._residents = [thread for thread in self._residents if thread.is_alive()]
        until = time.monotonic() + timeout
        while self._residents and self._machine.time.busy_at(self._machine) and time.monotonic() < until:
            time.sleep(0.002)

    def end_residents(self) -> None:
        """Kill what may run without end, and wait until it is gone: no thread outlives this."""
        for task in self.all():
            if task.resident:
                self.stop(task)
        self._machine.wake()
        for thread in self._residents:
            thread.join(10.0)

    def forget_residents(self) -> None:
        """In a copy of the process, which has none of their threads: they have ended."""
        self._residents.clear()
        for task in self.all():
            session = task.running
            if task.resident and session is not None:
                task.running, task.last_result = None, TERMINATED
                session.close()

    def forget_running(self) -> None:
        """The machine goes down: what ran is over."""
        for task in self._known.values():
            if task.running is not None:
                task.running, task.last_result = None, TERMINATED

    def machine_came_up(self) -> None:
        """Boot: tasks with a startup trigger run."""
        for task in self.all():
            for trigger in task.triggers:
                if trigger.kind == "Startup" and task.enabled:
                    self._machine.after(max(trigger.delay_seconds, 0.5), partial(self.start, task))

    def tree(self) -> Tree:
        """Tasks by path."""
        return {
            t.path + t.name: {
                "state": t.state,
                "user": t.user,
                "description": t.description,
                "priority": t.priority,
                "actions": [f"{a.execute} {a.arguments}" for a in t.actions],
                "triggers": [r.kind for r in t.triggers],
            }
            for t in self.all()
        }

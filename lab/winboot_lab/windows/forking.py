"""A copy of this process (`os.fork`) has one thread: the one that made it.

The locks of machines and of their time are taken before and given back after, so that no other thread is in the midst of
anything. In the copy the waits of the other threads are over, and tasks that may run without end have ended: their triggers
start them again.
"""

from __future__ import annotations

import os
import weakref
from typing import Final

from winboot_lab.windows.parts import Parts

_MACHINES: Final[weakref.WeakSet[Parts]] = weakref.WeakSet()
# Those whose locks are held while a copy is made.
_held: list[Parts] = []


def take_part(machine: Parts) -> None:
    """From now on copies of this process have this machine whole."""
    _MACHINES.add(machine)


def living() -> set[Parts]:
    """The machines of this process. One whose task runs without end lives until the task ends (`Tasks.end_residents`)."""
    return set(_MACHINES)


def _before() -> None:
    for machine in sorted(_MACHINES, key=id):
        machine.lock.acquire()
        _held.append(machine)
    for time in {machine.time for machine in _held}:
        time.hold()


def _in_parent() -> None:
    for time in {machine.time for machine in _held}:
        time.release()
    while _held:
        _held.pop().lock.release()


def _in_child() -> None:
    machines = list(_held)
    for time in {machine.time for machine in machines}:
        time.forget_others()
    _in_parent()
    for machine in machines:
        machine.tasks.forget_residents()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)

"""Each test of a joined site runs in a copy of this process, in which its node is joined already.

A copy may do to its site what it likes; the next test finds the one that was joined. What a site has on the disk of this
computer is its staged inventory and profile, which none of these tests changes.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import signal
import tempfile
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from tests.lab.scenes import REGISTRY_PASSWORD, REGISTRY_VARIABLE, Scenes
from tests.lab.site import Site

# Seconds of processor time after which a copy shows where it hangs, and is given up; and of real time, for one that waits for
# something that never comes. On loaded cores a copy may get a tenth of one.
PATIENCE: Final = 120
WAITING: Final = 1200

# What a copy ends with: the reports of its test's phases as pytest serializes them, or the scene that it lacks.
Told = list[dict[str, Any]] | str


class Joined:
    """The joined sites of this process, and of each copy of it."""

    def __init__(self) -> None:
        self._sites: dict[str, Site] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="winboot-scenes-")
        self._scenes = Scenes(lambda name: Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder.name)))
        # In a copy: the end of a pipe on which it sends its result to the parent process.
        self.answer: int | None = None

    def site(self, scene: str) -> Site:
        """The joined site of a scene, for the copy that asks. One that lacks it ends: the next copy will have it."""
        assert self.answer is not None, "only a copy may spoil a site"
        if scene not in self._sites:
            self.tell(scene)
        return self._sites[scene]

    def tell(self, told: Told) -> NoReturn:
        """End this copy with the reports of its test, or the scene that it lacks."""
        assert self.answer is not None
        with os.fdopen(self.answer, "wb") as pipe:
            pickle.dump(told, pipe)
        os._exit(0)

    def join(self, scene: str) -> None:
        """Join the node of a scene, for all copies to come."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(REGISTRY_VARIABLE, REGISTRY_PASSWORD)
            self._sites[scene] = self._scenes.joined(scene)
        # A copy of the process has no other threads. A script without end is started again by its task.
        for machine in self._sites[scene].machines.values():
            machine.tasks.end_residents()
        # Otherwise the first collection in every copy would touch, and so copy, all pages of the process.
        gc.collect()
        gc.freeze()


JOINED: Final = Joined()


def run_in_copies(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run a test in a copy of this process; once more if it needs a scene that is not joined yet."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    told = _run_in_copy(item)
    while isinstance(told, str):
        JOINED.join(told)
        told = _run_in_copy(item)
    for one in told:
        report = item.config.hook.pytest_report_from_serializable(config=item.config, data=one)
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    # The copy has torn down what it set up; here the fixtures of an earlier module may still be there.
    item.session._setupstate.teardown_exact(nextitem)


class _Above:
    """What the process above has set up: in place of the next test, so that a copy tears down its own and no more."""

    def __init__(self, item: pytest.Item) -> None:
        self._nodes = list(item.session._setupstate.stack)

    def listchain(self) -> list[Any]:
        return self._nodes


def _run_in_copy(item: pytest.Item) -> Told:
    above: Any = _Above(item)
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        JOINED.answer = writing
        # faulthandler's own timer has a thread, which is not in the copy: a call to cancel it waits without end, and pytest
        # makes that call after a failed test. An alarm replaces it.
        item.config.pluginmanager.unregister(name="faulthandler")
        faulthandler.register(signal.SIGALRM, chain=True)
        faulthandler.register(signal.SIGPROF, chain=True)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        signal.alarm(WAITING)
        JOINED.tell(
            [
                item.config.hook.pytest_report_to_serializable(config=item.config, report=report)
                for report in runtestprotocol(item, log=False, nextitem=above)
            ]
        )
    # pytest's own timer, which counts real seconds, would end this process for a copy that is slow.
    faulthandler.cancel_dump_traceback_later()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        raw = pipe.read()
    _, status = os.waitpid(process, 0)
    if not raw:
        # One that hung, or was killed: a failure of this test, and not the end of all others.
        why = f"its copy of the process ended with status {status} and no report"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        return [item.config.hook.pytest_report_to_serializable(config=item.config, report=report)]
    found: Told = pickle.loads(raw)
    return found

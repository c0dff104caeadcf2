"""Cuts before operations of a join, a start of the machine, an undo, an upgrade, a rollback and a removal, each in a copy
of the lab.

    python -m tests.lab.cuts ACT STRIKE SOLUTION EVERY FIRST

ACT is one of ACTS. STRIKE is power (off for 20 seconds), network (cut off in both directions for 90) or kill
(kill -9 of winboot).

The machine had other programs' things before: services, files, tasks, network settings. After each cut: run again, look,
restart, look, undo, restart. The result must be a Ready node that answers on every address it had, and in the end
the machine as it was before winboot came. Prints as JSON what was wrong with each copy.

A program of its own, because a fork takes one thread along (see interrupted.py). What happens in another thread (a scheduled
task, or what a thread of winboot's lets the lab's time bring) is cut in a copy that plays from the beginning.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn
from unittest import mock

from winboot_lab.memory import collect_rarely
from winboot_lab.programs import hcn
from winboot_lab.windows.firewall import FirewallRule
from winboot_lab.windows.network import Address, Route
from winboot_lab.windows.snapshot import Tree, diff
from winboot_lab.windows.tasks import Action, Task, Trigger

from tests.lab.branches import Branches, told
from tests.lab.interrupted import in_this_thread
from tests.lab.site import Killed, Site, differences, only, problems
from tests.lab.state import state
from tests.lab.test_networks import BY_NAME, a_site, restaged
from tests.lab.undoing import undo
from winboot.base.errors import ConnectionLost, Unreachable

NODE: Final = "10.0.1.11"
SECOND: Final = "10.0.1.99"
STORAGE: Final = "172.20.0.5"
JOURNAL: Final = r"c:\programdata\winboot\journal"
UNDISTURBED: Final = "undisturbed"
# Copies at a time.
WIDTH: Final = 2


# ---- the machine ---------------------------------------------------------------------------------------


def somebodys(site: Site) -> None:
    """What is there before winboot comes: a bit of everything that it takes over, and network settings by hand."""
    machine = site.machine
    files = machine.files
    for path, content in {
        r"C:\k\versions\kubectl-1.36.5\kubectl.exe": b"theirs " * 14_000,
        r"C:\k\notes.txt": b"do not touch",
        r"C:\Program Files\containerd\config.toml": b"# theirs\n" * 8_000,
        r"C:\etc\cni\net.d\00-theirs.conflist": b"{}",
        r"C:\corp\backup.cmd": b"rem\n",
    }.items():
        files.make_directory(path.rpartition("\\")[0])
        files.write(path, content)
    for name in ("containerd", "kube-proxy"):
        machine.services.create(name, rf"C:\corp\{name}.exe", display=f"corp's {name}", description="of corp")
    machine.firewall.save(
        FirewallRule("winboot-kubelet", "corp's own", protocol="TCP", local_ports=["10250"])
    )
    task = Task("backup", "\\corp\\", [Action(r"C:\corp\backup.cmd")], [Trigger("Startup")], enabled=False)
    machine.tasks.register(task)
    _network(site)


def _network(site: Site) -> None:
    """Two adapters, two addresses, a route, DNS servers and a metric by hand, and a NAT network of some container engine."""
    machine, network = site.machine, site.machine.network
    uplink = network.management()
    assert uplink is not None
    uplink.dns, uplink.metric, uplink.category = ["10.0.0.53", "10.0.0.54"], 15, "Private"
    network.add_address(uplink, Address(SECOND, 16, skip_as_source=True))
    network.add_route(Route("10.99.0.0/16", "10.0.0.254", uplink.index))
    network.plug_in_another("Storage", STORAGE, first=True)
    network.publish(uplink)
    machine.features.install_now("Containers")
    site.settle(30)
    subnet = {"AddressPrefix": "172.31.0.0/20", "GatewayAddress": "172.31.0.1"}
    hcn.call(machine, "POST", "/networks/", {"Name": "nat", "Type": "NAT", "Subnets": [subnet]})
    site.settle(30)


def reached(site: Site) -> set[str]:
    """The addresses at which other machines reach this one."""
    network = site.machine.network
    return {ip for ip in network.own_addresses() if network.reachable(ip)}


ALL: Final = frozenset((NODE, SECOND, STORAGE))


def unreached(site: Site, when: str) -> list[str]:
    """A line where one of its addresses is missing."""
    missing = sorted(ALL - reached(site))
    return [f"{when}: not reached by {', '.join(missing)}"] if missing else []


# ---- what is cut ---------------------------------------------------------------------------------------


def join(site: Site) -> None:
    """`winboot join`, whatever becomes of it."""
    with contextlib.suppress(Killed):
        site.join(adopt=True)
    site.settle(60)


def restart(site: Site) -> None:
    """A start of the machine with its task."""
    site.machine.reboot()
    site.settle(400)


def undo_once(site: Site) -> None:
    """The script of `remove`, whatever becomes of it."""
    with contextlib.suppress(Killed, ConnectionLost, Unreachable):
        undo(site)
    site.settle(60)


@dataclass(frozen=True)
class Act:
    """What is cut, what was done before it, and what is done after it; `version` of Kubernetes is what the profile wants at
    first."""

    before: tuple[Callable[[Site], None], ...]
    play: Callable[[Site], None]
    after: Callable[[Site], Iterator[str]]
    version: str = "1.36.5"


def goes_on(site: Site) -> Iterator[str]:
    """Run again, look, restart, look: a Ready node that is reached; what is not so."""
    report = site.join(adopt=True)
    yield from (f"join: {one}" for one in problems(report))
    if not only(report).ready:
        yield "join: not Ready"
    yield from _looks_well(site, "after the join")
    restart(site)
    yield from _looks_well(site, "after a restart")


def _looks_well(site: Site, when: str) -> Iterator[str]:
    yield from unreached(site, when)
    report = site.controller().plan(adopt=True)
    yield from (f"{when}: {one}" for one in problems(report))
    for step, whats in differences(report).items():
        # The address of a sandbox that went with the cut is known to be free ten minutes later (Get-StaleEntry).
        left = [what for what in whats if not what.startswith("leaked address ")]
        if left:
            yield f"{when}: {step} differs: {left}"
    if not only(report).ready:
        yield f"{when}: not Ready"


def goes_away(site: Site) -> Iterator[str]:
    """Undo and restart: reached, and every step as it should end; what is not so."""
    states = undo(site)
    yield from (f"undo: {step} {how}" for step, how in states.items() if how not in ("ok", "changed"))
    yield from unreached(site, "after the undo")
    restart(site)
    yield from unreached(site, "after the undo and a restart")


OLD, NEW = "1.35.9", "1.36.5"


def _wants(site: Site, version: str) -> None:
    """The profile wants this version from now on."""
    solution = BY_NAME[(site.folder / "solution").read_text(encoding="utf-8")]
    site.files = restaged(
        site, {"mode": None, **solution.network}, **{**solution.wishes, "kubernetes": {"version": version}}
    )


def upgrade(site: Site) -> None:
    """`winboot upgrade` by a minor, whatever becomes of it."""
    _wants(site, NEW)
    site.settle(1800)
    with contextlib.suppress(Killed):
        site.controller().upgrade()
    site.settle(60)


def rollback(site: Site) -> None:
    """`winboot rollback`, whatever becomes of it."""
    site.settle(1800)
    with contextlib.suppress(Killed):
        site.controller().rollback()
    site.settle(60)


def remove(site: Site) -> None:
    """`winboot remove`, whatever becomes of it."""
    with contextlib.suppress(Killed):
        site.controller().remove()
    site.settle(60)


def upgraded(site: Site) -> Iterator[str]:
    """The upgrade again: Ready with the version that is wanted; what is not so."""
    yield from _brought(site, "upgrade", NEW)
    yield from _looks_well(site, "after the upgrade")


def taken_back(site: Site) -> Iterator[str]:
    """The rollback again, and the upgrade after it."""
    yield from _brought(site, "rollback", OLD)
    yield from _brought(site, "upgrade", NEW)
    yield from _looks_well(site, "after the upgrade")


def _brought(site: Site, command: str, version: str) -> Iterator[str]:
    site.settle(1800)
    controller = site.controller()
    report = controller.upgrade() if command == "upgrade" else controller.rollback()
    yield from (f"{command}: {one}" for one in problems(report))
    node = site.node()
    runs, cordoned = node["status"]["nodeInfo"]["kubeletVersion"], node["spec"].get("unschedulable")
    if (runs, cordoned) != (f"v{version}", None):
        yield f"{command}: the Node says {runs}, cordoned: {cordoned}"
    yield from unreached(site, f"after the {command}")


def removed(site: Site) -> Iterator[str]:
    """The removal again: nothing is left to do, and the Node is gone."""
    yield from (f"remove: {one}" for one in problems(site.controller().remove()))
    again = site.controller().remove()
    if differences(again):
        yield f"remove: left: {differences(again)}"
    yield from unreached(site, "after the removal")


ACTS: Final[Mapping[str, Act]] = {
    "upgrade": Act((join,), upgrade, upgraded, OLD),
    "rollback": Act((join, upgrade), rollback, taken_back, OLD),
    "remove": Act((join,), remove, removed),
    "join": Act((), join, goes_on),
    "start": Act((join,), restart, goes_on),
    "undo": Act((join,), undo_once, lambda site: iter(())),
}


# ---- the cuts ------------------------------------------------------------------------------------------


@dataclass
class Cuts:
    """One act, cut before every `every`th operation from `first` on."""

    act: Act
    strike: Callable[[Site], None]
    make: Callable[[], Site]
    every: int
    first: int
    say: Callable[[str], None] = lambda text: None
    _end: Callable[[object], NoReturn] | None = None
    _reference: Tree = None

    def __post_init__(self) -> None:
        self._branches = Branches(WIDTH, self.say, patience=900)

    def run(self) -> dict[str, list[str]]:
        """What was wrong with each copy, by where it was cut."""
        site = self._ready()
        points = self._undisturbed(site)
        self.say(f"{len(points)} operations, {sum(one.elsewhere for one in points)} of them in other threads")
        for point in points:
            if point.elsewhere and self._is_one(point.number):
                self._replay(site, point)
        self._play(site)
        return self._branches.results()

    def _ready(self) -> Site:
        site = self.make()
        self._reference = tree(site)
        for work in self.act.before:
            work(site)
        return site

    def _undisturbed(self, site: Site) -> list[Point]:
        """The operations of the act, which a copy plays to its end and undoes."""
        end = self._branches.split(UNDISTURBED)
        if end is not None:
            end(told(lambda: self._whole(site)))
        found = self._branches.results().pop(UNDISTURBED)
        assert isinstance(found, tuple), found
        return list(found)

    def _whole(self, site: Site) -> tuple[Point, ...]:
        points: list[Point] = []
        _watch(site, points.append)
        self.act.play(site)
        count = len(points)
        wrong = self._rest(site)
        assert not wrong, wrong
        return tuple(points[:count])

    def _is_one(self, number: int) -> bool:
        return number >= self.first and (number - self.first) % self.every == 0

    def _replay(self, site: Site, point: Point) -> None:
        self._end = self._branches.split(str(point))
        if self._end is None:
            return

        def strike(here: Point) -> None:
            if here.number == point.number:
                self.strike(site)
                if self.strike is kill:
                    # The controller notices at its next call; the script on the machine continues.
                    site.controllers[-1].alive = False

        _watch(site, strike)
        self.act.play(site)
        self._tell(site)

    def _play(self, site: Site) -> None:
        """In the main thread, with a copy at each place that is cut."""

        def strike(point: Point) -> None:
            if self._end is not None or point.elsewhere or not self._is_one(point.number):
                return
            self._end = self._branches.split(str(point))
            if self._end is None:
                return
            self.strike(site)
            # The controller dies with every other one.
            if self.strike is kill or (point.number % 2 and not site.machine.running):
                controller = site.controllers[-1]
                controller.alive = False
                raise Killed

        _watch(site, strike)
        self.act.play(site)
        if self._end is not None:
            self._tell(site)

    def _tell(self, site: Site) -> NoReturn:
        assert self._end is not None
        self._end(told(lambda: self._rest(site)))

    def _rest(self, site: Site) -> list[str]:
        site.settle(60)
        wrong = [*self.act.after(site), *goes_away(site)]
        wrong += [f"the lab refuses {one}" for one in site.refusals]
        return wrong + [f"after the undo: {line}" for line in diff(self._reference, tree(site))]


@dataclass(frozen=True)
class Point:
    """One operation that changes something, counted from 1."""

    number: int
    command: str
    what: str
    elsewhere: bool

    def __str__(self) -> str:
        return f"{self.number}{' in another thread' if self.elsewhere else ''}: {self.command} {self.what}"


def _watch(site: Site, told_of: Callable[[Point], None]) -> None:
    """Report each operation from now on; writing a note does not count."""
    number = 0

    def hear(command: str, parameters: Mapping[str, Any]) -> None:
        nonlocal number
        what = str(next(iter(parameters.values()), ""))
        if what.lower().startswith(JOURNAL):
            return
        number += 1
        told_of(Point(number, command, what[:120], _elsewhere()))

    site.machine.faults.watch_writes(hear)


def _elsewhere() -> bool:
    """Whether this is another thread, or a scheduled task of the lab's machines is at work in its own: no copy can be made."""
    if threading.current_thread() is not threading.main_thread():
        return True
    return any(thread.name.startswith("task ") for thread in threading.enumerate())


def power(site: Site) -> None:
    """The power goes, and comes back after 20 seconds."""
    machine = site.machine
    machine.power_off()
    machine.after(20, machine.power_on, lasting=True)


def network(site: Site) -> None:
    """Cut the network cable for a minute and a half."""
    machine = site.machine
    machine.faults.unreachable()
    machine.after(90, lambda: machine.faults.unreachable(False), lasting=True)


def kill(site: Site) -> None:
    """kill -9 of winboot; nothing happens to the machine."""


STRIKES: Final[Mapping[str, Callable[[Site], None]]] = {"power": power, "network": network, "kill": kill}


# What stays of an interface that is gone; and the default route, which the machine has as before, as a lasting one.
_LEFT: Final = re.compile(r"\\Tcpip6?\\Parameters\\(Interfaces\\\{|PersistentRoutes)")


def tree(site: Site) -> Tree:
    """The machine without ids, times and history."""
    found: Any = state(site)["machines"]
    machine = found["win-1"]
    machine["registry"] = {
        key: value for key, value in machine["registry"].items() if value and not _LEFT.search(key)
    }
    return machine  # type: ignore[no-any-return]


def a_machine(solution: str, release: str, folder: Path, version: str = NEW) -> Site:
    """A machine with other programs' things."""
    site = a_site(folder, BY_NAME[solution], release=release, kubernetes={"version": version})
    (folder / "solution").write_text(solution, encoding="utf-8")
    somebodys(site)
    return site


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> None:
    """Cut, and print what was wrong."""
    act, strike, solution, every, first = arguments
    collect_rarely()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("winboot.node.fleet.each", in_this_thread),
        # Nothing here is outside the lab, so its time waits for a busy task however slow this computer is.
        mock.patch("winboot_lab.windows.clock.PATIENCE", 60.0),
    ):
        releases = BY_NAME[solution].releases
        release = "2019" if "2019" in releases else releases[0]

        def make() -> Site:
            return a_machine(solution, release, Path(tempfile.mkdtemp(dir=folder)), ACTS[act].version)

        cuts = Cuts(ACTS[act], STRIKES[strike], make, int(every), int(first), say=_say)
        results = cuts.run()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])

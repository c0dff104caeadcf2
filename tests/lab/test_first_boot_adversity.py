"""First boot when something is away, wrong or lost: Ready all the same, or one line on the console that names it.

Each test is a whole join over real TLS: by hand (`matrix`).
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from winboot_lab.cli.staging import POLL_S, Staged, stage
from winboot_lab.cluster.kinds import CSRS, NODES
from winboot_lab.console import run_command
from winboot_lab.up import Lab, NodePlan
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.session import StandardStreams

from tests.lab import test_first_boot
from tests.lab.site import WIN_1
from tests.lab.test_first_boot import ADDRESS, PORT, boots_with, is_done, served, until, words_of
from tests.lab.test_networks import SOLUTIONS, Solution
from winboot.cli import first_boot, run
from winboot.cli.targets import load_targets, run_context
from winboot.config.inventory import load_inventory
from winboot.node.roster import Roster
from winboot.node.run import Patience, Quiet
from winboot.operations.firstboot.carrier import Carrier
from winboot.operations.firstboot.endpoint import Calls, endpoint_key, pin_of
from winboot.operations.firstboot.userdata import user_data
from winboot.operations.join import Options, survey
from winboot.operations.server import Body, Reply, Request

pytestmark = pytest.mark.matrix


class Boot:
    """One bare machine of a lab, an inventory, and its user data."""

    def __init__(self, lab: Lab, folder: Path, wishes: Mapping[str, Any]) -> None:
        self.lab, self.folder = lab, folder
        self.staged: Staged = stage(lab, folder, None, node_ip=True, wishes=wishes)
        text = self.staged.inventory.read_text(encoding="utf-8")
        self.staged.inventory.write_text(text.replace(f"poll_s: {POLL_S}", "poll_s: 0.5"), encoding="utf-8")
        (self.spec,) = load_targets(self.staged.inventory, ())
        self.machine: Machine = lab.nodes["win-1"].machine

    @property
    def text(self) -> str:
        group = next(iter(load_inventory(self.staged.inventory))).group
        voucher = first_boot.store().voucher("group", group)
        pin = pin_of(endpoint_key(first_boot.key_file(None)))
        return user_data(Carrier.FILE, address=ADDRESS, port=PORT, pin=pin, voucher=voucher).text

    def starts(self) -> None:
        boots_with(self.machine, self.text)

    def becomes_ready(self) -> None:
        until(lambda: is_done(self.machine), [self.machine])
        assert self.machine.refusals == []
        assert words_of(self.machine)[-1:] == ["is the Ready node win-1"], words_of(self.machine)
        with run_context([self.spec], Quiet()) as (context, tuned):
            after = survey([self.spec], context, tuned(Options()))
        assert (after.changed, after.exit_code) == (0, 0)


@contextmanager
def a_boot(
    folder: Path, plan: NodePlan = WIN_1, wishes: Mapping[str, Any] = {}, cluster: Any = None
) -> Iterator[Boot]:
    with Lab(nodes=[plan], cluster=cluster) as lab:
        yield Boot(lab, folder, wishes)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(test_first_boot, "PATIENCE", 900.0)


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda one: one.name)
def test_every_network_solution_joins_by_itself(solution: Solution, tmp_path: Path) -> None:
    network = {"mode": None, **solution.network}
    wishes = {**solution.wishes, "network": network}
    with a_boot(tmp_path, wishes=wishes, cluster=solution.cluster()) as boot:
        if solution.somebody is not None:
            _comes_by(boot, solution.somebody)
        with served(boot.lab, boot.staged, tmp_path / "log"):
            boot.starts()
            boot.becomes_ready()


def _comes_by(boot: Boot, work: Callable[[Any], None]) -> None:
    """What the solution's owner does, once the machine is a node; as in test_networks."""
    machine = boot.machine
    site = SimpleNamespace(machine=machine, node=lambda name="win-1": _node(boot, name))

    def look() -> None:
        machine.after(3.0, look, lasting=True)
        running = machine.services.find("hns")
        if running is not None and running.status == "Running" and _node(boot, "win-1") is not None:
            work(site)

    machine.after(3.0, look, lasting=True)


def _node(boot: Boot, name: str) -> Any:
    return boot.lab.cluster.store.find(NODES, "", name)


def test_an_endpoint_that_is_away_for_ten_minutes_is_waited_for(tmp_path: Path) -> None:
    with a_boot(tmp_path) as boot:
        boot.starts()
        until(lambda: bool(boot.machine.serial), [boot.machine])
        assert words_of(boot.machine)[-1].startswith("the endpoint does not answer: ")
        boot.machine.settle(600.0)
        with served(boot.lab, boot.staged, tmp_path / "log"):
            boot.becomes_ready()


def test_a_mirror_that_is_away_is_named_on_the_console_until_it_is_back(tmp_path: Path) -> None:
    with a_boot(tmp_path) as boot, served(boot.lab, boot.staged, tmp_path / "log"):
        key, server = next((key, one) for key, one in boot.lab.world.servers.items() if key[1] == 80)
        del boot.lab.world.servers[key]
        boot.starts()
        until(lambda: any("yet: " in word for word in words_of(boot.machine)), [boot.machine])
        assert "not the node win-1 yet: " in words_of(boot.machine)[-1]
        boot.lab.world.servers[key] = server
        boot.becomes_ready()


@pytest.mark.parametrize(
    ("skew", "word"),
    [
        (timedelta(hours=3), "is the Ready node win-1"),
        # The cluster's CA is not valid yet by such a clock.
        (timedelta(days=-400), "is not the node win-1 yet: step registration: not there after 300 seconds: "),
    ],
    ids=str,
)
def test_what_a_wrong_clock_keeps_away_is_named_on_the_console_until_it_is_right(
    skew: timedelta, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The endpoint makes its own: a restart is waited for 20 seconds instead of half an hour.
    poll, reconnect, _, *others = Patience.__init__.__defaults__ or ()
    monkeypatch.setattr(Patience.__init__, "__defaults__", (poll, reconnect, 20.0, *others))
    with a_boot(tmp_path) as boot, served(boot.lab, boot.staged, tmp_path / "log"):
        boot.machine.skew = skew.total_seconds()
        boot.starts()
        until(lambda: any(one.startswith(word) for one in words_of(boot.machine)), [boot.machine])
        assert any(one.startswith(word) for one in words_of(boot.machine)), words_of(boot.machine)
        boot.machine.skew = 0.0
        boot.becomes_ready()


def test_a_fifth_of_all_answers_may_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of each call, and then one of five, after the endpoint has acted upon it."""
    call, chance, lost = Calls.__call__, random.Random(32), Counter[str]()

    def loses(self: Calls, request: Request) -> Reply | Body:
        given = call(self, request)
        if not isinstance(given, Body):
            return given

        def answer(body: bytes) -> Reply:
            reply = given.answer(body)
            if not lost[request.path] or chance.random() < 0.2:
                lost[request.path] += 1
                raise ConnectionResetError
            return reply

        return replace(given, answer=answer)

    monkeypatch.setattr(Calls, "__call__", loses)
    with a_boot(tmp_path) as boot, served(boot.lab, boot.staged, tmp_path / "log"):
        boot.starts()
        boot.becomes_ready()
    assert set(lost) == {"/v1/nonce", "/v1/hello", "/v1/work", "/v1/said"}


@pytest.mark.parametrize("gap", [29, 37, 43, 53, 61])
def test_the_power_goes_ten_times_and_the_machine_continues(gap: int, tmp_path: Path) -> None:
    """Ten places in each of five runs: before every so many-th thing that changes the machine."""
    places: list[str] = []
    count = 0

    def hear(command: str, parameters: Mapping[str, Any]) -> None:
        nonlocal count
        count += 1
        if count % gap == 0 and len(places) < 10:
            places.append(command)
            threading.Thread(target=_cut, args=(boot.machine,)).start()

    with a_boot(tmp_path) as boot, served(boot.lab, boot.staged, tmp_path / "log"):
        boot.machine.faults.watch_writes(hear)
        boot.starts()
        boot.becomes_ready()
    assert len(places) == 10


def _cut(machine: Machine) -> None:
    machine.power_off()
    machine.after(20, machine.power_on, lasting=True)


def test_one_hosts_script_in_a_file_makes_a_node_without_an_endpoint(tmp_path: Path) -> None:
    with a_boot(tmp_path) as boot:
        script, machine = tmp_path / "win-1.ps1", boot.machine
        command = ["userdata", "--for", "file", "--host", "win-1", "--inline", str(script)]
        assert run([*command, "-i", str(boot.staged.inventory)]) == 0
        with machine.lock:
            machine.files.make_directory(r"C:\boot")
            for one in (script, tmp_path / "win-1.secrets.json"):
                machine.files.write(rf"C:\boot\{one.name}", one.read_bytes())
        silent = StandardStreams(b"", lambda said: None, lambda said: None)
        assert run_command(machine, r"powershell.exe -File C:\boot\win-1.ps1", silent) == 0
        assert not machine.files.exists(r"C:\boot\win-1.secrets.json")
        with run_context([boot.spec], Quiet()) as (context, tuned):
            cluster = context.cluster(boot.spec)
            assert cluster is not None
            judge = Roster.of([boot.spec]).judge

            def approves() -> bool:
                """Approve the serving certificate in the cluster, once the machine has requested it."""
                if _node(boot, "win-1") is not None and boot.lab.cluster.objects(CSRS):
                    cluster.judge_requests(judge)
                return is_done(machine)

            until(approves, [machine])

            assert machine.refusals == []
            words = words_of(machine)
            assert words.count("becomes the node win-1") == 2, "once for each start"
            assert words[-1] == "is the node win-1; whether it is Ready, the cluster says"
            node = cluster.node("win-1")
            assert node is not None and node.ready
            (left,) = survey([boot.spec], context, tuned(Options())).nodes
        # What is left is the cluster's side.
        differ = [step.name for step in left.steps if step.state == "would-change"]
        assert differ == ["node-labels", "startup-taint"]
        assert not machine.files.exists(r"C:\ProgramData\winboot-first-boot\secrets.json")

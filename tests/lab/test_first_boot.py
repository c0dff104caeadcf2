"""Machines without incoming connections: with user data alone they become Ready nodes by their own calls, over real TLS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from winboot_lab.cli.control import Control
from winboot_lab.cli.staging import POLL_S, Staged, stage
from winboot_lab.console import run_command
from winboot_lab.up import BOOT_HOST, Lab
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.session import StandardStreams

from winboot.cli import first_boot
from winboot.cli.targets import load_targets, run_context
from winboot.config.inventory import load_inventory
from winboot.node.run import Quiet
from winboot.operations.firstboot import endpoint
from winboot.operations.firstboot.carrier import Carrier
from winboot.operations.firstboot.endpoint import endpoint_key, pin_of
from winboot.operations.firstboot.hello import Hello
from winboot.operations.firstboot.proof import Proof, Proven
from winboot.operations.firstboot.userdata import user_data
from winboot.operations.hook.metrics import Log
from winboot.operations.join import Options, survey

ADDRESS, PORT = "boot.lab", 9443
READY_FILE = r"C:\run\cluster-api\bootstrap-success.complete"
# Seconds of this computer's time; only a test that would fail waits for so long.
PATIENCE = 240.0


@contextmanager
def served(
    lab: Lab, staged: Staged, log: Path, proof: Proof | None = None, address: str = ADDRESS
) -> Iterator[None]:
    """The endpoint, as `winboot hook serve --bootstrap` opens it; machines reach it through a load balancer."""
    specs = load_targets(staged.inventory, ())
    with (
        log.open("w", encoding="utf-8") as stream,
        run_context(specs, Quiet()) as (context, _),
        first_boot.endpoint(
            "127.0.0.1:0",
            None,
            ["127.0.0.2/32"],
            first_boot.hosts_of(staged.inventory),
            context,
            Log(stream),
            workers=4,
            join_timeout=PATIENCE,
            proof=proof,
        ) as opened,
    ):
        lab.world.forward(address, PORT, ("127.0.0.1", opened.port), names_sources=True)
        try:
            yield
        finally:
            context.stop.request()


def boots_with(machine: Machine, text: str) -> None:
    """What an image's agent does with user data at the first boot."""
    said: list[bytes] = []
    with machine.lock:
        machine.files.write(r"C:\user-data.ps1", text.encode("ascii"))
    code = run_command(
        machine, r"powershell.exe -File C:\user-data.ps1", StandardStreams(b"", said.append, said.append)
    )
    assert (code, b"".join(said)) == (0, b"")


def until(done: Callable[[], bool], machines: Sequence[Machine]) -> None:
    """Let the machines live until something is so, or the patience is over."""
    for one in machines:
        one.live()
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while time.monotonic() < deadline and not done():
        pause.wait(0.05)
    for one in machines:
        one.rest()


def words_of(machine: Machine) -> list[str]:
    """What its serial console shows, without the times."""
    return [line.split("Z ", 1)[1] for line in machine.serial or []]


@pytest.mark.parametrize(
    "count",
    [pytest.param(1, marks=pytest.mark.check), *(pytest.param(n, marks=pytest.mark.matrix) for n in (3, 10))],
)
def test_machines_become_nodes_with_nothing_but_their_user_data(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with Lab(nodes=count) as lab:
        staged = stage(lab, tmp_path, None, node_ip=True, wishes={"boot": {"ready_file": READY_FILE}})
        # Each question is a script of the machine's own: not as often as in the lab's other joins.
        text = staged.inventory.read_text(encoding="utf-8")
        staged.inventory.write_text(text.replace(f"poll_s: {POLL_S}", "poll_s: 0.5"), encoding="utf-8")
        specs = load_targets(staged.inventory, ())
        # One group for each release of Windows.
        hosts = load_inventory(staged.inventory)
        vouchers = {one.name: first_boot.store().voucher("group", one.group) for one in hosts}
        pin = pin_of(endpoint_key(first_boot.key_file(None)))
        with served(lab, staged, tmp_path / "log"):
            for name, voucher in vouchers.items():
                text = user_data(Carrier.FILE, address=ADDRESS, port=PORT, pin=pin, voucher=voucher).text
                boots_with(lab.nodes[name].machine, text)
            machines = [lab.nodes[spec.node.name].machine for spec in specs]
            until(lambda: all(is_done(one) for one in machines), machines)
        with run_context(specs, Quiet()) as (context, tuned):
            after = survey(specs, context, tuned(Options()))

        assert [one.refusals for one in machines] == [[]] * count
        assert {name: seen.state for name, seen in first_boot.store().read().machines.items()} == {
            spec.node.name: "Ready" for spec in specs
        }
        assert [words_of(one)[-1] for one in machines] == [
            f"is the Ready node {spec.node.name}" for spec in specs
        ]
        assert (after.changed, after.exit_code) == (0, 0)
        for machine in machines:
            assert machine.files.read(READY_FILE) == b"success"
            assert not machine.files.exists(r"C:\ProgramData\winboot-first-boot\first-boot.ps1")
            assert machine.tasks.find("first-boot", "\\winboot\\") is None
            assert [one for one in vouchers.values() if one.reveal() in "".join(machine.serial or [])] == []


@pytest.mark.matrix
def test_a_lab_that_is_up_rehearses_a_first_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with Lab(nodes=1) as lab, Control(lab, tmp_path) as control:
        staged = stage(lab, tmp_path, None, node_ip=True)
        pin = pin_of(endpoint_key(first_boot.key_file(None)))
        voucher = first_boot.store().voucher("group", "windows-2019")
        text = user_data(Carrier.FILE, address=BOOT_HOST, port=PORT, pin=pin, voucher=voucher).text
        asked = {"do": "boot", "node": "win-1", "script": text}
        assert "--boot" in control.answer(asked)["hint"]
        lab.open_boot()
        machine = lab.nodes["win-1"].machine
        with served(lab, staged, tmp_path / "log", address=BOOT_HOST):
            assert "winboot why win-1" in control.answer(asked)["said"]
            until(lambda: is_done(machine), [machine])

        assert machine.refusals == []
        assert words_of(machine)[-1] == "is the Ready node win-1"


def is_done(machine: Machine) -> bool:
    """Whether it says so, or the lab does not know what it does."""
    words = ("is the Ready node", "is the node")
    return bool(machine.refusals) or any(one in line for line in machine.serial or [] for one in words)


class Unasked:
    """A proof that no machine of this lab can give: there is no metadata service."""

    kind = "aws"

    def prove(self, hello: Hello, *, known: bool) -> Proven:
        raise AssertionError(hello)


@pytest.mark.parametrize(
    ("address", "curve", "pin", "word", "why"),
    [
        pytest.param(
            ADDRESS, None, "0" * 64, "", "another server answers: its key is", id="its endpoint is another"
        ),
        pytest.param(
            "fd00::9",
            None,
            "",
            "",
            "to an unreachable network fd00::9:9443",
            id="there is no way to it by IPv6",
        ),
        pytest.param(
            ADDRESS,
            ec.SECP384R1(),
            "",
            "",
            "another server answers: its key is not a P-256 key but 1.2.840.10045.2.1 06052B81040022",
            id="the key is of another curve",
        ),
        pytest.param(
            ADDRESS,
            None,
            "",
            "not let in (NotApproved): ",
            "; the metadata service does not answer: ",
            id="its metadata service is silent",
        ),
    ],
)
def test_a_machine_says_on_its_console_why_it_is_no_node(
    address: str,
    curve: ec.EllipticCurve | None,
    pin: str,
    word: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    if curve:
        key = ec.generate_private_key(curve)
        monkeypatch.setattr(
            "winboot.operations.firstboot.endpoint.endpoint_key",
            lambda path, key=key: key,
        )
    with Lab(nodes=1) as lab:
        staged = stage(lab, tmp_path, None, node_ip=True)
        machine = next(iter(lab.nodes.values())).machine
        pin = pin or pin_of(endpoint.endpoint_key(first_boot.key_file(None)))
        text = user_data(Carrier.FILE, address=address, port=PORT, pin=pin).text
        with served(lab, staged, tmp_path / "log", Unasked(), address):
            boots_with(machine, text)
            until(lambda: bool(machine.serial or machine.refusals), [machine])

        assert machine.refusals == []
        assert words_of(machine)[0].startswith(word)
        assert why in words_of(machine)[0]
        remembered = first_boot.store().read()
        assert remembered.machines == {}
        assert [one.state for one in remembered.refused.values()] == (["waits"] if word else [])


@pytest.mark.parametrize("how", ["a folder", "a link"])
def test_a_strangers_folder_is_not_taken_for_the_one_that_system_runs_from(how: str) -> None:
    machine = Machine("WIN-1")
    folder = r"C:\ProgramData\winboot-first-boot"
    if how == "a link":
        machine.files.make_directory(r"C:\elsewhere")
        machine.files.link(folder, r"C:\elsewhere", "junction")
    else:
        machine.files.make_directory(folder)
        machine.accounts.add("alice", administrator=False)
        machine.files.need(folder)[1].acl.owner = machine.accounts.token("alice").sid
    said: list[bytes] = []
    text = user_data(Carrier.FILE, address=ADDRESS, port=PORT, pin="0" * 64).text
    with machine.lock:
        machine.files.write(r"C:\user-data.ps1", text.encode("ascii"))

    code = run_command(
        machine, r"powershell.exe -File C:\user-data.ps1", StandardStreams(b"", said.append, said.append)
    )

    assert code == 1
    assert b"or is a link" in b"".join(said)
    assert machine.tasks.find("first-boot", "\\winboot\\") is None

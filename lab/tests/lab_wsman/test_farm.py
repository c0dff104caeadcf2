"""A farm comes and goes without a trace, whatever its machines were doing."""

from __future__ import annotations

import gc
import socket
import threading
import time
from pathlib import Path

import pytest
from winboot_lab.wsman.executor import Ended
from winboot_lab.wsman.farm import Farm
from winboot_lab.wsman.faults import Silence

from lab_wsman.stage import MODES, NTLM, Actor, node, says, settings, transport
from winboot.base.errors import TransportError


def descriptors() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_is_left_when_a_farm_ends():
    """Threads, sockets and files, after work in every mode, a script that still runs and a client that still waits."""
    threads_before, files_before = threading.active_count(), descriptors()
    with Farm() as farm:
        folder = farm.folder
        machine = node(farm, says("done"))
        for mode in MODES:
            with transport(farm, machine, mode) as wire:
                list(wire.run("anything", {}, {}))
        hanging = node(farm, Actor(_run_until_stopped), "hanging")
        wire = transport(farm, hanging)
        lines = wire.run("anything", {}, {})
        assert next(lines) == "started"
        silent = node(farm, says(), "silent")
        silent.faults.at(1, Silence())
        stranger = socket.create_connection(("127.0.0.1", silent.http_port))
        stranger.sendall(b"POST /wsman HTTP/1.1\r\n\r\n")
    lines.close()
    wire.close()
    stranger.close()

    assert threading.active_count() == threads_before
    assert descriptors() <= files_before
    assert not folder.exists()


def _run_until_stopped(script, parameters, emit, cancelled):
    emit("output", "started")
    while not cancelled():
        time.sleep(0.01)
    return Ended("stopped")


def test_closing_twice_is_fine():
    """As is leaving the block after closing."""
    with Farm() as farm:
        node(farm, says())
        farm.close()
    farm.close()


def test_a_machine_that_is_down_refuses_and_comes_back_on_its_ports():
    """Its shells are gone, its ports are the same."""
    with Farm() as farm:
        machine = node(farm, says("done"))
        ports = machine.http_port, machine.https_port
        wire = transport(farm, machine)
        list(wire.run("anything", {}, {}))
        farm.down(machine)
        assert not machine.is_up
        assert machine.shells == ()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", ports[0]))
        farm.up(machine)
        assert (machine.http_port, machine.https_port) == ports
        assert list(wire.run("anything", {}, {})) == ["done"]
        wire.close()


def test_the_ports_of_a_machine_that_is_down_stay_reserved():
    """It is down for seconds, and other labs on this host look for free ports meanwhile."""
    with Farm() as farm:
        machine = node(farm, says("done"))
        farm.down(machine)
        farm.cut(machine)
        for port in (machine.http_port, machine.https_port):
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
    for port in (machine.http_port, machine.https_port):
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))


def test_a_script_may_restart_its_own_machine():
    """The order comes from the script's thread, and the farm does not wait for that thread."""
    with Farm() as farm:

        def play(script, parameters, emit, cancelled):
            farm.down(machine)
            assert cancelled()
            farm.up(machine)
            return Ended("stopped")

        machine = node(farm, Actor(play))
        with transport(farm, machine) as wire, pytest.raises(TransportError):
            list(wire.run("anything", {}, {}))
        assert machine.crashes == []


def test_every_machine_may_have_an_address_of_its_own():
    """On the ports that WinRM has, as in an inventory."""
    with Farm() as farm:
        machines = [
            farm.add(f"win-{number}", says(number), settings(address=f"127.0.0.{number}", http_port=15985))
            for number in (11, 12, 13)
        ]
        for machine in machines:
            with transport(farm, machine, NTLM) as wire:
                assert list(wire.run("anything", {}, {})) == [machine.name.removeprefix("win-")]


def test_three_hundred_machines_are_cheap():
    """A rehearsal of a fleet fits on a laptop: all up, one visited."""
    with Farm() as farm:
        machines = [farm.add(f"win-{n}", says("done"), settings(https_port=None)) for n in range(300)]
        assert len({machine.http_port for machine in machines}) == 300
        with transport(farm, _with_certificate(farm, machines[222])) as wire:
            assert list(wire.run("anything", {}, {})) == ["done"]


def _with_certificate(farm, machine):
    machine.certificate = farm.authority.issue(["127.0.0.1"])
    return machine


def test_the_ca_is_a_file_and_a_text():
    """Both say the same."""
    with Farm() as farm:
        assert Path(farm.ca_file()).read_bytes() == farm.authority.pem


def test_a_machine_cut_off_continues_with_its_scripts():
    """The network is gone, the shell is not: a client that comes back receives the rest."""
    cut, said = threading.Event(), threading.Event()

    def play(script, parameters, emit, cancelled):
        emit("output", "before")
        assert cut.wait(10)
        emit("output", "meanwhile")
        said.set()
        return Ended()

    with Farm() as farm:
        machine = node(farm, Actor(play))
        with transport(farm, machine) as wire:
            lines = wire.run("anything", {}, {})
            assert next(lines) == "before"
            farm.cut(machine)
            assert not machine.is_up
            cut.set()
            assert said.wait(10)
            farm.tell(machine, "up")
            assert list(lines) == ["meanwhile"]


def test_what_is_reported_in_a_row_happens_in_a_row():
    """Down and up again in one breath leaves a machine that is up, with its shells gone."""
    with Farm() as farm:
        machine = node(farm, says("done"))
        wire = transport(farm, machine)
        list(wire.run("anything", {}, {}))
        for state in ("down", "up", "down", "up", "up"):
            farm.tell(machine, state)
        farm.up(machine)
        assert machine.is_up
        assert machine.shells == ()
        assert machine.crashes == []
        assert list(wire.run("anything", {}, {})) == ["done"]
        wire.close()


def test_a_waiting_script_can_be_stopped():
    """It need not ask all the time."""
    stopped = threading.Event()

    def play(script, parameters, emit, cancelled):
        cancelled.then(stopped.set)
        emit("output", "waiting")
        assert stopped.wait(10)
        return Ended("stopped")

    with Farm() as farm:
        machine = node(farm, Actor(play))
        wire = transport(farm, machine)
        lines = wire.run("anything", {}, {})
        assert next(lines) == "waiting"
        lines.close()
        assert stopped.wait(10)
        wire.close()

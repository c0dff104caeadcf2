"""A lab node over its wire: a real engine on a real lab machine, reached as a Windows host is."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator

import pytest
from winboot_lab.node import USER, LabNode
from winboot_lab.windows.machine import Machine
from winboot_lab.wsman.farm import Farm

from winboot.base.errors import ConnectionLost, ScriptFailed, TransportError
from winboot.base.secret import Secret
from winboot.remote.transport import base
from winboot.remote.transport.psrp import PsrpTransport

PASSWORD = "lab"
TIMES = base.Timeouts(connect=5, operation=5, read=15, open=20, resume=20, close=3)


@pytest.fixture
def lab() -> Iterator[LabNode]:
    with Farm() as farm:
        lab = LabNode(farm, Machine("WIN-A1"), address="127.0.0.1", password=PASSWORD)
        yield lab
        lab.machine.rest()


@pytest.fixture
def wire(lab: LabNode) -> Iterator[PsrpTransport]:
    with transport(lab) as wire:
        yield wire


def transport(lab: LabNode) -> PsrpTransport:
    port = lab.endpoint.http_port
    assert port is not None
    return PsrpTransport(
        base.Endpoint("127.0.0.1", port, USER, lambda: Secret(PASSWORD), timeouts=TIMES), name="win-a1"
    )


def test_a_script_runs_on_the_machine(wire):
    """With its parameters, in the machine's environment."""
    script = "param($Name) 'hello {0} from {1}' -f $Name, $env:COMPUTERNAME"

    assert list(wire.run(script, {"Name": "you"}, {})) == ["hello you from WIN-A1"]


def test_a_secret_can_be_read_there(wire):
    """As a SecureString, by the calls that the templates use."""
    script = r"""
param([hashtable]$Secrets)
$pointer = [Runtime.InteropServices.Marshal]::SecureStringToGlobalAllocUnicode($Secrets['token'])
try { [Runtime.InteropServices.Marshal]::PtrToStringUni($pointer) }
finally { [Runtime.InteropServices.Marshal]::ZeroFreeGlobalAllocUnicode($pointer) }
"""
    assert list(wire.run(script, {}, {"token": Secret("päss")})) == ["päss"]


def test_an_error_keeps_its_id_and_place(wire):
    """winboot raises the engine's record as its own error."""
    with pytest.raises(ScriptFailed) as caught:
        list(wire.run("function Get-It { throw 'it broke' }\nGet-It", {}, {}))

    assert str(caught.value) == "win-a1: it broke"
    assert caught.value.position.startswith("At line:1 char:19")
    assert "at Get-It, <No file>: line 1" in caught.value.stack


def test_other_streams_arrive(wire):
    """Warnings and errors that do not end the script keep their place."""
    script = "'a'; Write-Warning 'b'; Write-Error 'c'; 'd'"

    lines = list(wire.run(script, {}, {}))

    assert lines[0] == "a"
    assert lines[1] == "warning: b"
    assert lines[2].startswith("error: c [")
    assert lines[3] == "d"


def test_a_refusal_ends_the_script_and_is_kept(lab, wire):
    """Nothing in the script can catch it."""
    with pytest.raises(ScriptFailed, match="Get-PhysicalDisk") as caught:
        list(wire.run("try { Get-PhysicalDisk } catch { 'caught' }", {}, {}))

    assert caught.value.error_id == "LabRefusal"
    assert [refusal.name for refusal in lab.refusals] == ["Get-PhysicalDisk"]


def test_a_sleeping_script_is_stopped_at_once(lab, wire):
    """Leaving a script that sleeps for a week of the lab's time does not take a week."""
    lines = wire.run("'started'; Start-Sleep -Seconds 600000; 'never'", {}, {})
    assert next(lines) == "started"
    lines.close()

    assert _soon(lambda: not _scripts(lab))


def test_a_restart_is_a_lost_connection_and_then_another_boot(lab, wire):
    """The shell dies, the ports refuse, the machine comes back on them."""
    with pytest.raises(ConnectionLost):
        list(wire.run("Restart-Computer -Force; Start-Sleep -Seconds 3600", {}, {}))

    assert list(wire.run("'back'", {}, {})) == ["back"]
    assert lab.machine.boot_count == 2


def test_a_power_cut_is_a_lost_connection(lab, wire):
    """Without a word."""
    lines = wire.run("'started'; Start-Sleep -Seconds 600000", {}, {})
    assert next(lines) == "started"
    lab.machine.power_off()
    lab.machine.power_on()

    with pytest.raises(ConnectionLost):
        next(lines)
    assert list(wire.run("'back'", {}, {})) == ["back"]


def test_a_network_that_is_gone_for_a_moment_is_not_noticed(lab, wire):
    """The script continues meanwhile; the client receives its output afterwards."""
    lines = wire.run("'one'; Start-Sleep -Milliseconds 200; 'two'; Start-Sleep -Seconds 100; 'three'", {}, {})
    assert next(lines) == "one"
    lab.machine.faults.unreachable()
    time.sleep(0.2)
    lab.machine.faults.unreachable(on=False)

    assert list(lines) == ["two", "three"]


def test_a_machine_that_is_unreachable_refuses(lab, wire):
    """Until its network is back."""
    lab.machine.faults.unreachable()
    assert _soon(lambda: not lab.endpoint.is_up)
    impatient = base.Timeouts(connect=1, operation=1, read=3, open=0, resume=1, close=1)
    port = lab.endpoint.http_port
    endpoint = base.Endpoint("127.0.0.1", port, USER, lambda: Secret(PASSWORD), timeouts=impatient)

    with PsrpTransport(endpoint, name="win-a1") as other, pytest.raises(TransportError):
        list(other.run("'x'", {}, {}))
    lab.machine.faults.unreachable(on=False)
    assert list(wire.run("'back'", {}, {})) == ["back"]


def test_a_task_runs_powershell(lab):
    """powershell.exe -EncodedCommand, in the task's own session."""
    script = "if ($env:COMPUTERNAME -eq 'WIN-A1') { exit 7 }"
    encoded = base64.b64encode(script.encode("utf-16-le")).decode()
    with lab.machine.session("SYSTEM", logon="batch") as session:
        code = lab.machine.run_powershell(
            session, ["-NoProfile", "-NonInteractive", "-EncodedCommand", encoded]
        )

    assert code == 7


def test_the_machine_is_reported_where_it_is_reached(lab):
    """Scripts that watch over their own way in look at the port."""
    assert {5985, lab.endpoint.http_port} <= set(lab.machine.power.management_ports)


def _scripts(lab: LabNode) -> int:
    return len(lab.machine.processes.named("wsmprovhost.exe"))


def _soon(claim) -> bool:
    return any(claim() or time.sleep(0.02) for _ in range(500))

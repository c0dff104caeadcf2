"""`winboot lab break`: what can happen to a machine of a lab, and what takes it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from winboot_lab.console import run_command
from winboot_lab.up import MIRROR_HOST, Lab
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.session import StandardStreams

Hand = Callable[[Lab, Machine], None]
HALF_AN_HOUR: Final = 1800.0
# What `lab up` offers to type. The lab does not know how the console formats an object, so the example asks for text.
EXAMPLE: Final = "Get-Date -Format s"


@dataclass(frozen=True, slots=True)
class Kind:
    """Something that happens. `heal` takes it back; without it `winboot repair` does."""

    says: str
    do: Hand
    heal: Hand | None = None


def _typed(script: str) -> Hand:
    """A script that an administrator types at the machine's console."""

    def hand(lab: Lab, machine: Machine) -> None:
        code, told = at_console(machine, script)
        if code:
            raise ValueError(told.strip() or f"exit code {code}")

    return hand


def at_console(machine: Machine, script: str) -> tuple[int, str]:
    """Run a script of PowerShell at the machine's console; its exit code, and all that it says."""
    pieces: list[bytes] = []
    streams = StandardStreams(script.encode(), pieces.append, pieces.append)
    code = run_command(machine, "powershell.exe -NoProfile -NonInteractive -Command -", streams)
    return code, b"".join(pieces).decode("utf-8", "replace")


def _clock(seconds: float) -> Hand:
    return lambda lab, machine: machine.faults.skew(seconds)


def _network(cut: bool) -> Hand:
    return lambda lab, machine: machine.faults.unreachable(cut)


def _disk(full: bool) -> Hand:
    def hand(lab: Lab, machine: Machine) -> None:
        if full:
            machine.faults.disk_full(free=1_000_000)
        else:
            machine.files.volumes["C:"].other = 0

    return hand


def _mirror(there: bool) -> Hand:
    def hand(lab: Lab, machine: Machine) -> None:
        if there:
            lab.world.forward(MIRROR_HOST, 80, lab.mirror.address)
        else:
            lab.world.close(MIRROR_HOST, 80)

    return hand


KINDS: Final[Mapping[str, Kind]] = {
    "service": Kind(
        "kube-proxy is stopped, and its configuration is gone",
        _typed(r"Stop-Service -Name kube-proxy; [IO.File]::Delete('C:\k\kube-proxy.yaml')"),
    ),
    "config": Kind(
        "an administrator has changed the kubelet's configuration by hand",
        _typed(r"[IO.File]::AppendAllText('C:\var\lib\kubelet\config.yaml', 'maxPods: 7')"),
    ),
    "task": Kind(
        "the task of the start is gone",
        _typed(r"Unregister-ScheduledTask -TaskPath '\winboot\' -TaskName boot -Confirm:$false"),
    ),
    "firewall": Kind("a firewall rule is gone", _typed("Remove-NetFirewallRule -Name winboot-kubelet")),
    "restart": Kind("the machine restarts", lambda lab, machine: machine.reboot()),
    "off": Kind(
        "the machine is off, as if its plug was pulled",
        lambda lab, machine: machine.power_off(),
        lambda lab, machine: machine.power_on(),
    ),
    "unreachable": Kind("no other machine reaches this one; it runs on", _network(True), _network(False)),
    "clock": Kind("its clock is half an hour late", _clock(-HALF_AN_HOUR), _clock(0)),
    "disk": Kind("its disk is full", _disk(True), _disk(False)),
    "mirror": Kind("the lab's mirror is away, for all machines", _mirror(False), _mirror(True)),
}

"""What a machine needs for group managed service accounts: its domain, a controller that answers, or a plug-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.registry import HKLM

from tests.steps.bench import Bench
from winboot.config.node_spec.node import GmsaSpec

STEP = "gmsa"
DOMAIN = "corp.example"
GUID = "CCC2A336-D7F3-4818-A213-272B7924213E"
CLASSES = rf"{HKLM}\SYSTEM\CurrentControlSet\Control\CCG\COMClasses\{{{GUID}}}"
COM = rf"{HKLM}\SOFTWARE\Classes\CLSID\{{{GUID}}}\InprocServer32"
LIBRARY = r"C:\Windows\System32\CCGAKVPlugin.dll"
SPEC = GmsaSpec(DOMAIN, "CORP", DOMAIN, "S-1-5-21-1-2-3", GUID, (), None, "", "")


def with_controller(machine: Machine, *ports: int) -> None:
    machine.world.name(DOMAIN, "10.0.0.53")
    for port in ports:
        machine.world.listen("10.0.0.53", port)


@pytest.fixture
def member(bench: Bench) -> Bench:
    """A member of the domain, whose controller answers."""
    bench.spec = replace(bench.spec, gmsa=SPEC)
    bench.machine.power.join_domain(DOMAIN, netbios="CORP")
    with_controller(bench.machine, 88, 389, 445)
    return bench


@pytest.fixture
def outside(bench: Bench) -> Bench:
    """A machine outside the domain, with a plug-in."""
    bench.spec = replace(bench.spec, gmsa=replace(SPEC, plugin_guid=GUID))
    with_controller(bench.machine, 88, 389, 445)
    bench.machine.registry.create(CLASSES)
    bench.machine.registry.set(COM, "", "String", LIBRARY)
    bench.machine.files.write(LIBRARY, b"MZ")
    return bench


def test_a_member_whose_controller_answers_passes(member: Bench) -> None:
    assert member.look(STEP).states == {STEP: "ok"}


def test_a_plugin_takes_the_place_of_membership(outside: Bench) -> None:
    assert outside.look(STEP).states == {STEP: "ok"}


def _leave(machine: Machine) -> None:
    machine.power.domain = ""


def _another(machine: Machine) -> None:
    machine.power.domain = "other.example"


def _untrusted(machine: Machine) -> None:
    machine.power.is_trusted = False


def _no_kerberos(machine: Machine) -> None:
    machine.world.close("10.0.0.53", 88)


@pytest.mark.parametrize(
    ("damage", "problem", "says"),
    [
        (_leave, "GmsaDomain", "in no domain"),
        (_another, "GmsaDomain", "a member of other.example"),
        (_untrusted, "GmsaChannel", "secure channel"),
        (_no_kerberos, "GmsaController", "answers on TCP 88"),
    ],
)
def test_what_a_member_lacks_is_named(
    member: Bench, damage: Callable[[Machine], Any], problem: str, says: str
) -> None:
    damage(member.machine)

    found = member.look(STEP).problem(STEP)
    assert found.id == problem
    assert says in found.message


def test_a_clock_that_kerberos_does_not_take_is_named(member: Bench) -> None:
    found = member.run(STEP, mode="Look", facts={"Now": 0, "NodeIsLive": True}).problem(STEP)

    assert found.id == "ClockOff"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda machine: machine.registry.delete_key(CLASSES), "Container Credential Guard has no plug-in"),
        (lambda machine: machine.registry.forget(COM, ""), "COM has no class"),
        (lambda machine: machine.files.delete(LIBRARY), "is missing"),
    ],
)
def test_what_a_plugin_lacks_is_named(outside: Bench, damage: Callable[[Machine], Any], says: str) -> None:
    damage(outside.machine)

    found = outside.look(STEP).problem(STEP)
    assert found.id == "GmsaPlugin"
    assert says in found.message

"""What SMB and iSCSI need of Windows: services, firewall rules, modules; and what an undo puts back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.steps.bench import Bench
from winboot.config.node_spec.node import StorageSpec

STEP = "storage-services"
MODULES = r"C:\Windows\System32\WindowsPowerShell\v1.0\Modules"


@pytest.fixture
def iscsi(bench: Bench) -> Bench:
    bench.spec = replace(bench.spec, storage=StorageSpec(smb=True, iscsi=True))
    return bench


def test_a_bare_machine_has_the_initiator_off(iscsi: Bench) -> None:
    assert iscsi.look(STEP).differences(STEP) == {
        "service MSiSCSI: start type": ("demand", "auto"),
        "service MSiSCSI: state": ("Stopped", "Running"),
        "firewall rule MsiScsi-In-TCP: active": ("false", "true"),
        "firewall rule MsiScsi-Out-TCP: active": ("false", "true"),
    }


def test_it_is_turned_on_once(iscsi: Bench) -> None:
    assert iscsi.run(STEP).states == {STEP: "changed"}
    assert iscsi.run(STEP).states == {STEP: "ok"}


def test_undo_puts_back_what_was_before(iscsi: Bench) -> None:
    before = iscsi.look(STEP).differences(STEP)
    iscsi.run(STEP)
    iscsi.undo(STEP)

    assert iscsi.look(STEP).differences(STEP) == before


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (
            lambda machine: machine.files.delete_directory(rf"{MODULES}\SmbShare", recurse=True),
            "ModuleMissing",
        ),
        (lambda machine: machine.firewall.remove("MsiScsi-In-TCP"), "RuleMissing"),
    ],
)
def test_what_windows_lacks_is_named(iscsi: Bench, damage: Any, problem: str) -> None:
    damage(iscsi.machine)

    assert iscsi.run(STEP).problem(STEP).id == problem

"""Test signing: turned on where the profile accepts it, and off again by an undo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from winboot_lab.windows.boot import TEST_SIGNING_ELEMENT

from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of

STEP = "test-signing"
OPTION = "boot option TESTSIGNING"
CONTROL = r"SYSTEM\CurrentControlSet\Control"
SECURE_BOOT = rf"HKEY_LOCAL_MACHINE\{CONTROL}\SecureBoot\State"


@pytest.fixture
def antrea() -> Iterator[Bench]:
    made = Bench(spec=a_spec_of("antrea"))
    yield made
    made.machine.tasks.end_residents()


def test_a_network_with_a_signed_driver_has_no_such_step(bench: Bench) -> None:
    assert STEP not in bench.look(STEP).states


def test_it_is_on_after_a_restart(antrea: Bench) -> None:
    assert antrea.look(STEP).differences(STEP) == {OPTION: ("off", "on")}

    told = antrea.run(STEP)
    antrea.reboot()

    assert (told.states, told.ended) == ({STEP: "changed"}, "reboot")
    assert "TESTSIGNING" in str(antrea.registry(CONTROL, "SystemStartOptions")).split()
    assert antrea.run(STEP).states == {STEP: "ok"}


def test_undo_removes_the_option_and_runs_twice(antrea: Bench) -> None:
    registry = antrea.machine.registry
    antrea.run(STEP)
    antrea.reboot()

    first = antrea.undo(STEP)
    antrea.reboot()

    assert first.ended == "reboot"
    assert "TESTSIGNING" not in str(antrea.registry(CONTROL, "SystemStartOptions"))
    assert not registry.exists(TEST_SIGNING_ELEMENT)
    assert antrea.undo(STEP).ended == "complete"


def test_an_option_that_was_on_before_winboot_stays(antrea: Bench) -> None:
    antrea.machine.registry.set(TEST_SIGNING_ELEMENT, "Element", "Binary", b"\x01")
    antrea.reboot()

    antrea.run(STEP)
    antrea.undo(STEP)

    assert antrea.machine.registry.exists(TEST_SIGNING_ELEMENT)


def test_an_option_that_waits_for_the_next_start_stays_after_an_undo(antrea: Bench) -> None:
    antrea.machine.registry.set(TEST_SIGNING_ELEMENT, "Element", "Binary", b"\x01")

    antrea.run(STEP)
    told = antrea.undo(STEP)

    assert antrea.machine.registry.exists(TEST_SIGNING_ELEMENT)
    assert told.differences(STEP)[OPTION] == ("on, and was set before winboot", "kept")


def test_secure_boot_is_named_before_the_change(antrea: Bench) -> None:
    antrea.machine.registry.set(SECURE_BOOT, "UEFISecureBootEnabled", "DWord", 1)

    assert antrea.run(STEP).problem(STEP).id == "SecureBoot"
    assert not antrea.machine.registry.exists(TEST_SIGNING_ELEMENT)

"""Keep Defender's hands off container layers, where the profile asks for it."""

from tests.steps.bench import Bench
from tests.steps.builders import a_spec

STEP = "defender-exclusions"
WANTED = {"defender_exclusions: false": "defender_exclusions: true"}


def test_a_profile_that_does_not_opt_in_has_no_such_step(bench: Bench):
    assert STEP not in bench.look(STEP).states


def test_exclusions_are_added_once_and_removed_again():
    bench = Bench(spec=a_spec(**WANTED))

    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    bench.undo(STEP)
    assert bench.look(STEP).states == {STEP: "would-change"}


def test_a_bare_machine_scans_all_of_it():
    found = Bench(spec=a_spec(**WANTED)).look(STEP).differences(STEP)

    assert r"Defender exclusion process C:\k\versions\kubernetes-1.36.5\kubelet.exe" in found
    assert all(one == (None, "present") for one in found.values())


def test_exclusions_of_others_stay():
    bench = Bench(spec=a_spec(**WANTED))
    bench.machine.defender.add("ExclusionPath", [r"D:\database"])

    bench.run(STEP)
    bench.undo(STEP)

    assert bench.machine.defender.exclusions("ExclusionPath") == [r"D:\database"]


def test_without_defender_there_is_nothing_to_be_excluded_from():
    bench = Bench(spec=a_spec(**WANTED))
    bench.machine.features.remove_now("Windows-Defender")
    bench.reboot()

    assert bench.look(STEP).states == {STEP: "ok"}

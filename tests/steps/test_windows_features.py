"""Turn on the Windows features that containers need."""

from tests.steps.bench import Bench
from tests.steps.builders import a_spec
from winboot.report.hints import hint_for
from winboot.script.steps.windows_features import WINDOWS_FEATURES


def test_features_are_asked_for_by_the_names_of_dism():
    spec = a_spec(**{"features: [Containers]": "features: [Containers, Hyper-V]"})

    assert WINDOWS_FEATURES.inputs(spec)["features"] == ["Containers", "Microsoft-Hyper-V"]


STEP = "windows-features"


def test_the_containers_feature_takes_one_restart(bench: Bench):
    assert bench.look(STEP).differences(STEP) == {"feature Containers": ("Disabled", "Enabled")}
    assert bench.run(STEP).ended == "reboot"
    bench.reboot()
    assert bench.run(STEP).states == {STEP: "ok"}


def test_a_feature_that_waits_for_the_restart_says_so(bench: Bench):
    bench.run(STEP)

    assert bench.look(STEP).differences(STEP) == {"feature Containers": ("EnablePending", "Enabled")}


def test_missing_feature_files_are_explained(bench: Bench):
    bench.machine.features.find("Containers").payload = False

    problem = bench.run(STEP).step(STEP)["problem"]

    assert problem["id"] == "FeatureSource"
    assert "features_source" in hint_for(problem["id"], problem["hint"])


def test_a_source_of_the_profile_has_the_missing_files():
    bench = Bench(spec=a_spec(**{"features_source: null": r"features_source: 'C:\sources\sxs'"}))
    bench.machine.files.make_directory(r"C:\sources\sxs")
    bench.machine.features.find("Containers").payload = False

    assert bench.run(STEP).ended == "reboot"
    bench.reboot()
    assert bench.run(STEP).states == {STEP: "ok"}


def test_a_name_that_windows_does_not_know_is_reported():
    bench = Bench(spec=a_spec(**{"features: [Containers]": "features: [Containers, Kontainer]"}))

    assert bench.look(STEP).differences(STEP)["feature Kontainer"] == (None, "Enabled")
    problem = bench.run(STEP).problem(STEP)
    assert (problem.id, problem.message) == ("NoFeature", "Windows knows no feature Kontainer")
    assert "Get-WindowsOptionalFeature" in problem.hint


def test_a_feature_that_cannot_be_staged_is_reported_with_the_code():
    """Hyper-V without virtualization, for one."""
    bench = Bench(spec=a_spec(**{"features: [Containers]": "features: [Containers, Hyper-V]"}))
    bench.machine.hardware.virtualization = False

    problem = bench.run(STEP).problem(STEP)

    assert problem.id == "FeatureBlocked"
    assert problem.message.endswith("Microsoft-Hyper-V could not be staged (0x800f0922)")
    assert "Restart the machine" in problem.hint


def test_undo_turns_off_what_winboot_turned_on_and_nothing_else(bench: Bench):
    bench.run(STEP)
    bench.reboot()
    before = set(enabled(bench)) - {"Containers"}

    told = bench.undo(STEP)

    assert (told.states[STEP], told.ended) == ("changed", "reboot")
    bench.reboot()
    assert set(enabled(bench)) == before
    assert bench.look(STEP).differences(STEP) == {"feature Containers": ("Disabled", "Enabled")}


def enabled(bench: Bench) -> list[str]:
    """The features that work on the machine, by DISM's names."""
    return [one.optional_name for one in bench.machine.features.all() if one.state == "Installed"]

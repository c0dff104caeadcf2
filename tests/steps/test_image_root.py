"""A root of images on another drive: the checks before the first change, and folders that a user made there."""

from __future__ import annotations

import pytest
from winboot_lab.windows.files import Volume

from tests.steps.bench import Bench
from tests.steps.builders import a_spec
from winboot.report.hints import HINTS

ROOT = r"D:\containerd"
GIB = 1024**3
EPHEMERAL = "  ephemeral: true\n"


def a_bench(more: str = "", *, drive: int = 100) -> Bench:
    """A machine whose profile has its images on D:, a volume of so many GiB; 0 is no volume."""
    bench = Bench(spec=a_spec(**{"runtime:\n": f"runtime:\n  root: {ROOT}\n{more}"}))
    if drive:
        bench.machine.files.attach("D:", drive * GIB)
    return bench


def volume(bench: Bench, letter: str) -> Volume:
    return bench.machine.files.volumes[f"{letter}:"]


def refused(bench: Bench) -> tuple[str, str]:
    problem = bench.look("directories").problem("node-preflight")
    assert problem.hint == HINTS[problem.id]
    return problem.id, problem.message


def test_a_drive_that_is_not_there_is_found_before_the_first_change():
    assert refused(a_bench(drive=0)) == ("NoDrive", r"there is no drive D:\ for D:\containerd")


def test_the_drive_of_images_needs_the_space_and_the_system_drive_a_little():
    bench = a_bench(drive=10)
    assert refused(bench) == ("DiskSpace", r"D:\ has 10 GiB free, 20 are needed")
    volume(bench, "D").total = 100 * GIB
    system = volume(bench, "C")
    system.other = system.total - system.used - 6 * GIB
    assert bench.look().step("node-preflight")["problem"] is None
    system.other += 2 * GIB
    assert refused(bench) == ("DiskSpace", r"C:\ has 4 GiB free, 5 are needed")


def test_a_temporary_disk_must_be_meant():
    bench, meant = a_bench(), a_bench(EPHEMERAL)
    for one in (bench, meant):
        one.write(r"D:\DATALOSS_WARNING_README.txt", b"Any data stored on this drive is SUBJECT TO LOSS")
    assert refused(bench) == (
        "EphemeralDrive",
        r"D:\containerd is on a temporary disk: D:\DATALOSS_WARNING_README.txt",
    )
    assert meant.look().step("node-preflight")["problem"] is None


@pytest.mark.parametrize("path", [r"D:\containerd", r"D:\containerd-temp"])
def test_a_user_that_came_first_does_not_choose_the_unpacked_files(path: str):
    """A data volume lets users create folders in its root."""
    bench = a_bench()
    bench.machine.accounts.add("alice", administrator=False)
    alice = bench.machine.accounts.token("alice")
    bench.machine.files.make_directory(path, alice)
    bench.machine.files.write(rf"{path}\hers.txt", b"hers", alice)

    assert bench.look("directories").differences("directories")[f"folder {path}: of others"][1] == (
        "set aside, and made again"
    )
    bench.run("directories")
    assert not bench.machine.files.exists(rf"{path}\hers.txt")
    assert bench.run("directories").states == {"directories": "ok"}

    bench.undo("directories")
    assert bench.machine.files.read(rf"{path}\hers.txt") == b"hers"


def test_defender_leaves_the_other_drive_alone():
    bench = Bench(
        spec=a_spec(
            **{
                "runtime:\n": "runtime:\n  root: D:\\containerd\n",
                "defender_exclusions: false": "defender_exclusions: true",
            }
        )
    )
    bench.machine.files.attach("D:", 100 * GIB)
    bench.run("defender-exclusions")
    assert {
        r"D:\containerd\io.containerd.snapshotter.v1.windows\snapshots",
        r"D:\containerd-temp",
    } <= set(bench.machine.defender.exclusions("ExclusionPath"))


def test_the_kubelet_evicts_by_the_drive_of_images_too():
    assert a_bench().spec.kubelet.config["evictionHard"] == {
        "memory.available": "500Mi",
        "nodefs.available": "10%",
        "imagefs.available": "15%",
    }

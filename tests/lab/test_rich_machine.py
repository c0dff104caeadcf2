"""A machine that has had a life of its own: a join with --adopt, its undo, and all is as it was or on the written list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from winboot_lab.windows.snapshot import Tree, diff, without_chance

from tests.lab import actions
from tests.lab.scenes import Scenes
from tests.lab.site import Site, only, problems
from tests.lab.test_network_undo import undo
from tests.steps.test_adoption import somebodys_files

SERVICES: Final = r"SYSTEM\CurrentControlSet\Services"
PAGE: Final = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")

# The allowed differences: a pattern of the difference's line, and the words of docs/security.md that announce it. None: the
# lab's own traces of a deleted interface, and of a default route that is now a lasting one.
WRITTEN: Final = {
    r"\\Tcpip\\Parameters\\(Interfaces\\\{|PersistentRoutes: \{'0\.0\.0\.0,0\.0\.0\.0,)": None,
    r"files/C:\\var\\lib\\kubelet\\(checkpoints|device-plugins|image_manager|plugins|plugins_registry|pod-resources|pods|"
    r"volumeplugins)(\\pull(ed|ing))?: \{'kind': 'directory'\}$": "folders that the kubelet makes in its own folder",
    r"Services\\kube-proxy/(ObjectName: '\.\\\\keeper' -> 'LocalSystem'|Start: 3 -> 4)$": "the account of a service",
}
# A program of Windows, so that the other programs' services can start.
PROGRAMS: Final = (r"C:\theirs\kubelet.exe", r"C:\theirs\containerd.exe", r"C:\theirs\kube-proxy.exe")


# What a join takes over, whatever was there.
TAKEN: Final = (
    *(
        r"C:\k\kubeconfig",
        r"C:\var\lib\kubelet\pki\kubelet-client-2026.pem",
        r"C:\k\versions\kubernetes-1.36.5\kubelet.exe",
    ),
    *(
        "services/kubelet/",
        "services/containerd/",
        "services/kube-proxy/",
        "CrashDumpEnabled",
        "KeepAliveTime",
    ),
)


def somebodys_services(site: Site) -> None:
    """A node of another cluster: services that were set up by hand, each in another way."""
    machine = site.machine
    for path in PROGRAMS:
        actions.write(path, b"theirs")(site)
    machine.accounts.add("keeper", administrator=False, password="a password")
    for hand in (
        actions.sc("create", "containerd", "binPath=", rf"{PROGRAMS[1]} --mine", "start=", "demand"),
        actions.sc(
            "config", "containerd", "obj=", r"NT AUTHORITY\LocalService", "DisplayName=", "my containers"
        ),
        actions.sc("description", "containerd", "Runs my containers."),
        actions.sc("failure", "containerd", "reset=", "INFINITE", "actions=", "restart/15000//0"),
        actions.sc("failureflag", "containerd", "1"),
        actions.sc(
            "create",
            "kubelet",
            "binPath=",
            rf"{PROGRAMS[0]} --theirs",
            "start=",
            "demand",
            "depend=",
            "containerd",
        ),
        actions.regedit(rf"{SERVICES}\kubelet", "Environment", "MultiString", ["A=1", "B=two words"]),
        actions.regedit(
            rf"{SERVICES}\kubelet\Parameters", "Application", "ExpandString", r"%ProgramFiles%\x.exe"
        ),
        actions.regedit(rf"{SERVICES}\kubelet\Parameters\AppExit", "", "String", "Restart"),
        actions.regedit(rf"{SERVICES}\kubelet", "PreshutdownTimeout", "DWord", 7000),
        actions.sc("create", "kube-proxy", "binPath=", PROGRAMS[2], "start=", "demand"),
        actions.sc("config", "kube-proxy", "obj=", r".\keeper", "password=", "a password"),
        actions.sc("create", "others", "binPath=", r"C:\theirs\others.exe", "start=", "demand"),
    ):
        hand(site)


def somebodys_settings(site: Site) -> None:
    """Values that the profile wants otherwise, in kinds and values that Windows allows."""
    for hand in (
        actions.regedit(r"SYSTEM\CurrentControlSet\Control\FileSystem", "LongPathsEnabled", "DWord", 0),
        actions.regedit(r"SYSTEM\CurrentControlSet\Control\CrashControl", "CrashDumpEnabled", "DWord", 7),
        actions.regedit(rf"{SERVICES}\Tcpip\Parameters", "KeepAliveTime", "DWord", 0xFFFFFFFF),
        # Of other kinds than Windows reads there.
        actions.regedit(rf"{SERVICES}\Tcpip\Parameters", "TcpTimedWaitDelay", "String", "60"),
        actions.regedit(r"SOFTWARE\Microsoft\Windows\Windows Error Reporting", "DontShowUI", "QWord", 2**40),
        actions.regedit(rf"{SERVICES}\kubelet\Parameters", "AppDirectory", "MultiString", ["", "C:\\", ""]),
    ):
        hand(site)
    for path, content in {
        r"C:\k\versions\kubernetes-1.36.5\kubelet.exe": b"their kubelet" * 20_000,
        r"C:\k\crictl.yaml": b"runtime-endpoint: theirs\n",
        r"C:\Program Files\containerd\config.toml": b"version = 2\n# theirs\n",
    }.items():
        actions.write(path, content)(site)


# What an installer has Windows do at the next start.
PENDING: Final = (r"\??\C:\a.dll", r"!\??\C:\b.dll", r"\??\C:\c.tmp", "")


def somebody_waits_and_holds(site: Site) -> None:
    """An installer waits for the next start; a scanner has files open for a moment, and a log shipper the journal for long."""
    actions.write(r"C:\a.dll", b"the new one")(site)
    actions.write(r"C:\c.tmp", b"")(site)
    actions.regedit(
        r"SYSTEM\CurrentControlSet\Control\Session Manager",
        "PendingFileRenameOperations",
        "MultiString",
        list(PENDING),
    )(site)
    for path in (
        r"C:\k\versions\kubernetes-1.36.5\kubelet.exe",
        r"C:\k\crictl.yaml",
        r"C:\ProgramData\winboot\logs.ps1",
    ):
        assert site.machine.faults.hold(path, 0.3, share="Read"), path
    assert site.machine.faults.hold(r"C:\ProgramData\winboot\journal.jsonl", share="ReadWrite")


def installed_since(site: Site) -> bool:
    """Whether the installer's operations were done, whatever an undo added to them; its files are taken out of what is
    compared."""
    files = site.machine.files
    replaced = files.read(r"C:\b.dll") == b"the new one"
    files.delete(r"C:\b.dll")
    return replaced and not any(files.exists(path) for path in (r"C:\a.dll", r"C:\c.tmp"))


def tree(site: Site) -> Tree:
    """The machine without what happens by itself."""
    return without_chance(site.machine.snapshot())


@pytest.mark.check
def test_a_rich_machine_is_as_it_was_after_a_join_and_its_undo(scenes: Scenes) -> None:
    site = scenes.bare("everything")
    somebodys_files(site.machine)
    somebodys_services(site)
    somebodys_settings(site)
    before = tree(site)
    told = problems(site.join())
    assert any("ForeignNode" in one for one in told)
    touched = [line for line in diff(before, tree(site)) if "ProgramData\\winboot" not in line]
    assert touched == [], "nothing is touched without --adopt"

    joined = site.join(adopt=True)
    assert (problems(joined), only(joined).ready) == ([], True)
    changed = diff(before, tree(site))
    assert [thing for thing in TAKEN if not any(thing in line for line in changed)] == []
    somebody_waits_and_holds(site)
    states = undo(site)

    assert {step: state for step, state in states.items() if state not in ("ok", "changed")} == {}
    assert installed_since(site)
    left = [line for line in diff(before, tree(site)) if not line.endswith(": {}")]
    unwritten = [line for line in left if not any(re.search(pattern, line) for pattern in WRITTEN)]
    assert unwritten == []
    for pattern, words in WRITTEN.items():
        assert words is None or words in PAGE, pattern

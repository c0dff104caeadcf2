"""Files: names, bytes, locks, links, rules, space."""

from __future__ import annotations

import pytest
from winboot_lab.windows.door import Record
from winboot_lab.windows.machine import Machine

from lab_windows.conftest import ask, one, refused
from lab_windows.programs import put, with_daemon


def test_names_compare_without_case_and_keep_their_spelling(machine: Machine) -> None:
    """A file made as Foo.TXT is found as foo.txt and shown as Foo.TXT."""
    ask(machine, "file.write", path=r"C:\Foo.TXT", content=b"x")
    assert one(machine, "file.stat", path=r"c:\foo.txt")["path"] == r"C:\Foo.TXT"
    ask(machine, "file.write", path=r"C:\FOO.txt", content=b"yy")
    assert one(machine, "file.stat", path=r"C:\foo.txt")["name"] == "Foo.TXT"
    assert ask(machine, "file.read", path="C:/foo.txt") == [b"yy"]


def test_bytes_stay_as_they_are(machine: Machine) -> None:
    """UTF-16, ANSI and NUL bytes come back untouched."""
    content = "\ufeffä".encode("utf-16-le") + b"\x00\xe4\r\n\n"
    ask(machine, "file.write", path=r"C:\a.bin", content=content)
    assert ask(machine, "file.read", path=r"C:\a.bin") == [content]


def test_a_missing_file_and_a_missing_folder_are_different_errors(machine: Machine) -> None:
    """FileNotFound when the folder is there, DirectoryNotFound when it is not."""
    assert refused(machine, "file.read", path=r"C:\none.txt").exception == "System.IO.FileNotFoundException"
    assert (
        refused(machine, "file.read", path=r"C:\none\x.txt").exception
        == "System.IO.DirectoryNotFoundException"
    )
    assert ask(machine, "file.stat", path=r"C:\none\x.txt") == []


def test_deleting_an_absent_file_is_fine_and_in_an_absent_folder_is_not(machine: Machine) -> None:
    """As File.Delete does."""
    ask(machine, "file.delete", path=r"C:\none.txt")
    assert refused(machine, "file.delete", path=r"C:\none\x.txt").hresult == 0x80070003


def test_a_read_only_file_can_neither_be_written_nor_deleted(machine: Machine) -> None:
    """Until the flag is taken off."""
    ask(machine, "file.write", path=r"C:\a.txt", content=b"x")
    ask(machine, "file.set-attributes", path=r"C:\a.txt", attributes=1)
    for command, more in (("file.write", {"content": b"y"}), ("file.delete", {})):
        problem = refused(machine, command, path=r"C:\a.txt", **more)
        assert (problem.exception, problem.hresult) == ("System.UnauthorizedAccessException", 0x80070005)
    ask(machine, "file.set-attributes", path=r"C:\a.txt", attributes=128)
    ask(machine, "file.delete", path=r"C:\a.txt")


@pytest.mark.parametrize(
    ("share", "readable", "deletable"),
    [("None", False, False), ("Read", True, False), ("Read, Delete", True, True), ("ReadWrite", True, False)],
)
def test_an_open_handle_shares_what_it_said(
    machine: Machine, share: str, readable: bool, deletable: bool
) -> None:
    """Readers and deleters get a sharing violation unless the handle allowed them."""
    ask(machine, "file.write", path=r"C:\a.txt", content=b"x")
    handle = one(machine, "file.open", path=r"C:\a.txt", mode="Open", access="Read", share=share)["handle"]
    other = machine.session()
    reading = other.invoke("file.read", {"path": r"C:\a.txt"})
    deleting = other.invoke("file.delete", {"path": r"C:\a.txt"})
    assert (reading.errors == [], deleting.errors == []) == (readable, deletable)
    assert all(p.hresult == 0x80070020 for p in reading.errors + deleting.errors)
    ask(machine, "file.close", handle=handle)
    assert other.invoke("file.delete", {"path": r"C:\a.txt"}).errors == []


def test_read_all_text_is_blocked_by_a_writer(machine: Machine) -> None:
    """A reader that shares only reading cannot open a file that another program writes."""
    one(machine, "file.open", path=r"C:\a.txt", mode="Create", access="Write", share="ReadWrite")
    assert refused(machine, "file.read", path=r"C:\a.txt").hresult == 0x80070020
    assert ask(machine, "file.read", path=r"C:\a.txt", share="ReadWrite") == [b""]


def test_a_handle_reads_and_writes_in_pieces(machine: Machine) -> None:
    """Offsets count, gaps become zeros, and the length can be cut."""
    opened = one(machine, "file.open", path=r"C:\a.bin", mode="Create", access="ReadWrite", share="None")
    handle = opened["handle"]
    ask(machine, "file.handle-write", handle=handle, offset=2, content=b"abc")
    assert ask(machine, "file.handle-read", handle=handle, offset=0, count=4) == [b"\0\0ab"]
    ask(machine, "file.handle-resize", handle=handle, length=3)
    assert ask(machine, "file.handle-length", handle=handle) == [3]


def test_handles_close_with_their_session(machine: Machine) -> None:
    """A session that ends lets go of its files."""
    session = machine.session()
    one(session, "file.open", path=r"C:\a.txt", mode="Create", access="Write", share="None")
    session.close()
    ask(machine, "file.delete", path=r"C:\a.txt")


def test_a_running_program_cannot_be_overwritten_or_deleted_but_renamed(machine: Machine) -> None:
    """The way to replace it: rename the old file, place the new one."""
    with_daemon(machine)
    ask(machine, "program.start", command_line=r'"C:\k\daemon.exe" --service')
    path = r"C:\k\daemon.exe"
    assert refused(machine, "file.write", path=path, content=b"new").hresult == 0x80070020
    assert refused(machine, "file.delete", path=path).exception == "System.UnauthorizedAccessException"
    ask(machine, "file.move", source=path, destination=r"C:\k\daemon.old")
    ask(machine, "file.write", path=path, content=b"new")
    assert machine.processes.named("daemon")[0].path == r"C:\k\daemon.old"


def test_moving_onto_an_existing_file_fails_and_replace_keeps_the_rules(machine: Machine) -> None:
    """Move says it exists; Replace puts the content there under the old access rules."""
    put(machine, r"C:\k\a.txt", "a")
    rule = Record(
        "rule",
        {"identity": "S-1-5-18", "rights": 2032127, "type": "Allow", "inheritance": 0, "propagation": 0},
    )
    ask(machine, "acl.set", path=r"C:\k\a.txt", protected=True, rules=[rule])
    ask(machine, "file.write", path=r"C:\k\b.txt", content=b"new")
    moving = refused(machine, "file.move", source=r"C:\k\b.txt", destination=r"C:\k\a.txt")
    assert moving.hresult == 0x800700B7
    ask(machine, "file.replace", source=r"C:\k\b.txt", destination=r"C:\k\a.txt", backup=r"C:\k\old.txt")
    assert ask(machine, "file.read", path=r"C:\k\a.txt") == [b"new"]
    assert one(machine, "acl.get", path=r"C:\k\a.txt")["protected"] is True
    assert ask(machine, "file.stat", path=r"C:\k\b.txt") == []
    assert ask(machine, "file.stat", path=r"C:\k\old.txt") != []


def test_deleting_a_junction_leaves_what_it_points_to(machine: Machine) -> None:
    """Recursion never follows links."""
    ask(machine, "file.make-directory", path=r"C:\real\deep")
    ask(machine, "file.write", path=r"C:\real\f.txt", content=b"x")
    ask(machine, "file.make-directory", path=r"C:\tree")
    ask(machine, "file.link", path=r"C:\tree\j", target=r"C:\real", kind="Junction")
    assert ask(machine, "file.read", path=r"C:\tree\j\f.txt") == [b"x"]
    assert refused(machine, "file.delete-directory", path=r"C:\tree").hresult == 0x80070091
    ask(machine, "file.delete-directory", path=r"C:\tree", recurse=True)
    assert ask(machine, "file.read", path=r"C:\real\f.txt") == [b"x"]


def test_a_hard_link_is_the_same_file(machine: Machine) -> None:
    """Writing through one name shows under the other; the bytes go with the last name."""
    ask(machine, "file.write", path=r"C:\a.txt", content=b"x")
    ask(machine, "file.link", path=r"C:\b.txt", target=r"C:\a.txt", kind="HardLink")
    ask(machine, "file.write", path=r"C:\b.txt", content=b"yy")
    ask(machine, "file.delete", path=r"C:\b.txt")
    assert ask(machine, "file.read", path=r"C:\a.txt") == [b"yy"]


def test_a_new_folder_below_the_root_lets_users_write_until_it_is_protected(machine: Machine) -> None:
    """The default rules of C: are handed down; protecting without keeping them leaves only one's own."""
    ask(machine, "file.make-directory", path=r"C:\k")
    inherited = one(machine, "acl.get", path=r"C:\k")["rules"]
    assert "S-1-5-32-545" in [r["identity"] for r in inherited]
    own = Record(
        "rule",
        {"identity": "S-1-5-18", "rights": 2032127, "type": "Allow", "inheritance": 3, "propagation": 0},
    )
    ask(machine, "acl.set", path=r"C:\k", protected=True, rules=[own])
    ask(machine, "file.write", path=r"C:\k\secret", content=b"x")
    acl = one(machine, "acl.get", path=r"C:\k\secret")
    assert [(r["identity"], r["inherited"]) for r in acl["rules"]] == [("S-1-5-18", True)]
    assert (
        refused(machine.session(), "file.read", path=r"C:\k\secret").exception
        == "System.UnauthorizedAccessException"
    )


def test_rules_given_at_creation_hold_before_the_first_byte(machine: Machine) -> None:
    """A file opened with its own security is never readable by others, not even empty."""
    rule = Record(
        "rule",
        {"identity": "S-1-5-18", "rights": 2032127, "type": "Allow", "inheritance": 0, "propagation": 0},
    )
    security = Record("acl", {"protected": True, "rules": [rule]})
    one(machine, "file.open", path=r"C:\s", mode="CreateNew", access="Write", share="Read", security=security)
    rules = one(machine, "acl.get", path=r"C:\s")["rules"]
    assert [r["identity"] for r in rules] == ["S-1-5-18"]


def test_a_full_disk_takes_what_fits_and_says_so(machine: Machine) -> None:
    """Error 0x70, and the part that was written stays."""
    machine.faults.disk_full(free=10)
    problem = refused(machine, "file.write", path=r"C:\big", content=b"x" * 100)
    assert problem.hresult == 0x80070070
    assert one(machine, "file.space", path="C:\\")["free"] == 0
    assert one(machine, "file.stat", path=r"C:\big")["length"] == 10


def test_a_slow_disk_takes_lab_time(machine: Machine) -> None:
    """Each file operation waits."""
    machine.faults.disk_slow(5)
    before = machine.time.seconds
    ask(machine, "file.write", path=r"C:\a", content=b"x")
    assert machine.time.seconds - before == pytest.approx(5)


def test_a_scan_waits_for_an_operation_on_a_file_that_is_there(machine: Machine) -> None:
    """An operation about nothing leaves a scanner nothing to open."""
    ask(machine, "file.write", path=r"C:\a", content=b"x")
    machine.faults.scan(1, 5, share="Read")

    ask(machine, "file.delete", path=r"C:\absent")
    assert machine.faults.held == []
    assert refused(machine, "file.delete", path=r"C:\a").exception == "System.IO.IOException"
    assert machine.faults.held == [(r"C:\a", "Read")]


@pytest.mark.parametrize(
    ("path", "exception"),
    [
        ("", "System.ArgumentException"),
        ("relative.txt", "System.ArgumentException"),
        ("C:\\a|b", "System.ArgumentException"),
        ("C:\\a:b", "System.NotSupportedException"),
        ("C:\\" + "x" * 300, "System.IO.PathTooLongException"),
        (r"\\server\share\x", "System.IO.IOException"),
    ],
)
def test_names_that_windows_refuses(machine: Machine, path: str, exception: str) -> None:
    """Each with the exception .NET has for it."""
    assert refused(machine, "file.write", path=path, content=b"").exception == exception


def test_trailing_dots_and_spaces_are_dropped(machine: Machine) -> None:
    """As Windows does."""
    ask(machine, "file.write", path="C:\\a.txt. ", content=b"x")
    assert one(machine, "file.stat", path=r"C:\a.txt")["name"] == "a.txt"


def test_an_open_pipe_is_listed_like_a_file(machine: Machine) -> None:
    """containerd's pipe is looked for this way."""
    machine.files.pipes["containerd-containerd"] = 4
    assert one(machine, "file.stat", path=r"\\.\pipe\containerd-containerd")["kind"] == "file"
    assert [r["name"] for r in ask(machine, "file.list", path="\\\\.\\pipe\\")] == ["containerd-containerd"]

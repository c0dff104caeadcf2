"""Make the folders that the later steps write to, with the access rules they need."""

import pytest
from winboot_lab.windows.accounts import SYSTEM_TOKEN, Token
from winboot_lab.windows.acl import APPEND, CHANGE_PERMISSIONS, FULL, WRITE, Rule
from winboot_lab.windows.failure import Failure

from tests.steps.bench import Bench
from tests.steps.builders import a_spec
from tests.steps.library import call
from winboot.script.steps.directories import DIRECTORIES


def test_whatever_holds_a_credential_is_private():
    spec = a_spec()
    paths = spec.paths
    private = DIRECTORIES.inputs(spec)["private"]

    for path in (
        paths.bootstrap_kubeconfig,
        paths.kubelet_client_certificate,
        paths.containerd_certs + r"\x",
    ):
        assert path.rpartition("\\")[0] in private


def test_every_service_has_a_folder_for_its_log():
    spec = a_spec()
    ours = DIRECTORIES.inputs(spec)["ours"]

    assert {service.log_file.rpartition("\\")[0] for service in spec.services.all} <= set(ours)


STEP = "directories"


def test_folders_are_made_once(bench: Bench):
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}


def test_nobody_but_system_and_administrators_has_rights_on_a_private_folder(bench: Bench):
    bench.run(STEP)
    rules = bench.machine.console.invoke("acl.get", {"path": r"C:\k"}).objects[0]["rules"]

    assert {rule["identity"] for rule in rules} == {"S-1-5-18", "S-1-5-32-544"}


WRITERS = {"S-1-5-18", "S-1-5-32-544"}


def test_no_ordinary_user_may_write_where_programs_configuration_and_pod_data_are(bench: Bench):
    user = ordinary(bench)
    bench.run(STEP)

    for path in [*DIRECTORIES.inputs(bench.spec)["private"], *DIRECTORIES.inputs(bench.spec)["readable"]]:
        with pytest.raises(Failure):
            bench.machine.files.write(rf"{path}\00-x.conf", b"mine", user)
        with pytest.raises(Failure):
            bench.machine.files.make_directory(rf"{path}\mine", user)


def test_pods_and_collectors_can_read_what_is_mounted_and_logged(bench: Bench):
    bench.run(STEP)
    bench.write(r"C:\var\log\pods\a.log", b"a line")

    assert bench.machine.files.read(r"C:\var\log\pods\a.log", ordinary(bench)) == b"a line"


def test_containerd_has_its_folders_as_it_would_make_them_itself(bench: Bench):
    """pkg/sys/filesys_windows.go: D:P(A;OICI;GA;;;BA)(A;OICI;GA;;;SY) on every folder that it makes."""
    bench.run(STEP)

    for name in ("", r"\root", r"\state"):
        found = bench.machine.files.need(rf"C:\ProgramData\containerd{name}")[1].acl
        assert found.protected
        assert {rule.sid for rule in found.rules} == WRITERS


@pytest.mark.parametrize("path", [r"C:\k", r"C:\etc\cni\net.d", r"C:\opt", r"C:\var\lib\kubelet"])
def test_a_folder_that_an_ordinary_user_made_is_not_his_any_more(bench: Bench, path: str):
    user = ordinary(bench)
    bench.machine.files.make_directory(path, user)
    bench.machine.files.need(path)[1].acl.explicit.append(Rule(user.sid, FULL, inheritance=3))
    before = bench.machine.files.need(path)[1].acl.sddl()

    assert any(what.startswith(f"folder {path}: ") for what in bench.look(STEP).differences(STEP))
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    found = bench.machine.files.need(path)[1].acl
    assert found.owner == "S-1-5-32-544"
    assert not found.allows(user, CHANGE_PERMISSIONS)
    assert not found.allows(user, APPEND)

    bench.undo(STEP)
    assert bench.machine.files.need(path)[1].acl.sddl() == before


# Each right that changes something, as the Windows SDK's winnt.h numbers it (FILE_WRITE_DATA ... GENERIC_ALL):
# https://learn.microsoft.com/windows/win32/fileio/file-access-rights-constants
# https://learn.microsoft.com/windows/win32/secauthz/standard-access-rights
@pytest.mark.parametrize("right", [0x2, 0x4, 0x10, 0x40, 0x100, 0x10000, 0x40000, 0x80000])
def test_whoever_has_one_right_to_change_a_file_is_found(bench: Bench, right: int):
    user = ordinary(bench)
    path = r"C:\opt\theirs.exe"
    bench.write(path, b"theirs")
    bench.machine.files.need(path)[1].acl.explicit[:] = [Rule(user.sid, 0x1200A9)]
    assert call(bench, f"Get-StrangeWriter -Path '{path}'").objects == [None]

    bench.machine.files.need(path)[1].acl.explicit.append(Rule(user.sid, right))

    assert call(bench, f"Get-StrangeWriter -Path '{path}'").objects == [user.sid]


def test_whoever_is_denied_a_right_has_none(bench: Bench):
    path = r"C:\opt\theirs.exe"
    bench.write(path, b"theirs")
    bench.machine.files.need(path)[1].acl.explicit[:] = [Rule(ordinary(bench).sid, WRITE, "Deny")]

    assert call(bench, f"Get-StrangeWriter -Path '{path}'").objects == [None]


def test_audit_entries_outlive_a_join_and_its_undo(bench: Bench):
    bench.machine.files.make_directory(r"C:\k")
    acl = bench.machine.files.need(r"C:\k")[1].acl
    acl.audit = "(AU;OICISAFA;FA;;;WD)"
    before = acl.sddl()

    bench.run(STEP)
    assert bench.machine.files.need(r"C:\k")[1].acl.audit == "(AU;OICISAFA;FA;;;WD)"
    bench.undo(STEP)
    assert bench.machine.files.need(r"C:\k")[1].acl.sddl() == before


def test_a_file_of_an_ordinary_user_is_not_run_and_comes_back_with_an_undo(bench: Bench):
    user = ordinary(bench)
    path = r"C:\etc\cni\net.d\00-x.conf"
    bench.machine.files.make_directory(r"C:\etc\cni\net.d")
    bench.machine.files.write(path, b"mine", user)
    before = bench.machine.files.need(path)[1].acl.sddl()

    told = bench.look(STEP).differences(STEP)
    assert told[r"folder C:\etc\cni\net.d: files of others"] == (f"{path} ({user.sid})", None)
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.file(path) is None
    bench.undo(STEP)

    assert bench.file(path) == b"mine"
    assert bench.machine.files.need(path)[1].acl.sddl() == before


def test_a_file_that_others_may_write_keeps_its_text_and_loses_them(bench: Bench):
    path = r"C:\opt\cni\bin\theirs.exe"
    bench.write(path, b"theirs")
    bench.machine.files.need(path)[1].acl.explicit.append(Rule("S-1-5-32-545", WRITE))

    bench.run(STEP)

    assert bench.file(path) == b"theirs"
    assert not bench.machine.files.need(path)[1].acl.allows(ordinary(bench), WRITE)


@pytest.mark.parametrize("link", [r"C:\k", r"C:\opt", r"C:\ProgramData\containerd\root", r"C:\opt\cni\bin\x"])
def test_a_link_is_not_followed(bench: Bench, link: str):
    bench.machine.files.make_directory(r"C:\elsewhere\cni\bin")
    before = bench.machine.files.need(r"C:\elsewhere")[1].acl.sddl()
    bench.machine.files.make_directory(link.rpartition("\\")[0])
    bench.machine.files.link(
        link, r"C:\elsewhere", "Junction", ordinary(bench) if link == r"C:\opt" else SYSTEM_TOKEN
    )

    for told in (bench.look(STEP), bench.run(STEP)):
        assert told.problem(STEP).id == "FolderIsLink"
        assert link in told.problem(STEP).message
    assert bench.machine.files.need(r"C:\elsewhere")[1].acl.sddl() == before


def ordinary(bench: Bench) -> Token:
    """The token of a user who is no administrator."""
    if "alice" not in bench.machine.accounts.users:
        bench.machine.accounts.add("alice", administrator=False)
    return bench.machine.accounts.token("alice")


def test_a_private_folder_that_was_opened_is_closed_again(bench: Bench):
    bench.run(STEP)
    bench.machine.console.invoke("acl.set", {"path": r"C:\k", "protected": False})

    assert r"folder C:\k: others with rights" in bench.look(STEP).differences(STEP)
    assert bench.run(STEP).states == {STEP: "changed"}


def test_undo_removes_the_folders_that_are_empty_and_ours(bench: Bench):
    bench.run(STEP)
    bench.machine.console.invoke("file.write", {"path": r"C:\opt\cni\bin\theirs.exe", "content": b"x"})
    bench.undo(STEP)

    missing = bench.look(STEP).differences(STEP)
    assert r"folder C:\k" in missing
    assert r"folder C:\opt\cni\bin" not in missing


def test_undo_removes_what_our_services_wrote_and_the_folders_above(bench: Bench):
    bench.run(STEP)
    bench.machine.console.invoke("file.write", {"path": r"C:\var\log\kubelet\kubelet.log", "content": b"x"})
    bench.undo(STEP)

    for path in (r"C:\var", r"C:\opt", r"C:\etc", r"C:\ProgramData\containerd"):
        assert not bench.machine.console.invoke("file.stat", {"path": path}).objects, path


def test_undo_leaves_a_folder_that_was_there_before(bench: Bench):
    bench.machine.console.invoke("file.make-directory", {"path": r"C:\var\log\kubelet"})
    bench.run(STEP)
    bench.undo(STEP)

    assert bench.machine.console.invoke("file.stat", {"path": r"C:\var\log\kubelet"}).objects


def test_a_folder_that_somebody_holds_open_is_told_with_the_reason(bench: Bench):
    bench.run("directories")
    path = r"C:\var\log\kubelet\kubelet.log"
    bench.write(path, b"")
    bench.machine.files.open(path, "Open", access=1, share=1, pid=4)

    problem = bench.undo("directories").problem("directories")

    assert problem.id == "FolderLeft"
    assert r"C:\var\log\kubelet cannot be removed: " in problem.message
    assert "restart the machine" in problem.hint

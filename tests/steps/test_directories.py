"""Make the folders that the later steps write to, with the access rules they need."""

from collections.abc import Callable
from typing import Any

import pytest
from winboot_lab.windows.accounts import SYSTEM_TOKEN, Token
from winboot_lab.windows.acl import APPEND, CHANGE_PERMISSIONS, DELETE_CHILD, FULL, READ, WRITE, Acl, Rule
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.session import Session

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


def test_only_system_and_administrators_have_rights_on_a_private_folder(bench: Bench):
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


@pytest.mark.parametrize("path", [r"C:\k", r"C:\etc\cni\net.d", r"C:\etc", r"C:\var\lib\kubelet"])
def test_an_ordinary_user_no_longer_owns_a_folder_after_a_join(bench: Bench, path: str):
    user = ordinary(bench)
    bench.machine.files.make_directory(path, user)
    bench.machine.files.need(path)[1].acl.explicit.append(Rule(user.sid, FULL, inheritance=3))
    before = bench.machine.files.need(path)[1].acl.sddl()

    told = bench.look(STEP).differences(STEP)
    # With those above it that the user made on the way.
    of_hers = [what for what in told if what.endswith(": of others")]
    assert [
        what for what in of_hers if path.startswith(what.removeprefix("folder ").removesuffix(": of others"))
    ]
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
def test_an_account_with_one_right_to_change_a_file_is_found(bench: Bench, right: int):
    user = ordinary(bench)
    path = r"C:\opt\theirs.exe"
    bench.write(path, b"theirs")
    bench.machine.files.need(path)[1].acl.explicit[:] = [Rule(user.sid, 0x1200A9)]
    assert call(bench, f"Get-UntrustedWriter -Path '{path}'").objects == [None]

    bench.machine.files.need(path)[1].acl.explicit.append(Rule(user.sid, right))

    assert call(bench, f"Get-UntrustedWriter -Path '{path}'").objects == [user.sid]


def test_the_owner_of_a_file_is_found_without_a_rule_for_the_owner(bench: Bench):
    """The owner may change the rules."""
    path = r"C:\opt\theirs.exe"
    bench.write(path, b"theirs")
    bench.machine.files.need(path)[1].acl.owner = ordinary(bench).sid

    assert call(bench, f"Get-UntrustedWriter -Path '{path}'").objects == [ordinary(bench).sid]


def test_an_account_that_is_denied_a_right_does_not_have_it(bench: Bench):
    path = r"C:\opt\theirs.exe"
    bench.write(path, b"theirs")
    bench.machine.files.need(path)[1].acl.explicit[:] = [Rule(ordinary(bench).sid, WRITE, "Deny")]

    assert call(bench, f"Get-UntrustedWriter -Path '{path}'").objects == [None]


def test_what_is_remembered_of_one_path_holds_for_another_only_with_the_same_rules_and_the_same_question(
    bench: Bench,
):
    user = ordinary(bench)
    paths = [rf"C:\opt\{name}.exe" for name in ("one", "two", "three")]
    for path in paths:
        bench.write(path, b"theirs")
    bench.machine.files.need(paths[1])[1].acl.explicit[:] = [Rule(user.sid, 0x10000)]

    asked = [f"Get-UntrustedWriter -Path '{path}'" for path in paths]
    others = [f"Get-UntrustedWriter -Path '{paths[1]}' -Rights 2", f"Get-UntrustedHolder -Path '{paths[1]}'"]

    assert call(bench, "; ".join([*asked, *others])).objects == [None, user.sid, None, None, user.sid]


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


def test_a_users_drop_in_for_containerd_is_set_aside_with_a_folder_that_users_control(bench: Bench):
    """Below Program Files users may write nothing, unless an administrator let them."""
    user, folder = ordinary(bench), r"C:\Program Files\containerd\conf.d"
    bench.machine.files.make_directory(folder)
    bench.machine.files.need(folder)[1].acl.explicit.append(Rule("S-1-5-32-545", FULL))
    bench.machine.files.write(rf"{folder}\x.toml", b"mine", user)

    assert f"of-others:{folder}" in {one["key"] for one in bench.look(STEP).step(STEP)["differences"]}
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.file(rf"{folder}\x.toml") is None
    assert bench.look(STEP).states == {STEP: "ok"}


def test_a_file_that_others_may_write_keeps_its_text_and_loses_them(bench: Bench):
    path = r"C:\etc\cni\net.d\theirs.conf"
    bench.write(path, b"theirs")
    bench.machine.files.need(path)[1].acl.explicit.append(Rule("S-1-5-32-545", WRITE))

    bench.run(STEP)

    assert bench.file(path) == b"theirs"
    assert not bench.machine.files.need(path)[1].acl.allows(ordinary(bench), WRITE)


@pytest.mark.parametrize("link", [r"C:\k", r"C:\etc", r"C:\ProgramData\containerd\root"])
def test_a_link_is_not_followed(bench: Bench, link: str):
    bench.machine.files.make_directory(r"C:\elsewhere\cni\net.d")
    before = bench.machine.files.need(r"C:\elsewhere")[1].acl.sddl()
    bench.machine.files.make_directory(link.rpartition("\\")[0])
    bench.machine.files.link(
        link, r"C:\elsewhere", "Junction", ordinary(bench) if link == r"C:\etc" else SYSTEM_TOKEN
    )

    for told in (bench.look(STEP), bench.run(STEP)):
        assert told.problem(STEP).id == "FolderIsLink"
        assert link in told.problem(STEP).message
    assert bench.machine.files.need(r"C:\elsewhere")[1].acl.sddl() == before


def test_a_link_above_a_path_is_not_followed_either(bench: Bench):
    """A step asks about one path, and not about each folder that leads to it."""
    bench.machine.files.make_directory(r"C:\elsewhere\cni\net.d")
    bench.machine.files.link(r"C:\etc", r"C:\elsewhere", "Junction", SYSTEM_TOKEN)

    answer = call(bench, r"Assert-NoLink -Path 'C:\etc\cni\net.d'")

    assert answer.id.removeprefix("winboot.") == "FolderIsLink"
    assert answer.message.startswith(r"C:\etc is a link to another place")


def test_an_account_that_may_replace_files_above_is_reported_and_loses_that(bench: Bench):
    """The user owns nothing there and may not write, but may delete other users' files."""
    user = ordinary(bench)
    bench.machine.files.make_directory(r"C:\etc\cni\net.d")
    bench.machine.files.need(r"C:\etc\cni")[1].acl.explicit.append(Rule(user.sid, DELETE_CHILD))

    told = bench.look(STEP).differences(STEP)

    assert told[r"folder C:\etc\cni: other accounts that may replace its contents"] == (user.sid, None)
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    assert not bench.machine.files.need(r"C:\etc\cni")[1].acl.allows(user, DELETE_CHILD)


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
    bench.machine.console.invoke("file.write", {"path": r"C:\etc\cni\net.d\theirs.conf", "content": b"x"})
    bench.undo(STEP)

    missing = bench.look(STEP).differences(STEP)
    assert r"folder C:\k" in missing
    assert r"folder C:\etc\cni\net.d" not in missing


def test_undo_removes_what_our_services_wrote_and_the_folders_above(bench: Bench):
    bench.run(STEP)
    bench.machine.console.invoke("file.write", {"path": r"C:\var\log\kubelet\kubelet.log", "content": b"x"})
    bench.undo(STEP)

    for path in (r"C:\var", r"C:\k", r"C:\etc", r"C:\ProgramData\containerd"):
        assert not bench.machine.console.invoke("file.stat", {"path": path}).objects, path


def test_undo_leaves_a_folder_that_was_there_before(bench: Bench):
    bench.machine.console.invoke("file.make-directory", {"path": r"C:\var\log\kubelet"})
    bench.run(STEP)
    bench.undo(STEP)

    assert bench.machine.console.invoke("file.stat", {"path": r"C:\var\log\kubelet"}).objects


def test_what_was_set_aside_comes_back_beside_its_place_where_something_else_is_there(bench: Bench):
    bench.machine.files.make_directory(r"C:\etc", ordinary(bench))
    bench.write(r"C:\etc\theirs.txt", b"theirs")
    bench.run(STEP)
    bench.write(r"C:\etc\somebody.txt", b"an administrator's, since")

    told = bench.undo(STEP).differences(STEP)

    assert told[r"what was at C:\etc"] == (r"at C:\etc.before-winboot", "in its place")
    assert bench.machine.files.read(r"C:\etc.before-winboot\theirs.txt") == b"theirs"
    assert bench.machine.files.read(r"C:\etc\somebody.txt") == b"an administrator's, since"


def test_a_folder_that_is_held_open_is_reported_with_the_reason(bench: Bench):
    bench.run("directories")
    path = r"C:\var\log\kubelet\kubelet.log"
    bench.write(path, b"")
    bench.machine.files.open(path, "Open", access=1, share=1, pid=4)

    problem = bench.undo("directories").problem("directories")

    assert problem.id == "FolderLeft"
    assert r"C:\var\log\kubelet cannot be removed: " in problem.message
    assert "restart the machine" in problem.hint


# -- what ordinary users left, before, during and after a join

KUBELET = r"C:\var\lib\kubelet"
# Every folder that winboot, its tasks and its services read, write or start something in: generated from the step.
EVERY = sorted({p for kind in ("private", "readable") for p in DIRECTORIES.inputs(a_spec())[kind]})
SAMPLE = [r"C:\k", KUBELET, r"C:\ProgramData\containerd\root", r"C:\var\log\kubelet"]


def of_alice(bench: Bench, path: str, user: Token) -> None:
    """An administrator made the folders above; the user owns this one, with a file in it."""
    bench.machine.files.make_directory(path.rpartition("\\")[0])
    bench.machine.files.make_directory(path, user)
    bench.machine.files.write(rf"{path}\theirs.txt", b"hers", user)


def owned(bench: Bench, path: str, user: Token) -> None:
    of_alice(bench, path, user)


def writable(bench: Bench, path: str, user: Token) -> None:
    bench.machine.files.make_directory(path)
    bench.machine.files.need(path)[1].acl.explicit.append(Rule(user.sid, FULL, inheritance=3))


def junction(bench: Bench, path: str, user: Token) -> None:
    bench.machine.files.make_directory(path)
    bench.machine.files.make_directory(r"C:\alice", user)
    bench.machine.files.link(rf"{path}\child", r"C:\alice", "Junction", user)


def hard_link(bench: Bench, path: str, user: Token) -> None:
    bench.machine.files.make_directory(path)
    bench.machine.files.write(r"C:\secret.txt", b"of an administrator")
    bench.machine.files.link(rf"{path}\child.txt", r"C:\secret.txt", "HardLink", user)


def held_open(bench: Bench, path: str, user: Token) -> None:
    of_alice(bench, path, user)
    bench.machine.files.hold(path, CHANGE_PERMISSIONS, pid=4000, token=user)


def child_folder(bench: Bench, path: str, user: Token) -> None:
    bench.machine.files.make_directory(path)
    bench.machine.files.make_directory(rf"{path}\child\deeper", user)


def symbolic_link(bench: Bench, path: str, user: Token) -> None:
    """By the privilege, or while the machine was in developer mode."""
    bench.machine.files.make_directory(path)
    bench.machine.files.make_directory(r"C:\alice", user)
    bench.machine.files.link(rf"{path}\child", r"C:\alice", "SymbolicLink", SYSTEM_TOKEN)
    bench.machine.files.need(rf"{path}\child", follow=False)[1].acl.owner = user.sid


ATTACKS = (owned, writable, junction, hard_link, symbolic_link, held_open, child_folder)
LINKS = {junction: "child", symbolic_link: "child", hard_link: "child.txt"}


def hers(bench: Bench, path: str, user: Token) -> list[str]:
    """The files below a path that the user owns, may write, or reaches by a link or a handle."""
    files = bench.machine.files
    found = [
        below
        for below, node in [(path, files.need(path)[1]), *files.walk(path)]
        if node.link or node.names > 1 or node.acl.owner == user.sid or node.acl.allows(user, WRITE)
    ]
    node = files.need(path)[1]
    return found + [one.path for one in node.opened if one.rights & CHANGE_PERMISSIONS]


def attacked(bench: Bench, path: str, attack: Callable[[Bench, str, Token], None]) -> None:
    """Attack before a change: the look sees it, the change removes and reports it, an undo restores it."""
    user = ordinary(bench)
    attack(bench, path, user)
    assert bench.look(STEP).differences(STEP), "a look sees it"

    assert bench.run(STEP).states == {STEP: "changed"}

    assert hers(bench, path, user) == []
    assert bench.run(STEP).states == {STEP: "ok"}


@pytest.mark.parametrize(("attack", "path"), [*zip(ATTACKS, SAMPLE * 2, strict=False)])
def test_nothing_of_an_ordinary_user_stays_in_a_folder_of_ours(
    bench: Bench, path: str, attack: Callable[[Bench, str, Token], None]
):
    attacked(bench, path, attack)


@pytest.mark.matrix
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("path", EVERY)
def test_nothing_of_an_ordinary_user_stays_in_any_folder(
    bench: Bench, path: str, attack: Callable[[Bench, str, Token], None]
):
    attacked(bench, path, attack)


@pytest.mark.parametrize("attack", LINKS)
@pytest.mark.parametrize("path", [r"C:\k", r"C:\etc\cni\net.d", KUBELET])
def test_a_link_that_its_maker_holds_open_is_named_until_it_is_gone(
    bench: Bench, path: str, attack: Callable[[Bench, str, Token], None]
):
    """With sharing of nothing: Windows PowerShell 5.1 has no LinkType for it then."""
    user, files = ordinary(bench), bench.machine.files
    attack(bench, path, user)
    link = rf"{path}\{LINKS[attack]}"
    handle = files.hold(link, READ, pid=4000, token=user, share=0)

    assert link in bench.look(STEP).differences(STEP)[f"folder {path}: files of others"][0]
    assert bench.run(STEP).problem(STEP).id in ("FileInUse", "FolderInUse")

    files.close(handle.handle)
    assert bench.run(STEP).states == {STEP: "changed"}
    assert hers(bench, path, user) == []


@pytest.mark.parametrize("below", ["pods", "plugins_registry"])
def test_the_kubelets_own_folders_are_looked_through_when_they_are_taken_over(bench: Bench, below: str):
    user = ordinary(bench)
    files = bench.machine.files
    files.make_directory(KUBELET)
    files.make_directory(r"C:\alice", user)
    files.link(rf"{KUBELET}\{below}", r"C:\alice", "Junction", user)

    told = bench.look(STEP).differences(STEP)
    assert told[f"folder {KUBELET}: files of others"] == (rf"{KUBELET}\{below} (a junction)", None)
    bench.run(STEP)
    assert not files.exists(rf"{KUBELET}\{below}")

    bench.undo(STEP)
    assert files.need(rf"{KUBELET}\{below}", follow=False)[1].link == ("Junction", r"C:\alice")


def test_a_handle_of_the_former_owner_reaches_what_was_set_aside_and_nothing_of_ours(bench: Bench):
    """Windows checks rights at the open: with that handle the former owner would restore the old rules a moment later."""
    user = ordinary(bench)
    files = bench.machine.files
    files.make_directory(r"C:\k", user)
    handle = files.hold(r"C:\k", CHANGE_PERMISSIONS, pid=4000, token=user)

    bench.run(STEP)
    everything = Acl(user.sid, user.sid, protected=True, explicit=[Rule(user.sid, FULL, inheritance=3)])
    files.set_acl_by(handle, everything)

    assert not files.need(r"C:\k")[1].acl.allows(user, WRITE)
    assert bench.look(STEP).states == {STEP: "ok"}


@pytest.mark.parametrize("name", [r"versions", r"theirs\below", r"theirs.exe"])
def test_a_users_open_files_go_before_the_folder_above_is_closed(bench: Bench, name: str):
    """An administrator changed the owner alone: the user keeps an inherited right until winboot's rules replace it."""
    user, files, path = ordinary(bench), bench.machine.files, rf"C:\k\{name}"
    files.make_directory(path.rpartition("\\")[0])
    if path.endswith(".exe"):
        files.write(path, b"hers", user)
    else:
        files.make_directory(path, user)
    handle = files.hold(path, CHANGE_PERMISSIONS, pid=4000, token=user)
    files.need(path)[1].acl.owner = SYSTEM_TOKEN.sid

    assert bench.run(STEP).states == {STEP: "changed"}
    assert handle.path.startswith(r"C:\ProgramData\winboot\aside" + "\\")
    bench.undo(STEP)
    assert files.need(path)[1] is handle.node


def test_a_folder_of_another_owner_with_an_open_file_is_named(bench: Bench):
    user = ordinary(bench)
    of_alice(bench, r"C:\k", user)
    held = bench.machine.files.open(r"C:\k\theirs.txt", "Open", access=1, share=7, pid=4000, token=user)

    problem = bench.run(STEP).problem(STEP)

    assert problem.id == "FolderInUse"
    assert r"cannot set C:\k aside, which another account owns" in problem.message
    bench.machine.files.close(held.handle)
    assert bench.run(STEP).states == {STEP: "changed"}


def test_a_user_that_is_quicker_than_a_change_does_not_keep_the_folder(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    """A race at every operation on C:\\k: the user makes the folder again as soon as it is gone."""
    user = ordinary(bench)
    of_alice(bench, r"C:\k", user)
    invoke = Session.invoke
    made: list[str] = []

    def raced(self: Session, command: str, parameters: dict[str, Any], input: Any = ()) -> Any:
        done = invoke(self, command, parameters, input)
        # What is there again when its turn comes is set aside once more.
        if command == "file.move" and parameters["source"] == r"C:\k" and len(made) < 2:
            made.append(command)
            bench.machine.files.make_directory(r"C:\k", user)
        return done

    monkeypatch.setattr(Session, "invoke", raced)

    assert bench.run(STEP).problem(STEP).id == "FolderTaken"
    assert len(made) == 2
    assert bench.run(STEP).states == {STEP: "changed"}
    assert hers(bench, r"C:\k", user) == []


def test_what_comes_while_a_folder_is_closed_is_set_aside_too(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """It was not there when the folder was looked through, before the first rule changed."""
    user, files = ordinary(bench), bench.machine.files
    writable(bench, r"C:\k", user)
    files.need(r"C:\k")[1].acl.explicit[-1] = Rule(user.sid, WRITE | APPEND)
    files.make_directory(r"C:\alice", user)
    invoke = Session.invoke

    def raced(self: Session, command: str, parameters: dict[str, Any], input: Any = ()) -> Any:
        if command == "acl.set" and parameters["path"] == r"C:\k" and not files.exists(r"C:\k\late"):
            files.link(r"C:\k\late", r"C:\alice", "Junction", user)
        return invoke(self, command, parameters, input)

    monkeypatch.setattr(Session, "invoke", raced)

    assert bench.run(STEP).states == {STEP: "changed"}
    assert not files.exists(r"C:\k\late")
    monkeypatch.undo()
    bench.undo(STEP)
    assert files.need(r"C:\k\late", follow=False)[1].link == ("Junction", r"C:\alice")


def test_the_rules_of_a_folder_of_windows_are_not_replaced_by_ours(bench: Bench):
    """Programs and users of the machine have rights there that ours do not name."""
    path = r"C:\Program Files"
    bench.machine.files.need(path)[1].acl.explicit.append(Rule(ordinary(bench).sid, FULL, inheritance=3))

    answer = call(bench, f"Assert-WindowsFolder -Path '{path}'")

    assert answer.id.removeprefix("winboot.") == "FolderOpen"
    assert f"may replace what is in {path}" in answer.message


def test_what_pods_and_images_hold_is_theirs(bench: Bench):
    """An adopted node: a volume that its pod's user owns stays where it is."""
    volume = rf"{KUBELET}\pods\uid1\volumes"
    bench.machine.files.make_directory(volume)
    bench.machine.files.make_directory(rf"{volume}\data")
    bench.machine.files.need(rf"{volume}\data")[1].acl.owner = "S-1-5-93-2-2"

    bench.run(STEP)

    assert bench.machine.files.exists(rf"{volume}\data")

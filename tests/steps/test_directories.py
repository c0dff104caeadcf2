"""Make the folders that the later steps write to, with the access rules they need."""

from tests.steps.bench import Bench
from tests.steps.builders import a_spec
from winboot.steps.directories import DIRECTORIES


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

"""The undo of containerd removes layers of images as Windows wants it, and a new containerd starts without layers."""

from __future__ import annotations

import pytest
from winboot_lab.engine.types import hns, layer
from winboot_lab.windows.failure import Failure

from tests.steps.bench import Bench
from tests.steps.nodes import Node
from winboot.script.library import functions

ROOT = r"C:\ProgramData\containerd\root"
STORE = rf"{ROOT}\io.containerd.snapshotter.v1.windows\snapshots"
RECORDS = rf"{ROOT}\io.containerd.metadata.v1.bolt\meta.db"


def layers(node: Node) -> list[str]:
    files = node.machine.files
    return [entry.name for entry in files.list(STORE)] if files.exists(STORE) else []


def test_the_lab_knows_the_declaration_by_its_text():
    text = functions()["Get-LayerDeclaration"].text
    source = text.partition("@'\n")[2].partition("\n'@")[0]

    assert hns.digest(source) == layer.DECLARATION


def test_a_layer_cannot_be_deleted_like_a_folder(node: Node):
    assert layers(node)
    with pytest.raises(Failure):
        node.machine.files.delete_directory(STORE, recurse=True)

    assert layers(node)


def test_an_undo_removes_pods_images_and_layers_before_containerd_goes(node: Node):

    assert node.undo("containerd").step("containerd")["state"] == "changed"
    assert layers(node) == []
    assert node.machine.services.find("containerd") is None


def test_layers_that_the_runtime_leaves_are_removed_by_the_host_compute_service(node: Node):
    node.machine.files.make_layer(rf"{STORE}\rm-77")

    assert node.undo("containerd").step("containerd")["state"] == "changed"
    assert layers(node) == []


def test_layers_in_use_are_named_and_the_records_of_them_stay(node: Node):
    shim = r"C:\k\versions\containerd-2.3.6\containerd-shim-runhcs-v1.exe"
    node.machine.processes.spawn(f'"{shim}" -namespace moby')
    node.machine.files.make_layer(rf"{STORE}\77")

    problem = node.undo("containerd").problem("containerd")

    assert problem.id == "LayerLeft"
    assert rf"{STORE}\77 (0x80070020)" in problem.message
    assert "restart" in problem.hint
    assert node.file(RECORDS) is not None


def test_a_join_after_it_pulls_its_images_again(node: Node):
    node.undo("containerd")
    node.change("containerd", "pause-image")

    assert node.look("containerd", "pause-image").states == {"containerd": "ok", "pause-image": "ok"}
    assert layers(node)


def test_layers_that_no_containerd_knows_are_set_aside_and_come_back_with_an_undo(bench: Bench):
    """Planted below a root that an administrator had made: no layer could be unpacked next to them (microsoft/hcsshim#536)."""
    bench.machine.accounts.add("alice", administrator=False)
    user = bench.machine.accounts.token("alice")
    bench.machine.files.make_directory(rf"{STORE}\1")
    bench.machine.files.make_directory(rf"{STORE}\1\Files", user)
    bench.machine.files.write(rf"{STORE}\1\Files\hers.txt", b"hers", user)

    told = bench.look("containerd").differences("containerd")
    assert told[f"folder {STORE}: layers that no containerd knows"] == ("present", "set aside")
    # What it is to run is not there: the service does not start. The layers went before.
    bench.run("containerd")
    assert not bench.machine.files.exists(STORE)

    bench.undo("containerd")
    assert bench.machine.files.read(rf"{STORE}\1\Files\hers.txt") == b"hers"


def test_layers_that_a_containerd_knows_stay(bench: Bench):
    bench.machine.files.make_directory(rf"{STORE}\1\Files")
    bench.machine.files.write(rf"{STORE.rpartition(chr(92))[0]}\metadata.db", b"{}")

    bench.run("containerd")

    assert bench.machine.files.exists(rf"{STORE}\1\Files")

"""containerd's configuration: pause image, CNI folders, mirrors, and logins that only SYSTEM and administrators may read."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from winboot_lab.programs.containerd import Containerd

from tests.config.scene import a_spec
from tests.lab.actions import append, delete, let_in, replace
from tests.lab.scenes import REGISTRY_PASSWORD
from tests.steps.bench import Bench
from tests.steps.nodes import Node

STEP = "containerd-config"
TOML = r"C:\Program Files\containerd\config.toml"
CRICTL = r"C:\k\crictl.yaml"
CERTS = r"C:\ProgramData\containerd\certs.d"
LOGIN = rf"{CERTS}\private.corp.example\hosts.toml"


def test_a_bare_machine_lacks_the_configuration_and_the_mirrors(bench: Bench):
    assert set(bench.look(STEP).differences(STEP)) == {
        rf"file {TOML}: content",
        rf"file {CRICTL}: content",
        rf"file {CERTS}\docker.io\hosts.toml: content",
    }


def test_it_is_written_once_removed_and_written_again(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.file(TOML) is None
    assert node.file(CRICTL) is None
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    # What runs has read the file of before.
    assert node.change("containerd", "kubelet", "flanneld", "kube-proxy").states["containerd"] == "changed"
    node.site.settle(60)
    assert node.differs == []


def test_a_former_file_comes_back(bench: Bench):
    before = b"version = 2\n# by hand\n"
    bench.write(TOML, before)
    bench.run(STEP, "directories")
    assert b"by hand" not in (bench.file(TOML) or b"")

    bench.undo(STEP, "directories")

    assert bench.file(TOML) == before


LAYERS = b"  discard_unpacked_layers = true\n"
LIVE = {"NodeIsLive": True}


def test_a_live_node_keeps_its_layers_until_a_drain(bench: Bench):
    bench.run(STEP, "directories")
    written = bench.file(TOML) or b""
    assert written.count(LAYERS) == 1
    kept = written.replace(LAYERS, b"")
    bench.write(TOML, kept)

    told = bench.run(STEP, mode="Look", facts=LIVE)
    assert told.states == {STEP: "ok"}
    assert (
        told.differences(STEP)["containerd discard_unpacked_layers"][1] == "true, after a join with --drain"
    )
    assert bench.run(STEP, facts=LIVE).states == {STEP: "ok"}
    assert bench.file(TOML) == kept
    # Another difference of the file is corrected without it.
    bench.write(TOML, kept + b"# by hand\n")
    assert bench.run(STEP, facts=LIVE).states == {STEP: "changed"}
    assert bench.file(TOML) == kept

    assert bench.run(STEP, mode="Look", facts={**LIVE, "Drains": True}).states == {STEP: "would-change"}
    assert bench.run(STEP, facts={**LIVE, "Drained": True}).states == {STEP: "changed"}
    assert bench.file(TOML) == written
    assert bench.run(STEP, mode="Look", facts=LIVE).differences(STEP) == {}


CONF_D = r"C:\Program Files\containerd\conf.d"
# As other installers write them: another version of the file, other quotes, and settings of their own.
OLD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "corp.example/pause:1" # ours
  max_concurrent_downloads = 9
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "C:\\\\cni"
"""
NEW = """version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = 'corp.example/pause:1'
[plugins.'io.containerd.cri.v1.runtime']
cni.bin_dirs = ['C:\\own', 'D:\\more']
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (OLD, {"sandbox_image": "corp.example/pause:1", "cni.conf_dir": r"C:\cni"}),
        (NEW, {"pinned_images.sandbox": "corp.example/pause:1", "cni.bin_dirs": r"C:\own, D:\more"}),
        ("version = 4\n", {"version": "4"}),
        ("version = 3\n[debug]\nlevel = 'debug'\n", {}),
        ("[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'windows'\n", {}),
    ],
    ids=["the old sections", "the new sections", "a newer version", "other settings", "the same value"],
)
def test_a_drop_in_that_changes_a_setting_of_winboots_is_shown_and_kept(
    node: Node, text: str, found: dict[str, str]
):
    path = rf"{CONF_D}\x.toml"
    node.machine.files.make_directory(CONF_D)
    node.machine.files.write(path, text.encode())

    told = node.look(STEP)

    assert {what: is_ for what, (is_, _) in told.differences(STEP).items()} == {
        f"containerd {name}, from {path}:": value for name, value in found.items()
    }
    assert all(one["policy"] for one in told.step(STEP)["differences"])
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.file(path) == text.encode()


@pytest.mark.check
def test_a_drop_in_counts_in_the_labs_containerd(node: Node):
    """What the look names is in effect: winboot's file imports the folder, as containerd's own default file does."""
    node.machine.files.make_directory(CONF_D)
    node.machine.files.write(rf"{CONF_D}\x.toml", NEW.encode())

    node.machine.reboot()
    node.site.settle(120)

    (process,) = node.machine.processes.named("containerd")
    assert isinstance(process.served, Containerd)
    assert process.served.config.sandbox_image == "corp.example/pause:1"


def test_the_mirrors_of_other_registries_are_left_alone(bench: Bench):
    stranger = rf"{CERTS}\ghcr.io\hosts.toml"
    bench.write(stranger, b"# somebody's")

    bench.run(STEP, "directories")

    assert bench.file(stranger) == b"# somebody's"
    assert bench.look(STEP).states == {STEP: "ok"}


@pytest.mark.parametrize(
    ("what", "hand"),
    [
        ("content", replace(LOGIN, "mirror.corp.example", "other.corp.example")),
        ("logins", replace(LOGIN, "Basic ", "Other ")),
        ("logins", append(LOGIN, "skip_verify = true\n")),
        ("logins", append(LOGIN, '[host."x".header]\n  authorization = "Basic b3RoZXI="\n')),
        ("access", let_in(LOGIN)),
    ],
    ids=["another mirror", "no login", "more than logins", "a login too many", "a file that users read"],
)
def test_a_file_with_a_login_is_known_by_all_but_the_login(
    joined: Callable[[str], Node], what: str, hand: Callable[..., None]
):
    node = joined("everything").after(hand)

    told = node.look(STEP)
    node.change(STEP, secrets={step_secret(node): REGISTRY_PASSWORD})

    assert set(told.differences(STEP)) == {rf"file {LOGIN}: {what}"}
    assert REGISTRY_PASSWORD not in str(told.events)
    assert node.differs == []


def test_a_ca_that_is_not_there_is_a_difference_that_winboot_cannot_mend(tmp_path: Path):
    """containerd fails every pull from that registry."""
    ca = r"C:\certs\ca.pem"
    profile = f"runtime: {{registries: {{r.example: {{ca: '{ca}', header: {{X-Team: a}}}}}}}}"
    bench = Bench(spec=a_spec(tmp_path, profile=profile))

    told, failed = bench.look(STEP), bench.run(STEP, "directories")
    bench.write(ca, b"a certificate")

    assert rf"file {ca} of the registry r.example" in told.differences(STEP)
    assert failed.problem(STEP).id == "RegistryFile"
    assert bench.run(STEP, "directories").states[STEP] == "changed"
    assert bench.look(STEP).states == {STEP: "ok"}


def test_further_headers_stand_beside_a_login(joined: Callable[[str], Node]):
    node = joined("everything")
    (found,) = (one for one in node.spec.runtime.registries if one.secret)
    headed = dataclasses.replace(found, headers=("  'X-Team' = 'a'",))
    registries = tuple(headed if one is found else one for one in node.spec.runtime.registries)
    node.spec = dataclasses.replace(
        node.spec, runtime=dataclasses.replace(node.spec.runtime, registries=registries)
    )

    node.change(STEP, secrets={step_secret(node): REGISTRY_PASSWORD})

    (host,) = tomllib.loads((node.file(LOGIN) or b"").decode())["host"].values()
    assert set(host["header"]) == {"authorization", "X-Team"}
    assert node.look(STEP).states == {STEP: "ok"}


def test_without_the_login_the_change_says_which_secret_is_missing(joined: Callable[[str], Node]):
    node = joined("everything").after(delete(LOGIN))

    problem = node.change(STEP, secrets={}).problem(STEP)

    assert problem.id == "SecretMissing"
    assert step_secret(node) in problem.message


def step_secret(node: Node) -> str:
    """The name of the one login's secret."""
    (name,) = (one.secret for one in node.spec.runtime.registries if one.secret)
    return name

"""csi-proxy as a service: its flags by version and manager, its pipes, and another program that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.windows.machine import Machine

from tests.config.scene import a_spec
from tests.steps.bench import Bench
from tests.steps.library import call
from tests.steps.nodes import Node
from winboot.config.compat import load
from winboot.script.steps.csi_proxy import PIPE

STEP = "csi-proxy"
PAGE = Path(__file__).parents[2] / "docs" / "storage.md"
LOG = r"-log_file=C:\var\log\csi-proxy\csi-proxy.log"


def arguments(folder: Path, manager: str = "sc", **keys: Any) -> tuple[Any, ...]:
    wanted = {"url": "https://x.example/csi-proxy.exe", "sha256": "a" * 64, "version": "1.3.0", **keys}
    profile = {"storage": {"csi_proxy": wanted}, "services": {"overrides": {"csi-proxy": manager}}}
    return a_spec(folder, profile=yaml.safe_dump(profile)).services["csi-proxy"].arguments


@pytest.mark.parametrize(
    ("manager", "keys", "flags"),
    [
        ("sc", {}, ("-require-privacy=true", "-windows-service", LOG, "-logtostderr=false")),
        (
            "sc",
            {"require_privacy": False},
            ("-require-privacy=false", "-windows-service", LOG, "-logtostderr=false"),
        ),
        ("sc", {"version": "1.1.3"}, ("-windows-service", LOG, "-logtostderr=false")),
        ("nssm", {}, ("-require-privacy=true",)),
    ],
)
def test_the_flags_are_those_of_the_version_and_the_manager(
    tmp_path: Path, manager: str, keys: dict[str, Any], flags: tuple[str, ...]
) -> None:
    assert arguments(tmp_path, manager, **keys) == (r"-kubelet-path=C:\var\lib\kubelet", *flags)


def test_the_service_serves_the_pipes_of_the_drivers(joined: Any) -> None:
    node: Node = joined("everything")

    assert "csi-proxy-disk-v1" in node.machine.files.pipes
    assert "Starting CSI-Proxy Server" in node.machine.files.text(r"C:\var\log\csi-proxy\csi-proxy.log")


def test_a_pipe_of_another_program_stops_the_step(joined: Any) -> None:
    """Two of them fight over the names: the second does not start."""
    node: Node = joined("everything")
    node.machine.services.stop(node.machine.services.need(STEP))
    node.site.settle(5)
    node.machine.files.pipes[PIPE.rpartition("\\")[2]] = 4

    assert node.look(STEP).differences(STEP)[f"pipe {PIPE}"][0] == "served by another program than csi-proxy"
    assert node.change(STEP).problem(STEP).id == "PipeTaken"


def test_a_program_that_serves_no_pipe_is_named(bench: Bench) -> None:
    """A wrong program may run, and its drivers find nothing."""
    problem = call(bench, f"Wait-Pipe -Service 'csi-proxy' -Path '{PIPE}'").id

    assert problem.removeprefix("winboot.") == "PipeMissing"


def test_undo_leaves_nothing_of_it(joined: Any) -> None:
    node: Node = joined("everything")
    node.undo(STEP)

    assert node.machine.services.find(STEP) is None
    assert not [one for one in node.machine.files.pipes if one.startswith("csi-proxy")]


def test_the_page_says_of_each_driver_what_the_data_says() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()

    for name, entry in load().section("csi_drivers").items():
        default = "HostProcess" if entry["host_process"] else "csi-proxy"
        row = next(line for line in page if line.startswith(f"| {name} |"))
        cells = [name, entry["version"], default, entry["setting"]]
        assert [cell.strip() for cell in row.strip("|").split("|")] == cells


def test_a_flag_that_the_version_lacks_ends_it() -> None:
    from winboot_lab.mirror import program
    from winboot_lab.programs.base import Run
    from winboot_lab.programs.csi_proxy import CsiProxy, CsiProxyProgram

    machine = Machine("WIN-1")
    machine.files.make_directory(r"C:\k")
    machine.files.write(r"C:\k\csi-proxy.exe", program("csi-proxy", "1.1.3"))
    process = machine.processes.spawn(r"C:\k\csi-proxy.exe")
    argv = ["csi-proxy.exe", "-require-privacy=false"]
    run = Run(machine, process, argv, {})

    assert CsiProxyProgram().run(machine, process, argv, {}, b"").code == 2
    died = CsiProxy(run).on_start()
    assert died is not None and died.code == 2

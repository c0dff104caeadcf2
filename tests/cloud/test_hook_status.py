"""`winboot hook status` and `winboot hook serve --dry-run`: what a hook does, and what it would do."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.aws import AwsSite

from tests.cloud.hook_bench import Bench, a_bench
from tests.cloud.test_hook_adversity import queue
from winboot.base.errors import UsageError
from winboot.cli import run
from winboot.operations.hook.dry_run import forecasts
from winboot.operations.hook.status import StatusServer, read_status, status_of
from winboot.report.shape import WorkItem

ITEM = WorkItem(
    machine="i-1",
    group="pool",
    action="launch",
    node="win-1",
    state="booting",
    reason="connection refused",
    seconds=40,
)


@pytest.fixture
def bench(aws: AwsSite) -> Iterator[tuple[AwsSite, Bench]]:
    with a_bench(aws.folder, "pool.aws.yaml", regions=["eu-west-1"], cluster="prod") as made:
        aws.group("pool", aws.network())
        yield aws, made


def test_the_items_of_a_running_hook_are_read_over_its_socket(tmp_path: Path) -> None:
    folder = tmp_path / "hook"
    with StatusServer(folder, lambda: [ITEM]):
        (path,) = folder.iterdir()
        assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
        assert read_status(folder) == read_status(folder) == [ITEM]

    with pytest.raises(UsageError, match="no hook runs"):
        read_status(folder)


def test_a_socket_of_a_process_that_was_killed_is_no_hook(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "1.sock"))
    (tmp_path / "2.sock").write_text("no socket", encoding="utf-8")

    with pytest.raises(UsageError, match="no hook runs"):
        read_status(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="chown to another user needs root")
def test_a_socket_of_another_user_is_not_read(tmp_path: Path) -> None:
    with StatusServer(tmp_path, lambda: [ITEM]):
        (path,) = tmp_path.iterdir()
        os.chown(path, 65534, 65534)

        with pytest.raises(UsageError, match="no hook runs"):
            read_status(tmp_path)


def test_the_command_prints_a_table_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path))
    with StatusServer(tmp_path / "hook", lambda: [ITEM]):
        assert run(["hook", "status"]) == 0
        assert "win-1" in capsys.readouterr().out
        assert run(["hook", "status", "-o", "json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["kind"], line["state"], line["reason"]) == ("work-item", "booting", "connection refused")
    assert run(["hook", "status"]) == 64


def test_an_item_that_boots_is_listed_with_its_reason(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    made.dead = 1
    aws.scale("pool", 1)
    worker = made.worker(queue(aws, made))
    seen: list[WorkItem] = []
    made.kernel.at(50.0, lambda: seen.extend(status_of(worker.items)))

    made.drive(worker, seconds=60.0)

    (one,) = seen
    assert (one.state, one.action, one.group) == ("booting", "launch", "pool")
    assert "connection refused" in one.reason and one.node and 40 <= one.seconds <= 50


def would(aws: AwsSite, made: Bench) -> list[str]:
    """What a dry run prints of the messages that are there."""
    hooks: Any = queue(aws, made)
    return [what for _, what in forecasts(hooks, made.worker(hooks).work)]


def test_a_dry_run_says_what_each_message_leads_to_and_does_nothing(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    aws.group("theirs", aws.network(), cluster="kubernetes.io/cluster/other")
    aws.scale("pool", 1)
    aws.scale("theirs", 1)
    aws.send({"LifecycleTransition": "autoscaling:SOMETHING_NEW"})

    first = would(aws, made)

    (name,) = [what.removeprefix("join ") for what in first if what.startswith("join ")]
    assert sorted(what.partition(":")[0] for what in first) == [
        f"join {name}",
        "leave the message in the queue",
        "skip",
    ]
    assert sorted(would(aws, made)) == sorted(first)
    assert (made.nodes(), made.leases(), aws.completed) == ([], [], [])
    assert {name for machine in made.machines.values() for name in machine.modes} == set()

    made.drive(made.worker(queue(aws, made)), seconds=100.0)
    aws.scale("pool", 0)
    assert f"cordon {name}, drain it for up to 1 s, delete it, answer CONTINUE" in would(aws, made)
    assert made.open_nodes() == [name]

"""`winboot fleet` on a genuine API server: what it renders is applied as it is, and the genuine Job controller makes the pods,
tries indexes again, gives them up and counts. The pods' programs are run by the test (`pods.py`); the machine is the lab's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cli.staging import PASSWORD_VARIABLE, Staged, stage
from winboot_lab.up import Lab

from tests.genuine.conftest import Genuine
from tests.genuine.machines import Forwarded
from tests.genuine.pods import Kubelet, Pod
from tests.genuine.test_lab_machines import prepare
from winboot.cli import run

pytestmark = pytest.mark.genuine
SPACE = "winboot-system"
# A step, as the journal of a node has it.
CHANGED = r"\"state\":\"changed\""
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


@pytest.fixture
def staged(genuine: Genuine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Staged]:
    """A machine of the lab that is to be a node of the genuine cluster."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with (
        closing(Forwarded(genuine, tmp_path)) as cluster,
        Lab(nodes=1, cluster=cluster, scale=0.05) as lab,
    ):
        staged = stage(lab, tmp_path / "site")
        prepare(genuine, staged)
        yield staged


def until(what: Callable[[], Any], seconds: float = 300.0) -> Any:
    """What it gives once it gives something; the Job controller waits ten seconds before it tries an index again."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.5)
    return found


def the_job(genuine: Genuine, name: str) -> dict[str, Any]:
    """The status of a Job, once it is over."""
    path = f"/apis/batch/v1/namespaces/{SPACE}/jobs/{name}"

    def over() -> dict[str, Any] | None:
        status: dict[str, Any] = genuine.ask("GET", path).json()["status"]
        ends = [one for one in status.get("conditions", ()) if one["type"] in ("Complete", "Failed")]
        return {**status, "end": ends[0]["type"], "reason": ends[0].get("reason", "")} if ends else None

    return dict(until(over))


def rows(staged: Staged, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    """What `fleet status` says."""
    capsys.readouterr()
    code = run(["fleet", "status", "r1", "-i", str(staged.inventory), "-o", "json"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_job_gives_up_what_failed_and_another_try_continues_over_evicted_and_killed_pods(
    genuine: Genuine, staged: Staged, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-i", str(staged.inventory), "--image", "registry.example/winboot:0.1.0", "--shards", "2"]
    assert run(["fleet", "render", *words, "--name", "r1", "--max-failed", "0"]) == 0
    genuine.apply(capsys.readouterr().out)

    # The Secret has a wrong password: the worker with the node ends with 3, and the Job does not retry that index.
    with Kubelet(genuine, SPACE, tmp_path / "first", {PASSWORD_VARIABLE: "wrong"}) as kubelet:
        first = the_job(genuine, "winboot-fleet-r1-1")
        begun = [pod.index for pod in kubelet.pods]

    assert (first["end"], first["reason"]) == ("Failed", "FailedIndexes"), first
    assert first["failed"] >= 1 and sorted(begun) == [0, 1]
    code, (row,) = rows(staged, capsys)
    assert (code, row["node"], row["state"]) == (2, "win-1", "failed:LoginRefused")

    assert run(["fleet", "resume", "r1", *words]) == 0
    said = capsys.readouterr()
    assert "1 of 1 nodes are not finished" in said.err
    genuine.apply(said.out)
    with Kubelet(genuine, SPACE, tmp_path / "second", {PASSWORD_VARIABLE: staged.password}) as kubelet:
        working: Pod = until(lambda: next((pod for pod in kubelet.pods if CHANGED in pod.told()), None))
        working.process.kill()
        idle: Pod = until(lambda: kubelet.of(1 - working.index))[0]
        kubelet.evict(idle)
        after_kill: Pod = until(lambda: kubelet.of(working.index)[1:])[0]
        after_eviction: Pod = until(lambda: kubelet.of(idle.index)[1:])[0]
        second = the_job(genuine, "winboot-fleet-r1-2")

    assert (second["end"], second["completedIndexes"]) == ("Complete", "0,1"), second
    # The one that was killed has cost a try of its index; the eviction has cost none.
    assert after_kill.annotations[FAILURES] == "1"
    assert (after_eviction.annotations[FAILURES], after_eviction.annotations[IGNORED]) == ("0", "1")
    code, (row,) = rows(staged, capsys)
    assert (code, row["state"], row["holder"]) == (0, "ok", "")
    node = genuine.ask("GET", "/api/v1/nodes/win-1").json()
    assert {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"] == "True"

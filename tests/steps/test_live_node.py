"""Without a kubeconfig the machine itself decides whether its node is live: an unknown one is, while pods run on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.test_promises import run_pod
from tests.steps.bench import Bench
from tests.steps.library import call
from tests.steps.nodes import Node

POD = "function Test-RunningPod { $true }\n"
NONE = "function Test-RunningPod { $false }\n"
UNKNOWN = "function Get-NodeObject { }\n"


def node(ready: str, *, cordoned: bool = False, starting: bool = False) -> str:
    """A Node that can be read."""
    return (
        f"function Get-NodeObject {{ [pscustomobject]@{{ Ready = '{ready}'; Unschedulable = ${cordoned}; "
        f"Starting = ${starting} }} }}\n"
    )


@pytest.mark.parametrize(
    ("read", "pods", "live"),
    [
        (UNKNOWN, POD, True),
        (UNKNOWN, NONE, False),
        (node("Unknown"), POD, True),
        (node("False"), NONE, False),
        (node("False", starting=True), POD, False),
        (node("True"), NONE, True),
        (node("True", cordoned=True), POD, False),
        (node("False", cordoned=True), POD, False),
    ],
)
def test_a_node_is_live_while_pods_may_run_on_it(bench: Bench, read: str, pods: str, live: bool) -> None:
    alone = "$script:Run.Facts = @{ Alone = $true; NodeIsLive = $false }\nUpdate-LiveFact\n"

    assert call(bench, f"{read}{pods}{alone}$script:Run.Facts.NodeIsLive").objects == [live]


@pytest.mark.parametrize("scene", ["plain", "docker"])
def test_a_running_pod_is_found_without_the_cluster(joined: Callable[[str], Node], scene: str) -> None:
    live = joined(scene)
    run_pod(live.site, "web")
    docker = f"$script:Node.docker = '{live.spec.paths.docker}'\n" if scene == "docker" else ""

    assert call(live, f"{docker}Test-RunningPod").objects == [True]


def test_a_bare_machine_runs_no_pod(bench: Bench) -> None:
    assert call(bench, "Test-RunningPod").objects == [False]
